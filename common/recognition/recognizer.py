"""A speech-to-text model that is ready to transcribe: recordings, lists of them, and waves of any sampling rate."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.resampling import resample
from common.checkpoints.loading import LoadedCheckpoint, load_for_inference, open_checkpoint
from common.precision import Precision
from common.recognition.error_rates import ErrorCounts, error_counts
from common.registry import RecognizerSpec
from common.timing import Stopwatch

_BATCHES_PER_WINDOW = 16  # utterances are sorted by length within so many batches; results keep the list's order


@dataclass(frozen=True)
class SpeechRecordings:
    """Utterances to transcribe; each field has one entry per utterance."""

    names: Sequence[str]  # in results: paths of recordings
    durations: Sequence[float]  # s
    transcripts: Sequence[str | None]  # references, where they are known
    load: Callable[[int], Tensor]  # index -> samples (T,) float32 at the recognizer's rate, prepared


@dataclass(frozen=True)
class Transcription:
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
        on_result: Callable[[Transcription], None] | None = None,
        on_batch: Callable[[float], None] | None = None,
    ) -> list[Transcription]:
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
                reference, duration = recordings.transcripts[index], recordings.durations[index]
                transcripts.append(Transcription(recordings.names[index], texts[index], reference, duration))
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
        if isinstance(speech, SpeechRecordings):
            return speech
        items: list[Any] = [speech] if isinstance(speech, str | Path | Tensor) else list(speech)
        if not all(isinstance(item, Tensor) for item in items):
            return self.open([Path(path) for path in items])
        rate = sampling_rate or self.sampling_rate
        return SpeechRecordings(
            names=[f"wave {number}" for number in range(1, len(items) + 1)],
            durations=[len(wave) / rate for wave in items],
            transcripts=[None] * len(items),
            load=lambda index: self._prepare(items[index], rate),
        )

    def _prepare(self, wave: Tensor, sampling_rate: int) -> Tensor:
        """wave (T,) of any rate as the network reads it."""
        wave = resample(wave, ratio=self.sampling_rate / sampling_rate)
        return wave if self._inference.prepare is None else self._inference.prepare(wave, self._options)

    def _windows(self, recordings: SpeechRecordings) -> Iterator[list[list[int]]]:
        """Windows of utterances in the list's order, each cut into length-bucketed batches."""
        size = self._batch_size * _BATCHES_PER_WINDOW
        for first in range(0, len(recordings.durations), size):
            indices = range(first, min(first + size, len(recordings.durations)))
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
    checkpoint: LoadedCheckpoint | Path | str,
    *,
    options: Any = None,
    precision: Precision | None = None,
    batch_size: int = 16,
    padded_duration: float = 0.0,
) -> Recognizer:
    """The recognizer of a checkpoint; ``options`` are the model's own (`RecognizerSpec.parse`), or its defaults.

    Raises:
        CheckpointError: it cannot be read, or is of a model that does another job.
    """
    precision = precision or Precision()
    if not isinstance(checkpoint, LoadedCheckpoint):
        checkpoint = open_checkpoint(Path(checkpoint), role="recognizer", ema=False)
    inference = checkpoint.spec.inference
    assert isinstance(inference, RecognizerSpec)
    network, config = load_for_inference(checkpoint, device=precision.device)
    return Recognizer(
        inference,
        network,
        config,
        options=inference.default_options if options is None else options,
        precision=precision,
        batch_size=batch_size,
        padded_duration=padded_duration,
    )
