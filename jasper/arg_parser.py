"""Options for training Jasper, with the published recipe; YAML files set network, features and augmentation."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common.options import option
from common.training.options import ModelOptions, RunOptions

if TYPE_CHECKING:
    from jasper.yaml_config import JasperSettings

LR_POLICIES = ("exponential", "polynomial", "legacy")
RECIPE = RunOptions(
    epochs=440,
    batch_size=32,
    gradient_accumulation_steps=2,
    optimizer="novograd",
    learning_rate=0.01,
    weight_decay=1e-3,
    grad_clip_thresh=math.inf,
    ema_decay=0.999,
    epochs_per_checkpoint=10,
    keep_best="wer",
    keep_milestones=(100, 200, 300, 400),
)


@dataclass(frozen=True)
class TrainingOptions(ModelOptions):
    """Training options of Jasper."""

    model_config: Path = option(
        Path("jasper10x5dr_speedp-online_speca.yaml"),
        "YAML file with network, labels, features and augmentation, or a name in jasper/configs",
        variable="MODEL_CONFIG",
    )
    override_config: tuple[str, ...] = option(
        (), "YAML value to override: input_train.audio_dataset.trim_silence=false", metavar="KEY=VALUE", adds_up=True
    )
    max_duration: float | None = option(
        None, "longest training utterance, seconds (default: the file's value)", above=0, variable="MAX_DURATION"
    )
    lr_policy: str = option("exponential", "how the learning rate decays", choices=LR_POLICIES, variable="LR_POLICY")
    warmup_epochs: int = option(2, "epochs of learning rate warm-up", least=0, variable="WARMUP_EPOCHS")
    hold_epochs: int = option(140, "epochs of constant learning rate", least=0, variable="HOLD_EPOCHS")
    min_lr: float = option(1e-5, "lowest learning rate", least=0, variable="MIN_LEARNING_RATE")
    lr_exp_gamma: float = option(0.981, "factor per epoch of the exponential policy", above=0, variable="LR_EXP_GAMMA")
    settings: "JasperSettings" = None  # type: ignore[assignment]  # set by `set_up`


@dataclass(frozen=True)
class InferenceOptions:
    """How recordings are selected and prepared for transcription."""

    model_config: Path | None = option(None, "training's YAML file; its input_val has defaults for these options")
    max_utterances: int = option(0, "maximum number of utterances to transcribe; 0: all", least=0)
    trim_silence: bool | None = option(None, "remove ends 60 dB below the loudest part (default: on)")
    normalize_transcripts: bool | None = option(None, "lowercase references, with numbers in words (default: on)")
    pad_leading: int = option(0, "frames of silence before a recording; published: 16", least=0, variable="PAD_LEADING")
