"""Speaking as a command: a list into a folder with a line a file and the figures, or one text to standard output."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TextIO

from torch import Tensor

from common.audio import SOUND_FORMATS, pcm16, wav_header
from common.config import AudioConfig
from common.errors import OutputError
from common.logger import Logger
from common.progress import print_line
from common.synthesis.measurements import MANY_BATCHES, BatchTimes, Measurements
from common.synthesis.output_folder import OutputFolder
from common.synthesis.streaming import FirstSound, first_sound
from common.synthesis.synthesizer import Synthesizer, speak_all
from common.synthesis.utterances import SynthesisInput, SynthesisResult, plan_batches

STREAM_FORMATS = ("wav", "pcm")  # pcm: 16-bit integers, little endian, without a header


@dataclass(frozen=True)
class SpeakingOptions:
    """How a list is spoken and measured."""

    batch_size: int
    repeats: int
    warmup_steps: int
    benchmark: bool  # print latencies and throughput
    quiet: bool


def names_sound(path: Path) -> bool:
    """Whether an output is a file of sound, not a folder."""
    return path.suffix.lower() in SOUND_FORMATS and not path.is_dir()


def output_of_text(output: Path | None) -> tuple[Path | None, PurePosixPath]:
    """The folder and the name of the sound of one text."""
    if output is None or not names_sound(output):
        return output, PurePosixPath("speech.wav")
    return output.parent, PurePosixPath(output.name)


def speak_into_folder(
    items: Sequence[SynthesisInput],
    synthesizer: Synthesizer,
    *,
    audio: AudioConfig,
    folder: OutputFolder | None,
    options: SpeakingOptions,
    log_file: Path | None,
    parameters: dict[str, Any],
) -> int:
    """Speak everything into the folder, with a line for each file, a summary, and a log of the figures.

    ``parameters`` are logged. Returns the exit status: 1 where every phrase was cut or not spoken.
    """
    measurements = Measurements(audio.sampling_rate, options.batch_size, synthesizer.vocoder_name)
    n_phrases = len({item.phrase.output for item in items})
    logger = Logger(log_file, stdout=False)
    logger.parameter(**parameters)

    def on_result(result: SynthesisResult) -> None:
        if folder is not None and (line := folder.add(result)) is not None:
            print_line(line)

    def on_batch(times: BatchTimes) -> None:
        measurements.add(times)
        if options.repeats == 1:
            measurements.log_batch(times, logger)

    # In a log file the lines of the files show the progress.
    is_shown = folder is None or options.repeats > 1 or sys.stderr.isatty()
    try:
        speak_all(
            plan_batches(items, options.batch_size),
            synthesizer,
            warmup_steps=options.warmup_steps,
            repeats=options.repeats,
            show_progress=is_shown and not options.quiet,
            on_result=on_result,
            on_batch=on_batch,
        )
        if options.benchmark and synthesizer.vocoder_name:
            measurements.first_sound = _first_sound(max(items, key=lambda item: item.length), synthesizer)
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


def _first_sound(item: SynthesisInput, synthesizer: Synthesizer) -> FirstSound:
    """How soon the sound of an utterance begins that is streamed."""

    def stream() -> Iterator[Tensor]:
        (result,) = synthesizer.generate([item])
        return synthesizer.pieces(result)

    return first_sound(stream, lambda: list(synthesizer.speak([item])))


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
