"""WaveGlow's architecture, and the options that configure it."""

from dataclasses import dataclass

from common.config import Architecture
from common.errors import OptionError
from common.options import check_options, option

SIGMA_INFER = 0.9  # standard deviation of the noise that is mapped to audio, as published


@dataclass(frozen=True)
class ModelConfig(Architecture):
    """Architecture, with the field names of published checkpoints, whose ``WN_config`` is ``wn_*`` here."""

    n_mel_channels: int = 80
    n_flows: int = option(12, "flow steps from audio to noise", least=1, most=100, names=("--flows",))
    n_group: int = option(8, "samples per group, the flows' channels", least=1, most=1024, names=("--groups",))
    n_early_every: int = option(4, "flows between early outputs of channels", least=1, names=("--early-every",))
    n_early_size: int = option(2, "channels per early output", least=1, names=("--early-size",))
    wn_layers: int = option(8, "layers of the networks in the flows; each doubles the dilation", least=1, most=16)
    wn_kernel_size: int = option(3, "kernel size of the flows' networks", least=1, most=1001, odd=True)
    wn_channels: int = option(512, "channels of the flows' networks; published: 256 or 512", least=1, most=2**16)

    def __post_init__(self) -> None:
        check_options(self)
        for option_name, value in (("--groups", self.n_group), ("--early-size", self.n_early_size)):
            if value % 2:
                raise OptionError(f"{option_name} {value}: expected an even number: every flow halves its channels")
        if self.n_channels(self.n_flows - 1) < 2:
            raise OptionError("--early-size, --early-every: they leave no channels of --groups for the last flow")

    def n_channels(self, flow: int) -> int:
        """Return the channels that a flow, counted from 0, transforms: all but the early outputs before it."""
        return self.n_group - flow // self.n_early_every * self.n_early_size
