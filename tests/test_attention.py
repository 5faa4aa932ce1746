"""Figures of attention: what a diagonal, a uniform, a shuffled and a blurred one give."""

import pytest
import torch
from torch import Tensor

from common.nn.alignment import diagonality, unattended_tokens

N_FRAMES, N_TOKENS = 60, 20


def one_hot(tokens: Tensor) -> Tensor:
    """Attention (1, F, L) on one token a frame."""
    return torch.nn.functional.one_hot(tokens, N_TOKENS).float().unsqueeze(0)


def direction_of(alignments: Tensor) -> float:
    lengths = torch.tensor([alignments.size(2)]), torch.tensor([alignments.size(1)])
    return float(diagonality(alignments, *lengths))


DIAGONAL = torch.arange(N_FRAMES) * N_TOKENS // N_FRAMES


SHUFFLED = DIAGONAL[torch.randperm(N_FRAMES, generator=torch.Generator().manual_seed(0))]
UNEVEN = (torch.linspace(0, 1, N_FRAMES) ** 0.5 * (N_TOKENS - 1)).long()
UNIFORM = torch.full((1, N_FRAMES, N_TOKENS), 1 / N_TOKENS)


@pytest.mark.parametrize(
    ("alignments", "direction", "within"),
    [
        (one_hot(DIAGONAL), 1.0, 2e-3),
        (one_hot(UNEVEN), 1.0, 0.05),
        (one_hot(SHUFFLED), 0.0, 0.25),
        (UNIFORM, 0.0, 1e-6),
        (one_hot(torch.full((N_FRAMES,), 7)), 0.0, 0.0),
        (one_hot(DIAGONAL.flip(0)), -1.0, 2e-3),
        (0.5 * one_hot(DIAGONAL) + 0.5 * UNIFORM, 0.5, 0.02),
    ],
    ids="diagonal uneven shuffled uniform stuck backwards mixed".split(),
)
def test_direction_of_an_attention(alignments: Tensor, direction: float, within: float):
    assert direction_of(alignments) == pytest.approx(direction, abs=within)


def test_a_blurred_diagonal_is_as_far_from_1_as_its_spread_says():
    positions = torch.arange(N_TOKENS).double()
    centres = (torch.arange(N_FRAMES) + 0.5) * N_TOKENS / N_FRAMES - 0.5
    blurred = torch.softmax(-((positions - centres.unsqueeze(1)) ** 2) / (2 * 1.5**2), 1)
    spread = (blurred * (positions - (blurred * positions).sum(1, keepdim=True)) ** 2).sum(1).mean().sqrt()
    moved = (blurred * positions).sum(1).var(unbiased=False).sqrt()
    expected = moved / (moved**2 + spread**2).sqrt()
    assert direction_of(blurred.unsqueeze(0).float()) == pytest.approx(float(expected), abs=2e-3)


def test_padding_has_no_part():
    generator = torch.Generator().manual_seed(0)
    alignments = torch.softmax(3 * torch.randn(1, 9, 5, generator=generator), 2)
    padded = torch.rand(2, 14, 8, generator=generator)
    padded[1] = torch.softmax(padded[1], 1)
    padded[0, :9, :5] = alignments[0]
    lengths = torch.tensor([5, 8]), torch.tensor([9, 14])
    alone = diagonality(alignments, torch.tensor([5]), torch.tensor([9]))
    torch.testing.assert_close(diagonality(padded, *lengths)[:1], alone)


def test_tokens_that_no_frame_attends_to_most_are_counted_up_to_the_texts_end():
    skipping = torch.tensor([0, 0, 2, 2, 3, 3])
    alignments = torch.nn.functional.one_hot(torch.stack([skipping, torch.zeros(6).long()]), 6).float()
    alignments[0] = 0.6 * alignments[0] + 0.1 * torch.ones(6)
    alignments[1, 2:, 1] = 5.0  # after the end of the second one's speech
    lengths = torch.tensor([5, 2]), torch.tensor([6, 2])
    assert unattended_tokens(alignments, *lengths).tolist() == [2, 1]
    assert unattended_tokens(one_hot(DIAGONAL), torch.tensor([N_TOKENS]), torch.tensor([N_FRAMES])).tolist() == [0]
