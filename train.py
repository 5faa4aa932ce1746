"""Train a model: `python train.py -m FastPitch -o output -d data --training-files LIST --validation-files LIST`."""

import os
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import distributed
from common.checkpoints import Checkpoint, load_weights
from common.cli import run
from common.config import differences, from_plain, to_plain
from common.data import bucketed
from common.distributed import Ranks
from common.errors import CheckpointError, OptionError
from common.logger import Logger
from common.progress import print_line
from common.text.arguments import with_given_files
from common.training import EngineOptions, Networks, Trainer, TrainingSetup, build_engine
from common.training.arguments import Command, Found, build_for_training, prepare_output, read_command
from common.training.mel_kinds import mel_lines
from common.training.options import RunOptions
from models import ModelSpec

if TYPE_CHECKING:
    import torch  # the entry points import common/ first, which lets Ctrl-C end their imports quietly


def main(argv: Sequence[str] | None = None) -> int:
    """Train; exit status 0 at the end, 128 + the signal's number if one stopped the run early."""
    command = read_command(argv, warn=lambda line: None if os.environ.get("RANK", "0") != "0" else print_line(line))
    request = command.request
    precision = request.computing.precision()
    with distributed.processes(cuda=precision.cuda) as ranks:
        ranks.seed(request.run.seed)
        precision.prepare_process()
        setup = command.spec.training.set_up(command.options, request)
        trainer, logger = build_trainer(command, setup, ranks, amp_dtype=precision.amp_dtype)
        logger.parameter(**command.values)
        return run_training(trainer, logger, command.found, ranks)


def run_training(trainer: Trainer, logger: Logger, found: Found | None, ranks: Ranks) -> int:
    """Train, from the checkpoint ``found`` on; the exit status."""
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


def build_trainer(
    command: Command, setup: TrainingSetup, ranks: Ranks, *, amp_dtype: "torch.dtype | None"
) -> tuple[Trainer, Logger]:
    """Networks, data and engine as the command and ``setup`` say."""
    spec, request = command.spec, command.request
    training, run = spec.training, request.run
    options, audio, text = setup.options, setup.audio, setup.text
    _check_recordable(run, setup, ranks)
    corpus = request.audio.of_corpus(run.dataset_path)
    for line in [*mel_lines(spec, audio, output=run.output, corpus=corpus), *setup.notes]:
        _print_once(line, ranks)
    found = command.found
    config = training.model_config(options, audio, text, base=_recorded_config(found, spec))
    _check_length_buckets(run, spec, setup, training.sees_padding(config))
    template = Checkpoint(model=spec.name, config=to_plain(config), audio=audio, text=text, networks={})
    networks = build_for_training(partial(spec.build_networks, config, audio, text), most=run.max_parameters)
    datasets = {
        f"{subset}_set": training.build_dataset(options, paths, audio=audio, text=text, training=subset == "training")
        for subset, paths in (("training", run.training_files), ("validation", run.validation_files))
    }
    if found is not None:
        path, checkpoint = found
        _check_fits(template, checkpoint, spec, where=path, adaptable=(*setup.adaptable, *checkpoint.assumed))
        _load_weights(networks, checkpoint, where=path, ranks=ranks)
    log_file = prepare_output(run, spec, datasets, read=command.read)
    if training.set_up_networks is not None:
        for line in training.set_up_networks(networks, options, text=text, new=found is None):
            _print_once(line, ranks)
    if training.compute_statistics is not None:
        training.compute_statistics(networks, options, **datasets, gather=ranks.gather_over, new=found is None)
    engine = build_engine(
        networks,
        training.build_objective(options, audio),
        setup.optimization,
        optimizer=run.optimizer,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        steps_per_epoch=len(datasets["training_set"])
        // (run.batch_size * run.gradient_accumulation_steps * ranks.world_size),
        ranks=ranks,
        options=EngineOptions(
            amp_dtype=amp_dtype, grad_clip=run.grad_clip_thresh, ema_decay=run.ema_decay, cuda_graphs=run.cuda_graphs
        ),
        compile_networks=run.compile,
        same_shapes=setup.same_shapes,
        length_buckets=run.length_buckets,
    )
    padded, lines = bucketed(datasets, run.length_buckets)
    for line in lines:
        _print_once(line, ranks)
    logger = Logger(log_file, enabled=ranks.is_main)
    return Trainer(engine, template=template, **padded, ranks=ranks, options=run, logger=logger), logger


def _check_recordable(run: RunOptions, setup: TrainingSetup, ranks: Ranks) -> None:
    """Refuse ``--cuda-graphs`` where a graph cannot hold an update."""
    if run.cuda_graphs and not setup.recordable:
        raise OptionError("--cuda-graphs: updates of this model are not recorded; leave it out")
    if run.cuda_graphs and ranks.world_size > 1:
        raise OptionError(f"--cuda-graphs: for one process, got {ranks.world_size}; leave it out")


def _print_once(line: str, ranks: Ranks) -> None:
    if ranks.is_main:
        print_line(line)


def _check_length_buckets(run: RunOptions, spec: ModelSpec, setup: TrainingSetup, seen_by: str | None) -> None:
    """Refuse length buckets that change nothing, or that would change what is learned, through ``seen_by``."""
    if run.length_buckets and setup.same_shapes:
        raise OptionError(f"--length-buckets: all batches of {spec.name} have one length already; leave it out")
    if run.length_buckets and seen_by is not None:
        raise OptionError(f"--length-buckets pads batches, which changes what is learned with {seen_by}; leave one out")


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
