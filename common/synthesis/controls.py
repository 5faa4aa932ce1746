"""How a text-to-mel model is to speak, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

# (pitch (B, L) normalised, lengths (B,), mean (Hz), standard deviation (Hz)) -> pitch (B, L) normalised
PitchTransformation = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
# (energy (B, L) as `MelOutput.energy`, lengths (B,)) -> energy (B, L)
EnergyTransformation = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Controls:
    """How to speak. A model ignores controls that it does not support."""

    pace: float | Tensor = 1.0  # 2.0 speaks twice as fast; or that of each token (B, L)
    pitch_transform: PitchTransformation | None = None
    max_duration: float = 75.0  # frames; no token's predicted duration is longer
    speaker: int | Tensor = 0  # one id for all, or ids (B,)
    durations: Tensor | None = None  # (B, L) frames, instead of predicted ones
    pitch: Tensor | None = None  # (B, L) normalised, instead of the predicted pitch
    pitch_hz: Tensor | None = None  # (B, L) in Hz, 0 where unvoiced; the same in another unit
    energy_transform: EnergyTransformation | None = None
    energy: Tensor | None = None  # (B, L) as `MelOutput.energy`, instead of the predicted energy
    seed: int = 0  # of the random numbers that a model uses at inference
    max_decoder_steps: int | None = None  # frames after which an autoregressive model is stopped; None: as trained
    frame_step: int = 1  # a mel that is made at once is padded to a multiple of so many frames
    gate_threshold: float | None = None  # probability that ends an utterance of such a model; None: as trained


@dataclass(frozen=True)
class MelOutput:
    """Mel-spectrograms, and the prosody they were made with where the model has one."""

    mel: Tensor  # (B, n_mels, F) log mel-spectrogram, zero after an utterance's end
    lengths: Tensor  # (B,) frames
    durations: Tensor | None = None  # (B, L) predicted frames a token at pace 1, not rounded
    frames: Tensor | None = None  # (B, L) int64, frames each token was given; their sums are the lengths
    pitch: Tensor | None = None  # (B, L) predicted and transformed, normalised
    energy: Tensor | None = None  # (B, L) predicted and transformed, log(1 + mean norm of a token's mel frames)
    log_durations: Tensor | None = None  # (B, L) predicted log(1 + frames)
    alignments: Tensor | None = None  # (B, F, L) attention weights of each frame, zero after an utterance's end
    pitch_hz: Tensor | None = None  # (B, L) float64, spoken with, given or predicted; 0: unvoiced, or no statistics
    decoded_energy: Tensor | None = None  # (B, L) as ``energy``, spoken with, given or predicted
    finished: Tensor | None = None  # (B,) bool: whether the model ended the utterance itself, before it was stopped
