"""A speech-to-text model that is ready to transcribe: recordings, lists of them, and waves of any sampling rate."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.resampling import resample
from common.checkpoints.loading import NO_EMA, load_for_inference, open_checkpoint
from common.errors import CheckpointError
from common.precision import Precision
from common.recognition.error_rates import ErrorCounts, error_counts
from common.registry import RecognizerSpec
from common.timing import Stopwatch

_BATCHES_PER_WINDOW = 16  # utterances are sorted by length within so many batches; results keep the list's order


class SpeechRecordings(Protocol):
    """Utterances to transcribe."""

    durations: list[float]  # s

    def __len__(self) -> int: ...

    def name(self, index: int) -> str:
        """What results call it: the path of its recording."""

    def transcript(self, index: int) -> str | None:
        """Its reference transcript, where one is known."""

    def load(self, index: int) -> Tensor:
        """Its samples (T,) float32 at the recognizer's rate, prepared."""


@dataclass(frozen=True)
class _Waves:
    """Waves that are in memory."""

    waves: Sequence[Tensor]  # (T,) float32
    sampling_rate: int  # Hz, of all of them
    prepare: Callable[[Tensor, int], Tensor]

    @property
    def durations(self) -> list[float]:
        return [len(wave) / self.sampling_rate for wave in self.waves]

    def __len__(self) -> int:
        return len(self.waves)

    def name(self, index: int) -> str:
        return f"wave {index + 1}"

    def transcript(self, index: int) -> str | None:
        return None

    def load(self, index: int) -> Tensor:
        return self.prepare(self.waves[index], self.sampling_rate)


@dataclass(frozen=True)
class Transcript:
    """The transcript of one recording."""

    wav: str
    text: str
    reference: str | None
    duration: float  # s

    @property
    def errors(self) -> ErrorCounts | None:
        """Against the reference, where there is one."""
        return None if self.reference is None else error_counts([self.reference], [self.text])


class Recognizer:
    """Transcribes speech with a network on its device."""

    def __init__(
        self,
        inference: RecognizerSpec,
        network: Any,
        config: Any,
        *,
        options: Any,
        precision: Precision,
        batch_size: int = 16,
        padded_duration: float = 0.0,
    ) -> None:
        """``options`` are the model's own; every batch is padded to at least ``padded_duration`` seconds."""
        self.sampling_rate = inference.sampling_rate(config)  # Hz, of what the network reads
        self._inference = inference
        self._config = config
        self._options = options
        self._transcribe = inference.transcriber(network, options)
        self._precision = precision
        self._batch_size = batch_size
        self._min_length = math.ceil(padded_duration * self.sampling_rate)  # samples

    def normalize(self, text: str) -> str:
        """A text as the network would write it, to compare transcripts with."""
        return self._inference.normalize(text, self._config)

    def open(self, sources: Sequence[Path], *, folder: Path = Path()) -> SpeechRecordings:
        """The utterances of recordings, folders, lists and manifests, whose relative paths start from ``folder``.

        Raises:
            InputError: a source or a recording is missing or broken.
        """
        return self._inference.open_speech(self._options, self._config, sources=sources, folder=folder)

    def transcribe(
        self,
        speech: str | Path | Tensor | Sequence[Path] | Sequence[Tensor] | SpeechRecordings,
        *,
        sampling_rate: int | None = None,
        on_result: Callable[[Transcript], None] | None = None,
        on_batch: Callable[[float], None] | None = None,
    ) -> list[Transcript]:
        """Transcribe a recording, folder or list by its path, several of them, waves (T,), or what `open` gave.

        Waves are float32 in [-1, 1] at ``sampling_rate`` Hz, by default the network's. ``on_result`` is given each
        transcript in the list's order as soon as possible, ``on_batch`` the seconds of work of each batch.

        Raises:
            InputError: a recording cannot be read; names its entry.
        """
        recordings = self._recordings(speech, sampling_rate)
        transcripts = []
        for window in self._windows(recordings):
            texts: dict[int, str] = {}
            for indices in window:
                found, seconds = self._run(recordings, indices)
                texts |= dict(zip(indices, found))
                if on_batch is not None:
                    on_batch(seconds)
            for index in sorted(texts):
                reference, duration = recordings.transcript(index), recordings.durations[index]
                transcripts.append(Transcript(recordings.name(index), texts[index], reference, duration))
                if on_result is not None:
                    on_result(transcripts[-1])
        return transcripts

    def measure(
        self, recordings: SpeechRecordings, *, iterations: int, warmup_steps: int
    ) -> tuple[list[float], list[int]]:
        """Seconds of each of ``iterations`` batches after ``warmup_steps`` that do not count, and their utterances."""
        plan = [indices for window in self._windows(recordings) for indices in window]
        times, measured = [], []
        for step in range(-warmup_steps, iterations):
            indices = plan[step % len(plan)]
            _, seconds = self._run(recordings, indices)
            if step >= 0:
                times.append(seconds)
                measured += indices
        return times, measured

    def _recordings(self, speech: Any, sampling_rate: int | None) -> SpeechRecordings:
        if isinstance(speech, str | Path | Tensor):
            speech = [speech]
        if not isinstance(speech, list | tuple):
            return speech
        if speech and isinstance(speech[0], Tensor):
            return _Waves(speech, sampling_rate or self.sampling_rate, self._prepare)
        return self.open([Path(path) for path in speech])

    def _prepare(self, wave: Tensor, sampling_rate: int) -> Tensor:
        """wave (T,) of any rate as the network reads it."""
        wave = resample(wave, ratio=self.sampling_rate / sampling_rate)
        return wave if self._inference.prepare is None else self._inference.prepare(wave, self._options)

    def _windows(self, recordings: SpeechRecordings) -> Iterator[list[list[int]]]:
        """Windows of utterances in the list's order, each cut into length-bucketed batches."""
        size = self._batch_size * _BATCHES_PER_WINDOW
        for first in range(0, len(recordings), size):
            indices = range(first, min(first + size, len(recordings)))
            window = sorted(indices, key=lambda index: recordings.durations[index])
            yield [window[start : start + self._batch_size] for start in range(0, len(window), self._batch_size)]

    def _run(self, recordings: SpeechRecordings, indices: Sequence[int]) -> tuple[list[str], float]:
        """Texts of a batch, and the seconds from samples in host memory to text."""
        rows = [recordings.load(index) for index in indices]
        waves = pad_sequence(rows, batch_first=True)
        waves = F.pad(waves, (0, max(self._min_length - waves.size(1), 0)))
        lengths = torch.tensor([len(row) for row in rows])
        device = self._precision.device
        watch = Stopwatch(device)
        with watch.running(), self._precision.autocast():
            texts = self._transcribe(waves.to(device), lengths.to(device))
        return texts, watch.seconds


def load_recognizer(
    path: Path | str,
    *,
    model: str | None = None,
    options: Any = None,
    ema: bool = False,
    precision: Precision | None = None,
    batch_size: int = 16,
    padded_duration: float = 0.0,
) -> Recognizer:
    """The recognizer of a checkpoint, which must be of ``model`` if that is given.

    ``options`` are the model's own, by default those of a command line that gives none; ``ema`` takes the EMA weights.

    Raises:
        CheckpointError: it cannot be read, is of another model, or has no EMA weights.
    """
    precision = precision or Precision()
    loaded = open_checkpoint(Path(path), model=model, role="recognizer", ema=ema)
    if ema and not loaded.ema:
        raise CheckpointError(f"{path}: holds {NO_EMA}")
    inference = loaded.spec.inference
    assert isinstance(inference, RecognizerSpec)
    network, config = load_for_inference(loaded, device=precision.device)
    return Recognizer(
        inference,
        network,
        config,
        options=inference.default_options if options is None else options,
        precision=precision,
        batch_size=batch_size,
        padded_duration=padded_duration,
    )
