"""Exponential moving average of networks' weights and buffers."""

import torch
from torch import Tensor, nn


class ExponentialMovingAverage:
    """Keeps decay * average + (1 - decay) * current for every floating tensor; integers are copied.

    The average starts as a copy of the networks.
    """

    def __init__(self, networks: dict[str, nn.Module], *, decay: float) -> None:
        self.decay = decay
        self._current = {name: network.state_dict() for name, network in networks.items()}
        self.averages = {
            name: {key: value.detach().clone() for key, value in state.items()} for name, state in self._current.items()
        }

    @torch.no_grad()
    def update(self, names: tuple[str, ...]) -> None:
        """Follow the networks of these names, as far as they are averaged, after their optimizer step."""
        floating: tuple[list[Tensor], list[Tensor]] = ([], [])
        for name in names:
            for key, average in self.averages.get(name, {}).items():
                current = self._current[name][key]
                if average.is_floating_point():
                    floating[0].append(average)
                    floating[1].append(current)
                else:
                    average.copy_(current)
        if floating[0]:
            torch._foreach_mul_(floating[0], self.decay)
            torch._foreach_add_(floating[0], floating[1], alpha=1 - self.decay)

    @torch.no_grad()
    def load(self, averages: dict[str, dict[str, Tensor]]) -> None:
        """Restore saved averages (the same keys and shapes); networks that none were saved of keep what they have."""
        for name, state in self.averages.items():
            if name not in averages:
                continue
            for key, value in state.items():
                value.copy_(averages[name][key])
