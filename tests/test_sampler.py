"""The sampler: random global batches that depend on seed and epoch alone, dealt out by length."""

from dataclasses import asdict

import pytest
import torch

from common.data.sampler import GlobalBatchSampler, validation_batches
from common.distributed import Ranks
from common.errors import InputError
from common.training.position import Position, resumed_position

LENGTHS = torch.randint(100, 900, (103,), generator=torch.Generator().manual_seed(3)).tolist()


def updates(
    batch_size: int, accumulation: int, world_size: int, *, epoch: int = 1, step: int = 0, sorted_updates: int = 1
) -> list[list]:
    """For each update the micro-batches of every process, [update][accumulation step][process] -> indices."""
    ranks = []
    for rank in range(world_size):
        sampler = GlobalBatchSampler(
            LENGTHS,
            batch_size=batch_size,
            accumulation=accumulation,
            seed=7,
            ranks=Ranks(rank=rank, world_size=world_size),
            sorted_updates=sorted_updates,
        )
        sampler.set_position(epoch=epoch, step=step)
        ranks.append([[draw.index for draw in batch] for batch in sampler])
        assert len(ranks[-1]) == len(sampler)
    steps = range(0, len(ranks[0]), accumulation)
    return [[[rank[start + k] for rank in ranks] for k in range(accumulation)] for start in steps]


def drawn(update: list) -> set[int]:
    return {index for step in update for batch in step for index in batch}


@pytest.mark.parametrize("cut", [(16, 1, 1), (4, 4, 1), (4, 2, 2), (2, 2, 4), (1, 16, 1)])
def test_an_update_holds_the_same_utterances_however_it_is_cut(cut: tuple[int, int, int]):
    assert [drawn(update) for update in updates(*cut)] == [drawn(update) for update in updates(16, 1, 1)]


def test_an_epoch_takes_no_utterance_twice_and_leaves_out_less_than_one_batch():
    seen = [index for update in updates(4, 2, 2) for step in update for batch in step for index in batch]
    assert len(seen) == len(set(seen)) == 103 // 16 * 16


def test_resuming_within_an_epoch_gives_the_rest_of_it():
    assert updates(4, 2, 2, step=3) == updates(4, 2, 2)[3:]


def test_updates_that_are_sorted_together_pad_less_and_come_in_random_order():
    def padded(found: list) -> int:
        batches = [[LENGTHS[index] for index in batch] for update in found for step in update for batch in step]
        return sum(len(lengths) * max(lengths) for lengths in batches)

    plain, found = updates(16, 1, 1), updates(16, 1, 1, sorted_updates=3)
    assert padded(found) < 0.8 * padded(plain)
    for several in (plain, found):
        assert len({index for update in several for index in drawn(update)}) == 96
    means = [sum(LENGTHS[index] for index in drawn(update)) for update in found]
    assert means[:3] != sorted(means[:3])
    assert [drawn(update) for update in updates(4, 2, 2, sorted_updates=3, step=2)] == [drawn(one) for one in found[2:]]


def test_validation_takes_each_utterance_once_over_all_processes():
    shares = [validation_batches(LENGTHS, batch_size=8, ranks=Ranks(rank, 3)) for rank in range(3)]
    seen = sorted(index for share in shares for batch in share for index in batch)
    assert seen == list(range(103))


def test_too_few_utterances_are_an_error_with_the_sum():
    with pytest.raises(InputError, match="103 utterances, fewer than one update takes: 128 = 2 processes x 2"):
        GlobalBatchSampler(LENGTHS, batch_size=32, accumulation=2, seed=0, ranks=Ranks(world_size=2))


def test_a_position_within_an_epoch_is_kept_for_the_same_global_batch_alone():
    saved = Position(epoch=3, steps_done=6, sums={"loss": 4.0}, frames=600, seconds=6.0, skipped=2)
    for batch_size, expected in ((4, saved), (8, Position(epoch=3))):
        sampler = GlobalBatchSampler(LENGTHS, batch_size=batch_size, accumulation=1, seed=7, ranks=Ranks())
        assert resumed_position(asdict(saved) | {"global_batch": 4}, sampler) == expected
    done = asdict(saved) | {"global_batch": 4, "steps_done": 103 // 4}
    assert resumed_position(done, sampler) == Position(epoch=4)
