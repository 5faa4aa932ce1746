"""Command-line options of training that all models share, and the RunOptions they describe."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.audio.arguments import add_audio_arguments
from common.checkpoints import DTYPES
from common.cli import (
    ArgumentParser,
    add_length_buckets,
    add_precision_arguments,
    fraction,
    n_loaders,
    non_negative_float,
    non_negative_int,
    positive_float,
    positive_int,
    positive_or_inf,
    seed_number,
    values_of,
)
from common.data import Dataset
from common.errors import OptionError
from common.files import check_apart, make_folder
from common.nn import DiscriminatorConfig, TooLargeError, build_limited
from common.options import add_options
from common.published_options import TRAINING
from common.registry import ModelSpec
from common.training.objective import Networks
from common.training.optim import OPTIMIZERS
from common.training.selection import selection_metric
from common.training.settings import Recipe, RunOptions, inference_paths

_SUBSETS = ("train", "val", "val_ema")  # folders of TensorBoard's curves


def build_training_parser(spec: ModelSpec, *, parents: Sequence[ArgumentParser] = ()) -> ArgumentParser:
    """All options of train.py: those of every model, with the recipe of ``spec`` as defaults, and its own."""
    parser = ArgumentParser(
        description="Train a model.",
        parents=list(parents),
        prog="train.py",
        epilog=f"These are the options for {spec.name}; --model MODEL --help shows those for another model.",
    )
    _add_common_arguments(parser)
    add_precision_arguments(computing := parser.add_argument_group("computing"))
    computing.add_argument("--compile", action="store_true", help="compile the networks with torch.compile")
    computing.add_argument(
        "--cuda-graphs",
        action="store_true",
        help="record a whole update on the GPU for each shape of its batches (FastPitch, HiFi-GAN); "
        "elsewhere the same code runs without being recorded",
    )
    computing.add_argument("--num-workers", type=n_loaders, help="loader processes (default: 4 with --cuda, else 0)")
    computing.add_argument(
        "--max-parameters",
        type=positive_int,
        default=500_000_000,
        metavar="N",
        help="refuse networks with more parameters and buffers, before memory is taken for them",
    )
    add_length_buckets(computing, "quantiles of the training list's utterances")
    saving = parser.add_argument_group("checkpoints, validation and logs")
    _add_checkpoint_arguments(saving, spec.training.recipe)
    if not spec.training.starts_from_checkpoint:
        text = "checkpoint or safetensors file with whose weights a new training begins, ours or published"
        saving.add_argument("--from-checkpoint", type=Path, help=text)
    _add_optimization_arguments(parser.add_argument_group("optimization"))
    add_audio_arguments(parser)
    parser.set_defaults(**vars(spec.training.recipe))
    spec.training.add_arguments(parser)
    parser.answer_published(TRAINING)
    return parser


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what most runs need; the models' recipes set the defaults that are missing."""
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for checkpoints and logs")
    parser.add_argument("-d", "--dataset-path", type=Path, default=Path(), help="folder that the lists are relative to")
    lists: dict[str, Any] = {"type": Path, "nargs": "+", "required": True, "metavar": "FILE"}
    parser.add_argument("--training-files", **lists, help="lists of utterances to train on")
    parser.add_argument("--validation-files", **lists, help="lists of utterances to validate on")
    parser.add_argument("--resume", action="store_true", help="resume from the last checkpoint of the output folder")
    parser.add_argument("--epochs", type=positive_int, help="epochs to train in all")
    parser.add_argument("-bs", "--batch-size", type=positive_int, help="of one process and micro-batch")
    parser.add_argument(
        "--gradient-accumulation-steps",
        "--grad-accumulation",
        type=positive_int,
        help="micro-batches of an update; what it learns depends on processes x batch size x this number alone",
    )
    parser.add_argument("-lr", "--learning-rate", type=positive_float, help="where the schedule starts")
    parser.add_argument("--seed", type=seed_number, default=1234, help="of weights, dropout and the data's order")


def _add_checkpoint_arguments(group: argparse._ArgumentGroup, recipe: Recipe) -> None:
    """Add when checkpoints are written and which are kept, and when the networks are validated."""
    group.add_argument("--checkpoint-path", type=Path, help="checkpoint to resume from")
    text = "stop after so many; --resume continues; 0: no limit"
    group.add_argument("--epochs-this-job", type=non_negative_int, default=0, help=text)
    group.add_argument("--epochs-per-checkpoint", "--checkpoint-interval", type=positive_int, help="epochs")
    group.add_argument(
        "--minutes-per-checkpoint",
        type=non_negative_float,
        default=15.0,
        help="write a checkpoint within epochs too, whenever so many minutes have passed since the last; 0: never",
    )
    group.add_argument("--steps-per-checkpoint", type=non_negative_int, default=0, help="the same by updates; 0: never")
    group.add_argument(
        "--keep-checkpoints",
        type=_count_or_all,
        default=3,
        metavar="N",
        help="keep the last N checkpoints of finished epochs, the best one and the milestones; all: keep all",
    )
    group.add_argument(
        "--keep-best",
        type=selection_metric,
        nargs="?",
        const=recipe.keep_best,
        metavar="METRIC",
        help="figure of validation that says which checkpoint is the best, named as in the log; METRIC:max if larger "
        "is better",
    )
    group.add_argument(
        "--keep-milestones", type=positive_int, nargs="*", metavar="EPOCH", help="keep the checkpoints of these epochs"
    )
    group.add_argument(
        "--save-inference",
        nargs="?",
        const="float32",
        choices=tuple(DTYPES),
        help="also write what inference needs of the last checkpoint alone, MODEL_inference.pt, and of the best, "
        "MODEL_inference_best.pt, in float32 if no type is given",
    )
    group.add_argument("--validation-interval", type=positive_int, help="epochs between validations")
    text = "validate after each so many updates too, within epochs; 0: at the end of epochs alone"
    group.add_argument("--validation-steps", type=non_negative_int, default=0, help=text)
    group.add_argument(
        "--samples-interval",
        type=positive_int,
        help="epochs between plots and sound in TensorBoard (default: with each validation)",
    )
    group.add_argument("--log-file", type=Path, help="JSON log (default: nvlog.json in the output folder)")


def _count_or_all(text: str) -> int | None:
    """A number of at least 1, or None for the word ``all``."""
    if text == "all":
        return None
    try:
        return positive_int(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or all") from error


def _add_optimization_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the optimizer and what it does besides; the models' recipes set the defaults."""
    group.add_argument("--optimizer", choices=tuple(OPTIMIZERS), help="algorithm")
    group.add_argument("--weight-decay", type=non_negative_float, help="of all parameters")
    group.add_argument("--grad-clip-thresh", type=positive_or_inf, help="largest norm of the gradient; inf: any")
    group.add_argument("--ema-decay", type=fraction, help="of the EMA weights; 0: none are kept")


def run_options_from_args(args: argparse.Namespace) -> RunOptions:
    """How long a run lasts, how it is cut into batches, and what it leaves behind."""
    values = values_of(args, RunOptions)
    if args.num_workers is None:
        values["num_workers"] = 4 * args.cuda
    milestones = tuple(args.keep_milestones or ())
    return RunOptions(**values, accumulation=args.gradient_accumulation_steps, milestones=milestones)


def prepare_output(args: argparse.Namespace, spec: ModelSpec, datasets: Mapping[str, Dataset]) -> Path:
    """Make the output's folder; returns the log's file.

    Raises:
        OptionError: a file would be written that is read, or two results into one. Of the endless names of checkpoints
            those count that another file has.
        OutputError: the folder cannot be made.
    """
    output, log_file = args.output, args.log_file or args.output / "nvlog.json"
    options = build_training_parser(spec).files_of(args)[1]
    read = [pair for pair in options if pair[1] != args.checkpoint_path]  # which newer ones may replace
    read += [pair for dataset in datasets.values() for pair in dataset.files()]
    others = (os.path.realpath(path) if path.is_symlink() else path for path in (log_file, *(path for _, path in read)))
    names = {name for name in (Path(path).name for path in others) if name.startswith(f"{spec.name}_checkpoint_")}
    written = [("--log-file", log_file), *(("the checkpoint", output / name) for name in names)]
    if args.save_inference is not None:
        written += [("--save-inference:", path) for path in inference_paths(output, spec.name)]
    written += [("TensorBoard", output / subset / "events") for subset in _SUBSETS]
    check_apart(written, read)
    make_folder(output, "; choose another --output")
    return log_file


def build_for_training(build: Callable[[], Networks], *, most: int) -> Networks:
    """The networks that ``build`` makes; OptionError where they would have more than ``most`` parameters."""
    try:
        return build_limited(build, most=most)
    except TooLargeError as error:
        raise OptionError(f"networks of {error}; make them smaller, or raise --max-parameters {most}") from error


def add_discriminator_options(parser: ArgumentParser) -> None:
    """Add the options of `DiscriminatorConfig`; those that are not given have no value."""
    source = "an option that is left out takes the value in brackets, or that of the checkpoint to resume from"
    group = parser.add_argument_group("architecture of the discriminators", source)
    add_options(group, DiscriminatorConfig, absent=True)
