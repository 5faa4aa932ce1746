"""Monotonic alignment search: the most probable monotonic path through a text that skips none of its tokens.

Source: Kim et al., Glow-TTS (2020), section 3.2; as FastPitch 1.1 uses it, equally probable paths leave a token late.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from common.nn.layers import mask_from_lengths, never_compiled


@never_compiled
@torch.no_grad()
def find_path(log_probs: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """The token of each frame: log_probs (B, F, L), lengths (B,) -> int64 (B, F), 0 after an utterance's end.

    The path starts at the first token, ends at the last, and each frame is at the token of the frame before it or at
    the next; of all such paths it has the greatest sum of ``log_probs``. With fewer frames than tokens there is none:
    then the frames are at the last tokens. It is found on the CPU, as by the published code, whatever the device.
    """
    path = _find_path_on_cpu(log_probs.detach().float().cpu(), token_lengths.cpu(), frame_lengths.cpu())
    return path.to(log_probs.device)


def durations_of_path(path: Tensor, frame_lengths: Tensor, n_tokens: int) -> Tensor:
    """Frames at each token: path (B, F), lengths (B,) -> int64 (B, L)."""
    is_frame = mask_from_lengths(frame_lengths, path.size(1)).long()
    return is_frame.new_zeros(path.size(0), n_tokens).scatter_add(1, path, is_frame)


def _find_path_on_cpu(log_probs: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """`find_path` for float32 tensors on the CPU, in compiled code on as many threads as torch uses."""
    search = _compiled_search()
    path = torch.zeros(log_probs.shape[:2], dtype=torch.int64)
    parts = (log_probs.contiguous(), token_lengths, frame_lengths, path)
    n_threads = min(torch.get_num_threads(), len(log_probs))
    # The compiled code does not hold the interpreter's lock, and OpenMP of its own would not survive a fork.
    shares = zip(*(part.tensor_split(n_threads) for part in parts))
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda share: search(*(part.numpy() for part in share)), shares))
    return path


@lru_cache(maxsize=1)
def _compiled_search() -> Callable[..., None]:
    """`_search` as machine code, cached on the disk for the next process where a folder for it can be written."""
    import numba  # takes half a second, which inference does not need

    try:
        return numba.njit(nogil=True, cache=True)(_search)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit(nogil=True)(_search)


def _search(log_probs: np.ndarray, token_lengths: np.ndarray, frame_lengths: np.ndarray, path: np.ndarray) -> None:
    """Fill ``path`` (B, F) utterance by utterance; the arrays as `find_path`'s tensors."""
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
