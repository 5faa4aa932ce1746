"""Monotonic alignment search: published paths, the best of all paths, and the same in any batch."""

from pathlib import Path

import pytest
import torch
from golden_files import group, read_case
from torch import Tensor

from common.nn.alignment_search import durations_of_path, find_path, find_path_vectorized


@pytest.fixture
def mas(goldens: Path) -> tuple[dict, dict[str, Tensor]]:
    return read_case(goldens / "fastpitch_1_1" / "alignment", "mas")


def alone(log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix (F, L) as a batch."""
    return log_probs.unsqueeze(0), torch.tensor([log_probs.size(1)]), torch.tensor([log_probs.size(0)])


def one_hot(path: Tensor, n_tokens: int) -> Tensor:
    return torch.nn.functional.one_hot(path, n_tokens).float()


def test_paths_are_as_published_with_ties_impossible_cells_and_too_few_frames(mas):
    about, stored = mas
    matrices, expected = group(stored, "logp"), group(stored, "hard")
    durations = {str(case["k"]): case["durations"] for case in (*about["random"], *about["special"])}
    assert set(durations) == set(matrices)
    for key, matrix in matrices.items():
        path = find_path(*alone(matrix))[0]
        assert torch.equal(one_hot(path, expected[key].size(1)), expected[key]), key
        assert one_hot(path, expected[key].size(1)).sum(0).tolist() == durations[key]


def test_a_batch_is_aligned_as_published(mas):
    _, stored = mas
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
