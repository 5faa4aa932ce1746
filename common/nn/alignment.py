"""Metrics of attention, and the prior for learned alignments."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from common.nn.alignment_search import durations_of_path
from common.nn.layers import mask_from_lengths


def diagonality(alignments: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """Measure how diagonal attention is: alignments (B, F, L), token_lengths and frame_lengths (B,) -> (B,) float32.

    The Pearson correlation of frame and token indices, weighted by attention: 1 for a sharp diagonal, 0 for uniform
    attention, -1 for reading backwards. For a single token or frame, it's 1.
    """
    weights = _valid(alignments, token_lengths, frame_lengths)
    frames, tokens = weights.sum(2), weights.sum(1)  # (B, F), (B, L): marginal distributions
    frame, token = _centered(frames), _centered(tokens)
    covariance = torch.einsum("bfl,bf,bl->b", weights, frame, token)
    variances = (frames * frame.square()).sum(1) * (tokens * token.square()).sum(1)
    correlation = covariance / variances.clamp(min=1e-12).sqrt()
    directed = (token_lengths > 1) & (frame_lengths > 1)
    return torch.where(directed, torch.where(variances > 1e-9, correlation, 0.0), 1.0).float()


def unattended_tokens(alignments: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """Count tokens that are no frame's argmax: `diagonality`'s arguments -> int64 (B,)."""
    most_attended = _valid(alignments, token_lengths, frame_lengths).argmax(2)
    n_frames = durations_of_path(most_attended, frame_lengths, alignments.size(2))
    return ((n_frames == 0) & mask_from_lengths(token_lengths, alignments.size(2))).sum(1)


def _valid(alignments: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """Return the weights of valid frames and tokens in float64, divided by the number of frames."""
    frames = mask_from_lengths(frame_lengths, alignments.size(1)).unsqueeze(2)
    tokens = mask_from_lengths(token_lengths, alignments.size(2)).unsqueeze(1)
    return alignments.double() * frames * tokens / frame_lengths.view(-1, 1, 1)


def _centered(distribution: Tensor) -> Tensor:
    """Return positions (B, N) minus their mean under ``distribution`` (B, N)."""
    position = torch.arange(distribution.size(1), device=distribution.device, dtype=distribution.dtype)
    return position - (distribution * position).sum(1, keepdim=True)


@lru_cache(maxsize=128)  # about 0.8 MB each for utterances of up to 1000 frames and 200 tokens
def beta_binomial_prior(n_frames: int, n_tokens: int, *, scaling: float = 1.0) -> Tensor:
    """Prior probability of each token in each frame: (F, L) float64; cached, so don't modify it.

    Frame i of F (from 1) has the beta-binomial distribution for ``n_tokens`` trials with alpha = scaling * i and
    beta = scaling * (F + 1 - i), without its last outcome. Source: Badlani et al. (2022), section 2.2.
    """
    tokens = torch.arange(n_tokens, dtype=torch.float64)[:, None]
    alpha = scaling * torch.arange(1, n_frames + 1, dtype=torch.float64)
    beta, left = scaling * (n_frames + 1) - alpha, n_tokens - tokens
    # Transposed to be contiguous for the interpolation; in place to save memory for minutes of speech.
    logs = (tokens + alpha).lgamma_()
    logs += (left + beta).lgamma_()
    logs -= (tokens + 1).lgamma() + (left + 1).lgamma()
    logs -= alpha.lgamma() + beta.lgamma()
    logs += math.lgamma(n_tokens + 1) + math.lgamma(scaling * (n_frames + 1))
    logs -= math.lgamma(n_tokens + scaling * (n_frames + 1))
    return logs.exp_().t()


def interpolated_prior(n_frames: int, n_tokens: int) -> Tensor:
    """Return the training prior (F, L) float64: interpolated from one of a rounded size, transposed as published."""
    rounded = beta_binomial_prior(_round(n_tokens, 20), _round(n_frames, 100)).t()
    return F.interpolate(rounded[None, None], (n_frames, n_tokens), mode="bilinear", align_corners=True)[0, 0]


def _round(length: int, to: int) -> int:
    """Round ``length`` + 1 to a positive multiple of ``to``, ties to even, as published."""
    return max(1, round((length + 1) / to)) * to
