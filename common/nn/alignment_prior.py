"""The beta-binomial prior of a learned alignment, of frames and tokens (Badlani et al. 2022, section 2.2)."""

from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

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
    from scipy.special import betaln  # here, as only training needs SciPy

    successes = np.arange(n_tokens)
    alpha = scaling * np.arange(1, n_frames + 1)[:, None]
    beta = scaling * (n_frames + 1) - alpha
    ways = -np.log(n_tokens + 1) - betaln(n_tokens - successes + 1, successes + 1)
    log_prior = ways + betaln(successes + alpha, n_tokens - successes + beta) - betaln(alpha, beta)
    # Contiguous as it is interpolated: transposed.
    return torch.from_numpy(np.asfortranarray(np.exp(log_prior)))


def interpolated_prior(n_frames: int, n_tokens: int) -> Tensor:
    """The prior that training uses, (F, L) float64: that of a rounded size, which is cached, interpolated to this one.

    As published, frames and tokens are swapped in the rounded prior: it is a distribution over frames for each token.
    """
    rounded = beta_binomial_prior(_round(n_tokens, _ROUND_TOKENS), _round(n_frames, _ROUND_FRAMES)).t()
    return F.interpolate(rounded[None, None], (n_frames, n_tokens), mode="bilinear", align_corners=True)[0, 0]


def _round(length: int, to: int) -> int:
    """The nearest positive multiple of ``to``; halfway to the even one, as published."""
    return max(1, round((length + 1) / to)) * to
