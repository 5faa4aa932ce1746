"""Tacotron 2's training options on the command line."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from common.checkpoints import load_checkpoint
from common.checkpoints.arguments import stored_mels, training_audio_from_args
from common.cli import (
    ArgumentParser,
    add_fields,
    non_negative_float,
    non_negative_int,
    positive_float,
    positive_int,
    real_number,
    values_of,
)
from common.config import AudioConfig, TextConfig
from common.text import TextFrontEnd
from common.text.arguments import add_text_arguments, options_of_text, text_config_from_args
from common.training import Optimization, Recipe, Schedule, TrainingSetup
from tacotron2.config import ModelConfig

RECIPE = Recipe(
    epochs=1501, batch_size=48, optimizer="adam", learning_rate=1e-3, weight_decay=1e-6, grad_clip_thresh=1.0
)
_FACTOR, _AMP_FACTOR = 0.1, 0.3  # of the learning rate at each annealing step
_ARCHITECTURE = {  # field of ModelConfig -> what its option says
    "symbols_embedding_dim": "channels of a symbol",
    "encoder_kernel_size": "kernel size of the encoder's convolutions",
    "encoder_n_convolutions": "convolutions of the encoder",
    "encoder_embedding_dim": "channels of the encoder; as --symbols-embedding-dim",
    "attention_rnn_dim": "units of the attention LSTM",
    "attention_dim": "channels of the attention's hidden layer",
    "attention_location_n_filters": "filters over the attention's history",
    "attention_location_kernel_size": "kernel size of these filters",
    "decoder_rnn_dim": "units of the decoder LSTM",
    "prenet_dim": "units of the prenet's layers",
    "max_decoder_steps": "frames after which an utterance is stopped at inference",
    "gate_threshold": "probability of the gate that ends an utterance",
    "p_attention_dropout": "dropout of the attention LSTM",
    "p_decoder_dropout": "dropout of the decoder LSTM",
    "postnet_embedding_dim": "channels of the postnet",
    "postnet_kernel_size": "kernel size of the postnet's convolutions",
    "postnet_n_convolutions": "convolutions of the postnet",
}
_THRESHOLD = real_number(1e-6, 1 - 1e-6)  # a probability that can be above and below it
_MASKING = {  # field of ModelConfig -> what its option says
    "mask_padding": "leave padding out of the loss; published models were trained with --no-mask-padding",
    "mask_convolutions": "hide padding from convolutions and batch norm, so that an utterance does not depend on its "
    "batch",
}


@dataclass(frozen=True)
class TrainingOptions:
    """What a training run needs to know besides mels, text and optimization."""

    dataset_path: Path
    architecture: ModelConfig  # for the number of mel channels and symbols see `model_config`
    load_mel_from_disk: bool = False
    unknown_symbols: str = "error"
    seed: int = 0
    attention_warning_epochs: int = 50
    guided_attention_weight: float = 0.0
    guided_attention_sigma: float = 0.2
    uniform_batch_norm: bool = True  # weights of a new model's batch norm start between 0 and 1


def add_training_arguments(parser: ArgumentParser) -> None:
    """Add text, architecture, decoding and schedule; defaults are the published model's and recipe's."""
    add_text_arguments(parser)
    group = parser.add_argument_group("Tacotron 2")
    add = group.add_argument
    stored = "lists hold mels, as extract_mels.py writes them, instead of recordings"
    add("--load-mel-from-disk", action="store_true", help=stored)
    steps, falls = [500, 1000, 1500], "epochs after each of which the learning rate falls"
    add("--anneal-steps", type=non_negative_int, nargs="*", default=steps, metavar="EPOCHS", help=falls)
    factor = (
        f"of the learning rate then; {_AMP_FACTOR} alternates between 0.3 and 0.1 of the last power of ten "
        f"(default: {_FACTOR}, with --amp {_AMP_FACTOR})"
    )
    add("--anneal-factor", type=positive_float, help=factor)
    add_fields(group, ModelConfig(), _MASKING, whole=positive_int, real=_THRESHOLD)
    formed = "warn once if attention has not formed after so many epochs; 0: never"
    add("--attention-warning-epochs", type=non_negative_int, default=50, help=formed)
    guide = "weight of a loss that pulls attention to the diagonal, for little data or time; 0: none, as published"
    add("--guided-attention-weight", type=non_negative_float, default=0.0, help=guide)
    distance = "distance from the diagonal that is not penalized, as a fraction of the text"
    add("--guided-attention-sigma", type=positive_float, default=0.2, help=distance)
    ones = "start batch norm's weights at 1 instead of random numbers between 0 and 1"
    add("--disable-uniform-initialize-bn-weight", action="store_true", help=ones)
    group = parser.add_argument_group("architecture of Tacotron 2")
    add_fields(group, ModelConfig(), _ARCHITECTURE, whole=positive_int, real=_THRESHOLD)
    early = "always decode --max-decoder-steps frames"
    group.add_argument("--decoder-no-early-stopping", action="store_true", help=early)
    parser.set_defaults_reader("--from-checkpoint", _options_of_checkpoint)


def _options_of_checkpoint(path: Path) -> dict[str, Any]:
    """Architecture and text front end of a checkpoint as defaults of options, by destination."""
    checkpoint = load_checkpoint(path, training=False)
    if checkpoint.model != "Tacotron2":
        return {}  # refused where its weights are taken
    text = {} if checkpoint.text is None else options_of_text(checkpoint.text)
    return {name: value for name, value in checkpoint.config.items() if name != "n_mel_channels"} | text


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """Mels as the corpus's, or with --load-mel-from-disk as their folder describes them; annealed rate.

    Raises:
        OptionError: an option is out of range, or two do not fit together.
    """
    stored = stored_mels(args.dataset_path / "mels") if args.load_mel_from_disk else None
    factor = args.anneal_factor or (_AMP_FACTOR if args.amp else _FACTOR)
    schedule = annealing_schedule(args.learning_rate, steps=args.anneal_steps, factor=factor)
    options = TrainingOptions(
        **values_of(args, TrainingOptions),
        architecture=ModelConfig(**values_of(args, ModelConfig)),
        uniform_batch_norm=not args.disable_uniform_initialize_bn_weight,
    )
    return TrainingSetup(
        options=options,
        audio=training_audio_from_args(args, stored),
        text=text_config_from_args(args),
        optimization=Optimization(schedule, betas=(0.9, 0.999), eps=1e-8),
    )


def annealing_schedule(learning_rate: float, *, steps: Sequence[int], factor: float) -> Schedule:
    """learning_rate x factor^n after n of ``steps`` (epochs); the factor 0.3 gives 1, 0.3, 0.1, 0.03, ..."""

    def rate(iteration: int, epoch: int) -> float:
        n_passed = sum(epoch > step for step in steps)
        if factor == _AMP_FACTOR:
            return learning_rate * 0.1 ** (n_passed // 2) * (_AMP_FACTOR if n_passed % 2 else 1.0)
        return learning_rate * factor**n_passed

    return rate


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig, *, base: ModelConfig | None = None
) -> ModelConfig:
    """The architecture for these mels and symbols; every option has a value, so ``base`` is not needed."""
    return replace(options.architecture, n_symbols=TextFrontEnd(text).n_symbols, n_mel_channels=audio.n_mels)


def sees_padding(config: ModelConfig) -> str | None:
    """The option through which a model's losses depend on padding."""
    return next((f"--no-{name.replace('_', '-')}" for name in _MASKING if not getattr(config, name)), None)


def set_up_networks(
    networks: Mapping[str, nn.Module], options: TrainingOptions, *, text: TextConfig, new: bool
) -> list[str]:
    """Initialize batch norm's weights of a ``new`` model uniformly between 0 and 1, as the published one's."""
    if new and options.uniform_batch_norm:
        for module in networks["tacotron2"].modules():
            if isinstance(module, nn.BatchNorm1d):
                nn.init.uniform_(module.weight)
    return []
