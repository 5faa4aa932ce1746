"""The harmonic vocoder's architecture, and the options that configure it."""

from dataclasses import dataclass

from common.config import Architecture
from common.nn.discriminator_config import DiscriminatorConfig
from common.options import check_options, option

MEL_CORRECTIONS = 4  # at inference; docs/HARMONIC.md has scores for other numbers
N_PITCHES = 160  # from 30 to 1200 Hz, 40 cents apart


@dataclass(frozen=True)
class ModelConfig(Architecture):
    """Architecture of the pitch network, and of the network that filters harmonics and noise."""

    n_mel_channels: int = 80
    n_channels: int = option(256, "channels of the filter network", least=1, names=("--channels",))
    n_layers: int = option(4, "ConvNeXt blocks of the filter network", least=1, names=("--layers",))
    pitch_channels: int = option(160, "channels of the pitch network", least=1)
    discriminators: DiscriminatorConfig | None = None  # only for training

    def __post_init__(self) -> None:
        check_options(self)
