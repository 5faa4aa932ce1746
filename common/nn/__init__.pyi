"""Network parts that several models use: layers, weight norm, discriminators, and measures of an alignment."""

from .alignment import (
    diagonality as diagonality,
    distance_from_diagonal as distance_from_diagonal,
    focus_rate as focus_rate,
    unattended_tokens as unattended_tokens,
    warping_path as warping_path,
)
from .discriminator_config import DiscriminatorConfig as DiscriminatorConfig
from .discriminators import (
    MultiScaleDiscriminator as MultiScaleDiscriminator,
    build_discriminators as build_discriminators,
)
from .kernels import by_kernel as by_kernel
from .layers import (
    Dropout as Dropout,
    SeededNoise as SeededNoise,
    TimeConv as TimeConv,
    channels_last as channels_last,
    mask_from_lengths as mask_from_lengths,
    never_compiled as never_compiled,
    normalize_masked as normalize_masked,
    prefers_channels_last as prefers_channels_last,
    split_channels as split_channels,
    zero_where as zero_where,
)
from .weight_norm import (
    WeightNorm as WeightNorm,
    WeightNormConv1d as WeightNormConv1d,
    fold_weight_norm as fold_weight_norm,
    split_weights as split_weights,
)
