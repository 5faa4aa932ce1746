"""What the fields of checkpoints must be, from whichever file they come: types, ranges, and what goes with what."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from common.checkpoints.checkpoint import OWN_LAYOUT, Checkpoint, Stripped
from common.checkpoints.weights import Weights, differences, refuse
from common.cli import check_name
from common.config import AudioConfig, TextConfig, from_plain, naming_fields
from common.errors import CheckpointError, InputError, check_minimum, shown
from common.parsing import parse_json
from common.registry import GeneratorSpec, ModelSpec, available_models, get_model
from common.text import get_cleaner, get_symbol_table
from common.torch_file import tensor_problem

_LARGEST, _SMALLEST = (getattr(torch.finfo(torch.float32), name) for name in ("max", "tiny"))


@dataclass(frozen=True)
class Configs:
    """The three descriptions that every checkpoint holds."""

    model: dict[str, Any]
    audio: AudioConfig
    text: TextConfig | None


@dataclass(frozen=True)
class OptimizerState:
    """An optimizer's settings and its state by the parameters' names, from `common.training.optim.state_by_name`."""

    settings: dict[str, Any]
    states: dict[str, dict[str, Any]]

    def __post_init__(self) -> None:
        for key, value in self.settings.items():
            if key == "betas":
                pair = isinstance(value, list | tuple) and len(value) == len(("first", "second"))
                if not (pair and all(_is_number(one) and 0 <= one < 1 for one in value)):
                    raise InputError(f"settings.betas {shown(value)}: expected two numbers of at least 0 and below 1")
            elif not (value is None or isinstance(value, bool) or (_is_number(value) and 0 <= value < math.inf)):
                raise InputError(f"settings.{key} {shown(value)}: expected a number of at least 0, true, false or null")
        for name, values in self.states.items():
            if "step" not in values:
                raise InputError(f"states.{name}.step is missing")
            for key, value in values.items():
                problem = _problem_of_state(value, least=0 if key == "step" or key.endswith("_sq") else -_LARGEST)
                if problem is None and key == "step" and isinstance(value, Tensor) and value.numel() != 1:
                    problem = f"{shown(value)}, expected one number"
                if problem is not None:
                    raise InputError(f"states.{name}.{key} is {problem}")


@dataclass(frozen=True)
class LossScales:
    """Loss scales, and updates since the last one that was not finite, by phase (from `LossScaler.state`)."""

    scales: dict[str, float] = field(default_factory=dict)
    finite_since: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values, least in (("scales", self.scales, _SMALLEST), ("finite_since", self.finite_since, 0)):
            for phase, value in values.items():
                if value < least:
                    raise InputError(f"{name}.{phase} {value}: expected a number of at least {least:g}")
        if self.scales.keys() != self.finite_since.keys():
            names = shown(sorted(self.scales)), shown(sorted(self.finite_since))
            raise InputError(f"scales of the phases {names[0]}, finite_since of {names[1]}: expected the same")


@dataclass(frozen=True)
class RandomState:
    """The states of one process's random number generators (uint8); ``cuda`` is None on the CPU."""

    cpu: Tensor
    cuda: Tensor | None = None

    def __post_init__(self) -> None:
        try:
            torch.Generator().set_state(self.cpu)
        except (RuntimeError, TypeError) as error:
            raise InputError(f"cpu {shown(self.cpu)}: no state of PyTorch's random numbers") from error
        cuda = self.cuda
        if cuda is not None and (tensor_problem(cuda) or cuda.dtype is not torch.uint8 or cuda.dim() != 1):
            raise InputError(f"cuda {shown(self.cuda)}: no state of a GPU's random numbers")


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
        if unknown := sorted(self.scaler.scales.keys() - self.optimizers):
            raise InputError(f"scaler.scales of the phases {shown(unknown)}, which no optimizer is of")
        if self.steps_done is not None and self.iteration < self.epoch - 1:
            raise InputError(f"iteration {self.iteration} in epoch {self.epoch}: expected an update an epoch at least")
        if self.best is not None:
            epoch = self.best.get("epoch")
            if type(epoch) is not int or not 0 <= epoch <= self.epoch:
                raise InputError(
                    f"best.epoch {shown(epoch)}: expected a whole number from 0 to the epoch, {self.epoch}"
                )
            if wild := [key for key, value in self.best.items() if math.isnan(value)]:
                raise InputError(f"best.{wild[0]} is not a number")


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


def _problem_of_state(value: Any, *, least: float) -> str | None:
    """Why an optimizer cannot have ``value``, in one pass over it: no numbers, or beyond ``least`` and float32's."""
    if isinstance(value, Tensor):
        if problem := tensor_problem(value):
            return problem
        if value.dtype is torch.bool or value.numel() == 0:
            return f"{shown(value)}, expected numbers"
        low, high = (one.item() for one in value.detach().aminmax())
    elif _is_number(value):
        low = high = value
    else:
        return f"{shown(value)}, expected a tensor or a number"
    if not -_LARGEST <= low <= high <= _LARGEST:  # true of NaN
        return "not finite"
    return None if low >= least else f"below {least:g} (of {low:g})"


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
    """Return the checkpoint after the checks that its types cannot express.

    Raises:
        CheckpointError: the model is unknown, its configuration or training state is wrong, they do not go together,
            or a weight is no tensor to compute with; names the field.
    """
    if checkpoint.model not in (known := available_models()):
        raise CheckpointError(f"{where}: of the model {shown(checkpoint.model)}, expected one of {', '.join(known)}")
    spec = get_model(checkpoint.model)
    config = read_fields(spec.config, checkpoint.config, where=f"{where}: config.model")
    if (text := checkpoint.text) is not None:
        with naming_fields(f"{where}: config.text", error=CheckpointError):
            for name in text.cleaners:
                get_cleaner(name)
            if text.input_type != "pf":
                get_symbol_table(text.symbol_set)
            _check_speakers(text.speakers, _n_speakers(spec, config))
    if checkpoint.training is not None:
        read_fields(TrainingState, checkpoint.training, where=f"{where}: training")
    for name, key, value in _weights(checkpoint):
        problem = tensor_problem(value) if isinstance(value, Tensor) else f"{shown(value)}, expected a tensor"
        if problem:
            raise CheckpointError(f"{where}: weight {name}.{key} is {problem}")
    if checkpoint.layout == OWN_LAYOUT and checkpoint.ema is not None:
        _check_ema(checkpoint.ema, checkpoint.networks, where=where)
    return checkpoint


def _n_speakers(spec: ModelSpec, config: Any) -> int:
    of = spec.inference.n_speakers if isinstance(spec.inference, GeneratorSpec) else None
    return 1 if of is None else of(config)


def _check_speakers(names: Sequence[str], n_speakers: int) -> None:
    """Refuse by InputError names of speakers that cannot be told apart, written, or spoken by."""
    if len(names) > n_speakers:
        raise InputError(f"speakers: {len(names)} names, expected at most {n_speakers}, the model's number of speakers")
    for index, name in enumerate(names):
        check_name(f"speakers[{index}]", name)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"speakers: {shown(repeated[0])} more than once, expected each name once")


def _check_ema(ema: Weights, networks: Weights, *, where: str) -> None:
    """Refuse EMA weights unless they are of the network that infers, which is the first, and of nothing else."""
    first = next(iter(networks), "")
    if first not in ema or not ema.keys() <= networks.keys():
        raise CheckpointError(f"{where}: ema of the networks {shown(list(ema))}, expected one of {first}")
    for name, state in ema.items():
        refuse(differences(networks[name], state), where=where, kind=f"EMA weights of the {name}")


def _weights(checkpoint: Checkpoint) -> Iterator[tuple[str, str, Any]]:
    for prefix, networks in (("", checkpoint.networks), ("EMA ", checkpoint.ema or {})):
        for name, state in networks.items():
            yield from ((f"{prefix}{name}", key, value) for key, value in state.items())
