"""Set up a training from its command line: checkpoints, networks, data and engine."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common import distributed
from common.audio.options import AudioOptions
from common.checkpoints.checkpoint import OWN_LAYOUT, Checkpoint, Stripped, saved_checkpoints
from common.checkpoints.loading import load_weights
from common.checkpoints.reading import load_checkpoint, load_last_checkpoint
from common.cli import ComputingOptions
from common.config import differences
from common.data.batch import Dataset, Longest
from common.data.text_mel import TextMelDataset
from common.distributed import Ranks
from common.errors import CheckpointError, OptionError
from common.files import make_folder
from common.logger import Logger
from common.options import declared, read_options
from common.precision import prepare_computing
from common.registry import get_model
from common.text.arpabet import with_given_files
from common.training.engine import Engine
from common.training.objective import Networks
from common.training.options import RunOptions
from common.training.reporter import print_once
from common.training.settings import TrainingRequest, TrainingSetup
from common.training.trainer import Trainer

Found = tuple[Path, Checkpoint]


def train(args: argparse.Namespace, given: Collection[str]) -> int:
    """Train; return exit status 0 at the end, or 128 + the signal's number if a signal stopped the run early."""
    options, request = read_command(args, given)
    with distributed.processes(cuda=request.computing.cuda) as ranks:
        torch.manual_seed(request.run.seed + ranks.rank)  # each process needs its own dropout masks
        amp_dtype = prepare_computing(request.computing).amp_dtype
        stopped_by = build_trainer(options, request, ranks, amp_dtype=amp_dtype).fit()
    if stopped_by is None:
        return 0
    print_once(f"stopped by {stopped_by.name}; add --resume to continue")
    return 128 + stopped_by


def read_command(args: argparse.Namespace, given: Collection[str]) -> tuple[Any, TrainingRequest]:
    """Return the model's own options and the request of a command line, with defaults from the checkpoints it names.

    ``given`` are the names of the options that are on the command line.
    """
    spec, (resumed, initial) = get_model(args.model), _checkpoints(args)
    if (find_defaults := spec.find("training_setup", "find_defaults")) is not None:
        defaults = find_defaults(vars(args), initial)
        args = argparse.Namespace(**vars(args) | {name: one for name, one in defaults.items() if name not in given})
    run, computing = read_options(args, RunOptions), read_options(args, ComputingOptions)
    if run.num_workers is None:
        run = replace(run, num_workers=6 * computing.cuda)
    audio = AudioOptions() if spec.role == "recognizer" else read_options(args, AudioOptions)
    kind = spec.arg_parser.TrainingOptions
    of_run = {one.name: getattr(run, one.name) for one in fields(kind) if not declared(one) and hasattr(run, one.name)}
    request = TrainingRequest(spec, run, computing, audio, vars(args), resumed=resumed, initial=initial)
    return read_options(args, kind, **of_run), request


def _checkpoints(args: argparse.Namespace) -> tuple[Found | None, Found | None]:
    """Return the checkpoint to resume, and the one of --from-checkpoint with only its weights (EMA if it has them)."""
    path, initial = args.checkpoint_path, args.from_checkpoint
    if path is not None and (args.resume or initial is not None):
        other = "--resume" if args.resume else "--from-checkpoint"
        raise OptionError(f"--checkpoint-path and {other} both select initial weights; give one of them")
    found = None if path is None else (path, load_checkpoint(path))
    if args.resume:
        found = load_last_checkpoint(args.output, args.model, warn=lambda line: print_once(f"warning: {line}"))
    if found is not None and found[1].layout == OWN_LAYOUT and found[1].stripped is not None:
        wanted = "give the full checkpoint, or use --from-checkpoint"
        raise CheckpointError(f"{found[0]}: stripped for inference, so it can't be resumed; {wanted}")
    if found is None and not args.resume and (saved := saved_checkpoints(args.output, args.model)):
        what = f"{args.output} already contains checkpoints of {args.model}, most recently {saved[-1].name}"
        raise OptionError(f"{what}; add --resume to continue, or choose another --output (NAME in scripts)")
    started = None
    if initial is not None:
        begun = load_checkpoint(initial)
        networks, stripped = begun.networks | (begun.ema or {}), Stripped("float32", ema=begun.has_ema)
        started = initial, replace(begun, networks=networks, ema=None, training=None, stripped=stripped)
    for path, checkpoint in filter(None, (found, started)):
        if checkpoint.model != args.model:
            raise CheckpointError(f"{path}: a checkpoint of {checkpoint.model}, expected one of {args.model}")
    return found, started


def build_trainer(options: Any, request: TrainingRequest, ranks: Ranks, *, amp_dtype: torch.dtype | None) -> Trainer:
    """Build networks, data and engine, and load the checkpoint; ``options`` are the model's own."""
    spec, run = request.spec, request.run
    found = request.resumed or (None if spec.starts_from_checkpoint else request.initial)
    setup = spec.training_setup.set_up(options, request)
    if run.sorted_updates is None:  # a resumed run keeps its data order on any device
        state = found[1].training if found is not None else None
        # 4 raises valid frames (LJSpeech, 4 batches of 64) from 85 to 96 %.
        default = 1 if setup.same_shapes or ranks.device.type == "cpu" else 4
        run = replace(run, sorted_updates=(state or {}).get("sorted_updates", default))
    options, audio, text = setup.options, setup.audio, setup.text
    print_once(*setup.notes)
    base: Any = None if found is None else found[1].config
    if found is not None and {field.name for field in fields(base)} <= set(found[1].assumed_config):
        base = None  # a published file doesn't record its architecture, so the options define it
    config = spec.training_setup.model_config(options, audio, text, base=base)
    template = Checkpoint(model=spec.name, config=config, audio=audio, text=text, networks={})
    networks = spec.model.build_networks(config, audio, text)
    build = partial(spec.data_function.build_dataset, options, audio=audio, text=text)
    datasets = {
        "training_set": build(run.training_files, training=True),
        "validation_set": build(run.validation_files, training=False),
    }
    if found is not None:
        _load_weights(networks, found, template, setup, adapts=request.resumed is None)
    run = _fit_batch(run, len(datasets["training_set"].lengths), ranks)
    template = replace(template, longest=_longest(datasets["training_set"], request))
    make_folder(run.output, "; choose another --output")
    logger = Logger(run.log_file or run.output / "nvlog.json", enabled=ranks.is_main)
    if setup.set_up_networks is not None:
        begun = {"initial": request.initial, "new": found is None, "gather": ranks.gather_over}
        print_once(*setup.set_up_networks(networks, options, text=text, **datasets, **begun))
    objective, same_shapes = spec.loss_function.build_objective(options, audio), setup.same_shapes
    engine = Engine(
        networks, objective, setup.optimization, run, ranks=ranks, amp_dtype=amp_dtype, same_shapes=same_shapes
    )
    trainer = Trainer(engine, template=template, **datasets, ranks=ranks, options=run, logger=logger)
    names = () if text is None else ("input_type", "symbol_set", "text_cleaners", "g2p")  # may depend on the lists
    fitted = {name: getattr(run, name) for name in ("batch_size", "gradient_accumulation_steps")}
    logger.parameter(**request.values | fitted | {name: getattr(text, name.removeprefix("text_")) for name in names})
    if found is not None and found[1].training is not None:
        path, state = found[0], found[1].training
        resumed = f"resuming from {path}: epoch {state['epoch']}, iteration {state['iteration']}"
        print_once(*trainer.resume(found[1], where=path), resumed)
    elif found is not None:
        weights = "EMA weights" if found[1].stripped is not None and found[1].stripped.ema else "weights"
        print_once(f"starting a new training from the {weights} of {found[0]}")
    trainer.is_fine_tuning = request.initial is not None and request.resumed is None
    return trainer


def _fit_batch(run: RunOptions, n_utterances: int, ranks: Ranks) -> RunOptions:
    """Shrink an update that exceeds the training list: fewer accumulation steps, then a smaller batch."""
    given, share = (run.batch_size, run.gradient_accumulation_steps), n_utterances // ranks.world_size
    steps = min(given[1], max(1, share // given[0]))
    size = min(given[0], max(1, share // steps))
    if (size, steps) != given:
        wanted = f"{ranks.world_size} x {given[0]} x {given[1]} (processes x batch size x accumulation)"
        fitting = f"--batch-size {size} --gradient-accumulation-steps {steps}"
        print_once(f"{n_utterances} utterances are too few for an update of {wanted}: using {fitting}")
    return replace(run, batch_size=size, gradient_accumulation_steps=steps)


def _longest(training_set: Dataset, request: TrainingRequest) -> Longest | None:
    """Return the sizes of the longest utterance of this training and earlier ones; None if unknown."""
    begun = request.resumed or request.initial
    longest = training_set.longest if isinstance(training_set, TextMelDataset) else None
    before = longest if begun is None else begun[1].longest
    return longest and before and Longest(max(longest.frames, before.frames), max(longest.symbols, before.symbols))


def _check_fits(template: Checkpoint, found: Checkpoint, *, where: Path, adaptable: Sequence[str]) -> None:
    """Raise CheckpointError, which names each field that differs, if the architecture or the features differ.

    ``adaptable`` names audio fields that may differ, since the model will adapt to them.
    """
    names = (str(where), "these options and data")
    config, wanted = found.config, template.config
    # The checkpoint may lack training-only networks, which have their own configuration.
    lacking = [name for name, value in vars(config).items() if value is None and is_dataclass(getattr(wanted, name))]
    lines = differences(config, wanted, names=names, ignored=(*found.assumed_config, *lacking))
    lines += differences(found.audio, template.audio, names=names, ignored=adaptable)
    if found.text is not None and template.text is not None:
        text = with_given_files(found.text, template.text)
        if text.input_type == template.text.input_type == "pf" and not text.phone_features:  # as in published files
            text = replace(text, phone_features=template.text.phone_features)
        lines += differences(text, template.text, names=names)
    if lines:
        raise CheckpointError(f"{where} does not fit: " + "; ".join(lines))


def _load_weights(
    networks: Networks, found: Found, template: Checkpoint, setup: TrainingSetup, *, adapts: bool
) -> None:
    """Load a checkpoint's weights, adapting those of another voice; training-only networks may be missing."""
    path, checkpoint = found
    if adapts and setup.adapt is not None:
        checkpoint, lines = setup.adapt(checkpoint, template)
        print_once(*lines)
    _check_fits(template, checkpoint, where=path, adaptable=(*setup.adaptable, *checkpoint.assumed))
    inferring, *others = networks
    absent = [name for name in others if name not in checkpoint.networks]
    present = {name: network for name, network in networks.items() if name not in absent}
    load_weights(present, checkpoint.networks, where=str(path))
    if absent:
        print_once(f"{path} contains only the {inferring}: {' and '.join(absent)} start with new weights")
