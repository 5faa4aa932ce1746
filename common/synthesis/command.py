"""Speaking as a command: a list into a folder with a line a file and the figures, or one text to standard output."""

import itertools
import os
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from common.audio.wav import check_sound_format, pcm16, wav_header
from common.checkpoints.loading import LoadedCheckpoint
from common.cli import INFERENCE_LOG, MANY_BATCHES
from common.files import check_apart, read_json, read_text, writing
from common.logger import Logger
from common.precision import Precision
from common.progress import Progress, print_line, progress
from common.signals import StopSignals
from common.synthesis.imitation import imitate, load_recording
from common.synthesis.loading import GRIFFIN_LIM, contract_of, load_vocoder, make_voice, shipped_vocoder
from common.synthesis.options import STANDARD, CommandOptions, VoiceOptions
from common.synthesis.output_folder import OutputFolder
from common.synthesis.phrases import load_mels_or_recordings, warn_unread, with_frame_pitch
from common.synthesis.speech import parse_prosody
from common.synthesis.synthesizer import BatchTimes, Synthesizer, warn_of_failures
from common.synthesis.utterances import Phrase, SynthesisInput, plan_batches
from common.synthesis.voice import Voice
from common.timing import take_turns


def speak(
    options: CommandOptions,
    voice_options: VoiceOptions,
    opened: Mapping[str, LoadedCheckpoint],
    phrases: Sequence[Phrase],
    *,
    precision: Precision,
    files: tuple[list[tuple[str, Path]], list[tuple[str, Path]]],
    parameters: Mapping[str, Any],
) -> int:
    """Speak ``phrases``, or the one text, with the ``opened`` checkpoints, by role; returns the exit status.

    ``files`` are those to write and to read that the options name; ``parameters`` are logged. Raises InputError if a
    phrase cannot be spoken, which shows before the first one is; OptionError if a file that is written is read, too, or
    of another phrase.
    """
    vocoder, voice = opened.get("vocoder"), None
    if (generator := opened.get("generator")) is None:
        items, synthesizer = _copies(options, voice_options, vocoder, phrases, precision=precision)
    else:
        if vocoder is None and not (options.no_audio or generator.spec.makes_wave):
            print(GRIFFIN_LIM)
        voice = make_voice(generator, vocoder, voice_options, precision=precision)
        if options.no_audio:
            voice = voice.with_synthesizer(vocoder=None)
        if options.like is not None and voice.can_tell_pitch:
            voice = voice.with_synthesizer(vocoder_pitch="voice")
        synthesizer = voice.synthesizer
        if phrases:
            items = voice.encode(phrases, dataset_path=options.dataset_path)
            warn_unread(phrases, read=("text", "speaker", *voice.phrase_columns), source=str(options.input))
        else:
            items = _text_inputs(options, voice)
    if options.show and voice is not None:
        show(items, voice)
        return 0
    if options.output == STANDARD:
        pieces = synthesizer.stream_inputs(items)
        write_stream(pieces, sampling_rate=synthesizer.audio.sampling_rate, kind=options.stdout_format)
        return 0
    folder = None if options.folder is None else OutputFolder(options, synthesizer.audio, voice)
    _check_files(options, items, synthesizer, folder, files)
    if folder is not None:
        folder.prepare()
    own_log = None if folder is None or options.names_sound else folder.path / INFERENCE_LOG
    logger = Logger(options.log_file or own_log, stdout=False)
    logger.parameter(**{**parameters, "warmup_steps": options.n_warmup, "precision": precision.name})
    return _speak_into_folder(items, synthesizer, folder, options, logger)


def show(items: Sequence[SynthesisInput], voice: Voice) -> None:
    """Print each utterance in words, and as phones if the voice reads some."""
    for item in items:
        print(item.reading or item.text)
        if phones := voice.phones_of(item):
            print(f"    {phones}")


def _text_inputs(options: CommandOptions, voice: Voice) -> list[SynthesisInput]:
    """The utterances of the one text or prosody table."""
    text: Any = options.text
    where = "--text"
    if options.prosody is not None:
        where = str(options.prosody)
        text = parse_prosody(read_json(options.prosody, kind="prosody table"), where=where)
    elif options.input is not None:
        text, where = read_text(Path("-"), kind="text"), "standard input"
    phrase = Phrase(where, options.file_name, text if isinstance(text, str) else None)
    items = voice.plan(text, phrase=phrase)
    voice.warn_of_losses(items)
    if options.like is None:
        return items
    recording = load_recording(options.like, sampling_rate=voice.sampling_rate)
    return imitate(items, recording, voice, where=str(options.like))


def _copies(
    options: CommandOptions,
    voice_options: VoiceOptions,
    vocoder: LoadedCheckpoint | None,
    phrases: Sequence[Phrase],
    *,
    precision: Precision,
) -> tuple[list[SynthesisInput], Synthesizer]:
    """The mels or recordings of a list, and what makes sound of them."""
    folder, speaking = options.dataset_path, voice_options.speaking
    contract = None if vocoder is None else contract_of(vocoder, speaking.accept_audio_differences)
    items, audio = load_mels_or_recordings(phrases, dataset_path=folder, contract=contract)
    sound = None
    if not options.no_audio:
        if vocoder is None and voice_options.takes_shipped_vocoder and (vocoder := shipped_vocoder(audio)) is not None:
            print(f"no vocoder checkpoint is given: the sound is made by {vocoder.path}")
        elif vocoder is None:
            print(GRIFFIN_LIM)
        sound = load_vocoder(vocoder, voice_options, audio=audio, precision=precision)
    takes_pitch = sound is not None and sound.takes_pitch
    if takes_pitch:
        items = with_frame_pitch(items, dataset_path=folder)
    warn_unread(phrases, read=("mel", "wav", *["pitch"] * takes_pitch), source=str(options.input))
    return items, Synthesizer(audio=audio, precision=precision, vocoder=sound, fade_out=speaking.fade_out)


def _check_files(
    options: CommandOptions,
    items: Sequence[SynthesisInput],
    synthesizer: Synthesizer,
    folder: OutputFolder | None,
    files: tuple[list[tuple[str, Path]], list[tuple[str, Path]]],
) -> None:
    """Refuse to write what is read, two results into one file, or sound in a format that cannot hold it."""
    phrases = list({item.phrase.output: item.phrase for item in items}.values())  # one may be of several items
    written = [pair for pair in files[0] if pair[1] != options.output]  # a folder, or that of the one phrase
    written += [] if folder is None else folder.files(phrases)
    dataset = options.dataset_path
    check_apart(written, files[1] + [(one.where, path) for one in phrases for path in one.files(dataset)])
    for phrase in phrases if folder is not None and not options.no_audio else ():
        check_sound_format(phrase.output, where=phrase.where)


def _speak_into_folder(
    items: Sequence[SynthesisInput],
    synthesizer: Synthesizer,
    folder: OutputFolder | None,
    options: CommandOptions,
    logger: Logger,
) -> int:
    """Speak everything into the folder, with a line for each file, a summary, and a log of the figures.

    Returns the exit status: 1 where every phrase of a folder was cut or not spoken; random weights are measured too.
    """
    vocoder_name = synthesizer.vocoder.name if synthesizer.vocoder else ""
    measurements = Measurements(synthesizer.audio.sampling_rate, options.batch_size, vocoder_name)
    n_phrases = len({item.phrase.output for item in items})
    batches, failures = plan_batches(items, options.batch_size), dict[Phrase, str]()
    # In a log file the lines of the files show the progress.
    is_shown = not options.quiet and (folder is None or options.repeats > 1 or sys.stderr.isatty())
    total = options.repeats * len(items)
    bar: Progress[None] = progress(total=total, desc="speaking", unit="phrase", enabled=is_shown)
    try:
        with StopSignals() as signals, bar:
            for batch in itertools.islice(itertools.cycle(batches), options.n_warmup):
                list(synthesizer.synthesize(batch))
            for number, batch in enumerate(batches * options.repeats):
                results = []
                for result in synthesizer.synthesize(batch):
                    results.append(result)
                    if result.failure and result.item.phrase not in failures:
                        failures[result.item.phrase] = result.failure
                        warn_of_failures([result])
                    if folder is not None and number < len(batches) and (line := folder.add(result)) is not None:
                        print_line(line)
                    bar.update()
                    if signals.received is not None:  # what was in work is finished
                        raise SystemExit(128 + signals.received)
                measurements.batches.append(BatchTimes.of(results, hop_length=synthesizer.audio.hop_length))
                if options.repeats == 1:
                    logger.log((), measurements.figures_of(measurements.batches[-1:]))
        if options.benchmark and vocoder_name:
            longest = [max(items, key=lambda item: item.length)]
            stream = partial(synthesizer.stream_inputs, longest)
            measurements.first_sound = first_sound(stream, lambda: list(synthesizer.synthesize(longest)))
        logger.stdout = options.benchmark or len(measurements.batches) > MANY_BATCHES
        measurements.log_summary(logger)
    finally:
        written = "" if folder is None else f"{folder.n_written} of {n_phrases} phrases are in {folder.path}"
        if figures := list(filter(None, [written, measurements.total()])):
            print("; ".join(figures))
        for reason, count in sorted(Counter(failures.values()).items()):
            print(f"{count} of {n_phrases} phrases were {reason}")
    return 1 if folder is not None and len(failures) == n_phrases else 0


def write_stream(pieces: Iterator[Tensor], *, sampling_rate: int, kind: str) -> None:
    """Write sound to standard output as it is made, as a WAV of unknown length, or as 16-bit integers.

    Raises OutputError if the output cannot be written, as where nobody reads on.
    """
    with writing(Path("standard output")), os.fdopen(os.dup(1), "wb") as file:
        if kind == "wav":
            file.write(wav_header(sampling_rate))
        for piece in pieces:
            file.write(pcm16(piece))
            file.flush()


# Half-widths of the normal distribution's central intervals, in standard deviations.
NORMAL_INTERVALS = {"90%": 1.6448536269514722, "95%": 1.959963984540054, "99%": 2.5758293035489004}

_OTHER_NAME = "mel_gen_frames/s"  # of generator_frames/s in HiFi-GAN's published recipe; the JSON stream has both


def first_sound(
    stream: Callable[[], Iterator[Tensor]], speak: Callable[[], object], *, turns: int = 3
) -> dict[str, float]:
    """The seconds until the first piece of ``stream()``, and their share of those of ``speak()``, which makes all at
    once; medians over turns, after one that does not count.
    """
    rows = take_turns([speak, lambda: next(stream())], 1 + turns)[1:]
    share = statistics.median(first / whole for whole, first in rows)
    return {"first_sound": statistics.median(first for _, first in rows), "first_sound_share": share}


@dataclass
class Measurements:
    """The times of a run's batches, and the figures that are logged of them.

    docs/INFERENCE.md (Figures) says what each figure of the run means; those of a batch have no ``avg_``.
    """

    sampling_rate: int  # Hz
    batch_size: int
    vocoder_name: str  # "" without one
    batches: list[BatchTimes] = field(default_factory=list)
    first_sound: dict[str, float] = field(default_factory=dict)  # as `first_sound` measures it

    def figures_of(self, batches: Sequence[BatchTimes]) -> dict[str, float]:
        """Throughput and mean latency of each stage, and of both together."""
        figures: dict[str, float] = {}
        for stage, seconds, counts in self._stages(batches):
            figures |= {name: count / sum(seconds) for name, count in counts.items()}
            figures[f"{stage}latency"] = statistics.fmean(seconds)
        if "generator_frames/s" in figures:
            figures[_OTHER_NAME] = figures["generator_frames/s"]
        return figures

    def summary(self) -> dict[str, float]:
        """The run's figures: of each stage, and of both together; empty without batches."""
        figures = {f"avg_{name}": value for name, value in self.figures_of(self.batches).items()}
        utterances = sum(batch.n_utterances for batch in self.batches)
        for stage, seconds, _ in self._stages(self.batches):
            mean, deviation = statistics.fmean(seconds), statistics.pstdev(seconds)
            figures |= {f"{name}_{stage}latency": mean + width * deviation for name, width in NORMAL_INTERVALS.items()}
            figures[f"avg_{stage}RTF"] = self._speech_seconds / (utterances * mean)
            figures[f"avg_{stage}RTF@{self.batch_size}"] = self._speech_seconds / sum(seconds)
        return figures | self.first_sound

    @property
    def _speech_seconds(self) -> float:
        return sum(batch.n_samples for batch in self.batches) / self.sampling_rate

    def _stages(self, batches: Sequence[BatchTimes]) -> Iterator[tuple[str, list[float], dict[str, int]]]:
        """Each stage that ran, and both together under "": its batches' seconds, and what was made, by figure."""
        names = ("n_tokens", "n_frames", "n_samples")
        tokens, frames, samples = (sum(getattr(batch, name) for batch in batches) for name in names)
        generator = [batch.generator for batch in batches if batch.generator is not None]
        vocoder = [batch.vocoder for batch in batches if batch.vocoder is not None]
        name = f"{self.vocoder_name}_"
        if generator:
            yield "generator_", generator, {"generator_tokens/s": tokens, "generator_frames/s": frames}
        if vocoder:
            yield name, vocoder, {f"{name}frames/s": frames, f"{name}samples/s": samples}
        if generator and vocoder:
            yield "", [batch.latency for batch in batches], {"samples/s": samples, "letters/s": tokens}

    def total(self) -> str:
        """Speech and work of all batches, and how they compare, in one line; empty without batches."""
        speech, work = self._speech_seconds, sum(batch.latency for batch in self.batches)
        if not work:
            return ""
        rtf = f"RTF {work / speech:.4f} (work / speech), {speech / work:.2f} x real time"
        return f"{speech:.2f} s of speech in {work:.2f} s of work: {rtf}"

    def log_summary(self, logger: Logger) -> None:
        """Log the run's figures, one a line."""
        for name, value in self.summary().items():
            # On the terminal RTF is work by speech, as in the field; the log's figures of this name are the inverse.
            title = name.replace("_", " ").replace("RTF", "speed in real time")
            is_time, is_ratio = name.endswith(("latency", "first_sound")), "RTF" in name or name.endswith("share")
            unit = "s" if is_time else "x" if is_ratio else name.rpartition("_")[2]
            if not name.endswith(_OTHER_NAME):
                logger.metadata(name, name=f"{title: <26}", format="{:>10.5f}" if is_time else "{:>10.2f}", unit=unit)
            logger.log((), {name: value}, stdout=name in logger.metrics)
