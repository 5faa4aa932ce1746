"""Numbers that describe networks: HiFi-GAN's discriminators, and checks that configurations share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from common.errors import OptionError, shown
from common.options import check_options, option, option_of

SCALE_KERNEL_SIZES = (15, 41, 41, 41, 41, 41, 5)  # of the multi-scale discriminator's convolutions


@dataclass(frozen=True, kw_only=True)
class DiscriminatorConfig:
    """Architecture of both discriminators.

    Raises:
        OptionError: values that do not fit together; names the option and what would.
    """

    mpd_periods: tuple[int, ...] = option(
        (2, 3, 5, 7, 11), "periods of the multi-period discriminator, samples", least=1
    )
    mpd_channels: tuple[int, ...] = option((32, 128, 512, 1024, 1024), "channels of its convolutions", least=1)
    msd_channels: tuple[int, ...] = option(
        (128, 128, 256, 512, 1024, 1024, 1024), "channels of the multi-scale discriminator's convolutions", least=1
    )
    msd_groups: tuple[int, ...] = option((1, 4, 16, 16, 16, 16, 1), "groups of these convolutions", least=1)
    msd_pooling_padding: int = option(2, "samples added around each pooling; NVIDIA's checkpoints: 1", least=0, most=2)
    _same_counts: ClassVar[tuple[tuple[str, str], ...]] = (("msd_channels", "msd_groups"),)

    def __post_init__(self) -> None:
        check_options(self)
        for name, problem in self._problems():
            raise OptionError(option_with_value(name, getattr(self, name)) + problem)

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Fields whose value is wrong, with the rest of the message; each check relies on those before it."""
        for name, value in vars(self).items():
            if name != "msd_pooling_padding" and not _is_positive(value):
                yield name, ": expected whole numbers of at least 1"
        for first, second in self._same_counts:
            n_first, n_second = len(getattr(self, first)), len(getattr(self, second))
            if n_first != n_second:
                other = f"{option_with_value(second, getattr(self, second))} has {n_second}"
                yield first, f" has {n_first} values and {other}; expected as many of one as of the other"
        if (count := len(self.msd_channels)) != len(SCALE_KERNEL_SIZES):
            yield "msd_channels", f": {count} numbers, expected {len(SCALE_KERNEL_SIZES)}, one a convolution"
        channels = option_with_value("msd_channels", self.msd_channels)
        for before, width, n_groups in zip((1, *self.msd_channels), self.msd_channels, self.msd_groups):
            if before % n_groups or width % n_groups:
                wrong = f"{n_groups} groups do not divide a convolution of {before} to {width} channels"
                yield "msd_groups", f": {wrong} of {channels}"


def _is_positive(value: object) -> bool:
    """Whether a number, or each number of a tuple, is at least 1."""
    if isinstance(value, tuple):
        return len(value) > 0 and all(map(_is_positive, value))
    return not isinstance(value, int) or value >= 1


def check_architecture(config: Any) -> None:
    """Refuse by OptionError a size that no network has, an even kernel, or ``p_*`` that is no probability."""
    for name, value in vars(config).items():
        problem = None
        if name.endswith("kernel_size") and (value < 1 or value % 2 == 0):
            problem = "an odd number, which keeps lengths as they are"
        elif name.startswith("p_"):
            problem = None if 0 <= value < 1 else "a probability of at least 0 and less than 1"
        elif type(value) is int and value < (0 if name == "padding_idx" else 1):
            problem = "a whole number of at least 1"
        if problem is not None:
            raise OptionError(f"{option_of(name)} {value}: expected {problem}")


def value_text(value: object) -> str:
    """A field's value as it is given on the command line: ``3 7 11``, or ``1,3,5 1,3,5``."""
    if not isinstance(value, tuple):
        return shown(value).strip("'")
    return " ".join(",".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value)


def option_with_value(name: str, value: object) -> str:
    """A field's option with its value, for messages."""
    return f"{option_of(name)} {value_text(value)}"
