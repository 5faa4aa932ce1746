"""Options for training WaveGlow, with the published recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.options import group, option
from common.training.options import ModelOptions, RunOptions
from waveglow.config import SIGMA_INFER, ModelConfig

# As in NVIDIA's README.md and platform files for float32; for AMP, they use batches of 10 and clip gradients to 65504.
RECIPE = RunOptions(
    epochs=1001,
    batch_size=4,
    optimizer="adam",
    learning_rate=1e-4,
    weight_decay=0.0,
    grad_clip_thresh=float("inf"),
    samples_interval=50,
)


@dataclass(frozen=True)
class TrainingOptions(ModelOptions):
    """Training options of WaveGlow."""

    # Every published script trains with 8000; the original's default is 4000.
    segment_length: int = option(8000, "samples per training segment", least=1, variable="SEGMENT_LENGTH")
    sigma: float = option(1.0, "standard deviation of the noise that audio is mapped to", least=1e-3, most=1e3)
    for_voice: Path | None = option(None, "checkpoint of the text-to-mel model to train for, ours or published")
    architecture: Mapping[str, Any] = group(
        ModelConfig, "architecture of WaveGlow (default: the value shown, or the resumed checkpoint's)", by_name=True
    )


@dataclass(frozen=True)
class InferenceOptions:
    """Inference options of WaveGlow."""

    wn_channels: int | None = option(None, "channels of its networks; must match the checkpoint", least=1)
    sigma_infer: float = option(
        SIGMA_INFER,
        "standard deviation of the noise",
        least=0,
        most=100,
        variable="SIGMA",
        published=("-s", "--waveglow-sigma-infer"),
    )
