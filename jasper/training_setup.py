"""Set up Jasper training: the YAML file's network and features, and the schedule."""

from dataclasses import replace

from common.checkpoints.checkpoint import Checkpoint
from common.config import AudioConfig
from common.nn.layers import rows_by_name
from common.training.optim import Optimization, Schedule
from common.training.settings import TrainingRequest, TrainingSetup
from jasper.arg_parser import TrainingOptions
from jasper.config import ModelConfig
from jasper.yaml_config import load_config

_BLANK = "blank"  # of CTC, after the labels


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """Read --model-config with --override-config and --max-duration."""
    run = request.run
    overrides = list(options.override_config)
    if options.max_duration is not None:
        overrides.append(f"input_train.audio_dataset.max_duration={options.max_duration}")
    settings = load_config(options.model_config, overrides=overrides)
    schedule = jasper_schedule(options, run.learning_rate, n_epochs=run.epochs)
    betas = (0.95, 0.0) if run.optimizer == "novograd" else (0.9, 0.999)  # the first as published
    optimization, audio = Optimization(schedule, betas=betas, eps=1e-8), settings.model.features.audio
    return TrainingSetup(replace(options, settings=settings), audio, None, optimization, adapt=adapt)


def model_config(options: TrainingOptions, audio: AudioConfig, text: None, *, base: ModelConfig | None) -> ModelConfig:
    """Return the architecture in the YAML file."""
    return options.settings.model


def jasper_schedule(options: TrainingOptions, learning_rate: float, *, n_epochs: int) -> Schedule:
    """Linear warm-up, the full rate for ``hold_epochs``, then decay to ``min_lr``.

    ``exponential`` multiplies the rate by ``lr_exp_gamma`` each epoch; ``polynomial`` decays with the square of the
    remaining updates of ``n_epochs``; ``legacy`` does so towards 0, but not below ``min_lr``.
    """
    min_lr = options.min_lr
    full_epochs = options.warmup_epochs + options.hold_epochs

    def rate(iteration: int, epoch: int, steps_per_epoch: int = 1) -> float:
        warmup_steps, full_until = options.warmup_epochs * steps_per_epoch, full_epochs * steps_per_epoch
        falling = max(n_epochs * steps_per_epoch - full_until, 1)
        if iteration < warmup_steps:
            return max(learning_rate * (iteration + 1) / (warmup_steps + 1), min_lr)
        if iteration < full_until:
            return max(learning_rate, min_lr)
        if options.lr_policy == "exponential":
            return max(learning_rate * options.lr_exp_gamma ** (epoch - full_epochs), min_lr)
        left = max(full_until + falling - iteration, 0) / falling
        if options.lr_policy == "legacy":
            return max(learning_rate * left**2, min_lr)
        return min_lr + max(learning_rate - min_lr, 0.0) * left**2

    return rate


def adapt(checkpoint: Checkpoint, wanted: Checkpoint) -> tuple[Checkpoint, list[str]]:
    """Adapt a checkpoint to the labels of ``wanted``; known labels and the blank keep their weights."""
    before, after = checkpoint.config.labels, wanted.config.labels
    weights = dict(checkpoint.networks["jasper"])
    lines: list[str] = []
    for key in ("decoder.layers.0.weight", "decoder.layers.0.bias"):
        weights[key], lines = rows_by_name(weights[key], [*after, _BLANK], known=[*before, _BLANK], what="labels")
    config = replace(checkpoint.config, labels=after)
    return replace(checkpoint, networks={"jasper": weights}, config=config), lines
