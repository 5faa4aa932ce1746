"""The architecture of HiFi-GAN's discriminators, and the options that set it."""

from dataclasses import dataclass

from common.errors import OptionError
from common.options import check_options, option

N_SCALE_CONVOLUTIONS = 7


@dataclass(frozen=True, kw_only=True)
class DiscriminatorConfig:
    """The architecture of both discriminators; raises OptionError if channels and groups don't match."""

    mpd_periods: tuple[int, ...] = option(
        (2, 3, 5, 7, 11), "periods of the multi-period discriminator, samples", least=1
    )
    mpd_channels: tuple[int, ...] = option((32, 128, 512, 1024, 1024), "channels of its convolutions", least=1)
    msd_channels: tuple[int, ...] = option(
        (128, 128, 256, 512, 1024, 1024, 1024), "channels of the multi-scale discriminator's convolutions", least=1
    )
    msd_groups: tuple[int, ...] = option((1, 4, 16, 16, 16, 16, 1), "groups of these convolutions", least=1)
    msd_pooling_padding: int = option(2, "padding of each pooling, samples; NVIDIA's checkpoints: 1", least=0, most=2)

    def __post_init__(self) -> None:
        check_options(self)
        channels, groups = self.msd_channels, self.msd_groups
        divided = all(a % n == b % n == 0 for a, b, n in zip((1, *channels), channels, groups))
        if {len(channels), len(groups)} != {N_SCALE_CONVOLUTIONS} or not divided:
            wanted = f"expected {N_SCALE_CONVOLUTIONS} values each, and groups that divide each convolution's channels"
            raise OptionError(f"--msd-channels {channels}, --msd-groups {groups}: {wanted}")
