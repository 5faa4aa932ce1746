"""Processes that train together: who they are, and the sums they exchange."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from common.errors import OptionError
from common.precision import check_cuda

_BUCKET_BYTES = 25 * 2**20  # large enough to use the network well, small enough to overlap with the backward pass
_TIMEOUT = timedelta(minutes=30)


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


def is_first_process() -> bool:
    """Whether this is the process that speaks for all, where no `Ranks` are at hand."""
    return int(os.environ.get("RANK", 0)) == 0


def own_cores() -> int:
    """This process's share of the cores that it and its neighbours on this machine may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


class GradientReducer:
    """Sums gradients over processes while the backward pass still runs.

    Gradients are gathered into buckets in reverse order of the parameters, which is about the order in which the
    backward pass finishes them. A full bucket is summed at once, asynchronously; buckets start in a fixed order so
    that all processes agree. Nothing happens until `arm`, so that micro-batches accumulate without traffic.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], ranks: Ranks) -> None:
        self._ranks = ranks
        self._buckets = list(_buckets(list(parameters)[::-1]))
        self._bucket_of = {id(p): i for i, bucket in enumerate(self._buckets) for p in bucket}
        self._armed = False
        self._missing: list[int] = []
        self._running: list[tuple[Any, Tensor]] = []
        if ranks.world_size > 1:
            for bucket in self._buckets:
                for parameter in bucket:
                    parameter.register_post_accumulate_grad_hook(self._on_gradient)

    def arm(self) -> None:
        """The next backward pass is the last of this update: exchange its gradients."""
        self._armed = self._ranks.world_size > 1
        self._missing = [len(bucket) for bucket in self._buckets]
        self._running = []

    def finish(self) -> None:
        """Wait until every gradient is the sum over all processes."""
        if not self._armed:
            return
        self._armed = False
        while len(self._running) < len(self._buckets):  # with parameters that this step did not use
            self._start_next()
        for bucket, (work, flat) in zip(self._buckets, self._running):
            work.wait()
            for parameter, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                parameter.grad = part.view_as(parameter)
        self._running = []

    def _on_gradient(self, parameter: nn.Parameter) -> None:
        if not self._armed:
            return
        self._missing[self._bucket_of[id(parameter)]] -= 1
        while len(self._running) < len(self._buckets) and self._missing[len(self._running)] == 0:
            self._start_next()

    def _start_next(self) -> None:
        bucket = self._buckets[len(self._running)]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in bucket])
        self._running.append((dist.all_reduce(flat, async_op=True), flat))


def _buckets(parameters: list[nn.Parameter]) -> Iterable[list[nn.Parameter]]:
    bucket: list[nn.Parameter] = []
    size = 0
    for parameter in parameters:
        if bucket and size + parameter.nbytes > _BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.nbytes
    if bucket:
        yield bucket
