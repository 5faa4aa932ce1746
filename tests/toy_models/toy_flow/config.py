"""The architecture."""

from dataclasses import dataclass

from common.config import Architecture


@dataclass(frozen=True)
class ModelConfig(Architecture):
    """Sizes of the network."""

    n_mels: int
    n_symbols: int
    channels: int
