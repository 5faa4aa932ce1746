"""Feeding training: tensors are read quickly and safely, and loader processes give what one process gives."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from shell import ROOT
from tiny import make_corpus
from torch import Tensor

from common.config import AudioConfig
from common.data.loader import batches_of, build_loader
from common.data.sampler import GlobalBatchSampler
from common.distributed import Ranks
from common.errors import InputError
from common.text.config import TextConfig
from common.torch_file import load_tensor, read_plain_tensor
from fastpitch.arg_parser import TrainingOptions
from fastpitch.data_function import FastPitchDataset, read_list

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
    short = is_zip and hasattr(torch._C.PyTorchFileReader, "get_record_size")  # which PyTorch 2.11 lacks
    assert (read_plain_tensor(path) is not None) == short
    assert found.dtype == expected.dtype and found.stride() == expected.stride()
    assert torch.equal(found, expected)
    found.detach().fill_(0)  # its own memory, which can be written to
    assert torch.equal(load_tensor(path), expected)


def test_loader_processes_give_what_one_process_gives_in_shared_memory(tmp_path: Path):
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
