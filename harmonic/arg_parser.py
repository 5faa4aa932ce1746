"""Options of the harmonic vocoder's training, with its recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.audio.options import PitchRange
from common.nn.discriminator_config import DiscriminatorConfig
from common.options import group, option
from common.training.options import InputMelOptions, RunOptions
from harmonic.config import MEL_CORRECTIONS, ModelConfig

PITCH_CACHE = "pitch_cache"  # folder of a dataset, unless --pitch-cache names another
_OF_CHECKPOINT = "an option that is left out takes the value in brackets, or that of the checkpoint to resume from"
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
    """The harmonic vocoder's own options of training."""

    segment_frames: int = option(64, "mel frames of a training segment", least=1)
    pitch_cache: Path | None = option(
        None, f"folder that keeps the pitch of recordings (default: {PITCH_CACHE} in the dataset's folder)"
    )
    adversarial: bool = option(
        False,
        "train against HiFi-GAN's discriminators, too; also from a checkpoint that was trained without them",
        variable="ADVERSARIAL",
    )
    architecture: Mapping[str, Any] = group(ModelConfig, f"architecture of Harmonic: {_OF_CHECKPOINT}", by_name=True)
    discriminators: Mapping[str, Any] = group(
        DiscriminatorConfig, f"architecture of the discriminators: {_OF_CHECKPOINT}", by_name=True
    )
    dataset_path: Path = Path()
    seed: int = 0


@dataclass(frozen=True)
class InferenceOptions:
    """How the harmonic vocoder makes sound."""

    mel_corrections: int = option(
        MEL_CORRECTIONS,
        "rounds that bring the mel of the sound nearer to the one it is made of; many bring back Griffin-Lim's noise",
        least=0,
        most=100,
    )
