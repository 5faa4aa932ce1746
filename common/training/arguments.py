"""Command-line options of training: those of all models, and those of one."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.audio.options import AudioOptions
from common.checkpoints import (
    OWN_LAYOUT,
    Checkpoint,
    Stripped,
    load_checkpoint,
    load_last_checkpoint,
    saved_checkpoints,
)
from common.cli import ArgumentParser
from common.data import Dataset
from common.errors import CheckpointError, OptionError
from common.files import check_apart, make_folder
from common.nn import TooLargeError, build_limited
from common.options import add_options, read_options
from common.precision import ComputingOptions
from common.progress import print_line
from common.registry import ModelSpec, available_models, get_model
from common.training.objective import Networks
from common.training.options import REMOVED, RunOptions, inference_paths
from common.training.settings import TrainingRequest

Found = tuple[Path, Checkpoint]
_SUBSETS = ("train", "val", "val_ema")  # folders of TensorBoard's curves


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
    about = "what the mel-spectrograms are; one left out takes the value in brackets, or what suits --sampling-rate"
    add_options(parser, AudioOptions, title=f"audio: {about}")
    add_options(parser, spec.training.options, defaults=defaults, title=spec.name)
    parser.answer_published(REMOVED)
    return parser


@dataclass(frozen=True)
class Command:
    """A command line of training, and the checkpoints that it names, read once."""

    spec: ModelSpec
    options: Any  # the package's own, as they were given
    request: TrainingRequest
    values: dict[str, Any]  # of all options, for the log
    read: Sequence[tuple[str, Path]]  # names and paths of files that options name to be read

    @property
    def found(self) -> Found | None:
        """The checkpoint whose weights the networks take; a package may take those of --from-checkpoint by itself."""
        own = self.spec.training.starts_from_checkpoint
        return self.request.resumed or (None if own else self.request.initial)


def parser_of(argv: Sequence[str] | None = None) -> tuple[ArgumentParser, ModelSpec]:
    """The parser of the model that a command line names."""
    first = ArgumentParser(add_help=False)
    first.add_argument(
        "-m", "--model", "--model-name", default=available_models()[0], choices=available_models(), help="what to train"
    )
    spec = get_model(first.parse_known_args(argv)[0].model)
    return build_training_parser(spec, parents=[first]), spec


def read_command(argv: Sequence[str] | None = None, *, warn: Callable[[str], None] = print_line) -> Command:
    """Read a command line and the checkpoints that it names, which say what options that are left out are."""
    parser, spec = parser_of(argv)
    args = parser.parse_args(argv)
    resumed, initial = _checkpoints(args, warn=warn)
    if spec.training.defaults is not None:
        parser.set_defaults(**spec.training.defaults(vars(args), initial))
        args = parser.parse_args(argv)
    run, computing = read_options(args, RunOptions), read_options(args, ComputingOptions)
    if run.num_workers is None:
        run = replace(run, num_workers=4 * computing.cuda)
    request = TrainingRequest(run, computing, read_options(args, AudioOptions), resumed=resumed, initial=initial)
    options = read_options(args, spec.training.options)
    return Command(spec, options, request, values=vars(args), read=parser.files_of(args)[1])


def _checkpoints(args: argparse.Namespace, *, warn: Callable[[str], None]) -> tuple[Found | None, Found | None]:
    """The checkpoint to resume, and that of --from-checkpoint, which also gives defaults of options."""
    found = None
    if args.checkpoint_path is not None and (args.resume or args.from_checkpoint is not None):
        other = "--resume" if args.resume else "--from-checkpoint"
        raise OptionError(f"--checkpoint-path and {other} both say what to begin with; give one of them")
    if args.checkpoint_path is not None:
        found = args.checkpoint_path, load_checkpoint(args.checkpoint_path)
    elif args.resume:
        found = load_last_checkpoint(args.output, args.model, warn=lambda line: warn(f"warning: {line}"))
    path, checkpoint = found or (None, None)
    if checkpoint is not None and checkpoint.layout == OWN_LAYOUT and (stripped := checkpoint.stripped) is not None:
        weights = f"{'EMA ' if stripped.ema else ''}weights in {stripped.dtype}"
        raise CheckpointError(
            f"{path}: stripped for inference, it holds the {weights} of the {next(iter(checkpoint.networks))} alone "
            "and nothing to resume from; give the checkpoint before stripping, or use --from-checkpoint"
        )
    if found is None and not args.resume and (saved := saved_checkpoints(args.output, args.model)):
        raise OptionError(
            f"{args.output} already holds checkpoints of {args.model}, the last of them {saved[-1].name}; "
            "add --resume to continue from it, or choose another --output"
        )
    if args.from_checkpoint is None:
        return found, None
    return found, (args.from_checkpoint, _without_training(load_checkpoint(args.from_checkpoint)))


def _without_training(checkpoint: Checkpoint) -> Checkpoint:
    """Its weights alone to begin a new training with: the EMA weights, where it has them."""
    networks, ema = {**checkpoint.networks, **(checkpoint.ema or {})}, checkpoint.has_ema
    return replace(checkpoint, networks=networks, ema=None, training=None, stripped=Stripped("float32", ema=ema))


def prepare_output(
    run: RunOptions, spec: ModelSpec, datasets: Mapping[str, Dataset], *, read: Sequence[tuple[str, Path]]
) -> Path:
    """Make the output's folder; returns the log's file.

    ``read`` are names and paths of the files that options name to be read.

    Raises:
        OptionError: a file would be written that is read, or two results into one. Of the endless names of checkpoints
            those count that another file has.
        OutputError: the folder cannot be made.
    """
    output, log_file = run.output, run.log_file or run.output / "nvlog.json"
    read = [pair for pair in read if pair[1] != run.checkpoint_path]  # which newer ones may replace
    read += [pair for dataset in datasets.values() for pair in dataset.files()]
    others = (os.path.realpath(path) if path.is_symlink() else path for path in (log_file, *(path for _, path in read)))
    names = {name for name in (Path(path).name for path in others) if name.startswith(f"{spec.name}_checkpoint_")}
    written = [("--log-file", log_file), *(("the checkpoint", output / name) for name in names)]
    if run.save_inference is not None:
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
