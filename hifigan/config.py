"""HiFi-GAN's architecture in numbers, and the authors' three."""

from dataclasses import dataclass

from common.errors import OptionError
from hifigan.discriminators import SCALE_KERNEL_SIZES


@dataclass(frozen=True)
class ModelConfig:
    """Architecture of generator and discriminators; the generator's names are those of the authors' config.json.

    Raises:
        OptionError: values that do not fit together; names the option and what would.
    """

    n_mel_channels: int = 80
    resblock: str = "1"  # 1: pairs of a dilated and a plain convolution; 2: single dilated convolutions
    upsample_rates: tuple[int, ...] = (8, 8, 2, 2)  # their product is the hop length
    upsample_kernel_sizes: tuple[int, ...] = (16, 16, 4, 4)
    upsample_initial_channel: int = 512  # halved by each upsampling
    resblock_kernel_sizes: tuple[int, ...] = (3, 7, 11)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))
    mpd_periods: tuple[int, ...] = (2, 3, 5, 7, 11)  # samples
    mpd_channels: tuple[int, ...] = (32, 128, 512, 1024, 1024)
    msd_channels: tuple[int, ...] = (128, 128, 256, 512, 1024, 1024, 1024)
    msd_groups: tuple[int, ...] = (1, 4, 16, 16, 16, 16, 1)
    msd_pooling_padding: int = 2  # samples; 2 as the authors', 1 as NVIDIA's

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_generator(self)
        _check_discriminators(self)


def _option(name: str, value: object) -> str:
    """How a field's value is given on the command line."""

    def text(item: object) -> str:
        return ",".join(map(str, item)) if isinstance(item, tuple) else str(item)

    values = " ".join(map(text, value)) if isinstance(value, tuple) else str(value)
    return f"--{name.replace('_', '-')} {values}"


def _check_numbers(config: ModelConfig) -> None:
    """Every number is a whole one of at least 1, but for the padding, which may be 0."""
    for name, value in vars(config).items():
        if name == "resblock":
            continue
        least = 0 if name == "msd_pooling_padding" else 1
        if not _all_at_least(least, value):
            raise OptionError(f"{_option(name, value)}: expected whole numbers of at least {least}")
    if config.msd_pooling_padding > 2:
        raise OptionError(f"{_option('msd_pooling_padding', config.msd_pooling_padding)}: expected 0, 1 or 2")


def _all_at_least(least: int, value: object) -> bool:
    """Whether ``value`` is such a whole number, or a tuple, not empty, of what is."""
    if isinstance(value, tuple):
        return len(value) > 0 and all(_all_at_least(least, item) for item in value)
    return isinstance(value, int) and value >= least


def _check_generator(config: ModelConfig) -> None:
    if config.resblock not in ("1", "2"):
        raise OptionError(f"{_option('resblock', config.resblock)}: expected 1 or 2")
    for first, second in (
        ("upsample_rates", "upsample_kernel_sizes"),
        ("resblock_kernel_sizes", "resblock_dilation_sizes"),
    ):
        _check_same_count(config, first, second)
    for rate, kernel_size in zip(config.upsample_rates, config.upsample_kernel_sizes):
        if kernel_size < rate or (kernel_size - rate) % 2:
            raise OptionError(
                f"{_option('upsample_kernel_sizes', config.upsample_kernel_sizes)}: {kernel_size} does not suit rate "
                f"{rate} of {_option('upsample_rates', config.upsample_rates)}; expected the rate plus an even number"
            )
    even = [size for size in config.resblock_kernel_sizes if size % 2 == 0]
    if even:
        raise OptionError(
            f"{_option('resblock_kernel_sizes', config.resblock_kernel_sizes)}: {even[0]} is even; "
            "expected odd numbers, so that lengths stay as they are"
        )
    halvings = 2 ** len(config.upsample_rates)
    if config.upsample_initial_channel % halvings:
        raise OptionError(
            f"{_option('upsample_initial_channel', config.upsample_initial_channel)}: "
            f"{_option('upsample_rates', config.upsample_rates)} halves it {len(config.upsample_rates)} times; "
            f"expected a multiple of {halvings}"
        )


def _check_discriminators(config: ModelConfig) -> None:
    _check_same_count(config, "msd_channels", "msd_groups")
    if len(config.msd_channels) != len(SCALE_KERNEL_SIZES):
        raise OptionError(
            f"{_option('msd_channels', config.msd_channels)}: {len(config.msd_channels)} numbers, "
            f"expected {len(SCALE_KERNEL_SIZES)}, one a convolution"
        )
    for before, width, n_groups in zip((1, *config.msd_channels), config.msd_channels, config.msd_groups):
        if before % n_groups or width % n_groups:
            raise OptionError(
                f"{_option('msd_groups', config.msd_groups)}: {n_groups} groups do not divide a convolution of "
                f"{before} to {width} channels of {_option('msd_channels', config.msd_channels)}"
            )


def _check_same_count(config: ModelConfig, first: str, second: str) -> None:
    counts = len(getattr(config, first)), len(getattr(config, second))
    if counts[0] != counts[1]:
        raise OptionError(
            f"{_option(first, getattr(config, first))} has {counts[0]} values and "
            f"{_option(second, getattr(config, second))} has {counts[1]}; expected as many of one as of the other"
        )


PRESETS = {
    "v1": ModelConfig(),
    "v2": ModelConfig(upsample_initial_channel=128),
    "v3": ModelConfig(
        resblock="2",
        upsample_rates=(8, 8, 4),
        upsample_kernel_sizes=(16, 16, 8),
        upsample_initial_channel=256,
        resblock_kernel_sizes=(3, 5, 7),
        resblock_dilation_sizes=((1, 2), (2, 6), (3, 12)),
    ),
}
