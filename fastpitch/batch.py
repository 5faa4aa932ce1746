"""FastPitch's batch."""

from dataclasses import dataclass

from torch import Tensor

from common.data.batch import Batch


@dataclass(frozen=True)
class FastPitchBatch(Batch):
    """Utterances padded to the longest of them; everything after an utterance's length is zero."""

    tokens: Tensor  # (B, L) int64 symbol ids, or (B, L, n_features) float32
    token_lengths: Tensor  # (B,) int64
    mels: Tensor  # (B, n_mels, F) float32
    mel_lengths: Tensor  # (B,) int64
    durations: Tensor | None = None  # (B, L) int64, frames; they sum to mel_lengths. None: the model aligns
    pitch: Tensor | None = None  # (B, L) float32, normalized; with durations
    pitch_frames: Tensor | None = None  # (B, F) float32, normalized, 0 where unvoiced; without durations
    prior: Tensor | None = None  # (B, F, L) float32, `fastpitch.prior.padded_priors`; without durations
    speakers: Tensor | None = None  # (B,) int64

    @property
    def n_frames(self) -> Tensor:
        return self.mel_lengths.sum()
