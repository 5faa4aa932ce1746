"""FastPitch 1.1's aligner, trained with the voice (Badlani et al., One TTS Alignment to Rule Them All, 2022)."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import InputError
from common.nn.alignment_search import durations_of_path, find_path
from common.nn.layers import ConvNorm, mask_from_lengths

_N_CHANNELS = 80  # size of the embedding in which frames and tokens are compared
_SCALE = 0.0005  # multiplies squared distances
_PRIOR_EPS = 1e-8  # added to the prior before its logarithm
_ATTENTION_EPS = 1e-12  # lower bound in the binarization loss
_MASKED = -1e15  # log probability of padding; with -inf, gradients of shorter texts would be NaN


@dataclass(frozen=True)
class Alignment:
    """Soft and hard alignment of a batch's frames and tokens."""

    log_probs: Tensor  # (B, F, L) float32, of tokens given the frame; not normalized if there is a prior
    log_attention: Tensor  # (B, F, L) float32, normalized over the text's tokens; -inf at padding
    path: Tensor  # (B, F) int64, each frame's token, found by monotonic alignment search
    durations: Tensor  # (B, L) int64, frames per token; at least 1, unless there are fewer frames than tokens

    @property
    def on_path(self) -> Tensor:
        """Log attention (B, F) from each frame to its token on the path."""
        return self.log_attention.gather(2, self.path.unsqueeze(2)).squeeze(2)

    def attention(self, frame_lengths: Tensor, *, without: Tensor | None = None) -> Tensor:
        """Return attention weights (B, F, L) without gradients, zero after an utterance's end.

        ``without`` (B, F, L) is a prior that was added and that the weights should not include.
        """
        logs = self.log_attention.detach()
        weights = logs.exp() if without is None else torch.softmax(logs - torch.log(without + _PRIOR_EPS), 2)
        return weights * mask_from_lengths(frame_lengths, self.path.size(1)).unsqueeze(2)


class ConvAttention(nn.Module):
    """Attention by distances between frames and tokens; without ``mask_padding``, padding affects it, as published."""

    def __init__(self, n_mel_channels: int, n_text_channels: int, *, mask_padding: bool) -> None:
        super().__init__()
        self.mask_padding = mask_padding
        self.query_proj = nn.Sequential(
            ConvNorm(n_mel_channels, 2 * n_mel_channels, kernel_size=3, gain="relu"),
            nn.ReLU(),
            ConvNorm(2 * n_mel_channels, n_mel_channels),
            nn.ReLU(),
            ConvNorm(n_mel_channels, _N_CHANNELS),
        )
        # Part of the published weights, but not used.
        self.attn_proj = nn.Conv2d(_N_CHANNELS, 1, 1).requires_grad_(False)
        self.key_proj = nn.Sequential(
            ConvNorm(n_text_channels, 2 * n_text_channels, kernel_size=3, gain="relu"),
            nn.ReLU(),
            ConvNorm(2 * n_text_channels, _N_CHANNELS),
        )

    @torch.jit.unused
    def forward(
        self, mels: Tensor, mel_lengths: Tensor, embedded: Tensor, token_lengths: Tensor, prior: Tensor | None
    ) -> Alignment:
        """mels (B, n_mels, F), zero after the ends, embedded tokens (B, L, C), lengths (B,), prior (B, F, L)."""
        is_token = mask_from_lengths(token_lengths, embedded.size(1))
        keys = embedded.transpose(1, 2)
        if self.mask_padding:
            keys = keys * is_token.unsqueeze(1)
        queries, keys = self.query_proj(mels), self.key_proj(keys)
        with torch.autocast(queries.device.type, enabled=False):
            log_probs = -_SCALE * squared_distances(queries.float(), keys.float())
            if self.mask_padding:
                log_probs = log_probs.masked_fill(~is_token.unsqueeze(1), _MASKED)
            if prior is not None:
                log_probs = torch.log_softmax(log_probs, 2) + torch.log(prior + _PRIOR_EPS)
            log_attention = torch.log_softmax(log_probs.masked_fill(~is_token.unsqueeze(1), -torch.inf), 2)
        path = find_path(log_attention, token_lengths, mel_lengths)
        return Alignment(log_probs, log_attention, path, durations_of_path(path, mel_lengths, embedded.size(1)))


def squared_distances(queries: Tensor, keys: Tensor) -> Tensor:
    """queries (B, C, F), keys (B, C, L) -> |query - key|^2 (B, F, L) by a matrix product, not from differences."""
    norms = queries.square().sum(1).unsqueeze(2) + keys.square().sum(1).unsqueeze(1)
    return torch.baddbmm(norms, queries.transpose(1, 2), keys, alpha=-2)


def forward_sum_losses(
    log_probs: Tensor, token_lengths: Tensor, frame_lengths: Tensor, *, blank_log_prob: float = -1.0
) -> Tensor:
    """Return the negative log probability of all monotonic paths, per token: log_probs (B, F, L), lengths (B,) -> (B,).

    0 if there are fewer frames than tokens. Source: Badlani et al., section 2.1.
    """
    with_blank = F.pad(log_probs, (1, 0), value=blank_log_prob)
    is_class = mask_from_lengths(token_lengths + 1, with_blank.size(2)).unsqueeze(1)
    with_blank = torch.log_softmax(with_blank.masked_fill(~is_class, _MASKED), 2)
    targets = torch.arange(1, with_blank.size(2), device=log_probs.device).expand(len(log_probs), -1)
    # In float64, because float32 gradients are accurate to only two digits.
    losses = F.ctc_loss(
        with_blank.double().transpose(0, 1), targets, frame_lengths, token_lengths, reduction="none", zero_infinity=True
    )
    return losses.to(log_probs.dtype) / token_lengths


def binarization_sum(alignment: Alignment, frame_lengths: Tensor) -> Tensor:
    """Return the negative log attention from frames to their tokens on the path, summed (Badlani et al., 2.4)."""
    log_attention = alignment.on_path.clamp(min=math.log(_ATTENTION_EPS))
    return -(log_attention * mask_from_lengths(frame_lengths, log_attention.size(1))).sum()


def check_alignable(n_frames: int, n_tokens: int, *, where: str) -> None:
    """Raise InputError for an utterance with fewer frames than tokens; ``where`` names it."""
    if n_frames < n_tokens:
        raise InputError(f"{where}: {n_frames} frames for {n_tokens} symbols; correct the transcript, or leave it out")
