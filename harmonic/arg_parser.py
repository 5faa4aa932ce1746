"""Options for training the harmonic vocoder, with its recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.audio.options import PitchRange
from common.nn.discriminator_config import DiscriminatorConfig
from common.options import group, option
from common.training.options import InputMelOptions, RunOptions
from harmonic.config import ModelConfig

PITCH_CACHE = "pitch_cache"  # subfolder of the dataset, unless --pitch-cache names another folder
_DEFAULT = "default: the value shown, or that of the checkpoint to resume from"
RECIPE = RunOptions(
    epochs=400,
    batch_size=8,
    optimizer="adamw",
    learning_rate=1e-3,
    weight_decay=0.01,
    grad_clip_thresh=5.0,
    ema_decay=0.99,
    validation_interval=10,
    samples_interval=100,
)


@dataclass(frozen=True)
class TrainingOptions(InputMelOptions, PitchRange):
    """Training options of the harmonic vocoder."""

    segment_frames: int = option(64, "mel frames per training segment", least=1)
    pitch_cache: Path | None = option(None, f"folder for cached pitch (default: {PITCH_CACHE} in the dataset)")
    adversarial: bool = option(False, "also train against HiFi-GAN's discriminators", variable="ADVERSARIAL")
    architecture: Mapping[str, Any] = group(ModelConfig, f"architecture of Harmonic ({_DEFAULT})", by_name=True)
    discriminators: Mapping[str, Any] = group(
        DiscriminatorConfig, f"architecture of the discriminators ({_DEFAULT})", by_name=True
    )


@dataclass(frozen=True)
class InferenceOptions:
    """Harmonic has no inference options."""
