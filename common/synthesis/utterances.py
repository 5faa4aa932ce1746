"""Inputs and outputs of text-to-mel models and synthesizers: controls, symbols, prosody, mels and sound."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from common.audio.options import SETTINGS
from common.config import AudioConfig
from common.data.features import load_fractions
from common.errors import InputError
from common.text.prosody import Style
from common.text.words import Word

GIVEN = ("pitch", "pitch_hz", "durations", "energy")  # of each symbol, instead of what is predicted
# (pitch (B, L) normalised, lengths (B,), mean (Hz), standard deviation (Hz)) -> pitch (B, L) normalised
PitchTransformation = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Controls:
    """How to speak. A model ignores controls that it does not support, and finds others in its own ``options``."""

    pace: float | Tensor = 1.0  # 2.0 speaks twice as fast; or that of each token (B, L)
    pitch_transform: PitchTransformation | None = None
    max_duration: float = 75.0  # frames; no token's predicted duration is longer
    speaker: int | Tensor = 0  # one id for all, or ids (B,)
    durations: Tensor | None = None  # (B, L) frames, instead of predicted ones
    pitch: Tensor | None = None  # (B, L) normalised, instead of the predicted pitch
    pitch_hz: Tensor | None = None  # (B, L) in Hz, 0 where unvoiced; the same in another unit
    energy: Tensor | None = None  # (B, L) as `MelOutput.energy`, instead of the predicted energy
    seed: int = 0  # of the random numbers that a model uses at inference
    frame_step: int = 1  # a mel that is made at once is padded to a multiple of so many frames
    options: Any = None  # the ``InferenceOptions`` of the model's package; None: its defaults


@dataclass(frozen=True)
class MelOutput:
    """Mel-spectrograms, and the prosody they were made with where the model has one."""

    mel: Tensor  # (B, n_mels, F) log mel-spectrogram, zero after an utterance's end
    lengths: Tensor  # (B,) frames
    durations: Tensor | None = None  # (B, L) predicted frames a token at pace 1, not rounded
    frames: Tensor | None = None  # (B, L) int64, frames each token was given; their sums are the lengths
    pitch: Tensor | None = None  # (B, L) predicted and transformed, normalised
    energy: Tensor | None = None  # (B, L) predicted, log(1 + mean norm of a token's mel frames)
    log_durations: Tensor | None = None  # (B, L) predicted log(1 + frames)
    alignments: Tensor | None = None  # (B, F, L) attention weights of each frame, zero after an utterance's end
    pitch_hz: Tensor | None = None  # (B, L) float64, spoken with, given or predicted; 0: unvoiced, or no statistics
    decoded_energy: Tensor | None = None  # (B, L) as ``energy``, spoken with, given or predicted
    finished: Tensor | None = None  # (B,) bool: whether the model ended the utterance itself, before it was stopped
    wave: Tensor | None = None  # (B, F * hop) of a network that goes from text to sound; the mel is this sound's


@dataclass(frozen=True)
class WaveOutput:
    """The sound of a network that makes no mels."""

    wave: Tensor  # (B, F * hop) float32 in about [-1, 1], zero after an utterance's end
    lengths: Tensor  # (B,) frames
    frames: Tensor | None = None  # (B, L) int64, frames each token was given; their sums are the lengths


@dataclass(frozen=True)
class Phrase:
    """One line of a list; paths are as written, relative to the dataset's folder."""

    where: str  # "phrases/devset10.tsv:3", for messages
    output: PurePosixPath  # of the sound, inside the output folder; its suffix is one of `SOUND_FORMATS`
    text: str | None = None
    mel: str | None = None
    wav: str | None = None  # a recording, to speak its own mel again
    pitch: str | None = None
    duration: str | None = None
    speaker: str | None = None  # a number, or a name that the checkpoint knows

    def files(self, folder: Path) -> list[Path]:
        """The files that it is spoken from, below the dataset's ``folder``."""
        settings = None if self.mel is None else str(PurePosixPath(self.mel).with_name(SETTINGS))
        return [folder / path for path in (self.mel, self.wav, self.pitch, self.duration, settings) if path is not None]


@dataclass(frozen=True)
class SynthesisInput:
    """An utterance as the networks take it, on the CPU; a phrase is one utterance or several."""

    phrase: Phrase
    tokens: Tensor | None = None  # (L,) int64, or phonological features (L, C); None: the mel is given
    symbols: tuple[str, ...] = ()  # names of the tokens
    mel: Tensor | None = None  # (n_mels, F)
    pitch: Tensor | None = None  # (L,) normalised, to speak with instead of the predicted pitch
    pitch_hz: Tensor | None = None  # (L,) float64 Hz, 0 where unvoiced; the same in another unit
    durations: Tensor | None = None  # (L,) frames, to speak with instead of the predicted ones
    energy: Tensor | None = None  # (L,) as `MelOutput.energy`, instead of the predicted energy
    styles: tuple[Style, ...] | None = None  # L, by which the predicted prosody is changed
    volume: Tensor | None = None  # (L,) factors of the amplitude
    speaker: int = 0
    text: str = ""  # what it says, for subtitles
    reading: str = ""  # the same in words, as the cleaners wrote it out
    find_words: Callable[[], tuple[Word, ...]] = tuple  # the words, with their symbols; slow, so called on demand
    dropped: Counter[str] = field(default_factory=Counter)  # symbols of its text that the voice lacks
    lacks_style: bool = False  # whether its text asks for a pace or pitch that the voice cannot change
    lead: float = 0.0  # s of silence before it
    pause: float = 0.0  # s of silence after it
    part: int = 0  # its place in the phrase
    n_parts: int = 1  # utterances of the phrase

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of its symbols, in order."""
        return self.find_words()

    @property
    def length(self) -> int:
        """Tokens, or frames of a given mel: what batches are sorted by."""
        if self.tokens is not None:
            return len(self.tokens)
        assert self.mel is not None, "an utterance without tokens comes with its mel"
        return self.mel.size(1)

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the given values that replace predicted ones; all utterances of a batch have the same."""
        return tuple(name for name in (*GIVEN, "mel") if getattr(self, name) is not None)


def dropped_symbols(items: Sequence[SynthesisInput]) -> Counter[str]:
    """The symbols of all texts that the voice lacks."""
    return sum((item.dropped for item in items), Counter())


def silences(item: SynthesisInput, audio: AudioConfig) -> tuple[int, int]:
    """Frames of silence before and after an utterance."""
    frames_a_second = audio.sampling_rate / audio.hop_length
    return round(item.lead * frames_a_second), round(item.pause * frames_a_second)


def load_row(path: Path, length: int, *, each: str, where: str) -> Tensor:
    """Load the values (length,) float32 of a file, one for ``each`` symbol or frame.

    Raises InputError if the file is missing or broken, or of another length; names ``where``.
    """
    values = load_fractions(path, where=where)
    if values.shape != (length,):
        raise InputError(f"{path}: shape {tuple(values.shape)}, expected ({length},), one value a {each} ({where})")
    return values


@dataclass(frozen=True)
class SynthesisResult:
    """One utterance's result, on the CPU."""

    item: SynthesisInput
    mel: Tensor  # (n_mels, F) float32
    wave: Tensor | None = None  # float32 in about [-1, 1], with silence around it; None without a vocoder, or so far
    output: MelOutput | None = None  # of the batch with this utterance, on the generator's device; None: a given mel
    row: int = 0  # the utterance's in it
    is_cut: bool = False  # whether the voice did not end it and was stopped
    generator_seconds: float | None = None  # its share of the time of its batch; None: a given mel
    vocoder_seconds: float | None = None  # the same; None: no sound is made

    @property
    def cut_warning(self) -> str:
        """One line for an utterance that ``is_cut``."""
        phrase, done = self.item.phrase, f"cut after {self.mel.size(1)} frames (--max-decoder-steps)"
        return f"warning: {phrase.where} ({phrase.output}): the voice did not end it; {done}"

    def frames_of_symbols(self) -> Tensor | None:
        """Whole frames of each symbol (L,) int64 on the CPU; None of a given mel, or where the model cannot tell.

        With attention, each frame counts for the symbol of its largest weight, made monotonic.
        """
        output, tokens = self.output, self.item.tokens
        if output is None or tokens is None:
            return None
        if output.frames is not None:
            return output.frames[self.row, : len(tokens)].cpu()
        if output.alignments is None:
            return None
        weights = output.alignments[self.row, : self.mel.size(1), : len(tokens)].cpu()
        return torch.bincount(weights.argmax(1).cummax(0).values, minlength=len(tokens))

    def of_symbols(self, name: str) -> Tensor | None:
        """A field (B, L) of the generator's output, of this utterance's symbols (L,) on the CPU."""
        values = None if self.output is None or self.item.tokens is None else getattr(self.output, name)
        return None if values is None else values[self.row, : self.item.length].cpu()


def plan_batches(utterances: Sequence[SynthesisInput], batch_size: int) -> list[list[SynthesisInput]]:
    """Length-bucketed batches, the longest first, so that a lack of memory shows at once.

    Utterances with given prosody are not mixed with others.
    """
    ordered = sorted(utterances, key=lambda one: (one.given, -one.length))  # equal lengths keep their order
    batches = []
    for _, group in itertools.groupby(ordered, key=lambda one: one.given):
        alike = list(group)
        batches += [alike[start : start + batch_size] for start in range(0, len(alike), batch_size)]
    return batches


def envelope(result: SynthesisResult, *, hop_length: int, fade_out: int) -> Tensor | None:
    """Factors (F * hop,) of an utterance's amplitude: its symbols' volume, and ``fade_out`` frames to silence.

    The volume changes linearly over a frame, so that nothing clicks. None: no factor differs from one.
    """
    n_samples = result.mel.size(1) * hop_length
    volume, frames, n_faded = result.item.volume, result.frames_of_symbols(), min(fade_out * hop_length, n_samples)
    if volume is None and n_faded <= 0:
        return None
    factors = torch.ones(n_samples) if volume is None else torch.full((n_samples,), float(volume.mean()))
    if volume is not None and frames is not None:
        levels = volume.float().repeat_interleave(frames)
        before = torch.cat([levels[:1], levels[:-1]])
        ramp = torch.arange(1, hop_length + 1) / hop_length
        factors = (before[:, None] + (levels - before)[:, None] * ramp).flatten()
    factors[n_samples - n_faded :] *= torch.linspace(1, 0, n_faded)
    return factors


def join_silence(items: Sequence[SynthesisInput]) -> list[SynthesisInput]:
    """A text's utterances, where silence alone is added to the one before it, or at the beginning to the next."""
    joined: list[SynthesisInput] = []
    lead, dropped = 0.0, Counter[str]()  # of silence before the first utterance
    for item in items:
        if item.tokens is not None:
            joined.append(replace(item, lead=item.lead + lead, dropped=dropped + item.dropped))
            lead, dropped = 0.0, Counter()
        elif joined:
            last = joined[-1]
            joined[-1] = replace(last, pause=last.pause + item.pause, dropped=last.dropped + item.dropped)
        else:
            lead, dropped = lead + item.pause, dropped + item.dropped
    return joined
