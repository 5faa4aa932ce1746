"""Files of torch.save are read as PyTorch reads them; what is larger than it may be is refused."""

from pathlib import Path

import pytest
import torch
from tiny import make_corpus, train_options

import train
from common.errors import OptionError
from common.torch_file import read_torch_file


def test_what_real_files_hold_is_read_as_pytorch_reads_it(tmp_path: Path):
    base = torch.arange(24.0)
    dtypes = [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool, torch.uint8, torch.complex64]
    saved = {
        "dtypes": [torch.ones(3, dtype=dtype) for dtype in dtypes],
        "shared": (base, base[3:15].view(3, 4).t(), base[::2]),
        "empty": [torch.empty(0), torch.empty(2, 0, 3), torch.tensor(3.5)],
        "plain": [
            None,
            True,
            -1,
            1 << 40,
            2.5,
            "text\u00e4\U0001f600",
            b"bytes",
            {1: (1, 2), "a": set("ab")},
            (),
            (1,) * 7,
        ],
        "network": torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 3)).state_dict(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "others": [torch.float32, torch.Size([1, 2])],
    }
    for protocol, zipped in ((2, True), (2, False), (4, True)):
        torch.save(saved, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped, pickle_protocol=protocol)
        for mapped in (True, False):
            found = read_torch_file(tmp_path / "a.pt", wanted="a dict", mapped=mapped)
            torch.testing.assert_close(found["shared"], saved["shared"], rtol=0, atol=0)
            assert found["shared"][0].untyped_storage().data_ptr() == found["shared"][2].untyped_storage().data_ptr()
            assert all(
                map(torch.equal, map(torch.Tensor.double, found["empty"]), map(torch.Tensor.double, saved["empty"]))
            )
            assert [one.dtype for one in found["dtypes"]] == [one.dtype for one in saved["dtypes"]]
            assert all((one.to(torch.complex64) == 1).all() for one in found["dtypes"])
            assert found["plain"] == saved["plain"] and found["others"] == saved["others"]
            assert torch.equal(found["parameter"], saved["parameter"].detach())
            assert found["network"]._metadata == saved["network"]._metadata
            assert all(torch.equal(found["network"][key], value) for key, value in saved["network"].items())


def test_training_refuses_a_network_of_more_parameters_than_it_may_have(tmp_path: Path):
    corpus = make_corpus(tmp_path / "data", count=2, val=1)
    huge = "--out-fft-conv1d-filter-size 1000000 --out-fft-conv1d-kernel-size 99"
    for extra, limit in ((huge, 5 * 10**8), ("--max-parameters 1000", 1000)):
        with pytest.raises(OptionError, match=f"networks of more than {limit} parameters; .*raise --max-parameters"):
            train.main(train_options(corpus, tmp_path / "out", *extra.split()))
    assert not (tmp_path / "out").exists()
