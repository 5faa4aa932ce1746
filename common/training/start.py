"""A training from its command line on: checkpoints that it names, networks, data and engine, and the run."""

import argparse
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from common import distributed
from common.audio.options import AudioOptions, line_of_mels
from common.checkpoints.checkpoint import OWN_LAYOUT, Checkpoint, Stripped, saved_checkpoints
from common.checkpoints.loading import load_weights
from common.checkpoints.reading import load_checkpoint, load_last_checkpoint
from common.cli import ComputingOptions
from common.config import differences
from common.data.batch import Dataset
from common.data.buckets import Longest, shapes_for
from common.data.text_mel import TextMelDataset
from common.distributed import Ranks
from common.errors import CheckpointError, InputError, OptionError
from common.files import check_apart, lock_folder, make_folder
from common.logger import Logger
from common.options import declared, read_options
from common.precision import prepare_computing
from common.progress import print_line
from common.registry import ModelSpec
from common.text.arpabet import with_given_files
from common.training.engine import Engine
from common.training.objective import Networks
from common.training.options import CommandLine, RunOptions, inference_paths
from common.training.settings import TrainingRequest, TrainingSetup
from common.training.trainer import Trainer

Found = tuple[Path, Checkpoint]

# Of batches of various lengths on a GPU, where options do not say it.
_BUCKETS = 8  # lengths that they are padded to: 81 % of an LJSpeech batch is then valid
_PIECES = 4  # in which an update is computed
_SMALLEST_PIECE = 8  # utterances; smaller ones leave a GPU idle


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
        return self.request.resumed or (None if self.spec.starts_from_checkpoint else self.request.initial)


def read_command(line: CommandLine, *, warn: Callable[[str], None] = print_line) -> Command:
    """Read the checkpoints that a command line names, which say what options that are left out are."""
    spec, args = line.spec, line.args
    resumed, initial = _checkpoints(args, warn=warn)
    if (find_defaults := spec.find("training_setup", "find_defaults")) is not None:
        defaults = find_defaults(vars(args), initial)
        args = argparse.Namespace(**vars(args) | {k: v for k, v in defaults.items() if k not in line.given})
    run, computing = read_options(args, RunOptions), read_options(args, ComputingOptions)
    if run.num_workers is None:
        run = replace(run, num_workers=6 * computing.cuda)
    audio = AudioOptions() if spec.role == "recognizer" else read_options(args, AudioOptions)
    request = TrainingRequest(run, computing, audio, resumed=resumed, initial=initial)
    kind = spec.arg_parser.TrainingOptions
    of_run = {one.name: getattr(run, one.name) for one in fields(kind) if not declared(one) and hasattr(run, one.name)}
    options = read_options(args, kind, **of_run)
    return Command(spec, options, request, values=vars(args), read=line.read)


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
    if found is not None and found[1].layout == OWN_LAYOUT and found[1].stripped is not None:
        wanted = "give the checkpoint before stripping, or use --from-checkpoint"
        raise CheckpointError(f"{found[0]}: stripped for inference, it holds nothing to resume from; {wanted}")
    if found is None and not args.resume and (saved := saved_checkpoints(args.output, args.model)):
        raise OptionError(
            f"{args.output} already holds checkpoints of {args.model}, the last of them {saved[-1].name}; "
            "add --resume to continue from it, or choose another --output"
        )
    if args.from_checkpoint is None:
        return found, None
    return found, (args.from_checkpoint, _without_training(load_checkpoint(args.from_checkpoint)))


def _without_training(checkpoint: Checkpoint) -> Checkpoint:
    """The weights of a checkpoint alone, to begin a new training with: the EMA weights, where it has them."""
    networks, ema = {**checkpoint.networks, **(checkpoint.ema or {})}, checkpoint.has_ema
    return replace(checkpoint, networks=networks, ema=None, training=None, stripped=Stripped("float32", ema=ema))


def prepare_output(
    run: RunOptions, spec: ModelSpec, datasets: Mapping[str, Dataset], *, read: Sequence[tuple[str, Path]]
) -> Path:
    """Make the output's folder; returns the log's file.

    OptionError where a file would be written that is one of ``read``, which options name, or of a dataset.
    """
    log_file = run.log_file or run.output / "nvlog.json"
    read = [pair for pair in read if pair[1] != run.checkpoint_path]  # which newer ones may replace
    written = [("--log-file", log_file)]
    if run.save_inference is not None:
        written += [("--save-inference:", path) for path in inference_paths(run.output, spec.name)]
    check_apart(written, [*read, *(pair for dataset in datasets.values() for pair in dataset.files())])
    make_folder(run.output, "; choose another --output")
    return log_file


def train(line: CommandLine) -> int:
    """Train; exit status 0 at the end, 128 + the signal's number if one stopped the run early."""
    command = read_command(line, warn=print_line if os.environ.get("RANK", "0") == "0" else lambda _: None)
    request = command.request
    with distributed.processes(cuda=request.computing.cuda) as ranks:
        torch.manual_seed(request.run.seed + ranks.rank)  # other dropout masks in each; the data's order needs none
        try:
            received = _run(command, ranks, amp_dtype=prepare_computing(request.computing).amp_dtype)
        except InputError as error:
            if "model" in line.given or " columns" not in str(error):
                raise
            raise InputError(
                f"{error}; a list of another model? this is {command.spec.name}, -m names others"
            ) from error
    if received is None:
        return 0
    _print_once(ranks, f"stopped by {received.name}; add --resume to continue")
    return 128 + received


def _run(command: Command, ranks: Ranks, *, amp_dtype: torch.dtype | None) -> signal.Signals | None:
    """Train; the signal that stopped it early. Nothing that uses the process group outlives this function."""
    setup = command.spec.training_setup.set_up(command.options, command.request)
    trainer, logger = build_trainer(command, setup, ranks, amp_dtype=amp_dtype)
    text, values = setup.text, dict(command.values)
    if text is not None:  # which lists, languages and voices decide, too
        values |= {"input_type": text.input_type, "symbol_set": text.symbol_set, "text_cleaners": text.cleaners}
        values["g2p"] = text.g2p
    logger.parameter(**values)
    if command.found is not None:
        _resume(trainer, *command.found, ranks=ranks)
    return trainer.fit()


def lay_out_batches(run: RunOptions, networks: Iterable[nn.Module], *, for_gpu: bool, sees_padding: bool) -> RunOptions:
    """``run`` with the numbers of length buckets and pieces that were not given, for batches of various lengths.

    A GPU gets few shapes with little padding, as far as that changes nothing that is learned. OptionError for pieces
    that would, or that do not divide a batch.
    """
    buckets, pieces, size = run.length_buckets, run.length_pieces, run.batch_size
    normed = any(isinstance(module, _BatchNorm) for network in networks for module in network.modules())
    if buckets is None:
        buckets = _BUCKETS if for_gpu and not (run.compile or sees_padding) else 0
    if pieces is None:
        most = max(1, _PIECES // run.gradient_accumulation_steps) if for_gpu and not normed else 1
        fitting = (n for n in range(most, 1, -1) if size % n == 0 and size // n >= _SMALLEST_PIECE)
        pieces = next(fitting, 1)
    elif pieces > 1 and normed:
        raise OptionError("--length-pieces cuts batches, which changes what is learned with batch norm; leave it out")
    elif size % pieces:
        raise OptionError(f"--length-pieces {pieces}: expected a divisor of --batch-size, {size}")
    return replace(run, length_buckets=buckets, length_pieces=pieces)


def build_trainer(
    command: Command, setup: TrainingSetup, ranks: Ranks, *, amp_dtype: torch.dtype | None
) -> tuple[Trainer, Logger]:
    """Networks, data and engine as the command and ``setup`` say."""
    spec, request = command.spec, command.request
    run = request.run
    options, audio, text = setup.options, setup.audio, setup.text
    mels = [line_of_mels(audio)] if spec.role != "recognizer" else []
    _print_once(ranks, *mels, *setup.notes)
    found = command.found
    config = spec.training_setup.model_config(options, audio, text, base=_recorded_config(found, spec))
    if run.length_buckets and config.sees_padding is not None:
        problem = f"changes what is learned with {config.sees_padding}"
        raise OptionError(f"--length-buckets pads batches, which {problem}; leave one out")
    template = Checkpoint(model=spec.name, config=config, audio=audio, text=text, networks={})
    networks = spec.model.build_networks(config, audio, text)
    for_gpu = request.computing.cuda and not setup.same_shapes
    run = lay_out_batches(run, networks.values(), for_gpu=for_gpu, sees_padding=config.sees_padding is not None)
    datasets = {
        f"{subset}_set": spec.data_function.build_dataset(
            options, paths, audio=audio, text=text, training=subset == "training"
        )
        for subset, paths in (("training", run.training_files), ("validation", run.validation_files))
    }
    if found is not None:
        path, checkpoint = found
        if request.resumed is None and setup.adapt is not None and checkpoint.model == spec.name:
            checkpoint, lines = setup.adapt(checkpoint, template)
            _print_once(ranks, *lines)
        _check_fits(template, checkpoint, spec, where=path, adaptable=(*setup.adaptable, *checkpoint.assumed))
        _load_weights(networks, checkpoint, where=path, ranks=ranks)
    template = replace(template, longest=_longest(datasets["training_set"], request))
    log_file = prepare_output(run, spec, datasets, read=command.read)
    lock = lock_folder(run.output) if ranks.is_main else None
    if setup.set_up_networks is not None:
        given = {"training_set": datasets["training_set"], "initial": request.initial, "new": found is None}
        _print_once(ranks, *setup.set_up_networks(networks, options, text=text, **given))
    if setup.compute_statistics is not None:
        lines = setup.compute_statistics(
            networks, options, **datasets, initial=request.initial, gather=ranks.gather_over, new=found is None
        )
        _print_once(ranks, *lines)
    engine = Engine(
        networks,
        spec.loss_function.build_objective(options, audio),
        setup.optimization,
        run,
        ranks=ranks,
        amp_dtype=amp_dtype,
        same_shapes=setup.same_shapes,
    )
    shapes, lines = shapes_for(datasets.values(), 0 if setup.same_shapes else run.length_buckets or 0)
    _print_once(ranks, *lines)
    logger = Logger(log_file, enabled=ranks.is_main)
    trainer = Trainer(
        engine, template=template, **datasets, shapes=shapes, ranks=ranks, options=run, logger=logger, lock=lock
    )
    return trainer, logger


def _longest(training_set: Dataset, request: TrainingRequest) -> Longest | None:
    """The longest utterance of a training and of those before it; None where one of them does not say it."""
    if not isinstance(training_set, TextMelDataset):
        return None
    longest, begun = training_set.longest, request.resumed or request.initial
    if begun is None:
        return longest
    before = begun[1].longest
    return before and Longest(max(longest.frames, before.frames), max(longest.symbols, before.symbols))


def _print_once(ranks: Ranks, *lines: str) -> None:
    for line in lines if ranks.is_main else ():
        print_line(line)


def _config_of(checkpoint: Checkpoint, spec: ModelSpec, *, where: Path) -> Any:
    """The ModelConfig of a checkpoint, which must be of the model that is trained."""
    if checkpoint.model != spec.name:
        raise CheckpointError(f"{where}: a checkpoint of {checkpoint.model}, expected one of {spec.name}")
    return checkpoint.config


def _recorded_config(found: tuple[Path, Checkpoint] | None, spec: ModelSpec) -> Any:
    """The ModelConfig of a checkpoint, or None where a published file records none: the options describe it then."""
    if found is None:
        return None
    path, checkpoint = found
    config = _config_of(checkpoint, spec, where=path)
    return None if {field.name for field in fields(config)} <= set(checkpoint.assumed_config) else config


def _check_fits(
    template: Checkpoint, found: Checkpoint, spec: ModelSpec, *, where: Path, adaptable: Sequence[str]
) -> None:
    """Refuse a checkpoint of another architecture or of other features, listing each field that differs.

    ``adaptable`` names fields of the audio that may differ, as the model will adapt to them.
    """
    names = (str(where), "these options and data")
    config, wanted = (_config_of(checkpoint, spec, where=where) for checkpoint in (found, template))
    # Networks of training alone, with a configuration of their own, which the checkpoint may lack: they begin anew.
    lacking = [name for name, value in vars(config).items() if value is None and is_dataclass(getattr(wanted, name))]
    pairs = [
        (replace(config, **{name: getattr(wanted, name) for name in (*found.assumed_config, *lacking)}), wanted),
        (found.audio, replace(template.audio, **{name: getattr(found.audio, name) for name in adaptable})),
    ]
    if found.text is not None and template.text is not None:
        text = with_given_files(found.text, template.text)
        if text.input_type == template.text.input_type == "pf" and not text.phone_features:  # as published
            text = replace(text, phone_features=template.text.phone_features)
        pairs.append((text, template.text))
    lines = [line for first, second in pairs for line in differences(first, second, names=names)]
    if lines:
        raise CheckpointError(f"{where} does not fit: " + "; ".join(lines))


def _load_weights(networks: Networks, found: Checkpoint, *, where: Path, ranks: Ranks) -> None:
    """Load a checkpoint's weights, which may lack networks that only training needs."""
    inferring, *others = networks
    absent = [name for name in others if name not in found.networks]
    present = {name: network for name, network in networks.items() if name not in absent}
    load_weights(present, found.networks, where=str(where))
    if absent:
        _print_once(ranks, f"{where} holds the {inferring} alone: {' and '.join(absent)} begin with new weights")


def _resume(trainer: Trainer, path: Path, checkpoint: Checkpoint, *, ranks: Ranks) -> None:
    if checkpoint.training is None:
        weights = "EMA weights" if checkpoint.stripped is not None and checkpoint.stripped.ema else "weights"
        _print_once(ranks, f"starting a new training from the {weights} of {path}")
        return
    state = checkpoint.training
    resumed = f"resuming from {path}: epoch {state['epoch']}, iteration {state['iteration']}"
    _print_once(ranks, *trainer.resume(checkpoint, where=path), resumed)
