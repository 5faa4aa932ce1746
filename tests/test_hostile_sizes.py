"""Files of torch.save are read as PyTorch reads them; what is larger than it may be is refused."""

from pathlib import Path

import pytest
from tiny import make_corpus, train_options

import train
from common.errors import OptionError


def test_training_refuses_a_network_of_more_parameters_than_it_may_have(tmp_path: Path):
    corpus = make_corpus(tmp_path / "data", count=2, val=1)
    huge = "--out-fft-conv1d-filter-size 1000000 --out-fft-conv1d-kernel-size 99"
    for extra, limit in ((huge, 5 * 10**8), ("--max-parameters 1000", 1000)):
        with pytest.raises(OptionError, match=f"networks of more than {limit} parameters; .*raise --max-parameters"):
            train.main(train_options(corpus, tmp_path / "out", *extra.split()))
    assert not (tmp_path / "out").exists()
