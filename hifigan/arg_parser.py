"""Options for training HiFi-GAN, with the published recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.options import group, option
from common.training.options import InputMelOptions, RunOptions
from hifigan.config import PRESETS, ModelConfig

SEGMENT_SIZE = 8192  # samples per training segment, rounded down to a multiple of the hop length
ADAM_BETAS = (0.8, 0.99)  # as published
# As in NVIDIA's scripts/train_lj22khz.sh, which has a global batch of 128 segments (8 GPUs).
RECIPE = RunOptions(
    epochs=6500,
    batch_size=16,
    optimizer="adamw",
    learning_rate=3e-4,
    weight_decay=0.01,
    grad_clip_thresh=float("inf"),
    epochs_per_checkpoint=10,
    validation_interval=10,
    samples_interval=100,
    keep_milestones=tuple(range(1000, 10001, 1000)),
)


@dataclass(frozen=True)
class TrainingOptions(InputMelOptions):
    """Training options of HiFi-GAN."""

    lr_decay: float = option(
        0.9998, "learning rate factor per epoch", above=0, variable="LR_DECAY", published=("LEARNING_RATE_DECAY",)
    )
    adam_betas: tuple[float, ...] = option(ADAM_BETAS, "decay rates of Adam's averages: B1 B2", least=0, below=1)
    segment_size: int | None = option(
        None, f"samples per training segment (default: {SEGMENT_SIZE}, rounded down to a multiple of the hop)", least=1
    )
    mel_fmax_loss: float | None = option(None, "top mel loss frequency, Hz (default: half the sampling rate)", above=0)
    fine_tune_lr_factor: float = option(1.0, "rate factor for fine-tuning", above=0, variable="FINE_TUNE_LR_FACTOR")
    no_amp_grouped_conv: bool = option(False, "with --amp, run grouped convolutions in float32, faster on some GPUs")
    concat_fwd: bool | None = option(None, "discriminators score both sounds in one pass (default: with --cuda)")
    preset: str = option("v1", "the authors' architecture", choices=tuple(PRESETS), names=("--size",), variable="SIZE")
    hifigan_config: Path | None = option(None, "JSON like the authors' config.json, with default values")
    architecture: Mapping[str, Any] = group(
        ModelConfig,
        "architecture of HiFi-GAN (default: that of the preset, shown for v1, or of the checkpoint to resume from)",
        by_name=True,
    )


@dataclass(frozen=True)
class InferenceOptions:
    """HiFi-GAN has no inference options."""
