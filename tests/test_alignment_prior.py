"""The prior of a learned alignment: published values, what they mean, and how they are kept."""

from pathlib import Path

import pytest
import torch
from golden_files import read_golden
from safetensors.torch import load_file
from tiny import padded_priors

from common.errors import InputError
from common.nn.alignment import beta_binomial_prior, interpolated_prior
from fastpitch.aligner import check_alignable

FOLDER = "fastpitch_1_1/alignment"


def test_priors_are_as_published(folder: Path):
    stored = load_file(folder / "beta_binomial_prior.safetensors")
    cases = read_golden(folder / "beta_binomial.json", "priors")
    assert len(cases) == len(stored) > 0
    for case in cases:
        suffix = "" if case["scaling"] == 1 else f".scaling{case['scaling']}"
        expected = stored[f"prior.{case['phoneme_count']}x{case['mel_count']}{suffix}"]
        prior = beta_binomial_prior(case["mel_count"], case["phoneme_count"], scaling=case["scaling"])
        torch.testing.assert_close(prior, expected, rtol=1e-9, atol=0)


def test_interpolated_priors_are_as_published(folder: Path):
    stored = load_file(folder / "beta_binomial_interpolator.safetensors")
    cases = read_golden(folder / "beta_binomial.json", "interpolated")
    assert len(cases) == len(stored) > 0
    for case in cases:
        n_frames, n_tokens = case["mel_len"], case["text_len"]
        prior, expected = interpolated_prior(n_frames, n_tokens), stored[f"interp.mel{n_frames}xtext{n_tokens}"]
        torch.testing.assert_close(prior, expected, rtol=0, atol=1e-7)


def test_a_batch_of_priors_is_those_of_its_utterances_with_zeros_behind():
    priors = padded_priors([120, 45, 3], [9, 20, 3])
    assert priors.shape == (3, 120, 20)
    assert priors.dtype == torch.float32
    for prior, size in zip(priors, [(120, 9), (45, 20), (3, 3)]):
        expected = torch.zeros(120, 20)
        expected[: size[0], : size[1]] = interpolated_prior(*size)
        assert torch.equal(prior, expected)


def test_a_clip_with_fewer_frames_than_symbols_is_named():
    check_alignable(9, 9, where="mels/a.pt (train.txt:7)")
    with pytest.raises(InputError, match=r"^mels/a\.pt \(train\.txt:7\): 8 frames for 9 symbols"):
        check_alignable(8, 9, where="mels/a.pt (train.txt:7)")
