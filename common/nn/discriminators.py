"""HiFi-GAN's multi-period and multi-scale discriminators."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.discriminator_config import DiscriminatorConfig
from common.nn.weight_norm import SpectralNormConv1d, WeightNormConv1d, WeightNormConv2d

_N_SCALES = 3
_SCALE_KERNEL_SIZES = (15, 41, 41, 41, 41, 41, 5)
_SCALE_STRIDES = (1, 2, 2, 4, 4, 1, 1)


@dataclass(frozen=True)
class DiscriminatorOutput:
    """Features and scores of waves, with one entry per sub-discriminator."""

    features: list[list[Tensor]]  # the outputs of all convolutions; the last are the scores

    @property
    def scores(self) -> list[Tensor]:
        """(B, n) each: 1 for recordings, 0 for generated sound."""
        return [of_part[-1].flatten(1) for of_part in self.features]


class Discriminator(nn.Module):
    """Convolutions with leaky ReLU, followed by one that returns the scores."""

    slope = 0.1  # of leaky ReLU
    convs: nn.ModuleList
    conv_post: nn.Module

    def convolve(self, x: Tensor, *, amp_grouped_conv: bool = True) -> list[Tensor]:
        """x (B, 1, ...) -> features (B, C, ...), the scores last; see `MultiScaleDiscriminator`."""
        features = []
        for conv in self.convs:
            assert isinstance(conv, nn.Conv1d | nn.Conv2d)
            if conv.groups > 1 and not amp_grouped_conv:
                with torch.autocast(x.device.type, enabled=False):
                    x = conv(x.float())
            else:
                x = conv(x)
            x = F.leaky_relu(x, self.slope, inplace=True)
            features.append(x)
        return [*features, self.conv_post(x)]


class PeriodDiscriminator(Discriminator):
    """Scores a wave folded into rows of ``period`` samples, each column separately."""

    def __init__(self, period: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.period = period
        strides = (*(3,) * (len(channels) - 1), 1)
        self.convs = nn.ModuleList(
            WeightNormConv2d(before, width, (5, 1), (stride, 1), padding=(2, 0))
            for before, width, stride in zip((1, *channels), channels, strides)
        )
        self.conv_post = WeightNormConv2d(channels[-1], 1, (3, 1), padding=(1, 0))

    def forward(self, x: Tensor) -> list[Tensor]:
        """wave (B, 1, T) -> features (B, C, rows, period)."""
        missing = -x.size(2) % self.period
        return self.convolve(F.pad(x, (0, missing), "reflect").unflatten(2, (-1, self.period)))


class MultiPeriodDiscriminator(nn.Module):
    """A discriminator for each period (section 2.3 of arXiv:2010.05646)."""

    def __init__(self, periods: tuple[int, ...], channels: tuple[int, ...]) -> None:
        super().__init__()
        self.discriminators = nn.ModuleList(PeriodDiscriminator(period, channels) for period in periods)

    def forward(self, wave: Tensor) -> DiscriminatorOutput:
        """wave (B, 1, T) -> one entry per period."""
        return DiscriminatorOutput([discriminator(wave) for discriminator in self.discriminators])


class ScaleDiscriminator(Discriminator):
    """Scores a wave with strided grouped convolutions over time."""

    def __init__(self, channels: tuple[int, ...], groups: tuple[int, ...], *, norm: type[nn.Conv1d]) -> None:
        super().__init__()
        shapes = zip((1, *channels), channels, groups, _SCALE_KERNEL_SIZES, _SCALE_STRIDES)
        self.convs = nn.ModuleList(
            norm(before, width, size, stride, padding=size // 2, groups=n_groups)
            for before, width, n_groups, size, stride in shapes
        )
        self.conv_post = norm(channels[-1], 1, 3, padding=1)

    forward = Discriminator.convolve


class MultiScaleDiscriminator(nn.Module):
    """Discriminators for a wave, the pooled wave, and the wave pooled twice (section 2.3 of arXiv:2010.05646).

    The first uses spectral norm, the others weight norm. Without ``amp_grouped_conv``, grouped convolutions compute in
    float32 even under autocast.
    """

    def __init__(self, channels: tuple[int, ...], groups: tuple[int, ...], *, pooling_padding: int) -> None:
        super().__init__()
        self.amp_grouped_conv = True
        self.pooling_padding = pooling_padding
        norms = (SpectralNormConv1d, *(WeightNormConv1d,) * (_N_SCALES - 1))
        self.discriminators = nn.ModuleList(ScaleDiscriminator(channels, groups, norm=norm) for norm in norms)

    def forward(self, wave: Tensor) -> DiscriminatorOutput:
        """wave (B, 1, T) -> one entry per scale. Doesn't update spectral norm; `advance_spectral_norm` does."""
        features = []
        for index, discriminator in enumerate(self.discriminators):
            if index:
                wave = F.avg_pool1d(wave, 4, 2, padding=self.pooling_padding)
            features.append(discriminator(wave, amp_grouped_conv=self.amp_grouped_conv))
        return DiscriminatorOutput(features)

    def advance_spectral_norm(self) -> None:
        """Run an update's power iteration; call this once, however many forward passes the update takes."""
        for module in self.modules():
            if isinstance(module, SpectralNormConv1d):
                module.advance()


def build_discriminators(config: DiscriminatorConfig) -> dict[str, nn.Module]:
    """Build both discriminators with random weights."""
    msd = MultiScaleDiscriminator(config.msd_channels, config.msd_groups, pooling_padding=config.msd_pooling_padding)
    return {"mpd": MultiPeriodDiscriminator(config.mpd_periods, config.mpd_channels), "msd": msd}
