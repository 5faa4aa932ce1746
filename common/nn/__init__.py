"""Network parts that several models use: layers, masks, weight norm, and measures of an alignment."""

from common.nn.alignment_metrics import diagonality, distance_from_diagonal, focus_rate, unattended_tokens
from common.nn.layers import ConvReLUNorm, Dropout, mask_from_lengths, never_compiled
from common.nn.size import TooLargeError, build_limited
from common.nn.weight_norm import (
    SpectralNormConv1d,
    WeightNormConv1d,
    WeightNormConv2d,
    WeightNormConvTranspose1d,
    fold_weight_norm,
    split_weights,
)
