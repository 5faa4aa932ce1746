"""Train a model: `python train.py -m FastPitch -o output -d data --training-files LIST --validation-files LIST`."""

import argparse
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import distributed
from common.audio.arguments import corpus_config
from common.checkpoints import (
    OWN_LAYOUT,
    Checkpoint,
    Stripped,
    load_checkpoint,
    load_last_checkpoint,
    load_weights,
    saved_checkpoints,
)
from common.cli import ArgumentParser, precision_from_args, run
from common.config import differences, from_plain, to_plain
from common.data import bucketed
from common.distributed import Ranks
from common.errors import CheckpointError, OptionError
from common.logger import Logger
from common.progress import print_line
from common.text.arguments import with_given_files
from common.training import EngineOptions, Networks, Trainer, TrainingSetup, build_engine
from common.training.arguments import build_for_training, build_training_parser, prepare_output, run_options_from_args
from common.training.mel_kinds import mel_lines
from models import ModelSpec, available_models, get_model

if TYPE_CHECKING:
    import torch  # the entry points import common/ first, which lets Ctrl-C end their imports quietly


def parse_args(argv: Sequence[str] | None = None) -> tuple[argparse.Namespace, ModelSpec]:
    """The options, and the model that they are of."""
    first = ArgumentParser(add_help=False)
    first.add_argument(
        "-m", "--model", "--model-name", default=available_models()[0], choices=available_models(), help="what to train"
    )
    chosen, _ = first.parse_known_args(argv)
    spec = get_model(chosen.model)
    args = build_training_parser(spec, parents=[first]).parse_args(argv)
    if args.checkpoint_path is not None and args.resume:
        raise OptionError("--checkpoint-path and --resume both say where to resume from; give one of them")
    if args.from_checkpoint is not None and args.checkpoint_path is not None:
        raise OptionError("--from-checkpoint begins a new training, --checkpoint-path resumes one; give one of them")
    return args, spec


def main(argv: Sequence[str] | None = None) -> int:
    """Train; exit status 0 at the end, 128 + the signal's number if one stopped the run early."""
    args, spec = parse_args(argv)
    precision = precision_from_args(args)
    with distributed.processes(cuda=precision.cuda) as ranks:
        ranks.seed(args.seed)
        precision.prepare_process()
        return train(args, spec, ranks, amp_dtype=precision.amp_dtype)


def train(args: argparse.Namespace, spec: ModelSpec, ranks: Ranks, *, amp_dtype: "torch.dtype | None") -> int:
    """Set up networks, data and engine as ``args`` say, and run."""
    training, setup = spec.training, spec.training.parse(args)
    options, audio, text = setup.options, setup.audio, setup.text
    _check_recordable(args, setup, ranks)
    if ranks.is_main:
        for line in [*mel_lines(spec, audio, output=args.output, corpus=corpus_config(args)), *setup.notes]:
            print_line(line)
    found = _checkpoint_to_begin_with(args, ranks, own_weights=training.starts_from_checkpoint)
    config = training.model_config(options, audio, text, base=_recorded_config(found, spec))
    _check_length_buckets(args, setup, training.sees_padding(config))
    template = Checkpoint(model=spec.name, config=to_plain(config), audio=audio, text=text, networks={})
    networks = build_for_training(partial(spec.build_networks, config, audio, text), most=args.max_parameters)
    datasets = {
        f"{subset}_set": training.build_dataset(options, paths, audio=audio, text=text, training=subset == "training")
        for subset, paths in (("training", args.training_files), ("validation", args.validation_files))
    }
    if found is not None:
        path, checkpoint = found
        _check_fits(template, checkpoint, spec, where=path, adaptable=(*setup.adaptable, *checkpoint.assumed))
        _load_weights(networks, checkpoint, where=path, ranks=ranks)
    log_file = prepare_output(args, spec, datasets)
    if training.set_up_networks is not None:
        for line in training.set_up_networks(networks, options, text=text, new=found is None):
            _print_once(line, ranks)
    if training.compute_statistics is not None:
        training.compute_statistics(networks, options, **datasets, gather=ranks.gather_over, new=found is None)
    n_steps = len(datasets["training_set"]) // (args.batch_size * args.gradient_accumulation_steps * ranks.world_size)
    engine = build_engine(
        networks,
        training.build_objective(options, audio),
        setup.optimization,
        optimizer=args.optimizer,
        learning_rate=args.learning_rate,
        weight_decay=args.weight_decay,
        steps_per_epoch=n_steps,
        ranks=ranks,
        options=EngineOptions(
            amp_dtype=amp_dtype, grad_clip=args.grad_clip_thresh, ema_decay=args.ema_decay, cuda_graphs=args.cuda_graphs
        ),
        compile_networks=args.compile,
        same_shapes=setup.same_shapes,
        length_buckets=args.length_buckets,
    )
    logger = Logger(log_file, enabled=ranks.is_main)
    logger.parameter(**vars(args))
    run_options = run_options_from_args(args)
    padded, lines = bucketed(datasets, args.length_buckets)
    for line in lines:
        _print_once(line, ranks)
    trainer = Trainer(engine, template=template, **padded, ranks=ranks, options=run_options, logger=logger)
    if found is not None:
        _resume(trainer, *found, ranks=ranks)
    try:
        received = trainer.fit()
    finally:
        logger.close()
    if received is None:
        return 0
    _print_once(f"stopped by {received.name}; add --resume to continue", ranks)
    return 128 + received


def _check_recordable(args: argparse.Namespace, setup: TrainingSetup, ranks: Ranks) -> None:
    """Refuse ``--cuda-graphs`` where a graph cannot hold an update."""
    if args.cuda_graphs and not setup.recordable:
        raise OptionError("--cuda-graphs: updates of this model are not recorded; leave it out")
    if args.cuda_graphs and ranks.world_size > 1:
        raise OptionError(f"--cuda-graphs: for one process, got {ranks.world_size}; leave it out")


def _print_once(line: str, ranks: Ranks) -> None:
    if ranks.is_main:
        print_line(line)


def _checkpoint_to_begin_with(
    args: argparse.Namespace, ranks: Ranks, *, own_weights: bool
) -> tuple[Path, Checkpoint] | None:
    """The checkpoint to resume, or the weights of --from-checkpoint; with ``own_weights`` the package loads those."""
    found = None
    if args.checkpoint_path is not None:
        found = args.checkpoint_path, load_checkpoint(args.checkpoint_path)
    elif args.resume:
        found = load_last_checkpoint(args.output, args.model, warn=lambda line: _print_once(f"warning: {line}", ranks))
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
    if found is None and args.from_checkpoint is not None and not own_weights:
        return args.from_checkpoint, _without_training(load_checkpoint(args.from_checkpoint))
    return found


def _check_length_buckets(args: argparse.Namespace, setup: TrainingSetup, seen_by: str | None) -> None:
    """Refuse length buckets that change nothing, or that would change what is learned, through ``seen_by``."""
    if args.length_buckets and setup.same_shapes:
        raise OptionError(f"--length-buckets: all batches of {args.model} have one length already; leave it out")
    if args.length_buckets and seen_by is not None:
        raise OptionError(f"--length-buckets pads batches, which changes what is learned with {seen_by}; leave one out")


def _without_training(checkpoint: Checkpoint) -> Checkpoint:
    """Its weights alone to begin a new training with: the EMA weights, where it has them."""
    networks, ema = {**checkpoint.networks, **(checkpoint.ema or {})}, checkpoint.has_ema
    return replace(checkpoint, networks=networks, ema=None, training=None, stripped=Stripped("float32", ema=ema))


def _config_of(checkpoint: Checkpoint, spec: ModelSpec, *, where: Path) -> Any:
    """The ModelConfig of a checkpoint, which must be of the model that is trained."""
    if checkpoint.model != spec.name:
        raise CheckpointError(f"{where}: a checkpoint of {checkpoint.model}, expected one of {spec.name}")
    return from_plain(spec.config, checkpoint.config, where=str(where))


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
        _print_once(f"{where} holds the {inferring} alone: {' and '.join(absent)} begin with new weights", ranks)


def _resume(trainer: Trainer, path: Path, checkpoint: Checkpoint, *, ranks: Ranks) -> None:
    if checkpoint.training is None:
        weights = "weights" if checkpoint.ema is None else "raw weights (not the EMA weights)"
        if checkpoint.stripped is not None and checkpoint.stripped.ema:
            weights = "EMA weights"
        reason = ", which holds no training state" if checkpoint.stripped is None else ""
        _print_once(f"starting a new training from the {weights} of {path}{reason}", ranks)
        return
    for line in trainer.resume(checkpoint, where=path):
        _print_once(line, ranks)
    state = checkpoint.training
    _print_once(f"resuming from {path}: epoch {state['epoch']}, iteration {state['iteration']}", ranks)


if __name__ == "__main__":
    run(main)
