"""WaveGlow's architecture in numbers."""

from dataclasses import dataclass

from common.errors import OptionError

_OPTIONS = {
    "n_mel_channels": "--n-mel-channels",
    "n_flows": "--flows",
    "n_group": "--groups",
    "n_early_every": "--early-every",
    "n_early_size": "--early-size",
    "wn_layers": "--wn-layers",
    "wn_kernel_size": "--wn-kernel-size",
    "wn_channels": "--wn-channels",
}


@dataclass(frozen=True)
class ModelConfig:
    """Architecture; names are those of published checkpoints, whose ``WN_config`` is ``wn_*`` here.

    Raises:
        OptionError: values that do not fit together; names the option and what would.
    """

    n_mel_channels: int = 80
    n_flows: int = 12
    n_group: int = 8  # samples that are one position of a flow, its channels
    n_early_every: int = 4  # flows between early outputs
    n_early_size: int = 2  # channels of an early output
    wn_layers: int = 8
    wn_kernel_size: int = 3
    wn_channels: int = 512

    def __post_init__(self) -> None:
        for name, option in _OPTIONS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise OptionError(f"{option} {value}: expected a whole number of at least 1")
        if self.n_group % 2 or self.n_early_size % 2:
            name = "n_group" if self.n_group % 2 else "n_early_size"
            raise OptionError(
                f"{_OPTIONS[name]} {getattr(self, name)}: expected an even number, as every flow halves its channels"
            )
        if self.wn_kernel_size % 2 == 0:
            raise OptionError(f"--wn-kernel-size {self.wn_kernel_size}: expected an odd number, which keeps lengths")
        if self.n_channels(self.n_flows - 1) < 2:
            n_early = (self.n_flows - 1) // self.n_early_every
            raise OptionError(
                f"--early-size {self.n_early_size}: {n_early} early outputs leave none of the {self.n_group} channels "
                "of --groups to the last flow; expected fewer or smaller ones (see --early-every and --flows)"
            )

    def n_channels(self, flow: int) -> int:
        """Channels that a flow, from 0, works on: all but those that came out early before it."""
        return self.n_group - flow // self.n_early_every * self.n_early_size

    @property
    def context(self) -> int:
        """Positions on either side that one flow's network sees."""
        return (self.wn_kernel_size - 1) // 2 * (2**self.wn_layers - 1)
