"""The command line of training: options of all models, and those of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.audio.options import AudioOptions
from common.cli import ArgumentParser
from common.options import add_options
from common.precision import ComputingOptions
from common.registry import ModelSpec, available_models, get_model
from common.training.options import REMOVED, RunOptions


def build_training_parser(
    spec: ModelSpec, *, parents: Sequence[ArgumentParser] = (), defaults: Mapping[str, Any] | None = None
) -> ArgumentParser:
    """All options of train.py for a model: those of every training, with its recipe as defaults, and its own.

    ``defaults``, of a checkpoint that a training begins with, are by the names of the package's options.
    """
    parser = ArgumentParser(
        description="Train a model.",
        parents=list(parents),
        prog="train.py",
        epilog=f"These are the options for {spec.name}; --model MODEL --help shows those for another model.",
    )
    add_options(parser, RunOptions, defaults=spec.training.recipe.defaults())
    add_options(parser, ComputingOptions, title="computing")
    if spec.role != "recognizer":  # which have features of their own
        about = "what the mel-spectrograms are; one left out takes the value in brackets, or what suits --sampling-rate"
        add_options(parser, AudioOptions, title=f"audio: {about}")
    add_options(parser, spec.training.options, defaults=defaults, title=spec.name)
    parser.answer_published(REMOVED)
    return parser


def parser_of(argv: Sequence[str] | None = None) -> tuple[ArgumentParser, ModelSpec]:
    """The parser of the model that a command line names."""
    first = ArgumentParser(add_help=False)
    first.add_argument(
        "-m", "--model", "--model-name", default=available_models()[0], choices=available_models(), help="what to train"
    )
    spec = get_model(first.parse_known_args(argv)[0].model)
    return build_training_parser(spec, parents=[first]), spec
