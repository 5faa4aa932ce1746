"""Sample the utterances of each update: random global batches, split by length into micro-batches."""

from collections.abc import Iterator, Sequence

import torch

from common.data.batch import Draw
from common.distributed import Ranks
from common.errors import InputError


class GlobalBatchSampler:
    """Samples the utterances of each update from seed and epoch only, independent of the number of processes.

    Each global batch (processes x accumulation steps x batch size) is sampled, sorted by length, and split into
    micro-batches. In each accumulation step, all processes get neighboring pieces, so that none waits for a longer one.
    An incomplete last global batch is dropped from the epoch. With ``sorted_updates``, the utterances of that many
    updates are sorted together, then split into global batches, which are shuffled.

    Iterating yields this process's micro-batches, ``accumulation`` of them per update.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        batch_size: int,
        accumulation: int,
        seed: int,
        ranks: Ranks,
        sorted_updates: int | None = None,
    ) -> None:
        self.global_batch = batch_size * accumulation * ranks.world_size
        self.steps_per_epoch = len(lengths) // self.global_batch
        if self.steps_per_epoch == 0:
            raise InputError(
                f"the training list has {len(lengths)} utterances, fewer than one update takes: {self.global_batch} = "
                f"{ranks.world_size} processes x {accumulation} accumulation steps x batch size {batch_size}"
            )
        self._lengths = lengths
        self._batch_size = batch_size
        self._sorted_updates = sorted_updates or 1
        self._seed = seed
        self._ranks = ranks
        self._epoch = 1
        self._first_step = 0

    def set_position(self, *, epoch: int, step: int = 0) -> None:
        """Set where the next iteration starts: the epoch (from 1) and the number of its updates already done."""
        self._epoch = epoch
        self._first_step = step

    def __len__(self) -> int:
        micro_batches = self.global_batch // self._batch_size // self._ranks.world_size
        return (self.steps_per_epoch - self._first_step) * micro_batches

    def __iter__(self) -> Iterator[list[Draw]]:
        epoch = self._epoch
        generator = torch.Generator().manual_seed((self._seed * 1_000_003 + epoch) % 2**63)
        order = torch.randperm(len(self._lengths), generator=generator).tolist()
        size, world = self._batch_size, self._ranks.world_size
        steps = list(range(self.steps_per_epoch))

        def by_length(index: int) -> tuple[int, int]:
            return self._lengths[index], index  # break ties by index, independent of the sample

        if self._sorted_updates > 1:
            drawn, window = order[: len(steps) * self.global_batch], self._sorted_updates * self.global_batch
            windows = (drawn[start : start + window] for start in range(0, len(drawn), window))
            order = [index for one in windows for index in sorted(one, key=by_length)]
            steps = torch.randperm(len(steps), generator=generator).tolist()
        for step in steps[self._first_step :]:
            drawn = sorted(order[step * self.global_batch : (step + 1) * self.global_batch], key=by_length)
            pieces = [drawn[start : start + size] for start in range(0, self.global_batch, size)]
            for piece in pieces[self._ranks.rank :: world]:
                yield [Draw(index, epoch) for index in piece]


def validation_batches(lengths: Sequence[int], *, batch_size: int, ranks: Ranks) -> list[list[int]]:
    """Return this process's share of a validation set in length-bucketed batches, with each utterance once."""
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    own = order[ranks.rank :: ranks.world_size]
    return [own[start : start + batch_size] for start in range(0, len(own), batch_size)]
