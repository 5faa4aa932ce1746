"""Speaking as a command: a list into a folder with a line a file and the figures, or one text to standard output."""

import itertools
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from torch import Tensor

from common.audio import check_sound_format, pcm16, wav_header
from common.checkpoints import LoadedCheckpoint
from common.errors import OutputError
from common.files import check_apart, read_standard_input
from common.logger import Logger
from common.precision import Precision
from common.progress import Progress, print_line, progress
from common.signals import StopSignals
from common.synthesis.copy_synthesis import load_mels_or_recordings, with_frame_pitch
from common.synthesis.loading import GRIFFIN_LIM, contract_of, load_vocoder, make_voice, shipped_vocoder
from common.synthesis.measurements import Measurements, first_sound
from common.synthesis.options import MANY_BATCHES, STANDARD, CommandOptions, VoiceOptions
from common.synthesis.output_folder import OutputFolder
from common.synthesis.phrases import Phrase, warn_unread
from common.synthesis.prosody import load_prosody
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.utterances import SynthesisInput, plan_batches
from common.synthesis.voice import Voice

LOG = "nvlog_infer.json"  # in a folder of --output
NamedFiles = list[tuple[str, Path]]  # and what names them


def speak(
    options: CommandOptions,
    voice_options: VoiceOptions,
    opened: Mapping[str, LoadedCheckpoint],
    phrases: Sequence[Phrase],
    *,
    precision: Precision,
    files: tuple[NamedFiles, NamedFiles],
    parameters: Mapping[str, Any],
) -> int:
    """Speak ``phrases``, or the one text, with the ``opened`` checkpoints, by role; returns the exit status.

    ``files`` are those to write and to read that the options name; ``parameters`` are logged.

    Raises:
        InputError: a phrase cannot be spoken, which shows before the first one is.
        OptionError: a file that is written is read, too, or of another phrase.
    """
    vocoder = opened.get("vocoder")
    if (generator := opened.get("generator")) is None:
        items, synthesizer = _copies(options, voice_options, vocoder, phrases, precision=precision)
    else:
        if vocoder is None and not options.no_audio:
            print(GRIFFIN_LIM)
        voice = make_voice(generator, vocoder, voice_options, precision=precision)
        synthesizer = voice = replace(voice, vocoder=None) if options.no_audio else voice
        if phrases:
            items = voice.encode(phrases, dataset_path=options.dataset_path)
            warn_unread(phrases, read=("text", "speaker", *voice.phrase_columns), source=str(options.input))
        else:
            items = _text_inputs(options, voice)
    if options.output == STANDARD:
        pieces = synthesizer.stream_inputs(items)
        write_stream(pieces, sys.__stdout__, sampling_rate=synthesizer.audio.sampling_rate, kind=options.stdout_format)
        return 0
    folder = None if options.folder is None else OutputFolder(options, synthesizer)
    _check_files(options, items, synthesizer, folder, files)
    if folder is not None:
        folder.prepare()
    log_file = options.log_file
    if log_file is None and folder is not None and not options.names_sound:
        log_file = folder.path / LOG
    logger = Logger(log_file, stdout=False)
    logger.parameter(**{**parameters, "warmup_steps": options.n_warmup, "precision": precision.name})
    return _speak_into_folder(items, synthesizer, folder, options, logger)


def _text_inputs(options: CommandOptions, voice: Voice) -> list[SynthesisInput]:
    """The utterances of the one text or prosody table."""
    text: Any = options.text
    where = "--text"
    if options.prosody is not None:
        text, where = load_prosody(options.prosody), str(options.prosody)
    elif options.input is not None:
        text, where = read_standard_input(), "standard input"
    phrase = Phrase(where, options.file_name, text if isinstance(text, str) else None)
    items = voice.plan(text, phrase=phrase)
    voice.front_end.warn_dropped()
    return items


def _copies(
    options: CommandOptions,
    voice_options: VoiceOptions,
    vocoder: LoadedCheckpoint | None,
    phrases: Sequence[Phrase],
    *,
    precision: Precision,
) -> tuple[list[SynthesisInput], Synthesizer]:
    """The mels or recordings of a list, and what makes sound of them: a vocoder's checkpoint, the shipped one, or
    Griffin-Lim.
    """
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
    files: tuple[NamedFiles, NamedFiles],
) -> None:
    """Refuse to write what is read, two results into one file, or sound in a format that cannot hold it."""
    phrases = list({item.phrase.output: item.phrase for item in items}.values())  # one may be of several items
    written = [pair for pair in files[0] if pair[1] != options.output]  # a folder, or that of the one phrase
    written += [] if folder is None else folder.files(phrases)
    dataset = options.dataset_path
    check_apart(written, files[1] + [(one.where, path) for one in phrases for path in one.files(dataset)])
    if folder is not None and not options.no_audio:
        for phrase in phrases:
            check_sound_format(phrase.output, sampling_rate=synthesizer.audio.sampling_rate, where=phrase.where)


def _speak_into_folder(
    items: Sequence[SynthesisInput],
    synthesizer: Synthesizer,
    folder: OutputFolder | None,
    options: CommandOptions,
    logger: Logger,
) -> int:
    """Speak everything into the folder, with a line for each file, a summary, and a log of the figures.

    Returns the exit status: 1 where every phrase was cut or not spoken.
    """
    measurements = Measurements(synthesizer.audio.sampling_rate, options.batch_size, synthesizer.vocoder_name)
    n_phrases = len({item.phrase.output for item in items})
    batches = plan_batches(items, options.batch_size)
    warmup = itertools.islice(itertools.cycle(batches), options.n_warmup)
    # In a log file the lines of the files show the progress.
    is_shown = not options.quiet and (folder is None or options.repeats > 1 or sys.stderr.isatty())
    total = options.repeats * len(items)
    bar: Progress[None] = progress(total=total, desc="speaking", unit="phrase", enabled=is_shown)
    try:
        with StopSignals() as signals, bar:
            for number, batch in enumerate([*warmup, *batches * options.repeats], -options.n_warmup):
                for result in synthesizer.synthesize(batch):
                    if folder is not None and 0 <= number < len(batches) and (line := folder.add(result)) is not None:
                        print_line(line)
                    bar.update(number >= 0)
                    if signals.received is not None:  # what was in work is finished
                        raise SystemExit(128 + signals.received)
                if number >= 0:
                    measurements.batches.append(synthesizer.times[-1])
                    if options.repeats == 1:
                        logger.log((), measurements.figures_of(synthesizer.times[-1:]))
        if options.benchmark and synthesizer.vocoder_name:
            longest = [max(items, key=lambda item: item.length)]
            stream = partial(synthesizer.stream_inputs, longest)
            measurements.first_sound = first_sound(stream, lambda: list(synthesizer.synthesize(longest)))
        logger.stdout = options.benchmark or len(measurements.batches) > MANY_BATCHES
        measurements.log_summary(logger)
    finally:
        logger.close()
        written = "" if folder is None else folder.summary(n_phrases)
        if figures := list(filter(None, [written, measurements.total()])):
            print("; ".join(figures))
        for problem in synthesizer.problems(n_phrases):
            print(problem)
    return 1 if len(synthesizer.unfinished | synthesizer.silent) == n_phrases else 0


def write_stream(pieces: Iterator[Tensor], output: TextIO | None, *, sampling_rate: int, kind: str) -> None:
    """Write sound to standard output as it is made, as one of `STREAM_FORMATS`.

    A reader that goes away ends it. The header of a WAV says that its length is unknown, as players expect of a pipe.

    Raises:
        SystemExit: nobody reads on, as the status of a command that is ended by it.
        OutputError: the output cannot be written.
    """
    assert output is not None, "a command has standard output"
    file = output.buffer
    try:
        if kind == "wav":
            file.write(wav_header(sampling_rate))
        for piece in pieces:
            file.write(pcm16(piece))
            file.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # or Python complains when it closes the file
        if isinstance(error, BrokenPipeError):
            raise SystemExit(128 + signal.SIGPIPE) from error
        raise OutputError(f"standard output: cannot be written ({error.strerror})") from error
