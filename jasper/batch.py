"""What a micro-batch of recordings and transcripts holds."""

from dataclasses import dataclass

from torch import Tensor

from common.data.batch import Batch


@dataclass(frozen=True)
class JasperBatch(Batch):
    """Recordings, whose features are computed where the network is, and their transcripts."""

    waves: Tensor  # (B, T) float32 in [-1, 1], silent past the ends
    wave_lengths: Tensor  # (B,) int64 samples
    tokens: Tensor  # (B, L) int64 label ids, 0 past the ends
    token_lengths: Tensor  # (B,) int64
    hop_length: int  # samples between frames of features
    draws: Tensor | None = None  # (B, n_draws) float32, what augmentation is drawn from; None: nothing is varied

    @property
    def n_frames(self) -> Tensor:
        return ((self.wave_lengths + self.hop_length - 1) // self.hop_length).sum()
