"""Speaks a list utterance by utterance and measures each: what is done stays done, whatever becomes of the next."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import soxr
import torch
from torch import Tensor

from common.audio.wav import check_wav, load_wav, save_wav
from common.config import AudioConfig
from common.errors import InputError
from common.evaluation.metrics import compare_speech_frames, speech_frames
from common.evaluation.plots import plot_alone, plot_comparison, to_png
from common.evaluation.results import Result
from common.files import write_atomically
from common.recognition.error_rates import error_counts
from common.signals import StopSignals
from common.synthesis.synthesizer import OutputFolder, Spoken, Synthesizer, Utterance

QUALITY = "HQ"  # of soxr
LONGEST = 120.0  # s of a clip that is aligned, in about 2 GB of memory
FADE_OUT_FRAMES = 10  # at the end, as inference.py has it


class Ear(Protocol):
    """A recogniser."""

    def hear(self, wave: Tensor, sampling_rate: int) -> str:
        """wave (T,) of ``sampling_rate`` Hz -> the words in it."""

    def normalise(self, text: str) -> str:
        """A text as the recogniser would write it down."""


@dataclass(frozen=True)
class Item:
    """An utterance to speak, and what it is measured by."""

    utterance: Utterance
    text: str  # as the list has it
    words: str | None = None  # that shall be heard; None: not known, as the text is phones
    recording: Path | None = None  # somebody saying the same

    @property
    def name(self) -> str:
        """Of its files."""
        return str(self.utterance.phrase.output)

    @property
    def key(self) -> str:
        """What its results depend on, besides the models, in short."""
        spoken = self.utterance
        given = [None if one is None else one.tolist() for one in (spoken.tokens, spoken.pitch, spoken.durations)]
        facts = [self.text, self.words, spoken.speaker, *given]
        if self.recording is not None:
            state = self.recording.stat()
            facts += [str(self.recording), state.st_size, state.st_mtime_ns]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


@dataclass(frozen=True)
class Folder:
    """Where an evaluation's files are."""

    path: Path

    @property
    def journal(self) -> Path:
        return self.path / "utterances.jsonl"

    @property
    def results(self) -> Path:
        return self.path / "evaluation.json"

    @property
    def page(self) -> Path:
        return self.path / "index.html"

    def synthesised(self, name: str) -> Path:
        """The sound that was made."""
        return self.path / "synthesised" / name

    def recorded(self, name: str) -> Path:
        """The recorded clip, copied for the page."""
        return self.path / "recorded" / name

    def plot(self, name: str) -> Path:
        """The picture."""
        return (self.path / "plots" / name).with_suffix(".png")

    def finished(self, results: Sequence[Result], items: Sequence[Item]) -> list[Result]:
        """Those results of an earlier run that are of these items, without fault, and whose files are there."""
        keys = {item.name: item.key for item in items}
        return [one for one in results if keys.get(one.name) == one.key and one.error is None and self._holds(one)]

    def _holds(self, result: Result) -> bool:
        paths = [self.synthesised(result.name), self.plot(result.name)]
        if result.recording is not None:
            paths.append(self.recorded(result.name))
        return all(path.is_file() for path in paths)


def check_items(items: Sequence[Item]) -> None:
    """Refuse recordings that cannot be read, from their headers, before any work.

    Raises:
        AudioError: names the first by file and line.
    """
    for item in items:
        if item.recording is not None:
            check_wav(item.recording, sampling_rate=None, where=item.utterance.phrase.where)


class Evaluator:
    """Speaks and measures single utterances."""

    def __init__(self, synthesizer: Synthesizer, audio: AudioConfig, folder: Folder, *, ear: Ear | None) -> None:
        """``audio`` is that of the voice; without an ``ear`` nothing is heard."""
        self._synthesizer = synthesizer
        self._rate = audio.sampling_rate
        self._folder = folder
        self._ear = ear
        self._output = OutputFolder(
            folder.path / "synthesised", audio=audio, fade_out_frames=FADE_OUT_FRAMES, save_mels=False
        )

    def warm_up(self, item: Item) -> None:
        """Speak once what is not measured: the first utterance of a process takes longer than those after it."""
        try:
            self._synthesizer.speak([item.utterance], keep=lambda _: None)
        except InputError:  # told when its turn comes
            return

    def evaluate(self, item: Item) -> Result:
        """Speak an utterance, write its files, and measure it; what goes wrong is in the result's ``error``."""
        result = Result(item.name, item.text, item.key)
        try:
            result = self._speak(item, result)
            wave = load_wav(self._folder.synthesised(item.name), sampling_rate=self._rate)
            result = self._hear(item, result, wave)
            return self._measure(item, result, wave)
        except InputError as error:
            return replace(result, error=str(error))

    def _speak(self, item: Item, result: Result) -> Result:
        spoken: list[Spoken] = []
        times = self._synthesizer.speak([item.utterance], keep=spoken.append)
        self._output.write(spoken[0])
        return replace(
            result,
            duration=len(spoken[0].wave) / self._rate,
            work=times.latency,
            cut=item.utterance.phrase in self._synthesizer.unfinished,
        )

    def _hear(self, item: Item, result: Result, wave: Tensor) -> Result:
        if self._ear is None:
            return result
        heard = self._ear.hear(wave, self._rate)
        if item.words is None:
            return replace(result, heard=heard)
        reference = self._ear.normalise(item.words)
        return replace(result, heard=heard, reference=reference, errors=error_counts([reference], [heard]))

    def _measure(self, item: Item, result: Result, wave: Tensor) -> Result:
        if item.recording is None:
            self._save_plot(item, to_png(plot_alone(speech_frames(wave.numpy(), sampling_rate=self._rate))))
            return result
        result = replace(result, recording=str(item.recording))
        where = item.utterance.phrase.where
        rate = check_wav(item.recording, sampling_rate=None, where=where).sampling_rate
        recorded = load_wav(item.recording, sampling_rate=rate, where=where)
        _write(self._folder.recorded(item.name), lambda path: save_wav(path, recorded, sampling_rate=rate))
        if self._ear is not None:
            heard = self._ear.hear(recorded, rate)
            known = result.reference is not None
            errors = error_counts([result.reference], [heard]) if known else None
            result = replace(result, heard_recording=heard, recording_errors=errors)
        seconds = max(len(recorded) / rate, len(wave) / self._rate)
        if seconds > LONGEST:
            raise InputError(f"{where}: a clip of {seconds:.0f} s, too long to align; the longest is {LONGEST:.0f} s")
        common = min(rate, self._rate)  # what only one of the two can hold is not held against the other
        comparison = compare_speech_frames(
            resampled(recorded, rate, common).numpy(), resampled(wave, self._rate, common).numpy(), sampling_rate=common
        )
        self._save_plot(item, to_png(plot_comparison(comparison)))
        return replace(result, distance=comparison.distance)

    def _save_plot(self, item: Item, png: bytes) -> None:
        _write(
            self._folder.plot(item.name),
            lambda path: write_atomically(path, lambda file: file.write(png), durable=False),
        )


def resampled(wave: Tensor, own_rate: int, rate: int) -> Tensor:
    """wave (T,) of ``own_rate`` Hz at ``rate`` Hz."""
    if own_rate == rate:
        return wave
    return torch.from_numpy(soxr.resample(wave.numpy(), own_rate, rate, quality=QUALITY))


def _write(path: Path, write: Callable[[Path], None]) -> None:
    try:
        write(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def evaluate_all(
    items: Sequence[Item], evaluator: Evaluator, *, earlier: Sequence[Result], done: Callable[[Result], None]
) -> tuple[list[Result], int | None]:
    """Results of ``items`` in their order, and the number of the signal that stopped the run, if one did.

    Those of ``earlier``, an earlier run, are taken over; each of the others is handed to ``done`` when it is there. A
    signal lets the utterance be finished that is being spoken.
    """
    kept = {result.name: result for result in earlier}
    results = []
    new = [item for item in items if item.name not in kept]
    with StopSignals() as signals:
        if new:
            evaluator.warm_up(new[0])
        for item in items:
            if item.name in kept:
                results.append(kept[item.name])
                continue
            if signals.received is None:
                result = evaluator.evaluate(item)
                done(result)
                results.append(result)
    return results, None if signals.received is None else int(signals.received)
