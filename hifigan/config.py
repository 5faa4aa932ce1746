"""HiFi-GAN's architecture, its options, and the authors' three presets."""

import re
from dataclasses import dataclass
from typing import Any

from common.config import Architecture
from common.errors import OptionError
from common.nn.discriminator_config import DiscriminatorConfig
from common.options import option

# The mels of the published vocoders before fine-tuning; no published voice makes such mels.
PUBLISHED_MELS: dict[str, Any] = {"framing": "aligned", "peak": 0.95}
# Fields of AudioConfig and their keys in the authors' config.json.
AUDIO_KEYS = {
    "sampling_rate": "sampling_rate",
    "filter_length": "n_fft",
    "hop_length": "hop_size",
    "win_length": "win_size",
    "n_mels": "num_mels",
    "mel_fmin": "fmin",
    "mel_fmax": "fmax",
}


def _dilations(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise OptionError(f"{text}: expected whole numbers of at least 1, separated by commas")
    return tuple(map(int, text.split(",")))


@dataclass(frozen=True)
class ModelConfig(DiscriminatorConfig, Architecture):
    """Architecture of generator and discriminators; the generator's fields are named as in the authors' config.json."""

    n_mel_channels: int = 80
    resblock: str = option("1", "1: pairs of convolutions, 2: single ones", choices=("1", "2"))
    upsample_rates: tuple[int, ...] = option(
        (8, 8, 2, 2), "factors that multiply to the hop length (default: chosen to fit it)", least=1
    )
    upsample_kernel_sizes: tuple[int, ...] = option(
        (16, 16, 4, 4), "kernel sizes of the upsampling layers (default: twice the rate)", least=1
    )
    upsample_initial_channel: int = option(512, "channels before the first upsampling; each one halves it", least=1)
    resblock_kernel_sizes: tuple[int, ...] = option((3, 7, 11), "kernel sizes of parallel blocks", least=1, odd=True)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = option(
        ((1, 3, 5), (1, 3, 5), (1, 3, 5)), "dilations of each block", read=_dilations, metavar="D,D,D"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        rates, sizes = self.upsample_rates, self.upsample_kernel_sizes
        if len(rates) != len(sizes) or any(size < rate or (size - rate) % 2 for rate, size in zip(rates, sizes)):
            raise OptionError(f"--upsample-kernel-sizes {sizes}: expected --upsample-rates {rates} plus even numbers")
        if len(self.resblock_kernel_sizes) != len(self.resblock_dilation_sizes):
            raise OptionError("--resblock-kernel-sizes and --resblock-dilation-sizes: expected the same number of each")


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
PRESETS |= {"small": PRESETS["v2"], "medium": PRESETS["v3"], "full": PRESETS["v1"]}
