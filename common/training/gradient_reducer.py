"""Gradients summed over processes while the backward pass still runs.

Why not ``DistributedDataParallel``: it decides at the *forward* pass whether the backward pass that follows will
synchronize, this class is told at the *backward* pass (`GradientReducer.arm`). That makes three things exact that the
engine relies on:

- a graph kept from one phase to the next (`Phase.keeps`): its forward pass belongs to another phase than its backward;
- a frozen discriminator called in the generator's phase: it is never wrapped, so it cannot wait for gradients that
  will not come;
- accumulation: micro-batches before the last exchange nothing, however many forward passes each of them makes.

DDP with ``no_sync`` set in the obvious places was measured 2e-2 off in such steps, without an error. The tests compare
this class with one process's result in every such case.
"""

import itertools
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from common.distributed import Ranks

_BUCKET_BYTES = 25 * 2**20  # large enough to use the network well, small enough to overlap with the backward pass


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
        for parameter in itertools.chain(*self._buckets) if ranks.world_size > 1 else ():
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
