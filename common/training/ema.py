"""Exponential moving average of networks' weights and buffers."""

import copy

import torch
from torch import Tensor, nn

from common.checkpoints import Weights, load_weights
from common.training.optim import choose, is_known


class ExponentialMovingAverage:
    """Keeps decay * average + (1 - decay) * current for every floating tensor; integers are copied.

    The average starts as a copy of the networks.
    """

    def __init__(self, networks: dict[str, nn.Module], *, decay: float) -> None:
        self.decay = decay
        self.networks = {name: copy.deepcopy(network) for name, network in networks.items()}  # with averaged weights
        self.averages = {name: network.state_dict() for name, network in self.networks.items()}
        self._current = {name: network.state_dict() for name, network in networks.items()}

    @torch.no_grad()
    def update(self, names: tuple[str, ...], *, applied: Tensor) -> None:
        """Follow the networks of these names, as far as they are averaged, after their optimizer step.

        ``applied`` (a float32 scalar on the device, 1 or 0) says whether there was such a step.
        """
        pairs = [
            (average, self._current[name][key])
            for name in names
            for key, average in self.averages.get(name, {}).items()
        ]
        averages = [average for average, _ in pairs if average.is_floating_point()]
        currents = [current for _, current in pairs if current.is_floating_point()]
        if averages:
            torch._foreach_mul_(averages, choose(applied, self.decay, 1.0))
            added = currents if is_known(applied) else list(torch._foreach_mul(currents, applied))
            torch._foreach_add_(averages, added, alpha=1 - self.decay)
        if integers := [average for average, _ in pairs if not average.is_floating_point()]:
            # As they were if the update was left out: then buffers are restored.
            torch._foreach_copy_(integers, [current for _, current in pairs if not current.is_floating_point()])


def resume_average(ema: ExponentialMovingAverage | None, averages: Weights | None, *, where: str) -> list[str]:
    """Restore the EMA weights of a checkpoint, which ``where`` names; a line where the run or it has none.

    Raises:
        CheckpointError: they do not fit the networks, or are not finite.
    """
    if ema is None:
        return [f"the EMA weights of {where} are left out, as --ema-decay is 0"] if averages is not None else []
    if averages is None:
        return [f"{where} holds no EMA weights: they begin as a copy of its weights"]
    load_weights(ema.networks, averages, where=where, kind="EMA weights")
    return []
