"""Writes down what recordings say, with error rates against what they should say, and how long that takes."""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.cli import precision_from_args
from common.files import write_json, write_text
from common.logger import Logger
from common.precision import Autocast
from common.progress import print_line
from common.recognition.error_rates import ErrorCounts, error_counts
from common.timing import Stopwatch

PERCENTILES = (90, 95, 99)
_BATCHES_A_WINDOW = 16  # utterances are sorted by length among so many batches, and then told in the list's order

Transcribe = Callable[[Tensor, Tensor], list[str]]


class Speech(Protocol):
    """Utterances to write down."""

    durations: list[float]  # s
    sampling_rate: int  # Hz

    def __len__(self) -> int: ...

    def path(self, index: int) -> Path:
        """The recording."""

    def transcript(self, index: int) -> str | None:
        """What it says, where that is known."""

    def load(self, index: int) -> Tensor:
        """Its samples (T,) float32."""


@dataclass(frozen=True)
class Transcript:
    """What was heard in one recording."""

    wav: str
    text: str
    reference: str | None
    duration: float  # s

    @property
    def errors(self) -> ErrorCounts | None:
        """Against the reference, where there is one."""
        return None if self.reference is None else error_counts([self.reference], [self.text])


@dataclass(frozen=True)
class Listener:
    """Hears utterances in batches."""

    transcribe: Transcribe  # waves (B, T) float32 and their lengths (B,) -> texts
    autocast: Autocast
    batch_size: int
    device: torch.device
    min_length: int = 0  # samples that every batch is padded to

    def batches(self, speech: Speech) -> Iterator[list[list[int]]]:
        """Windows of utterances in the list's order, each cut into batches of like length."""
        size = self.batch_size * _BATCHES_A_WINDOW
        for first in range(0, len(speech), size):
            window = sorted(range(first, min(first + size, len(speech))), key=lambda index: speech.durations[index])
            yield [window[start : start + self.batch_size] for start in range(0, len(window), self.batch_size)]

    def collate(self, speech: Speech, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Waves (B, T) and lengths (B,), not yet on the device."""
        waves = [speech.load(index) for index in indices]
        padded = pad_sequence(waves, batch_first=True)
        padded = F.pad(padded, (0, max(self.min_length - padded.size(1), 0)))
        return padded, torch.tensor([len(wave) for wave in waves])

    def hear(self, waves: Tensor, lengths: Tensor) -> tuple[list[str], float]:
        """Texts, and the seconds from samples in host memory to text."""
        watch = Stopwatch(self.device)
        with watch.running(), self.autocast():
            texts = self.transcribe(waves.to(self.device), lengths.to(self.device))
        return texts, watch.seconds


def write_down(speech: Speech, listener: Listener, *, tell: Callable[[Transcript], None]) -> list[float]:
    """Hear everything once, and ``tell`` of each utterance in the list's order; the seconds of each batch."""
    seconds = []
    for window in listener.batches(speech):
        heard: dict[int, str] = {}
        for indices in window:
            texts, took = listener.hear(*listener.collate(speech, indices))
            heard |= dict(zip(indices, texts))
            seconds.append(took)
        for index in sorted(heard):
            path, reference = str(speech.path(index)), speech.transcript(index)
            tell(Transcript(path, heard[index], reference, speech.durations[index]))
    return seconds


def measure(speech: Speech, listener: Listener, *, iterations: int, warmup_steps: int) -> tuple[list[float], list[int]]:
    """Seconds of each of ``iterations`` batches after ``warmup_steps`` that do not count, and what was heard in all."""
    plan = [indices for window in listener.batches(speech) for indices in window]
    seconds, heard = [], []
    for step in range(-warmup_steps, iterations):
        indices = plan[step % len(plan)]
        took = listener.hear(*listener.collate(speech, indices))[1]
        if step >= 0:
            seconds.append(took)
            heard += indices
    return seconds, heard


def time_figures(seconds: Sequence[float], *, n_utterances: int, duration: float) -> dict[str, float]:
    """What a run's batches took: ``avg_latency``, percentiles ``90%_latency`` and so on (s), and throughput.

    ``duration`` is the seconds of speech that were heard in all.
    """
    figures = {"avg_latency": sum(seconds) / len(seconds)}
    figures |= {f"{one}%_latency": float(np.percentile(seconds, one)) for one in PERCENTILES}
    figures["avg_sequences/s"] = n_utterances / sum(seconds)
    figures["avg_RTF"] = duration / sum(seconds)
    return figures


def write_down_all(
    args: argparse.Namespace, speech: Speech, transcribe: Transcribe, *, autocast: Autocast, device: torch.device
) -> None:
    """Write everything down on stdout and into ``--output``, with error rates where references are known.

    With ``--iterations`` it is only measured.

    Raises:
        InputError: a recording cannot be read; names its entry.
    """
    min_length = math.ceil(args.max_duration * speech.sampling_rate) if args.pad_to_max_duration else 0
    listener = Listener(transcribe, autocast, args.batch_size, device, min_length)
    transcripts: list[Transcript] = []

    def tell(one: Transcript) -> None:
        transcripts.append(one)
        if not args.quiet:
            print_line(f"{one.wav}|{one.text}")

    logger = Logger(args.log_file, stdout=False)
    try:
        logger.parameter(**vars(args), precision=precision_from_args(args).name)
        if args.iterations is not None:
            seconds, heard = measure(speech, listener, iterations=args.iterations, warmup_steps=args.warmup_steps)
        else:
            seconds, heard = write_down(speech, listener, tell=tell), range(len(speech))
        rates = error_rates(transcripts)
        duration = sum(speech.durations[index] for index in heard)
        times = time_figures(seconds, n_utterances=len(heard), duration=duration)
        logger.log((), rates | times)
    finally:
        logger.close()
    if args.output is not None:
        save_transcripts(args.output, transcripts, rates)
    for line in summary(rates, times):
        print_line(line)


def error_rates(transcripts: Sequence[Transcript]) -> dict[str, float]:
    """``wer`` and ``cer`` over all that have a reference, and of how many utterances, words and characters; or {}."""
    known = [one for one in transcripts if one.reference is not None]
    if not known:
        return {}
    counts = error_counts([one.reference for one in known], [one.text for one in known])
    sizes = {"references": len(known), "words": counts.n_words, "characters": counts.n_chars}
    return {"wer": counts.wer, "cer": counts.cer, **sizes}


def summary(rates: dict[str, float], times: dict[str, float]) -> list[str]:
    """The run's figures for people."""
    lines = []
    if rates:
        lines.append(
            f"WER {100 * rates['wer']:.2f} %, CER {100 * rates['cer']:.2f} % ({rates['references']} utterances, "
            f"{rates['words']} words, {rates['characters']} characters)"
        )
    percentiles = ", ".join(f"{one} % {1000 * times[f'{one}%_latency']:.2f}" for one in PERCENTILES)
    lines.append(
        f"latency of a batch {1000 * times['avg_latency']:.2f} ms ({percentiles}), "
        f"{times['avg_sequences/s']:.2f} sequences/s, {times['avg_RTF']:.1f} x real time"
    )
    return lines


def save_transcripts(path: Path, transcripts: Sequence[Transcript], rates: dict[str, float]) -> None:
    """Write what was heard as JSON (with the figures of all), or as a table parted by tabs."""
    rows = []
    for one in transcripts:
        errors = one.errors
        rows.append(asdict(one) | {"wer": errors and errors.wer, "cer": errors and errors.cer})
    if path.suffix == ".json":
        write_json(path, {"figures": rates, "utterances": rows})
        return
    names = ("wav", "text", "reference", "duration", "wer", "cer")
    lines = ["\t".join("" if row[name] is None else str(row[name]) for name in names) for row in rows]
    write_text(path, "\n".join(["\t".join(names), *lines]) + "\n")
