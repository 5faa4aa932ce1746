"""Monotonic alignment search: the most probable monotonic path through a text that skips no token.

Source: Kim et al., Glow-TTS (2020), section 3.2. Among equally probable paths, it finds the one that leaves tokens
later, as in FastPitch 1.1.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from common.nn.layers import mask_from_lengths, never_compiled


@never_compiled
@torch.no_grad()
def find_path(log_probs: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """Return each frame's token: log_probs (B, F, L), lengths (B,) -> int64 (B, F), 0 after an utterance's end.

    The path starts at the first token, ends at the last, and each frame either stays at the previous frame's token or
    moves to the next one; among such paths, it maximizes the sum of ``log_probs``. If there are fewer frames than
    tokens, it takes the last tokens. On a CPU, compiled loops are 18 times as fast as PyTorch's operations.
    """
    if log_probs.device.type != "cpu":
        return find_path_vectorized(log_probs, token_lengths, frame_lengths)
    path = torch.zeros(log_probs.shape[:2], dtype=torch.int64)
    parts = (log_probs.float().contiguous(), token_lengths, frame_lengths, path)
    _compiled_search()(*(part.numpy() for part in parts))
    return path


def find_path_vectorized(log_probs: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """`find_path` on any device, without synchronizing; backtracking composes steps back by 2, 4, 8... frames."""
    n_batch, n_frames, n_tokens = log_probs.shape
    moves = _best_moves(log_probs.float())
    moves[:, :, 0] = False
    moves &= mask_from_lengths(frame_lengths, n_frames).t().unsqueeze(2)  # no moves after an utterance's end
    tokens = torch.arange(n_tokens, device=log_probs.device)
    steps = (tokens - moves.long()).roll(-1, 0)  # (F, B, L): a frame's token, given the next frame's
    steps[-1] = tokens
    size = 1
    while size < n_frames:
        steps[:-size] = steps[:-size].gather(2, steps[size:])
        size *= 2
    last = (token_lengths - 1).view(1, -1, 1).expand(n_frames, n_batch, 1)
    path = steps.gather(2, last).squeeze(2).t()
    return path * mask_from_lengths(frame_lengths, n_frames)


def durations_of_path(path: Tensor, frame_lengths: Tensor, n_tokens: int) -> Tensor:
    """Count the frames at each token: path (B, F), lengths (B,) -> int64 (B, L)."""
    is_frame = mask_from_lengths(frame_lengths, path.size(1)).long()
    return is_frame.new_zeros(path.size(0), n_tokens).scatter_add(1, path, is_frame)


def _best_moves(log_probs: Tensor) -> Tensor:
    """Whether the best path to a token at a frame comes from the previous token: (B, F, L) -> bool (F, B, L)."""
    n_batch, n_frames, n_tokens = log_probs.shape
    moves = torch.zeros(n_frames, n_batch, n_tokens, dtype=torch.bool, device=log_probs.device)
    best = log_probs.new_full((n_batch, n_tokens + 1), -torch.inf)  # the first column isn't a token
    best[:, 1] = log_probs[:, 0, 0]
    for frame in range(1, n_frames):
        torch.ge(best[:, :-1], best[:, 1:], out=moves[frame])
        best[:, 1:] = torch.maximum(best[:, :-1], best[:, 1:]) + log_probs[:, frame]
    return moves


@lru_cache(maxsize=1)
def _compiled_search() -> Callable[..., None]:
    """Compile `_search` to machine code, cached on disk if a folder for it is writable."""
    import numba  # takes half a second; inference doesn't need it

    try:
        return numba.njit(nogil=True, cache=True)(_search)
    except RuntimeError:  # no folder for the cache is writable
        return numba.njit(nogil=True)(_search)


def _search(log_probs: np.ndarray, token_lengths: np.ndarray, frame_lengths: np.ndarray, path: np.ndarray) -> None:
    """Fill ``path`` (B, F) utterance by utterance; the arrays are `find_path`'s tensors."""
    for item in range(len(log_probs)):
        n_tokens, n_frames = token_lengths[item], frame_lengths[item]
        moves = np.zeros((n_frames, n_tokens), dtype=np.bool_)  # whether the path comes from the previous token
        best = np.full(n_tokens, -np.inf, dtype=np.float32)
        before = np.empty_like(best)
        best[0] = log_probs[item, 0, 0]
        for frame in range(1, n_frames):
            best, before = before, best
            best[0] = before[0] + log_probs[item, frame, 0]
            for token in range(1, n_tokens):
                move = before[token - 1] >= before[token]
                moves[frame, token] = move
                best[token] = (before[token - 1] if move else before[token]) + log_probs[item, frame, token]
        token = n_tokens - 1
        for frame in range(n_frames - 1, -1, -1):
            path[item, frame] = token
            token -= moves[frame, token]
