"""HiFi-GAN's architecture in numbers, and the authors' three presets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from common.cli import option_of
from common.errors import OptionError, shown

SCALE_KERNEL_SIZES = (15, 41, 41, 41, 41, 41, 5)  # of the multi-scale discriminator, one a convolution
# The mels of the published vocoders before fine-tuning, of recordings scaled to one peak; no published voice has such.
PUBLISHED_MELS: dict[str, Any] = {"framing": "aligned", "peak": 0.95}
_LARGEST, _MOST = 2**16, 16  # of any number and of the numbers of a list; far above any network's
_SAME_COUNTS = (
    ("upsample_rates", "upsample_kernel_sizes"),
    ("resblock_kernel_sizes", "resblock_dilation_sizes"),
    ("msd_channels", "msd_groups"),
)


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
        for name, problem in self._problems():
            raise OptionError(option_with_value(name, getattr(self, name)) + problem)

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Fields whose value is wrong, with the rest of the message; each check relies on those before it."""
        for name, value in vars(self).items():
            least = 0 if name == "msd_pooling_padding" else 1
            if name != "resblock" and not _all_within(least, value):
                yield name, f": expected whole numbers from {least} to {_LARGEST}, at most {_MOST} of them"
        if self.resblock not in ("1", "2"):
            yield "resblock", ": expected 1 or 2"
        if self.msd_pooling_padding > 2:
            yield "msd_pooling_padding", ": expected 0, 1 or 2"
        for first, second in _SAME_COUNTS:
            n_first, n_second = len(getattr(self, first)), len(getattr(self, second))
            if n_first != n_second:
                other = f"{option_with_value(second, getattr(self, second))} has {n_second}"
                yield first, f" has {n_first} values and {other}; expected as many of one as of the other"
        rates = option_with_value("upsample_rates", self.upsample_rates)
        for rate, size in zip(self.upsample_rates, self.upsample_kernel_sizes):
            if size < rate or (size - rate) % 2:
                wanted = "expected the rate plus an even number"
                yield "upsample_kernel_sizes", f": {size} does not suit rate {rate} of {rates}; {wanted}"
        for size in self.resblock_kernel_sizes:
            if size % 2 == 0:
                yield "resblock_kernel_sizes", f": {size} is even; expected odd numbers, which keep the length"
        n_halvings = len(self.upsample_rates)
        if self.upsample_initial_channel % 2**n_halvings:
            wanted = f"expected a multiple of {2**n_halvings}"
            yield "upsample_initial_channel", f": {rates} halves it {n_halvings} times; {wanted}"
        if (count := len(self.msd_channels)) != len(SCALE_KERNEL_SIZES):
            yield "msd_channels", f": {count} numbers, expected {len(SCALE_KERNEL_SIZES)}, one a convolution"
        channels = option_with_value("msd_channels", self.msd_channels)
        for before, width, n_groups in zip((1, *self.msd_channels), self.msd_channels, self.msd_groups):
            if before % n_groups or width % n_groups:
                wrong = f"{n_groups} groups do not divide a convolution of {before} to {width} channels"
                yield "msd_groups", f": {wrong} of {channels}"


def _all_within(least: int, value: object) -> bool:
    """Whether ``value`` is an integer of at least ``least``, or a tuple of such values, neither too large."""
    if isinstance(value, tuple):
        return 0 < len(value) <= _MOST and all(_all_within(least, item) for item in value)
    return isinstance(value, int) and least <= value <= _LARGEST


def value_text(value: object) -> str:
    """A field's value as it is given on the command line: ``3 7 11``, or ``1,3,5 1,3,5``."""
    if not isinstance(value, tuple):
        return shown(value).strip("'")
    return " ".join(",".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value)


def option_with_value(name: str, value: object) -> str:
    """A field's option with its value, for messages."""
    return f"{option_of(name)} {value_text(value)}"


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
