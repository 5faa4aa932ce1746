"""Network parts that several models use: layers, weight norm, discriminators, CTC, and measures of an alignment."""

from common.nn.alignment_metrics import diagonality, distance_from_diagonal, focus_rate, unattended_tokens
from common.nn.ctc import ctc_losses
from common.nn.discriminators import DiscriminatorConfig, MultiScaleDiscriminator, build_discriminators
from common.nn.layers import ConvReLUNorm, Dropout, mask_from_lengths, never_compiled, normalize_masked
from common.nn.noise import SeededNoise
from common.nn.size import TooLargeError, build_limited, check_architecture, option_with_value, value_text
from common.nn.weight_norm import (
    SpectralNormConv1d,
    WeightNormConv1d,
    WeightNormConv2d,
    WeightNormConvTranspose1d,
    fold_weight_norm,
    split_weights,
)
