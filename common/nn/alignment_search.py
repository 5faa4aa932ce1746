"""Monotonic alignment search: the most probable monotonic path through a text that skips none of its tokens.

Source: Kim et al., Glow-TTS (2020), section 3.2; as FastPitch 1.1 uses it, equally probable paths leave a token late.
"""

import torch
from torch import Tensor

from common.nn.kernels import by_kernel
from common.nn.layers import mask_from_lengths, never_compiled


@never_compiled
@torch.no_grad()
def find_path(log_probs: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """The token of each frame: log_probs (B, F, L), lengths (B,) -> int64 (B, F), 0 after an utterance's end.

    The path starts at the first token, ends at the last, and each frame is at the token of the frame before it or at
    the next; of all such paths it has the greatest sum of ``log_probs``. With fewer frames than tokens there is none:
    then the frames are at the last tokens. All tokens and utterances of a frame are computed at once, and backtracking
    takes log2(F) operations: steps back by one frame are composed into steps by 2, 4, 8 frames.
    """
    n_batch, n_frames, n_tokens = log_probs.shape
    moves = by_kernel(best_moves, log_probs.float())
    moves[:, :, 0] = False
    moves &= mask_from_lengths(frame_lengths, n_frames).t().unsqueeze(2)  # after its end an utterance stays
    tokens = torch.arange(n_tokens, device=log_probs.device)
    steps = (tokens - moves.long()).roll(-1, 0)  # (F, B, L): the token of a frame, from the token of the next
    steps[-1] = tokens
    size = 1
    while size < n_frames:
        steps[:-size] = steps[:-size].gather(2, steps[size:])
        size *= 2
    last = (token_lengths - 1).view(1, -1, 1).expand(n_frames, n_batch, 1)
    path = steps.gather(2, last).squeeze(2).t()
    return path * mask_from_lengths(frame_lengths, n_frames)


def durations_of_path(path: Tensor, frame_lengths: Tensor, n_tokens: int) -> Tensor:
    """Frames at each token: path (B, F), lengths (B,) -> int64 (B, L)."""
    is_frame = mask_from_lengths(frame_lengths, path.size(1)).long()
    return is_frame.new_zeros(path.size(0), n_tokens).scatter_add(1, path, is_frame)


def best_moves(log_probs: Tensor) -> Tensor:
    """Whether the best path to a token at a frame comes from the previous token: (B, F, L) -> bool (F, B, L)."""
    n_batch, n_frames, n_tokens = log_probs.shape
    moves = torch.zeros(n_frames, n_batch, n_tokens, dtype=torch.bool, device=log_probs.device)
    best = log_probs.new_full((n_batch, n_tokens + 1), -torch.inf)  # the first column is no token
    best[:, 1] = log_probs[:, 0, 0]
    for frame in range(1, n_frames):
        torch.ge(best[:, :-1], best[:, 1:], out=moves[frame])
        best[:, 1:] = torch.maximum(best[:, :-1], best[:, 1:]) + log_probs[:, frame]
    return moves
