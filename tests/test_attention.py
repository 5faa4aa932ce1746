"""Figures of attention: what a diagonal, a uniform, a shuffled and a blurred one give."""

import math

import pytest
import torch
from torch import Tensor

from common.nn.alignment import diagonality, distance_from_diagonal, focus_rate, unattended_tokens

N_FRAMES, N_TOKENS = 60, 20


def one_hot(tokens: Tensor) -> Tensor:
    """Attention (1, F, L) on one token a frame."""
    return torch.nn.functional.one_hot(tokens, N_TOKENS).float().unsqueeze(0)


def figures(alignments: Tensor) -> tuple[float, float]:
    lengths = torch.tensor([alignments.size(2)]), torch.tensor([alignments.size(1)])
    return float(diagonality(alignments, *lengths)), float(focus_rate(alignments, *lengths))


DIAGONAL = torch.arange(N_FRAMES) * N_TOKENS // N_FRAMES


SHUFFLED = DIAGONAL[torch.randperm(N_FRAMES, generator=torch.Generator().manual_seed(0))]
UNEVEN = (torch.linspace(0, 1, N_FRAMES) ** 0.5 * (N_TOKENS - 1)).long()
UNIFORM = torch.full((1, N_FRAMES, N_TOKENS), 1 / N_TOKENS)


@pytest.mark.parametrize(
    ("alignments", "direction", "within", "focus"),
    [
        (one_hot(DIAGONAL), 1.0, 2e-3, 1.0),
        (one_hot(UNEVEN), 1.0, 0.05, 1.0),
        (one_hot(SHUFFLED), 0.0, 0.25, 1.0),
        (UNIFORM, 0.0, 1e-6, 1 / N_TOKENS),
        (one_hot(torch.full((N_FRAMES,), 7)), 0.0, 0.0, 1.0),
        (one_hot(DIAGONAL.flip(0)), -1.0, 2e-3, 1.0),
        (0.5 * one_hot(DIAGONAL) + 0.5 * UNIFORM, 0.5, 0.02, 0.5 + 0.5 / N_TOKENS),
    ],
    ids="diagonal uneven shuffled uniform stuck backwards mixed".split(),
)
def test_direction_and_focus_of_an_attention(alignments: Tensor, direction: float, within: float, focus: float):
    assert figures(alignments) == (pytest.approx(direction, abs=within), pytest.approx(focus))


def test_padding_has_no_part():
    generator = torch.Generator().manual_seed(0)
    alignments = torch.softmax(3 * torch.randn(1, 9, 5, generator=generator), 2)
    padded = torch.rand(2, 14, 8, generator=generator)
    padded[1] = torch.softmax(padded[1], 1)
    padded[0, :9, :5] = alignments[0]
    lengths = torch.tensor([5, 8]), torch.tensor([9, 14])
    for figure in (diagonality, focus_rate):
        alone = figure(alignments, torch.tensor([5]), torch.tensor([9]))
        torch.testing.assert_close(figure(padded, *lengths)[:1], alone)


def test_tokens_that_no_frame_attends_to_most_are_counted_up_to_the_texts_end():
    skipping = torch.tensor([0, 0, 2, 2, 3, 3])
    alignments = torch.nn.functional.one_hot(torch.stack([skipping, torch.zeros(6).long()]), 6).float()
    alignments[0] = 0.6 * alignments[0] + 0.1 * torch.ones(6)
    alignments[1, 2:, 1] = 5.0  # after the end of the second one's speech
    lengths = torch.tensor([5, 2]), torch.tensor([6, 2])
    assert unattended_tokens(alignments, *lengths).tolist() == [2, 1]
    assert unattended_tokens(one_hot(DIAGONAL), torch.tensor([N_TOKENS]), torch.tensor([N_FRAMES])).tolist() == [0]


def away(alignments: Tensor, token_lengths: list[int], frame_lengths: list[int], *, sigma: float = 0.2) -> Tensor:
    return distance_from_diagonal(alignments, torch.tensor(token_lengths), torch.tensor(frame_lengths), sigma=sigma)


def test_distance_from_the_diagonal_is_what_the_slow_sum_says_and_nothing_past_the_ends():
    alignments = torch.softmax(torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(0)), 2)
    token_lengths, frame_lengths = [5, 3], [7, 4]
    found = away(alignments, token_lengths, frame_lengths)
    for row in range(2):
        for frame in range(7):
            expected = 0.0
            for token in range(5):
                distance = token / token_lengths[row] - frame / frame_lengths[row]
                expected += float(alignments[row, frame, token]) * (1 - math.exp(-(distance**2) / (2 * 0.2**2)))
            inside = frame < frame_lengths[row]
            assert float(found[row, frame]) == pytest.approx(expected if inside else 0.0, abs=1e-6)
