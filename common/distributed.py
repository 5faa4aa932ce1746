"""Processes that work together: who they are, and what they exchange."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from common.errors import OptionError
from common.precision import check_cuda
from common.progress import progress

_TIMEOUT = timedelta(minutes=30)


Result = TypeVar("Result")


class Gather(Protocol):
    """How what is computed over a whole list is shared among processes; `Ranks.gather_over` is one."""

    def __call__(
        self, n_items: int, compute: Callable[[Sequence[int]], Iterator[Result]], *, description: str
    ) -> list[Result]:
        """The results of items 0 to ``n_items`` - 1, in order; ``compute`` yields those of the indices it is given."""


@dataclass(frozen=True)
class Ranks:
    """This process's place among those that work together, and its device."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main(self) -> bool:
        """Whether this is the one process that logs and saves."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum of a tensor over all processes, in place; every process receives it."""
        if self.world_size > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, value: Any) -> list[Any]:
        """Every process's picklable ``value``, in order of rank."""
        if self.world_size == 1:
            return [value]
        values = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values

    def gather_over(
        self, n_items: int, compute: Callable[[Sequence[int]], Iterator[Result]], *, description: str
    ) -> list[Result]:
        """As `Gather`: each process computes every world-size-th item, and all receive all results."""
        own = range(n_items)[self.rank :: self.world_size]
        watched = progress(compute(own), total=len(own), desc=description, unit="utterances", enabled=self.is_main)
        shares = self.gather(list(watched))
        return [shares[index % self.world_size][index // self.world_size] for index in range(n_items)]

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite ``tensors`` with the first process's values."""
        if self.world_size > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)

    def barrier(self) -> None:
        """Wait until every process is here."""
        if self.world_size > 1:
            dist.barrier()


def start(*, cuda: bool) -> Ranks:
    """Join the processes that ``torchrun`` started, or be the only one.

    Raises:
        OptionError: ``--cuda`` without a usable GPU, or more processes than GPUs on this machine.
    """
    rank, local_rank = int(os.environ.get("RANK", 0)), int(os.environ.get("LOCAL_RANK", 0))
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    if cuda:
        check_cuda()
    if cuda and local_rank >= torch.cuda.device_count():
        raise OptionError(f"process {local_rank} of this machine has no GPU; there are {torch.cuda.device_count()}")
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if world_size > 1:
        dist.init_process_group("nccl" if cuda else "gloo", timeout=_TIMEOUT)
    return Ranks(rank=rank, world_size=world_size, local_rank=local_rank, device=device)


def stop() -> None:
    """Leave the group of processes, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def own_cores() -> int:
    """This process's share of the cores that it and its neighbours on this machine may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
