"""A padded batch as one long sequence of its valid rows, so that nothing is computed for padding."""

import torch
import torch.nn.functional as F
from torch import Tensor


class Packing:
    """Where the rows of a padded batch (B, L, C) lie in a sequence (1, N, C) of its utterances one after another.

    ``gap`` rows of zeros follow each utterance, at least half a convolution's kernel: its padding when it is alone.
    """

    def __init__(self, mask: Tensor, *, gap: int) -> None:
        """mask (B, L, 1) bool, True where valid; reading its lengths would synchronize with a GPU."""
        valid = mask.squeeze(2)
        lengths = valid.sum(1)
        ends = (lengths + gap).cumsum(0)
        n_rows = int(ends[-1])
        places = (ends - lengths - gap).unsqueeze(1) + torch.arange(valid.size(1), device=mask.device)
        self._valid = mask
        self._places = places.clamp(max=n_rows - 1)  # (B, L) row in the sequence
        own_places = self._places[valid]
        self._sources = own_places.new_zeros(n_rows)  # (N,) row in the flattened batch; any row for gaps
        self._sources[own_places] = valid.flatten().nonzero().squeeze(1)
        self.mask = torch.zeros(1, n_rows, 1, dtype=torch.bool, device=mask.device)  # False in gaps
        self.mask[0, own_places] = True
        self.pieces: list[int] = torch.stack([lengths, torch.full_like(lengths, gap)], dim=1).flatten().tolist()

    def pack(self, x: Tensor) -> Tensor:
        """(B, L, C) -> (1, N, C), zero in gaps."""
        return F.embedding(self._sources.unsqueeze(0), x.reshape(-1, x.size(2))) * self.mask

    def unpack(self, x: Tensor) -> Tensor:
        """(1, N, C) -> (B, L, C), zero at padding."""
        return F.embedding(self._places, x[0]) * self._valid
