"""Feeding training: batches depend on seed and epoch alone, and loader processes give what one process gives."""

import importlib
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from shell import ROOT
from tiny import make_corpus
from torch import Tensor

from common.config import AudioConfig
from common.data.loader import GlobalBatchSampler, batches_of, build_loader, validation_batches
from common.distributed import Ranks
from common.errors import InputError
from common.text.config import TextConfig
from common.torch_file import load_tensor, read_plain_tensor
from common.training.trainer import Position, resumed_position
from fastpitch.arg_parser import TrainingOptions
from fastpitch.data_function import FastPitchDataset, read_list

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


NUMBERS = torch.arange(-3.0, 21.0)
KINDS = ("float16", "bfloat16", "float32", "float64", "uint8", "int64", "bool")


@pytest.mark.parametrize(
    "tensor",
    [
        *(NUMBERS.reshape(2, 3, 4).to(getattr(torch, kind)) for kind in KINDS),
        NUMBERS.reshape(4, 6).t(),
        NUMBERS[3:20:2],
        torch.zeros(0, 5),
        torch.tensor(7),
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(3)),
    ],
    ids=lambda tensor: f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}",
)
@pytest.mark.parametrize("is_zip", [True, False])
def test_files_of_tensors_are_read_as_torch_reads_them(tensor: Tensor, is_zip: bool, tmp_path: Path):
    path = tmp_path / "a.pt"
    torch.save(tensor, path, _use_new_zipfile_serialization=is_zip)
    expected, found = torch.load(path, weights_only=True), load_tensor(path)
    assert (read_plain_tensor(path) is not None) == is_zip
    assert found.dtype == expected.dtype and found.stride() == expected.stride()
    assert torch.equal(found, expected)
    found.detach().fill_(0)  # its own memory, which can be written to
    assert torch.equal(load_tensor(path), expected)


def test_loader_processes_give_what_one_process_gives_in_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = make_corpus(tmp_path / "corpus", count=12)
    entries = read_list(folder, folder / "train.txt", learned_alignment=False)
    data = FastPitchDataset(TrainingOptions(dataset_path=folder), entries, audio=AudioConfig(), text=TextConfig())
    sampler = GlobalBatchSampler(data.lengths, batch_size=2, accumulation=2, seed=3, ranks=Ranks())
    batches = {}
    for n_workers in (0, 2):
        loader = build_loader(data, sampler, n_workers=n_workers, pin_memory=False, seed=0)
        batches[n_workers] = []
        for batch in itertools.chain(batches_of(loader), batches_of(loader)):  # two epochs
            batches[n_workers].append(batch)
            # As for a whole group, which the job itself answers; each process has started when it has given a batch.
            for process in multiprocessing.active_children() if len(batches[n_workers]) >= n_workers else ():
                os.kill(process.pid, signal.SIGINT)
                os.kill(process.pid, signal.SIGTERM)
    assert len(batches[2]) == 8
    for ours, theirs in zip(batches[2], batches[0], strict=True):
        assert ours.names == theirs.names
        for name, value in vars(theirs).items():
            if isinstance(value, Tensor):
                assert torch.equal(getattr(ours, name), value), name
                assert getattr(ours, name).is_shared() and not value.is_shared()
    (folder / "mels/u5.pt").write_bytes(b"broken")
    loader = build_loader(data, sampler, n_workers=1, pin_memory=False, seed=0)
    with pytest.raises(InputError, match=r"mels/u5\.pt: cannot be read .* \(.*train\.txt:2\)$"):
        list(batches_of(loader))
    monkeypatch.setattr(FastPitchDataset, "draw", lambda *_, **__: importlib.import_module("absent"))
    with pytest.raises(ModuleNotFoundError) as found:
        list(batches_of(build_loader(data, sampler, n_workers=1, pin_memory=False, seed=0)))
    assert found.value.name == "absent"


def test_loader_processes_end_before_pytorch_waits_for_them():
    program = """
import atexit, time
from common.data.loader import LoaderProcess, batches_of

process = LoaderProcess(target=time.sleep, args=(60,))

class Loader:  # as PyTorch's, where memory is pinned
    def __iter__(self):
        process.start()
        atexit.register(lambda: (process.join(3), print("waits" if process.is_alive() else "has ended")))
        return iter([1])

next(batches_of(Loader()))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "has ended"
