"""Recursions over frames as Triton kernels, one launch instead of several a frame; `common.nn.kernels` chooses them."""

# mypy: disable-error-code="no-untyped-def"

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _logaddexp(first, second):
    """log(exp(first) + exp(second)), -inf where both are."""
    largest = tl.maximum(first, second)
    total = largest + tl.log(1.0 + tl.exp(tl.minimum(first, second) - largest))
    return tl.where(largest == float("-inf"), largest, total)


@triton.jit
def _entries_kernel(ratios, repeated, entries, sums, n_frames, n_tokens, frame_stride, item_stride, SIZE: tl.constexpr):  # noqa: N803
    item, token = tl.program_id(0).to(tl.int64), tl.arange(0, SIZE)
    is_token, previous = token < n_tokens, tl.maximum(token - 1, 0)
    through_blank = tl.load(repeated + item * n_tokens + token, mask=is_token, other=0) != 0
    at_token = tl.full((SIZE,), float("-inf"), tl.float64)
    after = at_token
    blank = tl.where(token == 0, 0.0, at_token)
    place = item * item_stride + token
    for _ in range(n_frames):
        before = tl.where(token == 0, 0.0, tl.gather(after, previous, 0))
        entry = _logaddexp(at_token, tl.where(through_blank, blank, before))
        blank = before
        tl.store(entries + place, entry, mask=is_token)
        at_token = entry + tl.load(ratios + place, mask=is_token, other=float("-inf"))
        after = _logaddexp(at_token, after)
        place += frame_stride
    sums += item * (n_tokens + 1)
    tl.store(sums + token + 1, after, mask=is_token)
    tl.store(sums + token, tl.where(token == 0, 0.0, after), mask=token == 0)


def entries(ratios: Tensor, repeated: Tensor | None) -> tuple[Tensor, Tensor]:
    """`common.nn.ctc.entries` for float64 ratios (F, B, L)."""
    n_frames, n_items, n_tokens = ratios.shape
    ratios = ratios if ratios.stride(2) == 1 else ratios.contiguous()
    made = torch.empty_strided(ratios.shape, ratios.stride(), dtype=ratios.dtype, device=ratios.device)
    sums = ratios.new_empty(n_items, n_tokens + 1)
    flags = torch.zeros(n_items, n_tokens, dtype=torch.int8, device=ratios.device) if repeated is None else repeated
    sizes = (n_frames, n_tokens, ratios.stride(0), ratios.stride(1), triton.next_power_of_2(n_tokens + 1))
    _entries_kernel[(n_items,)](ratios, flags.to(torch.int8).contiguous(), made, sums, *sizes)
    return made, sums


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
    """`fastpitch.alignment_search.best_moves` for float32 tensors."""
    n_items, n_frames, n_tokens = log_probs.shape
    moves = torch.zeros(n_frames, n_items, n_tokens, dtype=torch.int8, device=log_probs.device)
    sizes = (n_frames, n_items, n_tokens, triton.next_power_of_2(n_tokens))
    _moves_kernel[(n_items,)](log_probs.contiguous(), moves, *sizes)
    return moves.bool()
