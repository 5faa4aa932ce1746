"""Options for training FastPitch, with the published recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common.audio.options import ESTIMATORS, PitchRange
from common.options import group, option
from common.synthesis.options import MAX_FRAMES
from common.text.options import TextOptions
from common.text.prosody import LIMITS
from common.training.options import ModelOptions, RunOptions
from fastpitch.config import ModelConfig

EXAMPLE = Path(__file__).with_name("custom_transforms.py")  # used if --pitch-transform-custom is given without a file
PITCH_CACHE = "pitch_cache"  # subfolder of the dataset
RECIPE = RunOptions(
    epochs=1500,
    batch_size=32,
    optimizer="lamb",
    learning_rate=0.1,
    weight_decay=1e-6,
    grad_clip_thresh=1000.0,
    epochs_per_checkpoint=50,
)
_weight = partial(option, least=0)
_SMALL: dict[str, Any] = dict.fromkeys(("symbols_embedding_dim", "in_fft_output_size", "out_fft_output_size"), 192)
_SMALL |= {"in_fft_n_layers": 4, "out_fft_n_layers": 4, "in_fft_conv1d_filter_size": 384}
_SMALL |= {"out_fft_conv1d_filter_size": 384, "optimizer": "adam", "grad_clip_thresh": 5.0, "ema_decay": 0.99}
_SMALL |= {"learning_rate": 1.4e-2, "warmup_steps": 250, "batch_size": 8, "mean_mel_bias": True}
_SMALL |= {"epochs": 400, "kl_loss_start_epoch": 100, "kl_loss_warmup_epochs": 50}
_MEDIUM: dict[str, Any] = dict.fromkeys(("symbols_embedding_dim", "in_fft_output_size", "out_fft_output_size"), 256)
_MEDIUM |= {"in_fft_conv1d_filter_size": 1024, "out_fft_conv1d_filter_size": 1024, "batch_size": 16}
# Defaults for a new voice; the shipped voice is small.
SIZES: Mapping[str, Mapping[str, Any]] = {"small": _SMALL, "medium": _SMALL | _MEDIUM, "full": {}}


@dataclass(frozen=True)
class LossScales:
    """Weights of the loss terms; defaults as published."""

    dur_predictor_loss_scale: float = _weight(0.1, "duration loss weight", names=("--duration-predictor-loss-scale",))
    pitch_predictor_loss_scale: float = _weight(0.1, "weight of the pitch loss")
    energy_predictor_loss_scale: float = _weight(0.1, "weight of the energy loss")
    attn_loss_scale: float = _weight(1.0, "weight of the alignment loss")
    kl_loss_weight: float = _weight(1.0, "final weight of the KL loss between soft and hard alignment")
    kl_loss_start_epoch: int = _weight(250, "epoch after which the KL loss starts", variable="KL_LOSS_START_EPOCH")
    kl_loss_warmup_epochs: int = _weight(
        100, "epochs over which the KL weight rises", variable="KL_LOSS_WARMUP_EPOCHS", published=("KL_LOSS_WARMUP",)
    )
    adversarial_loss_scale: float = _weight(0.05, "weight of the mel discriminator's adversarial loss")
    feature_loss_scale: float = _weight(0.5, "weight of the mel discriminator's feature loss")

    def kl_loss_scale(self, epoch: int) -> float:
        """Return the weight of the binarization loss in an epoch, counted from 1."""
        epochs = epoch - self.kl_loss_start_epoch
        if self.kl_loss_warmup_epochs == 0:
            return self.kl_loss_weight * (epochs >= 0)
        return self.kl_loss_weight * min(max(epochs, 0) / self.kl_loss_warmup_epochs, 1)


@dataclass(frozen=True)
class TrainingOptions(ModelOptions, PitchRange):
    """Training options of FastPitch."""

    size: str = option(
        "full", "small: hours on a CPU; medium: one GPU; full: as published", choices=tuple(SIZES), variable="SIZE"
    )
    text: TextOptions = group(TextOptions)
    architecture: ModelConfig = group(ModelConfig, "architecture of FastPitch")
    losses: LossScales = group(LossScales, "FastPitch's losses")
    warmup_steps: int = option(1000, "updates of learning rate warm-up", least=0, variable="WARMUP_STEPS")
    n_speakers: int | None = option(
        None,
        "number of speakers in the lists' speaker column (names or numbers); 1: ignore it (default: all of them)",
        least=1,
        words={"auto": None},
        variable="NUM_SPEAKERS",
        published=("NSPEAKERS",),
    )
    pitch_mean_std_file: Path | None = option(
        None, "JSON file with the pitch mean and std (Hz); --learned-alignment measures them", variable="PITCH_MEAN_STD"
    )
    mean_mel_bias: bool = option(False, "initialize the output bias with the mean mel to save updates")
    pitch_method: str = option(
        "praat", "pitch estimator", choices=ESTIMATORS, variable="PITCH_METHOD", published=("--pitch-online-method",)
    )
    pitch_cache: Path | None = option(
        None, f"folder for cached pitch (default: {PITCH_CACHE} in the dataset)", names=("--pitch-online-dir",)
    )
    load_pitch_from_disk: bool = option(False, "require a pitch column in the lists", variable="LOAD_PITCH_FROM_DISK")
    training_files: Sequence[Path] = ()
    num_workers: int = 0  # loader processes


@dataclass(frozen=True)
class InferenceOptions:
    """Inference options of FastPitch."""

    pace: float = option(1.0, "speaking rate; 2 is twice as fast", least=LIMITS["rate"][0], most=LIMITS["rate"][1])
    max_duration: float = option(75.0, "longest duration of a symbol, in frames at pace 1", least=1, most=MAX_FRAMES)
    pitch_mean_std_file: Path | None = option(None, "JSON pitch statistics (Hz), for a checkpoint that has none")
    pitch_transform_flatten: bool = option(False, "flatten the pitch to its mean")
    pitch_transform_invert: bool = option(False, "mirror the pitch around its mean")
    pitch_transform_amplify: float | None = option(
        None, "scale the pitch's distance from its mean", least=-10, most=10, metavar="FACTOR"
    )
    pitch_transform_shift: float | None = option(
        None, "raise or lower the pitch", least=LIMITS["pitch_shift"][0], most=LIMITS["pitch_shift"][1], metavar="HZ"
    )
    pitch_transform_custom: Path | None = option(
        None, f"apply only the transform in this Python FILE (default: {EXAMPLE.name})", const=EXAMPLE, metavar="FILE"
    )
