"""FastPitch's batch."""

from dataclasses import dataclass

from torch import Tensor

from common.data import TextMelBatch


@dataclass(frozen=True)
class FastPitchBatch(TextMelBatch):
    """A batch with what durations, pitch and energy are learned from; zero after an utterance's length."""

    durations: Tensor | None = None  # (B, L) int64, frames; they sum to mel_lengths. None: the model aligns
    pitch: Tensor | None = None  # (B, L) float32, normalized; with durations
    pitch_frames: Tensor | None = None  # (B, F) float32, normalized, 0 where unvoiced; without durations
    prior: Tensor | None = None  # (B, F, L) float32, `fastpitch.prior.padded_priors`; without durations
    speakers: Tensor | None = None  # (B,) int64
