"""The aligner: its search, prior and losses, against published values, and the same in any batch."""

from pathlib import Path

import pytest
import torch
from golden_files import group, listed, read_case, read_golden
from safetensors.torch import load_file
from torch import Tensor

from common.nn.alignment import beta_binomial_prior, interpolated_prior
from common.nn.alignment_search import durations_of_path, find_path, find_path_vectorized
from fastpitch.aligner import Alignment, ConvAttention, binarization_sum, forward_sum_losses
from fastpitch.prosody import means_over_tokens

FOLDER = "fastpitch_1_1/alignment"


def published(folder: Path, key: str) -> tuple[ConvAttention, dict[str, Tensor]]:
    stored = load_file(folder / "conv_attention.safetensors")
    own = group(stored, key)
    aligner = ConvAttention(own["in.queries"].size(1), own["in.keys"].size(1), mask_padding=False)
    aligner.load_state_dict(group(own, "state"))
    return aligner, own


def align(aligner: ConvAttention, own: dict[str, Tensor], prior: Tensor | None) -> Alignment:
    token_lengths = own["in.mask"].size(1) - own["in.mask"].sum((1, 2))  # the mask is of padding
    return aligner(own["in.queries"], own["in.query_lens"], own["in.keys"].transpose(1, 2), token_lengths, prior)


@pytest.mark.parametrize("case", listed("fastpitch_1_1/alignment/conv_attention.json"), ids=lambda case: case["k"])
def test_attention_with_and_without_prior_is_as_published(folder: Path, case: dict):
    aligner, own = published(folder, str(case["k"]))
    for name, prior in (("out", own["in.attn_prior"]), ("out_noprior", None)):
        alignment = align(aligner, own, prior)
        torch.testing.assert_close(alignment.log_probs, own[f"{name}.logprob"][:, 0], atol=2e-5, rtol=0)
        torch.testing.assert_close(alignment.log_attention.exp(), own[f"{name}.attn"][:, 0], atol=1e-5, rtol=0)


def test_losses_of_attention_and_their_gradient_are_as_published(folder: Path):
    cases, stored = read_case(folder, "attention_losses")
    finite = [case for case in cases if case["k"] != "inf"]
    assert finite
    for case in finite:
        check_losses(case, stored)


def check_losses(case: dict, stored: dict[str, Tensor]) -> None:
    key = case["k"]
    lengths = stored[f"in_lens.{key}"], stored[f"out_lens.{key}"]
    log_probs = stored[f"attn_logprob.{key}"][:, 0].requires_grad_()
    loss = forward_sum_losses(log_probs, *lengths).mean()
    loss.backward()
    torch.testing.assert_close(loss.item(), case["ctc_float64"], rtol=1e-6, atol=0)
    torch.testing.assert_close(log_probs.grad, stored[f"ctc_grad.{key}"][:, 0], atol=2e-6, rtol=1e-4)
    blanks = {name: value for name, value in case.items() if name.startswith("ctc_blank_logprob_")}
    for name, value in blanks.items():
        other = forward_sum_losses(log_probs, *lengths, blank_log_prob=float(name.rsplit("_", 1)[1])).mean()
        torch.testing.assert_close(other.item(), value, rtol=1e-6, atol=0)
    hard, soft = stored[f"attn_hard.{key}"][:, 0], stored[f"attn_soft.{key}"][:, 0]
    alignment = Alignment(log_probs, soft.log(), hard.argmax(2), hard.sum(1).long())
    binarization = binarization_sum(alignment, lengths[1]) / lengths[1].sum()
    torch.testing.assert_close(binarization.item(), case["binarization_float64"], rtol=1e-6, atol=0)


def test_a_text_longer_than_its_speech_loses_nothing_as_published(folder: Path):
    cases, stored = read_case(folder, "attention_losses")
    (case,) = (case for case in cases if case["k"] == "inf")
    log_probs = stored["attn_logprob.inf"][:, 0].requires_grad_()
    loss = forward_sum_losses(log_probs, torch.tensor(case["in_lens"]), torch.tensor(case["out_lens"])).sum()
    loss.backward()
    assert loss == 0 and not log_probs.grad.any()


def test_mean_pitch_of_tokens_is_as_published(folder: Path):
    cases, stored = read_case(folder, "average_pitch")
    assert cases
    for key in (case["k"] for case in cases):
        values, durations = stored[f"pitch.{key}"], stored[f"durs.{key}"]
        for channel in range(values.size(1)):
            means = means_over_tokens(values[:, channel], durations)
            torch.testing.assert_close(means, stored[f"avg.{key}"][:, channel], atol=1e-4, rtol=0)


def test_means_are_over_nonzero_frames_alone():
    values = torch.tensor([[1.0, 0.0, 3.0, 0.0, 0.0, 5.0, 9.0]])
    durations = torch.tensor([[3, 0, 2, 1, 0]])
    assert means_over_tokens(values, durations).tolist() == [[2.0, 0.0, 0.0, 5.0, 0.0]]
    assert means_over_tokens(values, torch.tensor([[3, 9]])).tolist() == [[2.0, 7.0]]  # more frames than there are


def test_priors_are_as_published(folder: Path):
    stored, interpolated = (
        load_file(folder / f"beta_binomial_{name}.safetensors") for name in ("prior", "interpolator")
    )
    cases = read_golden(folder / "beta_binomial.json", "priors")
    assert len(cases) == len(stored) > 0
    for case in cases:
        suffix = "" if case["scaling"] == 1 else f".scaling{case['scaling']}"
        expected = stored[f"prior.{case['phoneme_count']}x{case['mel_count']}{suffix}"]
        prior = beta_binomial_prior(case["mel_count"], case["phoneme_count"], scaling=case["scaling"])
        torch.testing.assert_close(prior, expected, rtol=1e-9, atol=0)
    cases = read_golden(folder / "beta_binomial.json", "interpolated")
    assert len(cases) == len(interpolated) > 0
    for case in cases:
        expected = interpolated[f"interp.mel{case['mel_len']}xtext{case['text_len']}"]
        torch.testing.assert_close(interpolated_prior(case["mel_len"], case["text_len"]), expected, rtol=0, atol=1e-7)


def alone(log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix (F, L) as a batch."""
    return log_probs.unsqueeze(0), torch.tensor([log_probs.size(1)]), torch.tensor([log_probs.size(0)])


def one_hot(path: Tensor, n_tokens: int) -> Tensor:
    return torch.nn.functional.one_hot(path, n_tokens).float()


def test_paths_are_as_published_with_ties_impossible_cells_and_too_few_frames(folder: Path):
    about, stored = read_case(folder, "mas")
    matrices, expected = group(stored, "logp"), group(stored, "hard")
    durations = {str(case["k"]): case["durations"] for case in (*about["random"], *about["special"])}
    assert set(durations) == set(matrices)
    for key, matrix in matrices.items():
        path = find_path(*alone(matrix))[0]
        assert torch.equal(one_hot(path, expected[key].size(1)), expected[key]), key
        assert one_hot(path, expected[key].size(1)).sum(0).tolist() == durations[key]


def test_a_batch_is_aligned_as_published(folder: Path):
    _, stored = read_case(folder, "mas")
    token_lengths, frame_lengths = stored["b_in_lens"], stored["b_out_lens"]
    log_probs, expected = stored["b_logp"][:, 0], stored["b_hard"][:, 0]
    path = find_path(log_probs, token_lengths, frame_lengths)
    for item, n_frames in enumerate(frame_lengths.tolist()):
        assert torch.equal(one_hot(path[item, :n_frames], expected.size(2)), expected[item, :n_frames])
        assert bool((path[item, n_frames:] == 0).all())
    assert torch.equal(durations_of_path(path, frame_lengths, expected.size(2)), expected.sum(1).long())


def test_an_utterance_has_the_same_path_in_any_batch():
    generator = torch.Generator().manual_seed(1)
    token_lengths = torch.tensor([30, 1, 17, 30, 8])
    frame_lengths = torch.tensor([110, 5, 90, 31, 64])
    log_probs = torch.randn(5, 110, 30, generator=generator).round(decimals=1)  # many ties
    together = find_path(log_probs, token_lengths, frame_lengths)
    vectorized = find_path_vectorized(log_probs, token_lengths, frame_lengths)
    assert torch.equal(vectorized, together), "a GPU finds the path of a CPU"
    for item in range(5):
        n_tokens, n_frames = int(token_lengths[item]), int(frame_lengths[item])
        own = find_path(*alone(log_probs[item, :n_frames, :n_tokens]))[0]
        assert torch.equal(own, together[item, :n_frames])
