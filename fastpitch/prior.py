"""The beta-binomial prior of a learned alignment: near the diagonal of frames and tokens.

Sources: Shih et al., RAD-TTS (2021), section 2.2; Badlani et al., One TTS Alignment to Rule Them All (2022),
section 2.3.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import betaln
from torch import Tensor

from common.errors import InputError

_ROUND_FRAMES = 100
_ROUND_TOKENS = 20
_CACHED_PRIORS = 128  # those of utterances of up to 1000 frames and 200 tokens, 0.8 MB on average


@lru_cache(maxsize=_CACHED_PRIORS)
def beta_binomial_prior(n_frames: int, n_tokens: int, *, scaling: float = 1.0) -> Tensor:
    """Probability of each token in each frame: (F, L) float64, cached, so not to be changed.

    Frame i of F (from 1) has the beta-binomial distribution of ``n_tokens`` trials with alpha = scaling * i and
    beta = scaling * (F + 1 - i); a larger ``scaling`` makes the diagonal narrower. The last outcome, ``n_tokens``
    successes, is no token, so that a frame's probabilities sum to less than 1.
    """
    successes = np.arange(n_tokens)
    alpha = scaling * np.arange(1, n_frames + 1)[:, None]
    beta = scaling * (n_frames + 1) - alpha
    ways = -np.log(n_tokens + 1) - betaln(n_tokens - successes + 1, successes + 1)
    log_prior = ways + betaln(successes + alpha, n_tokens - successes + beta) - betaln(alpha, beta)
    return torch.from_numpy(np.exp(log_prior))


def interpolated_prior(n_frames: int, n_tokens: int) -> Tensor:
    """The prior that training uses, (F, L) float64: that of a rounded size, which is cached, interpolated to this one.

    As published, frames and tokens are swapped in the rounded prior: it is a distribution over frames for each token.
    """
    rounded = beta_binomial_prior(_round(n_tokens, _ROUND_TOKENS), _round(n_frames, _ROUND_FRAMES)).t()
    return F.interpolate(rounded[None, None], (n_frames, n_tokens), mode="bilinear", align_corners=True)[0, 0]


def padded_priors(frame_lengths: Sequence[int], token_lengths: Sequence[int]) -> Tensor:
    """The interpolated priors of a batch's utterances, zero-padded: (B, F, L) float32."""
    priors = torch.zeros(len(frame_lengths), max(frame_lengths), max(token_lengths))
    for prior, n_frames, n_tokens in zip(priors, frame_lengths, token_lengths, strict=True):
        prior[:n_frames, :n_tokens] = interpolated_prior(n_frames, n_tokens)
    return priors


def check_alignable(n_frames: int, n_tokens: int, *, where: str) -> None:
    """Raise InputError for an utterance with fewer frames than tokens; ``where`` names it."""
    if n_frames < n_tokens:
        raise InputError(
            f"{where}: {n_frames} frames for {n_tokens} symbols, expected a frame at least for each symbol; "
            "check that the transcript belongs to this recording, or leave the clip out"
        )


def _round(length: int, to: int) -> int:
    """The nearest positive multiple of ``to``; halfway to the even one, as published."""
    return max(1, round((length + 1) / to)) * to
