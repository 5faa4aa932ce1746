"""Processes that work together: who they are, and what they exchange."""

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
from common.precision import check_cuda
from common.progress import progress
from common.signals import stops_handled_by

_TIMEOUT = timedelta(minutes=10)  # of an update's exchange, at which all processes arrive at about the same time
_HOST_TIMEOUT = timedelta(minutes=30)  # of what the host shares: some processes measure or write for long meanwhile
# Where an exchange of GPUs fails or takes too long, NCCL gives it up and the next one raises; by default it would end
# the process from another thread, without a line of ours.
_RAISE_LATER = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "2"}

# (n_items, compute, description) -> results of items 0 to n_items - 1, as of `Ranks.gather_over`
Gather = Callable[[int, Callable[[Sequence[int]], Iterator[Any]], str], list[Any]]


@dataclass(frozen=True)
class Ranks:
    """This process's place among those that work together, and its device."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    host: dist.ProcessGroup | None = None  # over which the host shares what is not on the device

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
        dist.all_gather_object(values, value, group=self.host)
        return values

    def gather_over(
        self, n_items: int, compute: Callable[[Sequence[int]], Iterator[Any]], description: str
    ) -> list[Any]:
        """Results of items 0 to ``n_items`` - 1, of which each process computes every world-size-th, in order.

        ``compute`` yields those of the indices that it is given.
        """
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
    """Join the processes that ``torchrun`` started, or be the only one, until the block is left.

    Raises:
        OptionError: ``--cuda`` without a usable GPU, or more processes than GPUs on this machine.
        InputError: the processes do not find each other, or another one has ended in the middle of the work.
    """
    world_size, rank, local_rank = _from_torchrun("WORLD_SIZE", 1), _from_torchrun("RANK"), _from_torchrun("LOCAL_RANK")
    device, host = torch.device("cpu"), None
    if cuda:
        check_cuda()
        if local_rank >= (n_gpus := torch.cuda.device_count()):
            raise OptionError(f"--cuda: more processes here than GPUs, expected at most {n_gpus}")
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    if world_size > 1:
        try:
            with stops_handled_by(signal.SIG_DFL):  # it waits in C, where handlers of Python do not run
                os.environ |= {**_RAISE_LATER, **os.environ}
                backend, bound = ("nccl", device) if cuda else ("gloo", None)
                dist.init_process_group(backend, timeout=_TIMEOUT, device_id=bound)
                host = dist.new_group(backend="gloo", timeout=_HOST_TIMEOUT)
        except (RuntimeError, ValueError) as error:  # the latter where torchrun's variables are missing
            raise InputError(f"the {world_size} processes do not find each other: {reason(error)}") from error
    try:
        yield Ranks(rank, world_size, device, host)
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):  # whose errors are RuntimeErrors
            raise
        raise InputError(
            f"process {rank} of {world_size} has lost its connection to another one, which has failed or was killed; "
            "start all again, with --resume"
        ) from error
    finally:
        if dist.is_initialized():
            # Threads of Gloo free the tensors of the last collective, for which they need the interpreter: they would
            # wait for this thread for ever, which waits for them.
            time.sleep(0.1)
            dist.destroy_process_group()


def own_cores() -> int:
    """This process's share of the cores that it and its neighbours on this machine may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // _from_torchrun("LOCAL_WORLD_SIZE", 1))


def _from_torchrun(name: str, default: int = 0) -> int:
    """A number that ``torchrun`` or Slurm's scripts set."""
    return int(os.environ.get(name, default))
