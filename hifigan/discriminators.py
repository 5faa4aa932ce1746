"""HiFi-GAN's two discriminators, which judge a wave by its periods and by its scales."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.weight_norm import SpectralNormConv1d, WeightNormConv1d, WeightNormConv2d

_SLOPE = 0.1  # of leaky ReLU
_N_SCALES = 3
SCALE_KERNEL_SIZES = (15, 41, 41, 41, 41, 41, 5)
_SCALE_STRIDES = (1, 2, 2, 4, 4, 1, 1)


@dataclass(frozen=True)
class Judgement:
    """What a discriminator says of waves, for each of its parts."""

    scores: list[Tensor]  # (B, n) each: 1 for recordings, 0 for generated sound
    features: list[list[Tensor]]  # every convolution's output, the scores' included


class PeriodDiscriminator(nn.Module):
    """Judges a wave folded into rows of ``period`` samples, each column by itself."""

    def __init__(self, period: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.period = period
        self.convs = nn.ModuleList()
        n_channels = 1
        for index, width in enumerate(channels):
            stride = 3 if index + 1 < len(channels) else 1
            self.convs.append(WeightNormConv2d(n_channels, width, (5, 1), (stride, 1), padding=(2, 0)))
            n_channels = width
        self.conv_post = WeightNormConv2d(n_channels, 1, (3, 1), padding=(1, 0))

    def forward(self, wave: Tensor) -> tuple[Tensor, list[Tensor]]:
        """wave (B, 1, T) -> scores (B, n) and features (B, C, rows, period)."""
        missing = -wave.size(2) % self.period
        x = F.pad(wave, (0, missing), "reflect").unflatten(2, (-1, self.period))
        features = []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), _SLOPE, inplace=True)
            features.append(x)
        x = self.conv_post(x)
        features.append(x)
        return x.flatten(1), features


class MultiPeriodDiscriminator(nn.Module):
    """Discriminators of several periods (section 2.3 of arXiv:2010.05646)."""

    def __init__(self, periods: tuple[int, ...], channels: tuple[int, ...]) -> None:
        super().__init__()
        self.discriminators = nn.ModuleList(PeriodDiscriminator(period, channels) for period in periods)

    def forward(self, wave: Tensor) -> Judgement:
        """wave (B, 1, T) -> judgement, one part a period."""
        judged = [discriminator(wave) for discriminator in self.discriminators]
        return Judgement([scores for scores, _ in judged], [features for _, features in judged])


class ScaleDiscriminator(nn.Module):
    """Judges a wave by strided grouped convolutions over time."""

    def __init__(self, channels: tuple[int, ...], groups: tuple[int, ...], *, norm: type[nn.Module]) -> None:
        super().__init__()
        self.convs = nn.ModuleList()
        n_channels = 1
        shapes = zip(channels, groups, SCALE_KERNEL_SIZES, _SCALE_STRIDES)
        for width, n_groups, kernel_size, stride in shapes:
            padding = kernel_size // 2
            self.convs.append(norm(n_channels, width, kernel_size, stride, padding=padding, groups=n_groups))
            n_channels = width
        self.conv_post = norm(n_channels, 1, 3, padding=1)

    def forward(self, wave: Tensor, *, amp_grouped_conv: bool) -> tuple[Tensor, list[Tensor]]:
        """wave (B, 1, T) -> scores (B, n) and features (B, C, T')."""
        x = wave
        features = []
        for conv in self.convs:
            if conv.groups > 1 and not amp_grouped_conv:
                with torch.autocast(x.device.type, enabled=False):
                    x = conv(x.float())
            else:
                x = conv(x)
            x = F.leaky_relu(x, _SLOPE, inplace=True)
            features.append(x)
        x = self.conv_post(x)
        features.append(x)
        return x.flatten(1), features


class MultiScaleDiscriminator(nn.Module):
    """Discriminators of a wave, of its averages over 4 samples, and of theirs (section 2.3 of arXiv:2010.05646).

    The first one is under spectral norm, the others are under weight norm. ``amp_grouped_conv`` False computes grouped
    convolutions in float32 under autocast.
    """

    def __init__(self, channels: tuple[int, ...], groups: tuple[int, ...], *, pooling_padding: int) -> None:
        super().__init__()
        self.amp_grouped_conv = True
        self.pooling_padding = pooling_padding
        norms = (SpectralNormConv1d, *(WeightNormConv1d,) * (_N_SCALES - 1))
        self.discriminators = nn.ModuleList(ScaleDiscriminator(channels, groups, norm=norm) for norm in norms)

    def forward(self, wave: Tensor) -> Judgement:
        """wave (B, 1, T) -> judgement, one part a scale. Spectral norm stays as it is: see `advance_spectral_norm`."""
        scores, features = [], []
        for index, discriminator in enumerate(self.discriminators):
            if index:
                wave = F.avg_pool1d(wave, 4, 2, padding=self.pooling_padding)
            one_score, one_features = discriminator(wave, amp_grouped_conv=self.amp_grouped_conv)
            scores.append(one_score)
            features.append(one_features)
        return Judgement(scores, features)

    def advance_spectral_norm(self) -> None:
        """The one power iteration of an update; call it once, however many forward passes the update takes."""
        for module in self.modules():
            if isinstance(module, SpectralNormConv1d):
                module.advance()
