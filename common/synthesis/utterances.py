"""Inputs and outputs of text-to-mel models and synthesizers: controls, symbols, prosody, mels and sound."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from common.audio.options import SETTINGS
from common.config import AudioConfig
from common.text.prosody import Style
from common.text.words import Word

GIVEN = ("pitch", "pitch_hz", "durations", "energy")  # for each symbol, instead of predicted values
# (pitch (B, L) normalized, lengths (B,), mean (Hz), standard deviation (Hz)) -> pitch (B, L) normalized
PitchTransformation = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Controls:
    """How to speak. A model ignores controls that it doesn't support; its own are in ``options``."""

    pace: float | Tensor = 1.0  # 2.0 speaks twice as fast; or one value per token (B, L)
    pitch_transform: PitchTransformation | None = None
    max_duration: float = 75.0  # frames; the limit of a token's predicted duration
    speaker: int | Tensor = 0  # one id for all, or ids (B,)
    durations: Tensor | None = None  # (B, L) frames, instead of predicted ones
    pitch: Tensor | None = None  # (B, L) normalized, instead of the predicted pitch
    pitch_hz: Tensor | None = None  # (B, L) in Hz, 0 where unvoiced; an alternative to ``pitch``
    energy: Tensor | None = None  # (B, L) as `MelOutput.energy`, instead of the predicted energy
    seed: int = 0  # for random numbers that a model uses at inference
    frame_step: int = 1  # a mel made at once is padded to a multiple of this many frames
    options: Any = None  # the ``InferenceOptions`` of the model's package; None: its defaults


@dataclass(frozen=True)
class MelOutput:
    """Mel-spectrograms, and the prosody they were made with if the model has any."""

    mel: Tensor  # (B, n_mels, F) log mel-spectrogram, zero after an utterance's end
    lengths: Tensor  # (B,) frames
    durations: Tensor | None = None  # (B, L) predicted frames per token at pace 1, not rounded
    frames: Tensor | None = None  # (B, L) int64, frames per token; they sum to the lengths
    pitch: Tensor | None = None  # (B, L) predicted and transformed, normalized
    energy: Tensor | None = None  # (B, L) predicted, log(1 + mean norm of a token's mel frames)
    log_durations: Tensor | None = None  # (B, L) predicted log(1 + frames)
    alignments: Tensor | None = None  # (B, F, L) attention weights of each frame, zero after an utterance's end
    pitch_hz: Tensor | None = None  # (B, L) float64, as used, given or predicted; 0: unvoiced, or no statistics
    decoded_energy: Tensor | None = None  # (B, L) like ``energy``, as used, given or predicted
    finished: Tensor | None = None  # (B,) bool: whether the model itself ended the utterance
    wave: Tensor | None = None  # (B, F * hop) from a `TextToWave` network; the mel is computed from it


@dataclass(frozen=True)
class WaveOutput:
    """The sound of a network that makes no mels."""

    wave: Tensor  # (B, F * hop) float32 in about [-1, 1], zero after an utterance's end
    lengths: Tensor  # (B,) frames
    frames: Tensor | None = None  # (B, L) int64, frames per token; they sum to the lengths


@dataclass(frozen=True)
class Phrase:
    """One line of a list; paths are as written, relative to the dataset's folder."""

    where: str  # "phrases/devset10.tsv:3", for messages
    output: PurePosixPath  # path of the sound within the output folder; its suffix is one of `SOUND_FORMATS`
    text: str | None = None
    mel: str | None = None
    wav: str | None = None  # a recording, for copy synthesis
    pitch: str | None = None
    duration: str | None = None
    speaker: str | None = None  # a number, or a name that the checkpoint knows

    def files(self, folder: Path) -> list[Path]:
        """Return the files that it's spoken from, in the dataset's ``folder``."""
        settings = None if self.mel is None else str(PurePosixPath(self.mel).with_name(SETTINGS))
        return [folder / path for path in (self.mel, self.wav, self.pitch, self.duration, settings) if path is not None]


@dataclass(frozen=True)
class SynthesisInput:
    """An utterance as input to the networks, on the CPU; a phrase is one utterance or several."""

    phrase: Phrase
    tokens: Tensor | None = None  # (L,) int64, or phonological features (L, C); None: the mel is given
    symbols: tuple[str, ...] = ()  # names of the tokens
    mel: Tensor | None = None  # (n_mels, F)
    pitch: Tensor | None = None  # (L,) normalized, instead of the predicted pitch
    pitch_hz: Tensor | None = None  # (L,) float64 Hz, 0 where unvoiced; an alternative to ``pitch``
    durations: Tensor | None = None  # (L,) frames, instead of predicted ones
    energy: Tensor | None = None  # (L,) as `MelOutput.energy`, instead of the predicted energy
    styles: tuple[Style, ...] | None = None  # L styles that change the predicted prosody
    volume: Tensor | None = None  # (L,) factors of the amplitude
    speaker: int = 0
    text: str = ""  # what it says, for subtitles
    reading: str = ""  # the same in words, as the cleaners expanded it
    words: Callable[[], tuple[Word, ...]] = tuple  # return the words of its symbols, in order; slow at the first call
    dropped: Counter[str] = field(default_factory=Counter)  # symbols of its text that the voice lacks
    lacks_style: bool = False  # whether its text asks for a pace or pitch that the voice can't change
    lead: float = 0.0  # s of silence before it
    pause: float = 0.0  # s of silence after it
    part: int = 0  # its index in the phrase
    n_parts: int = 1  # number of utterances in the phrase

    @property
    def length(self) -> int:
        """The number of tokens, or frames of a given mel; batches are sorted by it."""
        if self.tokens is not None:
            return len(self.tokens)
        assert self.mel is not None, "an utterance without tokens comes with its mel"
        return self.mel.size(1)

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the given values that replace predicted ones; all utterances in a batch have the same ones."""
        return tuple(name for name in (*GIVEN, "mel") if getattr(self, name) is not None)


def dropped_symbols(items: Sequence[SynthesisInput]) -> Counter[str]:
    """Return the symbols in all texts that the voice lacks."""
    return sum((item.dropped for item in items), Counter())


def silences(item: SynthesisInput, audio: AudioConfig) -> tuple[int, int]:
    """Return the frames of silence before and after an utterance."""
    frames_a_second = audio.sampling_rate / audio.hop_length
    return round(item.lead * frames_a_second), round(item.pause * frames_a_second)


@dataclass(frozen=True)
class SynthesisResult:
    """One utterance's result, on the CPU."""

    item: SynthesisInput
    mel: Tensor  # (n_mels, F) float32
    output: MelOutput  # of this utterance's batch, on the generator's device
    row: int  # the utterance's row in it
    wave: Tensor | None = None  # float32 in about [-1, 1], with silence around it; None: not made, or not yet
    is_cut: bool = False  # whether it was cut because the voice didn't stop
    generator_seconds: float = 0.0  # its share of its batch's time; 0: a given mel
    vocoder_seconds: float = 0.0  # the same; 0: no sound was made

    @property
    def cut_warning(self) -> str:
        """One line for an utterance that ``is_cut``."""
        phrase, done = self.item.phrase, f"cut after {self.mel.size(1)} frames (--max-decoder-steps)"
        return f"warning: {phrase.where} ({phrase.output}): the voice did not stop; {done}"

    def frames_of_symbols(self) -> Tensor | None:
        """Return each symbol's number of frames (L,) int64 on the CPU; None for a given mel, or if it's unknown.

        With attention, each frame counts for the symbol with its largest weight, made monotonic.
        """
        if self.output.alignments is None or self.output.frames is not None:
            return self.of_symbols("frames")
        weights = self.output.alignments[self.row, : self.mel.size(1), : self.item.length].cpu()
        return torch.bincount(weights.argmax(1).cummax(0).values, minlength=self.item.length)

    def of_symbols(self, name: str) -> Tensor | None:
        """Return a field (B, L) of the generator's output for this utterance's symbols (L,) on the CPU."""
        values = getattr(self.output, name)
        return None if values is None else values[self.row, : self.item.length].cpu()


def plan_batches(utterances: Sequence[SynthesisInput], batch_size: int) -> list[list[SynthesisInput]]:
    """Return length-bucketed batches, the longest first, so that a lack of memory shows at once.

    Utterances with given prosody aren't mixed with others.
    """
    ordered = sorted(utterances, key=lambda one: (one.given, -one.length))  # equal lengths keep their order
    batches = []
    for _, group in itertools.groupby(ordered, key=lambda one: one.given):
        alike = list(group)
        batches += [alike[start : start + batch_size] for start in range(0, len(alike), batch_size)]
    return batches


def envelope(result: SynthesisResult, *, hop_length: int, fade_out: int) -> Tensor:
    """Return factors (F * hop,) for an utterance's amplitude: its symbols' volume, and a fade over ``fade_out`` frames.

    The volume changes linearly over a frame, so that nothing clicks.
    """
    n_samples = result.mel.size(1) * hop_length
    volume, n_faded = result.item.volume, min(fade_out * hop_length, n_samples)
    factors = torch.full((n_samples,), 1.0 if volume is None else float(volume.mean()))
    if volume is not None and (frames := result.frames_of_symbols()) is not None:
        levels = volume.float().repeat_interleave(frames)
        before = torch.cat([levels[:1], levels[:-1]])
        ramp = torch.arange(1, hop_length + 1) / hop_length
        factors = (before[:, None] + (levels - before)[:, None] * ramp).flatten()
    factors[n_samples - n_faded :] *= torch.linspace(1, 0, n_faded)
    return factors


def join_silence(items: Sequence[SynthesisInput]) -> list[SynthesisInput]:
    """Merge utterances that are only silence into the one before them, or at the beginning into the next one."""
    joined: list[SynthesisInput] = []
    lead, dropped = 0.0, Counter[str]()  # silence before the first utterance
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
