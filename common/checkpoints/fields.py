"""What the fields of checkpoints must be, from whichever file they come: types, ranges, and tensors to compute with."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint, Stripped
from common.config import AudioConfig, TextConfig, from_plain, naming_fields
from common.errors import CheckpointError, InputError, check_minimum, shown
from common.files import tensor_problem
from common.formats.json_text import parse_json
from common.registry import available_models, get_model
from common.text import get_cleaner, get_symbol_table

Weights = dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class Configs:
    """The three descriptions that every checkpoint holds."""

    model: dict[str, Any]
    audio: AudioConfig
    text: TextConfig | None


@dataclass(frozen=True)
class OptimizerState:
    """As `common.training.optim.state_by_name` gives it."""

    settings: dict[str, Any]
    states: dict[str, dict[str, Any]]

    def __post_init__(self) -> None:
        for name, values in self.states.items():
            if "step" not in values:
                raise InputError(f"states.{name}.step is missing")
            for key, value in values.items():
                if isinstance(value, Tensor):
                    problem = tensor_problem(value)
                    if problem or not torch.isfinite(value).all():
                        raise InputError(f"states.{name}.{key} is {problem or 'not finite'}")
                elif not _is_number(value):
                    raise InputError(f"states.{name}.{key} {shown(value)}: expected a tensor or a number")
            step = values["step"]
            if not ((step.numel() if isinstance(step, Tensor) else 1) == 1 and float(step) >= 0):
                raise InputError(f"states.{name}.step {shown(step)}: expected one number of at least 0")


@dataclass(frozen=True)
class LossScales:
    """As `common.training.loss_scaling.LossScaler.state` gives them, by phase."""

    scales: dict[str, float] = field(default_factory=dict)
    finite_since: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values, least in (("scales", self.scales, 0), ("finite_since", self.finite_since, -1)):
            for phase, value in values.items():
                if value <= least:
                    raise InputError(f"{name}.{phase} {value}: expected a number above {least}")


@dataclass(frozen=True)
class RandomState:
    """Of one process."""

    cpu: Tensor
    cuda: Tensor | None = None

    def __post_init__(self) -> None:
        try:
            torch.Generator().set_state(self.cpu)
        except (RuntimeError, TypeError) as error:
            raise InputError(f"cpu {shown(self.cpu)}: no state of PyTorch's random numbers") from error


@dataclass(frozen=True)
class TrainingState:
    """Where training stood. Files of other programs have the first four; those after an epoch's end no steps."""

    epoch: int
    iteration: int
    optimizers: dict[str, OptimizerState]
    scaler: LossScales = field(default_factory=LossScales)
    skipped_in_a_row: int = 0
    steps_done: int | None = None
    sums: dict[str, Any] = field(default_factory=dict)
    frames: int = 0
    seconds: float = 0.0
    skipped: int = 0
    global_batch: int = 1
    random: tuple[RandomState, ...] = ()
    best: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        check_minimum(self, 0, "epoch", "iteration", "skipped_in_a_row", "frames", "seconds", "skipped")
        check_minimum(self, 1, "global_batch")
        if self.steps_done is not None:
            check_minimum(self, 0, "steps_done")
        if not self.optimizers:
            raise InputError("optimizers {}: expected the state of at least one")
        figures = [("sums", self.sums), ("best", self.best or {})]
        for name, values in figures:
            for key, value in values.items():
                if not _is_number(value):
                    raise InputError(f"{name}.{key} {shown(value)}: expected a number")
        if self.best is not None and not (isinstance(self.best.get("epoch"), int) and self.best["epoch"] >= 0):
            raise InputError(f"best.epoch {shown(self.best.get('epoch'))}: expected a whole number of at least 0")


@dataclass(frozen=True)
class OwnFields:
    """All that a ``.pt`` file of ours holds."""

    format: int
    model: str
    config: Configs
    networks: Weights
    ema: Weights | None = None
    training: dict[str, Any] | None = None  # `TrainingState`
    assumed: tuple[str, ...] = ()
    assumed_config: tuple[str, ...] = ()
    stripped: Stripped | None = None


@dataclass(frozen=True)
class Description:
    """What every exported file says, as `common.checkpoints.exported.describe` and ``describe_part`` have it.

    Files of one network's weights have no parts. Models add keys of their own.
    """

    version: int
    model: str
    network: str
    config: Configs
    ema: bool
    assumed: tuple[str, ...] = ()
    assumed_config: tuple[str, ...] = ()
    symbols: tuple[str, ...] | None = None
    context_frames: int | None = None
    fingerprint: str = ""
    part: str = ""
    parts: tuple[str, ...] = ("",)
    inputs: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # names of sizes, or sizes
    outputs: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.part not in self.parts:
            raise InputError(f"part {shown(self.part)}: expected one of the parts {shown(self.parts)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_fields(kind: type, values: Any, *, where: str) -> Any:
    """`common.config.from_plain` of a checkpoint's fields, whose errors are CheckpointError."""
    with naming_fields("", error=CheckpointError):
        return from_plain(kind, values, where=where)


def read_description(stored: str | bytes, *, version: int, where: str) -> tuple[dict[str, Any], Description]:
    """An exported file's description, whole and as far as all files have it.

    Raises:
        CheckpointError: it is no JSON, of another version, or lacks or has wrong values of what all have.
    """
    where = f"{where}: its description"
    with naming_fields("", error=CheckpointError):
        values = parse_json(stored if isinstance(stored, str) else stored.decode(errors="replace"), where=where)
    found = values.get("version") if isinstance(values, dict) else None
    if type(found) is int and found != version:
        raise CheckpointError(f"{where}: version {found}, expected {version}; a newer toolkit may read it")
    known = {one.name for one in fields(Description)}
    common = {key: value for key, value in values.items() if key in known} if isinstance(values, dict) else values
    return values, read_fields(Description, common, where=where)


def check_checkpoint(checkpoint: Checkpoint, *, where: str) -> Checkpoint:
    """The same checkpoint, if all that its types do not say is right as well.

    Raises:
        CheckpointError: the model is unknown, its configuration or training state is wrong, or a weight is no tensor
            to compute with; names the field.
    """
    if checkpoint.model not in (known := available_models()):
        raise CheckpointError(f"{where}: of the model {shown(checkpoint.model)}, expected one of {', '.join(known)}")
    spec = get_model(checkpoint.model)
    read_fields(spec.config, checkpoint.config, where=f"{where}: config.model")
    if (text := checkpoint.text) is not None:
        with naming_fields(f"{where}: config.text", error=CheckpointError):
            for name in text.cleaners:
                get_cleaner(name)
            if text.input_type != "pf":
                get_symbol_table(text.symbol_set)
    if checkpoint.training is not None:
        read_fields(TrainingState, checkpoint.training, where=f"{where}: training")
    for name, key, value in _weights(checkpoint):
        problem = tensor_problem(value) if isinstance(value, Tensor) else f"{shown(value)}, expected a tensor"
        if problem:
            raise CheckpointError(f"{where}: weight {name}.{key} is {problem}")
    return checkpoint


def _weights(checkpoint: Checkpoint) -> Iterator[tuple[str, str, Any]]:
    for prefix, networks in (("", checkpoint.networks), ("EMA ", checkpoint.ema or {})):
        for name, state in networks.items():
            yield from ((f"{prefix}{name}", key, value) for key, value in state.items())
