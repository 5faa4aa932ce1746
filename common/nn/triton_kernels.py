"""The alignment search's recursion over frames as one Triton kernel; `common.nn.kernels` decides whether it is used."""

# mypy: disable-error-code="no-untyped-def"

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _moves_kernel(log_probs, moves, n_frames, n_items, n_tokens, SIZE: tl.constexpr):  # noqa: N803
    item, token = tl.program_id(0).to(tl.int64), tl.arange(0, SIZE)
    is_token, previous = token < n_tokens, tl.maximum(token - 1, 0)
    read = log_probs + item * n_frames * n_tokens + token
    written = moves + item * n_tokens + token
    best = tl.load(read, mask=token == 0, other=float("-inf"))
    for _ in range(1, n_frames):
        read += n_tokens
        written += n_items * n_tokens
        before = tl.where(token == 0, float("-inf"), tl.gather(best, previous, 0))
        tl.store(written, (before >= best).to(tl.int8), mask=is_token)
        best = tl.maximum(before, best) + tl.load(read, mask=is_token, other=float("-inf"))


def best_moves(log_probs: Tensor) -> Tensor:
    """`common.nn.alignment_search.best_moves` for float32 tensors."""
    n_items, n_frames, n_tokens = log_probs.shape
    moves = torch.zeros(n_frames, n_items, n_tokens, dtype=torch.int8, device=log_probs.device)
    sizes = (n_frames, n_items, n_tokens, triton.next_power_of_2(n_tokens))
    _moves_kernel[(n_items,)](log_probs.contiguous(), moves, *sizes)
    return moves.bool()
