"""The aligner and its losses: published values and gradients, padding without a share, and memory without its cube."""

from pathlib import Path

import pytest
import torch
from golden_files import group, listed, read_case
from safetensors.torch import load_file
from tiny import padded_priors
from torch import Tensor

from common.nn.alignment import diagonality
from common.nn.layers import mask_from_lengths
from fastpitch.aligner import Alignment, ConvAttention, binarization_sum, forward_sum_losses
from fastpitch.prosody import energies_of_tokens, means_over_tokens

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
    assert loss == 0
    assert bool((log_probs.grad == 0).all())


def test_the_forward_sum_is_over_all_ways_through_the_text():
    generator = torch.Generator().manual_seed(0)
    log_probs = torch.randn(1, 5, 2, generator=generator, dtype=torch.float64)
    with_blank = torch.log_softmax(torch.cat([torch.full((1, 5, 1), -1.0), log_probs], 2), 2)[0]
    total = torch.zeros((), dtype=torch.float64)
    for way in torch.cartesian_prod(*[torch.arange(3)] * 5):
        spoken = [int(token) for token in torch.unique_consecutive(way) if token > 0]
        if spoken == [1, 2]:
            total += with_blank.gather(1, way.unsqueeze(1)).sum().exp()
    loss = forward_sum_losses(log_probs, torch.tensor([2]), torch.tensor([5]))
    torch.testing.assert_close(loss, -total.log().view(1) / 2)


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


def test_the_energy_of_a_token_is_its_frames_mean_norm():
    mels = torch.tensor([[[3.0, 0.0, 6.0], [4.0, 5.0, 8.0]]])
    energies = energies_of_tokens(mels, torch.tensor([[2, 1, 0]]))
    torch.testing.assert_close(energies, torch.tensor([[6.0, 11.0, 1.0]]).log())


def small_case() -> tuple[ConvAttention, dict[str, Tensor]]:
    torch.manual_seed(3)
    token_lengths, frame_lengths = torch.tensor([9, 1, 4]), torch.tensor([21, 30, 4])
    given = {
        "mels": torch.randn(3, 10, 30) * mask_from_lengths(frame_lengths).unsqueeze(1),
        "mel_lengths": frame_lengths,
        "embedded": torch.randn(3, 9, 12),
        "token_lengths": token_lengths,
        "prior": padded_priors(frame_lengths.tolist(), token_lengths.tolist()),
    }
    return ConvAttention(10, 12, mask_padding=True), given


def losses(alignment: Alignment, given: dict[str, Tensor]) -> Tensor:
    sums = forward_sum_losses(alignment.log_probs, given["token_lengths"], given["mel_lengths"])
    return sums.sum() + binarization_sum(alignment, given["mel_lengths"])


def test_gradients_are_finite_whatever_the_lengths_and_the_unused_layer_has_none():
    aligner, given = small_case()
    losses(aligner(**given), given).backward()
    for name, parameter in aligner.named_parameters():
        if name.startswith("attn_proj"):
            assert not parameter.requires_grad
        else:
            assert bool(torch.isfinite(parameter.grad).all())
            assert bool((parameter.grad != 0).any())


def test_the_durations_of_made_up_speech_are_found_without_being_told():
    """Eight symbols, each of one sound, and durations that the prior cannot know."""
    generator = torch.Generator().manual_seed(2)
    sounds = 2 * torch.randn(9, 10, generator=generator)
    token_lengths = torch.randint(6, 13, (48,), generator=generator)
    steps = torch.randint(1, 8, (48, int(token_lengths.max())), generator=generator)
    is_token = mask_from_lengths(token_lengths)
    tokens = (steps.cumsum(1) % 8 + 1) * is_token  # no symbol twice in a row, which nothing could tell apart
    true = torch.randint(1, 16, tokens.shape, generator=generator) * is_token
    frame_lengths = true.sum(1)
    spoken = [sounds[row].repeat_interleave(durations, 0) for row, durations in zip(tokens, true)]
    mels = torch.nn.utils.rnn.pad_sequence(spoken, batch_first=True).transpose(1, 2)
    noise = 0.3 * torch.randn(mels.shape, generator=generator)
    given = {
        "mels": mels + noise * mask_from_lengths(frame_lengths).unsqueeze(1),
        "mel_lengths": frame_lengths,
        "token_lengths": token_lengths,
        "prior": padded_priors(frame_lengths.tolist(), token_lengths.tolist()),
    }
    torch.manual_seed(0)
    embedding, aligner = torch.nn.Embedding(9, 16), ConvAttention(10, 16, mask_padding=True)
    optimizer = torch.optim.Adam([*embedding.parameters(), *aligner.parameters()], 1e-2)
    off, diagonal = [], []
    for step in range(60):
        alignment = aligner(**given, embedded=embedding(tokens))
        off.append(float((alignment.durations - true).abs().sum() / true.sum()))
        learned = alignment.attention_without(given["prior"], frame_lengths)
        diagonal.append(float(diagonality(learned, token_lengths, frame_lengths).mean()))
        loss = forward_sum_losses(alignment.log_probs, token_lengths, frame_lengths).mean()
        if step >= 30:
            loss = loss + binarization_sum(alignment, frame_lengths) / frame_lengths.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert off[0] > 0.4
    assert off[-1] < 0.1
    assert abs(diagonal[0]) < 0.2
    assert diagonal[-1] > 0.4
