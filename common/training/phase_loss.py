"""A phase's loss as a module, so that `DistributedDataParallel` sums the gradients of the networks that it trains."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from common.data import Batch
from common.training.objective import Networks, Objective, Phase


class PhaseLoss(nn.Module):
    """Computes a phase's loss of one micro-batch.

    Its parameters are those of the networks that the phase trains. The others are called unwrapped and frozen, so that
    no process waits for their gradients. Each of its parameters must get a gradient in each micro-batch.
    """

    def __init__(
        self,
        phase: Phase,
        objective: Objective,
        networks: Networks,
        *,
        autocast: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self.trained = nn.ModuleDict({name: networks[name] for name in phase.trains})
        self._phase = phase.name
        self._objective = objective
        self._networks = networks
        self._autocast = autocast

    def forward(
        self, batch: Batch, weights: Mapping[str, float], divisors: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum of the terms, each divided by its divisor, and all numerators, detached; scalars."""
        with self._autocast():
            numerators = self._objective.numerators(self._phase, self._networks, batch)
        parts = [weight * numerators[name].float() / divisors[name] for name, weight in weights.items()]
        loss = sum(parts, start=torch.zeros((), device=parts[0].device))
        return loss, {name: numerator.detach() for name, numerator in numerators.items()}


def exchanging_gradients(loss: PhaseLoss) -> DistributedDataParallel:
    """``loss`` with a backward pass that averages gradients over processes.

    The networks' buffers must be the same in all processes: without ``broadcast_buffers``, which would overwrite the
    statistics of batches in each forward pass, `DistributedDataParallel` leaves out their first broadcast too.
    """
    with warnings.catch_warnings():
        # PyTorch 2.13 calls it `forward_sync_buffers`, which 2.11 does not know.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        return DistributedDataParallel(loss, broadcast_buffers=False, gradient_as_bucket_view=True)
