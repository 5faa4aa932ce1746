"""The speaking command: speak a list into a folder, or one text to a file or standard output."""

import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from torch import Tensor

from common.audio.wav import to_int16, wav_header
from common.checkpoints.loading import LoadedCheckpoint
from common.cli import INFERENCE_LOG, MANY_BATCHES
from common.files import check_apart, read_json, read_text, writing
from common.logger import Logger
from common.progress import print_line, progress
from common.signals import StopSignals
from common.synthesis.loading import GRIFFIN_LIM, contract_of, load_vocoder, make_voice, shipped_vocoder
from common.synthesis.measurements import BatchTimes, Measurements
from common.synthesis.options import STANDARD, CommandOptions, ParsedVoice
from common.synthesis.output_folder import OutputFolder
from common.synthesis.phrases import load_mels_or_recordings
from common.synthesis.speech import parse_prosody
from common.synthesis.synthesizer import Synthesizer, warn_of_cuts
from common.synthesis.utterances import Phrase, SynthesisInput, plan_batches
from common.synthesis.vocoder import GriffinLimVocoder
from common.synthesis.voice import Voice


def speak(
    options: CommandOptions, given: ParsedVoice, opened: Mapping[str, LoadedCheckpoint], phrases: Sequence[Phrase]
) -> int:
    """Speak ``phrases``, or one text, with the ``opened`` checkpoints (by role); return the exit status.

    Raises InputError before speaking if a phrase can't be spoken; OptionError if an output file is also an input, or
    another phrase's output.
    """
    vocoder, voice, precision = opened.get("vocoder"), None, given.precision
    if (generator := opened.get("generator")) is None:
        items, synthesizer = _load_copies(options, given, vocoder, phrases)
    else:
        voice = make_voice(generator, vocoder, given.voice, precision=precision)
        synthesizer = replace(voice.synthesizer, vocoder=None) if options.no_audio else voice.synthesizer
        items = voice.encode(phrases, dataset_path=options.dataset_path) if phrases else _plan_text(options, voice)
    if isinstance(synthesizer.vocoder, GriffinLimVocoder):
        print(GRIFFIN_LIM)
    if options.show and voice is not None:
        for item in items:
            print(item.reading or item.text)
            if phones := voice.phones_of(item):
                print(f"    {phones}")
        return 0
    if options.output == STANDARD:
        write_stream(synthesizer.stream(items), sampling_rate=synthesizer.audio.sampling_rate)
        return 0
    folder = None if options.folder is None else OutputFolder(options, synthesizer.audio, voice)
    written, read = given.files
    written = [pair for pair in written if pair[1] != options.output]  # a folder, or the one phrase's file
    spoken = list({item.phrase.output: item.phrase for item in items}.values())  # a phrase may have several items
    written += [] if folder is None else folder.files(spoken)
    check_apart(written, read + [(one.where, path) for one in spoken for path in one.files(options.dataset_path)])
    if folder is not None:
        folder.prepare()
    own_log = None if folder is None or options.names_sound else folder.path / INFERENCE_LOG
    logger = Logger(options.log_file or own_log, stdout=False)
    logger.parameter(**{**vars(given.args), "warmup_steps": options.warmup_steps, "precision": precision.name})
    return _speak_into_folder(items, synthesizer, folder, options, logger)


def _plan_text(options: CommandOptions, voice: Voice) -> list[SynthesisInput]:
    """Plan the utterances of one text or prosody table."""
    text: Any = options.text
    where, output = "--text", PurePosixPath("speech.wav")
    if options.prosody is not None:
        where = str(options.prosody)
        text = parse_prosody(read_json(options.prosody, kind="prosody table"), where=where)
    elif options.input is not None:
        text, where = read_text(Path("-"), kind="text"), "standard input"
    if options.output is not None and options.names_sound:
        output = PurePosixPath(options.output.name)
    items = voice.plan(text, phrase=Phrase(where, output, text if isinstance(text, str) else None))
    voice.warn_of_losses(items)
    return items


def _load_copies(
    options: CommandOptions, given: ParsedVoice, vocoder: LoadedCheckpoint | None, phrases: Sequence[Phrase]
) -> tuple[list[SynthesisInput], Synthesizer]:
    """Load the mels or recordings of a list, and the vocoder for them."""
    speaking, sound = given.voice.speaking, None
    contract = None if vocoder is None else contract_of(vocoder, speaking.accept_audio_differences)
    items, audio = load_mels_or_recordings(phrases, dataset_path=options.dataset_path, contract=contract)
    if not options.no_audio:
        if vocoder is None and speaking.griffin_lim_iters is None:
            vocoder = shipped_vocoder(audio)
        sound = load_vocoder(vocoder, given.voice, audio=audio, precision=given.precision)
    return items, Synthesizer(audio=audio, precision=given.precision, vocoder=sound, fade_out=speaking.fade_out)


def _speak_into_folder(
    items: Sequence[SynthesisInput],
    synthesizer: Synthesizer,
    folder: OutputFolder | None,
    options: CommandOptions,
    logger: Logger,
) -> int:
    """Speak everything into the folder, with a line for each file, a summary, and a log of the figures.

    Returns the exit status: 1 if all phrases in a folder were cut. Without a folder, even random weights give 0.
    """
    audio, vocoder = synthesizer.audio, synthesizer.vocoder
    measurements = Measurements(audio.sampling_rate, options.batch_size, vocoder.name if vocoder else "")
    n_phrases = len({item.phrase.output for item in items})
    batches, cut = plan_batches(items, options.batch_size), set[Phrase]()
    # If output goes to a file, the lines about files show the progress.
    is_shown = not options.quiet and (folder is None or options.repeats > 1 or sys.stderr.isatty())
    total = options.repeats * len(items)
    bar = progress(total=total, desc="speaking", unit="phrase", enabled=is_shown)
    try:
        with StopSignals() as signals, bar:
            for batch in itertools.islice(itertools.cycle(batches), options.warmup_steps):
                list(synthesizer.synthesize(batch))
            for number, batch in enumerate(batches * options.repeats):
                results = []
                for result in synthesizer.synthesize(batch):
                    results.append(result)
                    if result.is_cut and result.item.phrase not in cut:
                        cut.add(result.item.phrase)
                        warn_of_cuts([result])
                    if folder is not None and number < len(batches) and (line := folder.add(result)) is not None:
                        print_line(line)
                    bar.update()
                    if signals.received is not None:  # after the current phrases
                        raise SystemExit(128 + signals.received)
                measurements.batches.append(BatchTimes.of(results, hop_length=audio.hop_length))
                if options.repeats == 1:
                    logger.log((), measurements.figures_of(measurements.batches[-1:]))
        logger.stdout = options.benchmark or len(measurements.batches) > MANY_BATCHES
        measurements.log_summary(logger)
    finally:
        written = "" if folder is None else f"{folder.n_written} of {n_phrases} phrases are in {folder.path}"
        if figures := list(filter(None, [written, measurements.total()])):
            print("; ".join(figures))
        if cut:
            print(f"{len(cut)} of {n_phrases} phrases were cut because the voice did not stop")
    return 1 if folder is not None and len(cut) == n_phrases else 0


def write_stream(pieces: Iterator[Tensor], *, sampling_rate: int) -> None:
    """Write sound to standard output as it's generated, as a WAV of unknown length.

    Raises OutputError if the output can't be written, for example because its reader has ended.
    """
    with writing(Path("standard output")), os.fdopen(os.dup(1), "wb") as file:
        file.write(wav_header(sampling_rate))
        for piece in pieces:
            file.write(to_int16(piece.numpy()).tobytes())
            file.flush()
