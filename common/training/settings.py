"""What a model's options say of a training run, beyond the model's architecture."""

from dataclasses import dataclass

from common.config import AudioConfig, TextConfig
from common.training.optim import Optimization


@dataclass(frozen=True)
class Settings:
    """What ``arg_parser.settings_from_args`` of each package gives."""

    audio: AudioConfig
    text: TextConfig | None  # None: the model reads no text
    optimization: Optimization
    same_shapes: bool = False  # whether all batches of training have one shape, as segments of one size do
    adaptable: tuple[str, ...] = ()  # fields of AudioConfig in which a checkpoint to go on from may differ
