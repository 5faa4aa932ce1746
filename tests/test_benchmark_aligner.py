"""The aligner's benchmark: the naive form is the same in numbers and dearer in memory."""

import re

import pytest
import torch

from common.errors import OptionError
from fastpitch.aligner import ConvAttention, squared_distances
from scripts.benchmarks.aligner import LivingTensors, main, make_inputs, measure, naive_distances

CPU = torch.device("cpu")


def test_both_forms_of_the_distances_agree():
    queries, keys = torch.randn(2, 80, 13), torch.randn(2, 80, 5)
    torch.testing.assert_close(squared_distances(queries, keys), naive_distances(queries, keys), rtol=1e-5, atol=1e-4)


def test_an_update_needs_under_a_tenth_of_the_naive_forms_memory():
    network = ConvAttention(80, 384, mask_padding=True)
    given = make_inputs(batch_size=2, n_frames=430, n_tokens=150, device=CPU)
    naive, ours = (measure(network, given, form) for form in (naive_distances, squared_distances))
    cube = 2 * 80 * 430 * 150 * 4 / 2**20  # MiB
    assert naive.kept > cube
    assert naive.peak > 3 * cube  # differences, squares, and their gradients
    assert ours.peak < naive.peak / 10
    assert ours.peak >= ours.kept > 0


def test_peaks_are_of_what_lives_at_once():
    mib = 2**18  # float32 values
    with LivingTensors() as living:
        one = torch.zeros(mib)
        two = one + 1
        two.view(-1).add_(1)  # nothing new
        del one
        three = two * 2
        del two, three
        torch.zeros(mib)
    assert living.peak == 2 * 2**20


def test_the_benchmark_prints_both_forms_and_their_ratio(capsys: pytest.CaptureFixture):
    assert main(["-bs", "2", "--frames", "60", "--tokens", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("2 x (60 frames, 20 tokens), float32")
    values = [re.split(r"\s{2,}", line) for line in lines[2:]]
    assert [line[0] for line in values] == ["one by one", "matrix product", "ratio"]
    assert float(values[2][2]) == pytest.approx(float(values[1][2]) / float(values[0][2]), abs=0.02)


def test_more_tokens_than_frames_are_refused():
    with pytest.raises(OptionError, match="--tokens 9: expected at most as many as --frames 5"):
        main(["--frames", "5", "--tokens", "9"])
