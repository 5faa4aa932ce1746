"""Distributed processes: their ranks, and communication between them."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from common.errors import InputError, OptionError, reason
from common.precision import prepare_cuda
from common.progress import progress
from common.signals import stops_handled_by

_TIMEOUT = timedelta(minutes=10)  # within updates, where all processes arrive at about the same time
_HOST_TIMEOUT = timedelta(minutes=30)  # over the host, where one process may measure or write for a long time

# (n_items, compute, description) -> results of items 0 to n_items - 1, like `Ranks.gather_over`
Gather = Callable[[int, Callable[[Sequence[int]], Iterator[Any]], str], list[Any]]


@dataclass(frozen=True)
class Ranks:
    """This process's rank, the number of processes, and its device."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    host: dist.ProcessGroup | None = None  # for exchanges of Python objects

    @property
    def is_main(self) -> bool:
        """Whether this process logs and saves."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.world_size > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, value: Any) -> list[Any]:
        """Return every process's picklable ``value``, in order of rank."""
        if self.world_size == 1:
            return [value]
        values = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.host)
        return values

    def gather_over(
        self, n_items: int, compute: Callable[[Sequence[int]], Iterator[Any]], description: str
    ) -> list[Any]:
        """Return the results of items 0 to ``n_items`` - 1, in order; ``compute`` yields those of given indices."""
        own = range(n_items)[self.rank :: self.world_size]
        watched = progress(compute(own), total=len(own), desc=description, unit="utterances", enabled=self.is_main)
        shares = self.gather(list(watched))
        return [shares[index % self.world_size][index // self.world_size] for index in range(n_items)]

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite ``tensors`` with the first process's values."""
        if self.world_size > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)


@contextmanager
def processes(*, cuda: bool) -> Iterator[Ranks]:
    """Within the block, join the processes that ``torchrun`` started, if any.

    Raises:
        OptionError: ``--cuda`` without a usable GPU, or more processes than GPUs on this machine.
        InputError: the processes can't reach each other, or another one has ended.
    """
    set_by_torchrun = {"WORLD_SIZE": 1, "RANK": 0, "LOCAL_RANK": 0}
    world_size, rank, local_rank = (int(os.environ.get(name, usual)) for name, usual in set_by_torchrun.items())
    device, host = torch.device("cpu"), None
    if cuda:
        prepare_cuda()
        if local_rank >= (n_gpus := torch.cuda.device_count()):
            raise OptionError(f"--cuda: more processes than GPUs on this machine, expected at most {n_gpus}")
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    if world_size > 1:
        try:
            with stops_handled_by(signal.SIG_DFL):  # it waits in C, where Python's handlers don't run
                # Raise at the first collective after a failed one; by default, NCCL ends the process without a message.
                os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2")
                backend, bound = ("nccl", device) if cuda else ("gloo", None)
                dist.init_process_group(backend, timeout=_TIMEOUT, device_id=bound)
                host = dist.new_group(backend="gloo", timeout=_HOST_TIMEOUT)
        except (RuntimeError, ValueError) as error:  # ValueError: torchrun's variables are missing
            raise InputError(f"the {world_size} processes cannot reach each other: {reason(error)}") from error
    try:
        yield Ranks(rank, world_size, device, host)
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):  # Gloo raises plain RuntimeErrors
            raise
        what = f"process {rank} of {world_size} has lost its connection to another one, which failed or was killed"
        raise InputError(f"{what}; restart all of them with --resume") from error
    finally:
        if dist.is_initialized():
            time.sleep(0.1)  # let Gloo's threads acquire the interpreter lock to free tensors
            dist.destroy_process_group()


def own_cores() -> int:
    """Return this process's share of the machine's usable cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
