"""Jasper's options on the command line; network, features and augmentation are described in YAML files."""

import argparse
import math
from dataclasses import dataclass, fields
from pathlib import Path

from common.cli import ArgumentParser, non_negative_float, non_negative_int, option_of, positive_float
from common.config import AudioConfig, TextConfig
from common.errors import OptionError
from common.training import EpochPolicy, Optimization, Recipe, Schedule, TrainingSetup
from jasper.config import JasperSettings, ModelConfig
from jasper.yaml_config import load_config

RECIPE = Recipe(
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
class TrainingOptions:
    """What training needs besides the options of every model."""

    settings: JasperSettings
    model_config: Path  # the file of ``settings``, for messages
    dataset_path: Path
    seed: int


def add_training_arguments(parser: ArgumentParser) -> None:
    """Add configuration, data and learning-rate schedule; defaults are those of the published recipe."""
    group = parser.add_argument_group("Jasper")
    published = Path("jasper10x5dr_speedp-online_speca.yaml")
    text = "YAML file of network, labels, features and augmentation, or the name of one in jasper/configs"
    group.add_argument("--model-config", type=Path, default=published, help=text)
    text = "another value for a key of that file, such as input_train.audio_dataset.trim_silence=false; repeatable"
    group.add_argument("--override-config", action="append", default=[], metavar="KEY=VALUE", help=text)
    text = "leave out training utterances of more seconds; if not given, the value in --model-config"
    group.add_argument("--max-duration", type=positive_float, help=text)
    group = parser.add_argument_group("learning rate of Jasper")
    group.add_argument("--lr-policy", choices=LR_POLICIES, default="exponential", help="how the learning rate decays")
    group.add_argument("--warmup-epochs", type=non_negative_int, default=2, help="epochs in which it rises")
    group.add_argument("--hold-epochs", type=non_negative_int, default=140, help="epochs in which it then stays")
    group.add_argument("--min-lr", type=non_negative_float, default=1e-5, help="lowest learning rate")
    text = "factor of each epoch, for the exponential policy"
    group.add_argument("--lr-exp-gamma", type=positive_float, default=0.981, help=text)


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """Read --model-config with --override-config and --max-duration; the features are those of the file.

    Raises:
        OptionError: options of mel-spectrograms are given, which the file describes.
        InputError: the file is missing, or has a key or value that it must not have.
    """
    for name in ("audio_config", *(field.name for field in fields(AudioConfig))):
        if hasattr(args, name):  # these options have no default
            raise OptionError(
                f"{option_of(name)} is for mel-spectrograms of other models; Jasper's features are described "
                "in --model-config, see also --override-config"
            )
    overrides = list(args.override_config)
    if args.max_duration is not None:
        sections = ("audio_dataset", "filterbank_features")
        overrides += [f"input_train.{section}.max_duration={args.max_duration}" for section in sections]
    settings = load_config(args.model_config, overrides=overrides)
    schedule = jasper_schedule(
        args.learning_rate,
        policy=args.lr_policy,
        warmup_epochs=args.warmup_epochs,
        hold_epochs=args.hold_epochs,
        n_epochs=args.epochs,
        min_lr=args.min_lr,
        gamma=args.lr_exp_gamma,
    )
    # The published ones of NovoGrad; Adam, which squares each gradient element, needs a second one above 0.
    betas = (0.95, 0.0) if args.optimizer == "novograd" else (0.9, 0.999)
    return TrainingSetup(
        options=TrainingOptions(settings, args.model_config, args.dataset_path, args.seed),
        audio=settings.model.features.audio,
        text=None,
        optimization=Optimization(schedule, betas=betas, eps=1e-8),
        same_shapes=settings.train.audio_dataset.pad_to_max_duration,
    )


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig | None, *, base: ModelConfig | None = None
) -> ModelConfig:
    """Network, labels and features of the YAML file, which describes them completely.

    Raises:
        OptionError: ``base``, of the checkpoint to resume from, is another.
    """
    config = options.settings.model
    if base is not None and base != config:
        names = [one.name for one in fields(config) if getattr(config, one.name) != getattr(base, one.name)]
        raise OptionError(
            f"--model-config {options.model_config} is not that of the checkpoint to resume from: other "
            f"{', '.join(names)}; give the file that the run began with"
        )
    return config


LR_POLICIES = ("exponential", "polynomial", "legacy")


def jasper_schedule(
    learning_rate: float,
    *,
    policy: str,
    warmup_epochs: int,
    hold_epochs: int,
    n_epochs: int,
    min_lr: float,
    gamma: float,
) -> EpochPolicy:
    """Linear warm-up, the full rate for ``hold_epochs``, then a fall that ends at ``min_lr``.

    The ``exponential`` policy multiplies by ``gamma`` each epoch, ``polynomial`` falls to ``min_lr`` with the square
    of the share of updates that are left of ``n_epochs``, and ``legacy`` likewise to 0, but not below ``min_lr``. The
    original gives an update the rate of the one before it, and the first update the full one; here each has its own.
    """

    def over(steps_per_epoch: int) -> Schedule:
        warmup_steps = warmup_epochs * steps_per_epoch
        full_until = warmup_steps + hold_epochs * steps_per_epoch
        falling = max(n_epochs * steps_per_epoch - full_until, 1)

        def rate(iteration: int, epoch: int) -> float:
            if iteration < warmup_steps:
                return max(learning_rate * (iteration + 1) / (warmup_steps + 1), min_lr)
            if iteration < full_until:
                return max(learning_rate, min_lr)
            if policy == "exponential":
                return max(learning_rate * gamma ** (epoch - warmup_epochs - hold_epochs), min_lr)
            left = max(full_until + falling - iteration, 0) / falling
            if policy == "legacy":
                return max(learning_rate * left**2, min_lr)
            return min_lr + max(learning_rate - min_lr, 0.0) * left**2

        return rate

    if policy not in LR_POLICIES:
        raise ValueError(f"learning-rate policy {policy!r}: expected one of {', '.join(LR_POLICIES)}")
    return EpochPolicy(over)
