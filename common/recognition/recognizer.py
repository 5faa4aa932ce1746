"""Speech-to-text models that transcribe recordings, lists and waves, and error rates of transcripts."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.wav import resample
from common.checkpoints.loading import LoadedCheckpoint, load_for_inference, open_checkpoint, precision_for
from common.precision import Precision, timed

_BATCHES_PER_WINDOW = 16  # utterances are sorted by length within a window; results keep the list's order


@dataclass(frozen=True)
class ErrorCounts:
    """Numbers of substitutions, deletions and insertions, and the lengths of the references."""

    word_errors: int = 0
    n_words: int = 0  # of the references
    char_errors: int = 0
    n_chars: int = 0  # of the references, spaces included

    @property
    def wer(self) -> float:
        """Word errors per word of the references."""
        return self.word_errors / max(self.n_words, 1)  # the number of errors if there are no words, as in jiwer

    @property
    def cer(self) -> float:
        """Character errors per character of the references."""
        return self.char_errors / max(self.n_chars, 1)


def error_counts(references: Sequence[str], hypotheses: Sequence[str]) -> ErrorCounts:
    """Sum the errors of hypotheses against their references.

    Words are separated by whitespace. Case and punctuation count, and so do spaces in characters.
    """
    if not references:
        return ErrorCounts()
    import jiwer  # here, because only error rates need it

    whole = jiwer.ReduceToListOfListOfChars()  # jiwer's default strips spaces at both ends
    reference, hypothesis = ([" ".join(text.split()) for text in texts] for texts in (references, hypotheses))
    counts = []
    for found in (
        jiwer.process_words(reference, hypothesis),
        jiwer.process_characters(list(references), list(hypotheses), whole, whole),
    ):
        changed = found.substitutions + found.deletions
        counts += [changed + found.insertions, changed + found.hits]
    return ErrorCounts(*counts)


@dataclass(frozen=True)
class SpeechItem:
    """An utterance to transcribe."""

    name: str  # in results; the recording's path
    duration: float  # s
    reference: str | None  # its transcript, if known
    load: Callable[[], Tensor]  # samples (T,) float32 at the recognizer's rate, prepared


class SpeechToText(ABC):
    """The interface of a recognizer's network, or of an exported file in its place (``export.ExportedNetwork``)."""

    @abstractmethod
    def settings(self, options: Any) -> Any:
        """Complete the package's ``InferenceOptions``; raises OptionError if they don't fit the network."""

    @abstractmethod
    def open_speech(
        self, settings: Any, *, sources: Sequence[Path], folder: Path, max_duration: float
    ) -> list[SpeechItem]:
        """Open utterances; the arguments are those of `Recognizer.open`."""

    @abstractmethod
    def prepare(self, wave: Tensor, settings: Any) -> Tensor:
        """Return the part of a wave (T,) to transcribe."""

    @abstractmethod
    def transcribe(self, waves: Tensor, lengths: Tensor, settings: Any) -> tuple[list[str], list[Tensor]]:
        """waves (B, T), lengths (B,) samples -> B texts, and the log-probabilities (F, C) of each."""

    @abstractmethod
    def normalize(self, text: str) -> str:
        """Return a text as the network would write it, for comparison with transcripts."""

    def prepare_for_inference(self) -> None:  # noqa: B027 - there may be nothing to fold
        """Fold batch norm and the like; the network can't be trained afterwards."""


@dataclass(frozen=True)
class Transcription:
    """The transcript of one utterance."""

    wav: str
    text: str
    reference: str | None
    duration: float  # s
    log_probs: Tensor | None = None  # (F, C) on the CPU, if requested

    @property
    def errors(self) -> ErrorCounts | None:
        """The errors against the reference, if there is one."""
        return None if self.reference is None else error_counts([self.reference], [self.text])

    @property
    def words(self) -> list[tuple[str, float, float]]:
        """Each word with the start and end (s) of its characters in CTC's output; [] without ``log_probs``."""
        if self.log_probs is None:
            return []
        best, counts = self.log_probs.argmax(dim=1).unique_consecutive(return_counts=True)
        ends, second = counts.cumsum(0), len(self.log_probs) / max(self.duration, 1e-6)  # frames
        is_character = best != self.log_probs.size(1) - 1  # not blank
        spans = torch.stack([ends - counts, ends], dim=1)[is_character] / second
        words = re.finditer(r"\S+", self.text) if len(spans) == len(self.text) else ()
        return [(one[0], float(spans[one.start(), 0]), float(spans[one.end() - 1, 1])) for one in words]


@dataclass(frozen=True)
class Recognizer:
    """Transcribes speech with a network on its device."""

    network: SpeechToText
    sampling_rate: int  # Hz, of the network's input
    settings: Any  # the model's own
    precision: Precision
    batch_size: int = 16
    padded_duration: float = 0.0  # s; every batch is padded to at least this

    def normalize(self, text: str) -> str:
        """Return a text as the network would write it, for comparison with transcripts."""
        return self.network.normalize(text)

    def open(
        self, sources: Sequence[Path], *, folder: Path = Path(), max_duration: float = math.inf
    ) -> list[SpeechItem]:
        """Open recordings, folders, lists and manifests, skipping utterances longer than ``max_duration`` seconds.

        Relative paths start from ``folder``. Raises InputError if a source or a recording is missing or damaged.
        """
        return self.network.open_speech(self.settings, sources=sources, folder=folder, max_duration=max_duration)

    def transcribe(
        self,
        speech: str | Path | Tensor | Sequence[str | Path | Tensor],
        *,
        sampling_rate: int | None = None,
        with_log_probs: bool = False,
    ) -> list[Transcription]:
        """Transcribe a recording, folder or list given by its path, several of these, or waves (T,).

        Waves are float32 in [-1, 1] at ``sampling_rate`` Hz, by default the network's. Raises InputError, naming its
        entry, if a recording cannot be read.
        """
        parts: list[Any] = [speech] if isinstance(speech, str | Path | Tensor) else list(speech)
        if not all(isinstance(part, Tensor) for part in parts):
            items = self.open([Path(path) for path in parts])
        else:
            rate, items = sampling_rate or self.sampling_rate, []
            for number, part in enumerate(parts, 1):
                wave = resample(part, ratio=self.sampling_rate / rate)
                load = partial(self.network.prepare, wave, self.settings)
                items.append(SpeechItem(f"wave {number}", len(part) / rate, None, load))
        return list(self.transcripts(items, times=[], with_log_probs=with_log_probs))

    def transcripts(
        self, items: Sequence[SpeechItem], *, times: list[float], with_log_probs: bool = False
    ) -> Iterator[Transcription]:
        """Transcribe utterances in order, each as soon as possible; appends the seconds of each batch to ``times``."""
        for window in self._windows(items):
            found: dict[int, Transcription] = {}
            for indices in window:
                batch = [items[index] for index in indices]
                found |= zip(indices, self._run(batch, times, with_log_probs=with_log_probs))
            yield from (found[index] for index in sorted(found))

    def measure(
        self, items: Sequence[SpeechItem], *, iterations: int, warmup_steps: int
    ) -> tuple[list[float], list[SpeechItem]]:
        """Time ``iterations`` batches (s) after ``warmup_steps`` others; also returns their utterances."""
        plan = [[items[index] for index in indices] for window in self._windows(items) for indices in window]
        batches = [plan[step % len(plan)] for step in range(-warmup_steps, iterations)]
        times: list[float] = []
        for batch in batches:
            self._run(batch, times)
        return times[warmup_steps:], [item for batch in batches[warmup_steps:] for item in batch]

    def _windows(self, items: Sequence[SpeechItem]) -> Iterator[list[list[int]]]:
        """Yield windows of indices in the list's order, each split into length-bucketed batches."""
        size = self.batch_size * _BATCHES_PER_WINDOW
        for first in range(0, len(items), size):
            indices = range(first, min(first + size, len(items)))
            window = sorted(indices, key=lambda index: items[index].duration)
            yield [window[start : start + self.batch_size] for start in range(0, len(window), self.batch_size)]

    def _run(
        self, items: Sequence[SpeechItem], times: list[float], *, with_log_probs: bool = False
    ) -> list[Transcription]:
        """Transcribe a batch; appends the seconds from samples in host memory to text to ``times``."""
        device = self.precision.device
        rows = [item.load() for item in items]
        longest = torch.zeros(math.ceil(self.padded_duration * self.sampling_rate))
        waves, lengths = pad_sequence([*rows, longest], batch_first=True)[:-1], torch.tensor([len(row) for row in rows])
        with timed(device, times), self.precision.autocast():
            texts, log_probs = self.network.transcribe(waves.to(device), lengths.to(device), self.settings)
        kept = [values.cpu().clone() if with_log_probs else None for values in log_probs]  # no views
        found = zip(items, texts, kept)
        return [Transcription(item.name, text, item.reference, item.duration, one) for item, text, one in found]


def load_recognizer(
    checkpoint: LoadedCheckpoint | Path | str,
    *,
    device: str = "auto",
    options: Any = None,
    precision: Precision | None = None,
) -> Recognizer:
    """Load the recognizer of a checkpoint; ``options`` are the package's ``InferenceOptions``.

    ``device`` is "auto" (a GPU if there is one; the CPU for ONNX files), "cpu" or "cuda"; ``precision`` overrides it.
    Raises OptionError if there is no such device, CheckpointError if the file can't be read.
    """
    if not isinstance(checkpoint, LoadedCheckpoint):
        checkpoint = open_checkpoint(Path(checkpoint), role="recognizer")
    precision = precision or precision_for([checkpoint], device)
    network, _ = load_for_inference(checkpoint, device=precision.device)
    precision.cast_weights(network)
    settings = network.settings(options or checkpoint.spec.arg_parser.InferenceOptions())
    return Recognizer(network, checkpoint.checkpoint.audio.sampling_rate, settings, precision)
