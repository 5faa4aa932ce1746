"""Train a model: `python train.py -m FastPitch -o output -d LJSpeech-1.1 --training-files ... --epochs ...`."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import data_functions
import loss_functions
import models
from common import distributed
from common.audio.arguments import add_audio_arguments
from common.checkpoints.checkpoint import Checkpoint, load_checkpoint, load_last_checkpoint, saved_checkpoints
from common.cli import ArgumentParser, non_negative_float, non_negative_int, positive_int, run
from common.config import differences, from_plain, to_plain
from common.distributed import Ranks
from common.errors import CheckpointError, OptionError
from common.logger import Logger
from common.precision import (
    add_precision_arguments,
    amp_dtype_from_args,
    check_precision_arguments,
    choose_kernels,
    keep_freed_memory,
)
from common.progress import print_line
from common.registry import available_models, import_package
from common.training.engine import Engine, EngineOptions
from common.training.objective import Networks, Objective
from common.training.optim import add_optimization_arguments, build_optimizer, schedule_over
from common.training.settings import Settings
from common.training.trainer import RunOptions, Trainer, describe_metrics


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """All options: those of every model, and those of the one that is trained."""
    first = ArgumentParser(add_help=False)
    first.add_argument("-m", "--model", default="FastPitch", choices=available_models(), help="what to train")
    chosen, _ = first.parse_known_args(argv)
    parser = ArgumentParser(description="Train a model.", parents=[first])
    _add_run_arguments(parser)
    add_optimization_arguments(parser)
    add_audio_arguments(parser)
    import_package(chosen.model).arg_parser.add_arguments(parser)
    args = parser.parse_args(argv)
    if args.epochs is None:
        parser.error("the following arguments are required: --epochs")
    if args.checkpoint_path is not None and args.resume:
        raise OptionError("--checkpoint-path and --resume both say where to go on from; give one of them")
    check_precision_arguments(args)
    return args


def _add_run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for checkpoints and logs")
    parser.add_argument("-d", "--dataset-path", type=Path, default=Path(), help="folder that the lists are relative to")
    parser.add_argument("--training-files", type=Path, required=True, help="list of utterances to train on")
    parser.add_argument("--validation-files", type=Path, required=True, help="list of utterances to validate on")
    parser.add_argument("--log-file", type=Path, help="JSON log (default: nvlog.json in the output folder)")
    setup = parser.add_argument_group("training setup")
    setup.add_argument("--epochs", type=positive_int, help="epochs to train in all")
    setup.add_argument("--epochs-this-job", type=positive_int, help="stop after so many, to go on with --resume")
    setup.add_argument("--epochs-per-checkpoint", "--checkpoint-interval", type=positive_int, default=50, help="epochs")
    setup.add_argument(
        "--keep-milestones",
        type=positive_int,
        nargs="+",
        metavar="EPOCH",
        help="keep the checkpoints of these epochs and the last two, instead of all",
    )
    setup.add_argument("--steps-per-checkpoint", type=non_negative_int, default=0, help="also within epochs; 0: never")
    setup.add_argument("--validation-interval", type=positive_int, default=1, help="epochs between validations")
    setup.add_argument(
        "--samples-interval", type=positive_int, help="epochs between plots and sound in TensorBoard, if not the same"
    )
    setup.add_argument("--checkpoint-path", type=Path, help="checkpoint to go on from")
    setup.add_argument("--resume", action="store_true", help="go on from the last checkpoint of the output folder")
    setup.add_argument("--seed", type=non_negative_int, default=1234, help="of weights, dropout and the data's order")
    setup.add_argument("--num-workers", type=non_negative_int, help="loader processes (default: 4 with --cuda, else 0)")
    add_precision_arguments(setup)
    setup.add_argument("--compile", action="store_true", help="compile the networks with torch.compile")
    setup.add_argument("--ema-decay", type=non_negative_float, default=0.0, help="of averaged weights; 0: none kept")
    setup.add_argument(
        "--gradient-accumulation-steps",
        "--grad-accumulation",
        type=positive_int,
        default=1,
        help="micro-batches of an update; what it learns depends on processes x batch size x this number alone",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Train; exit status 0 at the end, 128 + the signal's number if one stopped the run early."""
    args = parse_args(argv)
    ranks = distributed.start(cuda=args.cuda)
    try:
        return train(args, ranks)
    finally:
        distributed.stop()


def train(args: argparse.Namespace, ranks: Ranks) -> int:
    """Set up networks, data and engine as ``args`` say, and run."""
    _set_up_torch(args, ranks)
    package = import_package(args.model)
    settings = package.arg_parser.settings_from_args(args)
    audio, text = settings.audio, settings.text
    found = _checkpoint_to_resume(args, ranks)
    base = None if found is None else _config_of(found[1], args.model, where=found[0])
    config = package.arg_parser.config_from_args(args, audio, base=base)
    template = Checkpoint(model=args.model, config=to_plain(config), audio=audio, text=text, networks={})
    networks = models.build_networks(args.model, config, audio, text)
    training_set = data_functions.build_dataset(args.model, args, args.training_files, audio=audio, text=text)
    validation_set = data_functions.build_dataset(args.model, args, args.validation_files, audio=audio, text=text)
    if found is not None:
        adaptable = (*settings.adaptable, *found[1].assumed)
        _check_fits(template, found[1], where=found[0], adaptable=adaptable)
        _load_weights(networks, found[1], where=found[0], ranks=ranks)
    package.arg_parser.set_up_networks(networks, args, new=found is None)
    if survey := getattr(package.data_function, "survey", None):
        survey(networks, args, training_set=training_set, validation_set=validation_set, ranks=ranks)
    objective = loss_functions.build_objective(args.model, args, audio)
    n_steps = len(training_set) // (args.batch_size * args.gradient_accumulation_steps * ranks.world_size)
    engine = _build_engine(args, networks, objective, settings, ranks, n_steps)
    args.output.mkdir(parents=True, exist_ok=True)
    logger = Logger(args.log_file or args.output / "nvlog.json", enabled=ranks.is_main)
    logger.parameter(**{name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()})
    describe_metrics(logger, engine.objective)
    trainer = Trainer(
        engine,
        template=template,
        training_set=training_set,
        validation_set=validation_set,
        ranks=ranks,
        options=_run_options(args),
        logger=logger,
    )
    if found is not None:
        _resume(trainer, *found, ranks=ranks)
    try:
        received = trainer.fit()
    finally:
        logger.close()
    if received is None:
        return 0
    print_line(f"stopped by {received.name}; add --resume to go on") if ranks.is_main else None
    return 128 + received


def _set_up_torch(args: argparse.Namespace, ranks: Ranks) -> None:
    # Processes draw different dropout masks; the data's order comes from --seed alone.
    torch.manual_seed(args.seed + ranks.rank)
    choose_kernels(args)
    if not args.cuda:
        keep_freed_memory()


def _checkpoint_to_resume(args: argparse.Namespace, ranks: Ranks) -> tuple[Path, Checkpoint] | None:
    if args.checkpoint_path is not None:
        return args.checkpoint_path, load_checkpoint(args.checkpoint_path)
    if args.resume:
        warn = print_line if ranks.is_main else (lambda line: None)
        return load_last_checkpoint(args.output, args.model, warn=lambda line: warn(f"warning: {line}"))
    saved = saved_checkpoints(args.output, args.model)
    if saved:
        raise OptionError(
            f"{args.output} already holds checkpoints of {args.model}, the last of them {saved[-1].name}; "
            "add --resume to go on from it, or choose another --output"
        )
    return None


def _config_of(checkpoint: Checkpoint, model: str, *, where: Path) -> Any:
    """The ModelConfig of a checkpoint, which must be of ``model``."""
    if checkpoint.model != model:
        raise CheckpointError(f"{where}: a checkpoint of {checkpoint.model}, expected one of {model}")
    return from_plain(import_package(model).model.ModelConfig, checkpoint.config, where=str(where))


def _check_fits(template: Checkpoint, found: Checkpoint, *, where: Path, adaptable: Sequence[str]) -> None:
    """Refuse a checkpoint of another architecture or of other features, listing each field that differs.

    ``adaptable`` names fields of the audio that may differ, as the model will adapt to them.
    """
    names = (str(where), "these options and data")
    config, wanted = (_config_of(checkpoint, template.model, where=where) for checkpoint in (found, template))
    pairs = [
        (replace(config, **{name: getattr(wanted, name) for name in found.assumed_config}), wanted),
        (found.audio, replace(template.audio, **{name: getattr(found.audio, name) for name in adaptable})),
    ]
    if found.text is not None and template.text is not None:
        pairs.append((found.text, template.text))
    lines = [line for first, second in pairs for line in differences(first, second, names=names)]
    if lines:
        raise CheckpointError(f"{where} does not fit: " + "; ".join(lines))


def _load_weights(networks: Networks, found: Checkpoint, *, where: Path, ranks: Ranks) -> None:
    """Load a checkpoint's weights; one that was made for inference lacks the networks that only training needs."""
    inferring, *others = networks
    absent = [name for name in others if name not in found.networks] if found.training is None else []
    present = {name: network for name, network in networks.items() if name not in absent}
    models.load_weights(present, found.networks, where=str(where))
    if absent and ranks.is_main:
        print_line(f"{where} holds the {inferring} alone: {' and '.join(absent)} begin with new weights")


def _build_engine(
    args: argparse.Namespace, networks: Networks, objective: Objective, settings: Settings, ranks: Ranks, n_steps: int
) -> Engine:
    for network in networks.values():
        network.to(ranks.device).train()
        if args.compile:
            # Batches of one shape need no code for others, which the compiler cannot always make.
            network.compile(dynamic=None if settings.same_shapes else True)
    optimization = settings.optimization
    optimizers, schedules = {}, {}
    for phase in objective.phases:
        optimizers[phase.name] = build_optimizer(
            args.optimizer,
            [parameter for name in phase.trains for parameter in networks[name].parameters()],
            learning_rate=args.learning_rate,
            weight_decay=args.weight_decay,
            betas=optimization.betas,
            eps=optimization.eps,
        )
        schedules[phase.name] = schedule_over(optimization.schedule, steps_per_epoch=n_steps)
    options = EngineOptions(
        amp_dtype=amp_dtype_from_args(args), grad_clip=args.grad_clip_thresh, ema_decay=args.ema_decay
    )
    return Engine(networks, objective, optimizers, schedules=schedules, ranks=ranks, options=options)


def _run_options(args: argparse.Namespace) -> RunOptions:
    workers = args.num_workers if args.num_workers is not None else 4 * args.cuda
    return RunOptions(
        output=args.output,
        epochs=args.epochs,
        batch_size=args.batch_size,
        accumulation=args.gradient_accumulation_steps,
        seed=args.seed,
        num_workers=workers,
        epochs_per_checkpoint=args.epochs_per_checkpoint,
        steps_per_checkpoint=args.steps_per_checkpoint,
        validation_interval=args.validation_interval,
        samples_interval=args.samples_interval,
        milestones=None if args.keep_milestones is None else tuple(args.keep_milestones),
        epochs_this_job=args.epochs_this_job,
    )


def _resume(trainer: Trainer, path: Path, checkpoint: Checkpoint, *, ranks: Ranks) -> None:
    if checkpoint.training is None:
        line = f"starting anew from the weights of {path}, which holds no training state"
    else:
        trainer.resume(checkpoint, where=path)
        state = checkpoint.training
        line = f"going on from {path}: epoch {state['epoch']}, iteration {state['iteration']}"
    if ranks.is_main:
        print_line(line)


if __name__ == "__main__":
    run(main)
