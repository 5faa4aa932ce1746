"""Connectionist temporal classification (CTC) by operations of static shapes, for which no host waits."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from common.nn.kernels import by_kernel
from common.nn.layers import mask_from_lengths, never_compiled


@never_compiled
def ctc_losses(
    token_log_probs: Tensor,
    blank_log_probs: Tensor,
    token_lengths: Tensor,
    frame_lengths: Tensor,
    *,
    repeated: Tensor | None = None,
) -> Tensor:
    """Minus the log probability of each transcript, over all ways to place its tokens: (B,) float64.

    It is infinite, with a gradient of zero for the tokens, where there are too few frames for the tokens.

    Args:
        token_log_probs: (B, F, L), of each token of the transcript in each frame.
        blank_log_probs: (B, F), of the blank.
        token_lengths: (B,), at least 0.
        frame_lengths: (B,).
        repeated: (B, L) bool, tokens that are the same as the one before them, which need a blank in between; None
            where no token is.

    Source: Graves et al., Connectionist temporal classification (2006), section 4.1. Sums over hundreds of frames are
    in float64; PyTorch's CTC loss in float32 has gradients that are off in the third digit.
    """
    is_frame = mask_from_lengths(frame_lengths, token_log_probs.size(1))
    is_token = mask_from_lengths(token_lengths, token_log_probs.size(2))
    blanks = blank_log_probs.double()
    # Divided by the probability of blanks alone, a way has one factor for each frame at a token, and none for blanks.
    ratios = token_log_probs.double() - blanks.unsqueeze(2)
    ratios = ratios.masked_fill(~(is_frame.unsqueeze(2) & is_token.unsqueeze(1)), -torch.inf)
    placed = _Placements.apply(ratios, token_lengths, frame_lengths, repeated)
    return -(placed + blanks.masked_fill(~is_frame, 0.0).sum(1))


class _Placements(Function):
    """The log of the sum over all ways: ratios (B, F, L), -inf past the ends -> (B,).

    One loop over the frames goes from both ends of every utterance at once, so that its gradient is known after it.
    """

    @staticmethod
    def forward(
        ctx: Any, ratios: Tensor, token_lengths: Tensor, frame_lengths: Tensor, repeated: Tensor | None
    ) -> Tensor:
        mirror, both = None, ratios
        if ctx.needs_input_grad[0]:
            mirror = _mirror(ratios, token_lengths, frame_lengths)
            both = torch.cat((ratios, ratios[mirror]))
            if repeated is not None:
                follows = torch.cat((repeated[:, 1:], torch.zeros_like(repeated[:, :1])), 1)
                repeated = torch.cat((repeated, follows[mirror[0][:, 0], mirror[2][:, 0]]))
        ways_in, sums = by_kernel(entries, both.transpose(0, 1), repeated)
        placed = sums[: len(ratios)].gather(1, token_lengths.unsqueeze(1)).squeeze(1)
        if mirror is not None:
            from_start, from_end = ways_in.transpose(0, 1).split(len(ratios))
            ways = from_start + ratios + from_end[mirror] - placed[:, None, None]
            ctx.save_for_backward(ways.exp().nan_to_num(0.0))  # nan: no way at all
        return placed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (shares,) = ctx.saved_tensors
        return shares * gradients[0][:, None, None], None, None, None


def _mirror(ratios: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Indices that reverse frames and tokens of each utterance, padding staying at the end; applied twice, none."""
    n_items, n_frames, n_tokens = ratios.shape
    device = ratios.device
    items = torch.arange(n_items, device=device).view(-1, 1, 1)
    frames = (frame_lengths.unsqueeze(1) - 1 - torch.arange(n_frames, device=device)) % max(n_frames, 1)
    tokens = (token_lengths.unsqueeze(1) - 1 - torch.arange(n_tokens, device=device)) % max(n_tokens, 1)
    return items, frames.unsqueeze(2), tokens.unsqueeze(1)


def entries(ratios: Tensor, repeated: Tensor | None) -> tuple[Tensor, Tensor]:
    """ratios (F, B, L) -> sums over the ways up to each token in each frame, without that frame's ratio (F, B, L);
    and over all ways through the first 0 to L tokens (B, L + 1).
    """
    made = torch.empty_like(ratios)
    at_token = ratios.new_full(ratios.shape[1:], -torch.inf)
    # With k tokens done, at the last of them or at the blank after it; no tokens done are blanks alone.
    done = F.pad(at_token, (1, 0), value=0.0)
    before, after = done[:, :-1], done[:, 1:]
    blank = before.clone()  # at the blank before each token, which is what had been done a frame earlier
    for ratio, entry in zip(ratios, made):
        if repeated is None:
            torch.logaddexp(at_token, before, out=entry)
        else:
            torch.logaddexp(at_token, torch.where(repeated, blank, before), out=entry)
            blank.copy_(before)
        torch.add(entry, ratio, out=at_token)
        torch.logaddexp(at_token, after, out=after)
    return made, done
