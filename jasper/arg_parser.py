"""Jasper's options on the command line; architecture, features and augmentation are in YAML files."""

import argparse
from dataclasses import fields
from pathlib import Path

from torch import nn

from common.cli import ArgumentParser, non_negative_float, non_negative_int, positive_float
from common.config import AudioConfig
from common.errors import OptionError
from common.training.optim import LR_POLICIES, Optimization, jasper_schedule
from common.training.settings import Settings
from jasper.config import JasperSettings, ModelConfig
from jasper.yaml_config import load_config

# Published recipe (scripts/train_jasper.sh); those of the common options are for other models.
_RECIPE = {
    "epochs": 440,
    "batch_size": 32,
    "gradient_accumulation_steps": 2,
    "optimizer": "novograd",
    "learning_rate": 0.01,
    "weight_decay": 1e-3,
    "grad_clip_thresh": float("inf"),
    "ema_decay": 0.999,
    "epochs_per_checkpoint": 10,
}
# NovoGrad's as published, whose second number Adam, which squares each gradient by itself, could not live with.
_BETAS, _ADAM_BETAS = (0.95, 0.0), (0.9, 0.999)
_AUDIO_OPTIONS = (
    *("sampling_rate", "filter_length", "hop_length", "win_length", "n_mel_channels"),
    *("mel_fmin", "mel_fmax", "framing", "peak"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add configuration, data and schedule; defaults are those of the published recipe."""
    parser.set_defaults(**_RECIPE)
    group = parser.add_argument_group("Jasper")
    group.add_argument(
        "--model-config",
        type=Path,
        default=Path("jasper10x5dr_speedp-online_speca.yaml"),
        help="YAML file of network, labels, features and augmentation, or the name of one in jasper/configs",
    )
    group.add_argument(
        "--override-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a key of that file, such as input_train.audio_dataset.trim_silence=false; repeatable",
    )
    group.add_argument(
        "--more-training-files",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="manifests, lists or folders to train on besides --training-files",
    )
    group.add_argument(
        "--max-duration",
        type=positive_float,
        help="leave out training utterances of more seconds; as --model-config says if not given",
    )
    group = parser.add_argument_group("learning rate of Jasper")
    group.add_argument("--lr-policy", choices=LR_POLICIES, default="exponential", help="how the learning rate falls")
    group.add_argument("--warmup-epochs", type=non_negative_int, default=2, help="in which the learning rate rises")
    group.add_argument("--hold-epochs", type=non_negative_int, default=140, help="in which it then stays")
    group.add_argument("--min-lr", type=non_negative_float, default=1e-5, help="least learning rate")
    group.add_argument(
        "--lr-exp-gamma", type=positive_float, default=0.981, help="factor of each epoch; of the exponential policy"
    )


def jasper_settings(args: argparse.Namespace) -> JasperSettings:
    """What --model-config says, with --override-config and --max-duration.

    Raises:
        InputError: the file is missing, or has a key or value that it must not have.
    """
    overrides = list(args.override_config)
    if args.max_duration is not None:
        sections = ("audio_dataset", "filterbank_features")
        overrides += [f"input_train.{section}.max_duration={args.max_duration}" for section in sections]
    return load_config(args.model_config, overrides=overrides)


def settings_from_args(args: argparse.Namespace) -> Settings:
    """Features as the configuration has them; the published schedule.

    Raises:
        OptionError: options of mel-spectrograms are given, which the configuration describes.
        InputError: the configuration is missing or wrong.
    """
    for name in _AUDIO_OPTIONS:
        if hasattr(args, name):
            option = name.replace("_", "-")
            raise OptionError(
                f"--{option} is for mel-spectrograms of other models; Jasper's features are described in "
                "--model-config, see also --override-config"
            )
    settings = jasper_settings(args)
    schedule = jasper_schedule(
        args.learning_rate,
        policy=args.lr_policy,
        warmup_epochs=args.warmup_epochs,
        hold_epochs=args.hold_epochs,
        n_epochs=args.epochs,
        min_lr=args.min_lr,
        gamma=args.lr_exp_gamma,
    )
    return Settings(
        audio=settings.model.features.audio,
        text=None,
        optimization=Optimization(schedule, betas=_BETAS if args.optimizer == "novograd" else _ADAM_BETAS, eps=1e-8),
        same_shapes=settings.train.dataset.pad_to_max_duration,
    )


def config_from_args(args: argparse.Namespace, audio: AudioConfig, *, base: ModelConfig | None = None) -> ModelConfig:
    """The network, labels and features of the configuration; it says all of it, so that ``audio`` adds nothing.

    Raises:
        OptionError: ``base``, of the checkpoint to go on from, is another.
    """
    config = jasper_settings(args).model
    if base is not None and base != config:
        names = [one.name for one in fields(config) if getattr(config, one.name) != getattr(base, one.name)]
        raise OptionError(
            f"--model-config {args.model_config} is not that of the checkpoint to go on from: other "
            f"{', '.join(names)}; give the file that the run began with"
        )
    return config


def set_up_networks(networks: dict[str, nn.Module], args: argparse.Namespace, *, new: bool) -> None:
    """Options say nothing of the network beyond the configuration."""
