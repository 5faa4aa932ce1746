"""The harmonic vocoder's architecture in numbers."""

from dataclasses import dataclass

from common.errors import OptionError
from common.nn import DiscriminatorConfig

# Field of ModelConfig -> its option, and what it is; the mel channels are an option of the audio.
OPTIONS = {
    "n_channels": ("--channels", "channels of the filter network"),
    "n_layers": ("--layers", "ConvNeXt blocks of the filter network"),
    "pitch_channels": ("--pitch-channels", "channels of the network that finds pitch and voicing"),
}
N_PITCHES = 160  # from 30 to 1200 Hz, 40 cents apart
_LARGEST = 2**14  # far above any network


@dataclass(frozen=True)
class ModelConfig:
    """Architecture of the network of pitch and voicing, and of the one that filters harmonics and noise.

    Raises:
        OptionError: a value makes no network; names the option.
    """

    n_mel_channels: int = 80
    n_channels: int = 256
    n_layers: int = 4
    pitch_channels: int = 160
    discriminators: DiscriminatorConfig | None = None  # of training alone

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "discriminators" and not (isinstance(value, int) and 1 <= value <= _LARGEST):
                option = OPTIONS[name][0] if name in OPTIONS else "--n-mel-channels"
                raise OptionError(f"{option} {value}: expected a whole number from 1 to {_LARGEST}")
