"""Tacotron 2's options on the command line."""

import argparse
from collections.abc import Sequence

from torch import nn

from common.audio.arguments import audio_config_from_args, features_config
from common.cli import ArgumentParser, non_negative_float, non_negative_int, positive_float, positive_int
from common.config import AudioConfig
from common.text.arguments import add_text_arguments, text_config_from_args
from common.text.front_end import TextFrontEnd
from common.training.optim import Optimization, Schedule
from common.training.settings import Settings
from tacotron2.model import ModelConfig

_DEFAULTS = ModelConfig()
# Published recipe (scripts/train_tacotron2.sh); those of the common options are for other models.
_RECIPE = {
    "epochs": 1501,
    "batch_size": 48,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "weight_decay": 1e-6,
    "grad_clip_thresh": 1.0,
    "epochs_per_checkpoint": 50,
}
_FACTOR, _AMP_FACTOR = 0.1, 0.3  # of the learning rate at each annealing step


def add_arguments(parser: ArgumentParser) -> None:
    """Add text, architecture, decoding and schedule; defaults are the published model's and recipe's."""
    parser.set_defaults(**_RECIPE)
    add_text_arguments(parser)
    group = parser.add_argument_group("Tacotron 2")
    group.add_argument(
        "--load-mel-from-disk",
        action="store_true",
        help="lists hold mels, as extract_mels.py writes them, instead of recordings",
    )
    group.add_argument(
        "--anneal-steps",
        type=non_negative_int,
        nargs="*",
        default=[500, 1000, 1500],
        metavar="EPOCHS",
        help="numbers of epochs after each of which the learning rate falls",
    )
    group.add_argument(
        "--anneal-factor",
        type=positive_float,
        help=f"of the learning rate then; {_AMP_FACTOR} falls by turns to 0.3 and 0.1 of the last power of ten "
        f"(default: {_FACTOR}, with --amp {_AMP_FACTOR})",
    )
    group.add_argument(
        "--mask-padding",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="leave padding out of the loss; published models were trained with --no-mask-padding",
    )
    group.add_argument(
        "--mask-convolutions",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="hide padding from convolutions and batch norm, so that an utterance does not depend on its batch",
    )
    group.add_argument(
        "--attention-warning-epochs",
        type=non_negative_int,
        default=50,
        help="warn once if attention has not formed after so many epochs; 0: never",
    )
    group.add_argument(
        "--guided-attention-weight",
        type=non_negative_float,
        default=0.0,
        help="weight of a loss that draws attention to the diagonal, for little data or little time; 0: none, as "
        "published",
    )
    group.add_argument(
        "--guided-attention-sigma",
        type=positive_float,
        default=0.2,
        help="how far attention may stray from the diagonal, as a share of the text",
    )
    group.add_argument(
        "--disable-uniform-initialize-bn-weight",
        action="store_true",
        help="start batch norm's weights at 1 instead of numbers between 0 and 1",
    )
    _add_architecture(parser.add_argument_group("architecture of Tacotron 2"))


def _add_architecture(group: argparse._ArgumentGroup) -> None:
    _add(group, "symbols_embedding_dim", "channels of a symbol")
    _add(group, "encoder_kernel_size", "kernel size of the encoder's convolutions")
    _add(group, "encoder_n_convolutions", "convolutions of the encoder")
    _add(group, "encoder_embedding_dim", "channels of the encoder; as --symbols-embedding-dim")
    _add(group, "attention_rnn_dim", "units of the attention LSTM")
    _add(group, "attention_dim", "channels of the attention's hidden layer")
    _add(group, "attention_location_n_filters", "filters over the attention's history")
    _add(group, "attention_location_kernel_size", "kernel size of these filters")
    _add(group, "decoder_rnn_dim", "units of the decoder LSTM")
    _add(group, "prenet_dim", "units of the prenet's layers")
    _add(group, "max_decoder_steps", "frames after which an utterance is stopped at inference")
    _add(group, "gate_threshold", "probability of the gate that ends an utterance")
    group.add_argument(
        "--decoder-no-early-stopping", action="store_true", help="always decode --max-decoder-steps frames"
    )
    _add(group, "p_attention_dropout", "dropout of the attention LSTM")
    _add(group, "p_decoder_dropout", "dropout of the decoder LSTM")
    _add(group, "postnet_embedding_dim", "channels of the postnet")
    _add(group, "postnet_kernel_size", "kernel size of the postnet's convolutions")
    _add(group, "postnet_n_convolutions", "convolutions of the postnet")


def settings_from_args(args: argparse.Namespace) -> Settings:
    """Mels as Tacotron 2's, or with --load-mel-from-disk as the dataset's folder describes them; annealed rate."""
    base = features_config(args.dataset_path / "mels") if args.load_mel_from_disk else None
    factor = args.anneal_factor
    if factor is None:
        factor = _AMP_FACTOR if args.amp else _FACTOR
    schedule = annealing_schedule(args.learning_rate, steps=args.anneal_steps, factor=factor)
    return Settings(
        audio=audio_config_from_args(args, base=base),
        text=text_config_from_args(args),
        optimization=Optimization(schedule, betas=(0.9, 0.999), eps=1e-8),
    )


def annealing_schedule(learning_rate: float, *, steps: Sequence[int], factor: float) -> Schedule:
    """learning_rate x factor^n once n of ``steps`` (epochs) are over; the factor 0.3 goes 1, 0.3, 0.1, 0.03, ..."""

    def rate(iteration: int, epoch: int) -> float:
        n_passed = sum(epoch > step for step in steps)
        if factor == _AMP_FACTOR:
            return learning_rate * 0.1 ** (n_passed // 2) * (_AMP_FACTOR if n_passed % 2 else 1.0)
        return learning_rate * factor**n_passed

    return rate


def config_from_args(args: argparse.Namespace, audio: AudioConfig, *, base: ModelConfig | None = None) -> ModelConfig:
    """The architecture that parsed options describe, for mels as ``audio``'s and the text options' symbols.

    Every option has a value, so that ``base``, of the checkpoint to go on from, has nothing to add.

    Raises:
        OptionError: an option has no sensible value, or two do not fit together.
    """
    options = {name: getattr(args, name) for name in vars(_DEFAULTS) if name in vars(args)}
    n_symbols = TextFrontEnd(text_config_from_args(args)).n_symbols
    return ModelConfig(**options | {"n_symbols": n_symbols, "n_mel_channels": audio.n_mels})


def set_up_networks(networks: dict[str, nn.Module], args: argparse.Namespace, *, new: bool) -> None:
    """Draw batch norm's weights of a ``new`` model from between 0 and 1, as the published one began."""
    if not new or args.disable_uniform_initialize_bn_weight:
        return
    for module in networks["tacotron2"].modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.uniform_(module.weight)


def _add(group: argparse._ArgumentGroup, field: str, description: str) -> None:
    default = getattr(_DEFAULTS, field)
    kind = positive_int if isinstance(default, int) else float
    group.add_argument("--" + field.replace("_", "-"), type=kind, default=default, help=description)
