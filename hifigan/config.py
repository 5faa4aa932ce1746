"""HiFi-GAN's architecture in numbers, and the authors' three presets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from common.nn import DiscriminatorConfig, option_with_value

# The mels of the published vocoders before fine-tuning, of recordings scaled to one peak; no published voice has such.
PUBLISHED_MELS: dict[str, Any] = {"framing": "aligned", "peak": 0.95}


@dataclass(frozen=True)
class ModelConfig(DiscriminatorConfig):
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
    _same_counts = (
        ("upsample_rates", "upsample_kernel_sizes"),
        ("resblock_kernel_sizes", "resblock_dilation_sizes"),
        *DiscriminatorConfig._same_counts,
    )

    def _problems(self) -> Iterator[tuple[str, str]]:
        yield from super()._problems()
        if self.resblock not in ("1", "2"):
            yield "resblock", ": expected 1 or 2"
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
