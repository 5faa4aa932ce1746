"""Options and recipe."""

from dataclasses import dataclass
from pathlib import Path

from common.options import group, option
from common.text.options import TextOptions
from common.training.options import RunOptions

RECIPE = RunOptions(
    epochs=1, batch_size=2, optimizer="adam", learning_rate=0.01, weight_decay=0.0, grad_clip_thresh=float("inf")
)


@dataclass(frozen=True)
class TrainingOptions:
    """Options of training."""

    text: TextOptions = group(TextOptions)
    channels: int = option(16, "width of the network", least=1)
    dataset_path: Path = Path()


@dataclass(frozen=True)
class InferenceOptions:
    """Options of speaking."""

    decoder_steps: int = option(4, "steps from noise to mel", least=1)
