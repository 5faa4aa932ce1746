"""Gaussian noise of a seed that depends on the position alone, for vocoders."""

import torch
from torch import Tensor

from common.nn.layers import never_compiled

BLOCK = 2048  # positions drawn at once; random numbers depend on the sizes of the calls
_KEPT_SEEDS = 2


class SeededNoise:
    """Draws noise in blocks and keeps them, so that a CUDA graph that is replayed finds them at the same address."""

    def __init__(self, n_channels: int) -> None:
        self._n_channels = n_channels
        self._drawn: dict[tuple[int, str], tuple[torch.Generator, list[Tensor]]] = {}

    def __deepcopy__(self, memo: dict) -> "SeededNoise":
        return SeededNoise(self._n_channels)

    @never_compiled
    def __call__(self, seed: int, n_positions: int, *, device: torch.device, first: int = 0) -> Tensor:
        """(1, n_channels, n_positions) float32, positions from ``first``; what a position gets depends on it alone."""
        key = (seed, str(device))
        if key not in self._drawn:
            if len(self._drawn) == _KEPT_SEEDS:
                del self._drawn[next(iter(self._drawn))]
            self._drawn[key] = (torch.Generator().manual_seed(seed), [])
        generator, blocks = self._drawn[key]
        skipped, start = divmod(first, BLOCK)
        needed = max(skipped + 1, -(-(first + n_positions) // BLOCK))
        while len(blocks) < needed:
            # On the CPU, so that every device gets the same noise.
            blocks.append(torch.randn(BLOCK, self._n_channels, generator=generator).t().contiguous().to(device))
        return torch.cat(blocks[skipped:needed], dim=1)[None, :, start : start + n_positions]
