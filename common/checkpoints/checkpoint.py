"""Checkpoints: ``.pt`` files of plain types and tensors, written atomically, and read without running code."""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints.pickled import read_pickled
from common.config import AudioConfig, TextConfig, from_plain, to_plain
from common.errors import CheckpointError, shown
from common.files import check_file, write_atomically
from common.registry import available_models, get_model

Weights = dict[str, dict[str, Tensor]]  # network -> name -> tensor

_LONGEST_LIST = 6  # weights named in an error


def check_weights(own: Weights, given: Weights, *, where: str, kind: str = "weights") -> None:
    """Refuse state dicts that cannot be loaded into networks with the state dicts ``own``.

    ``kind`` of weights they are, ``where`` begins errors.

    Raises:
        CheckpointError: lists what is missing, unexpected or of another shape.
    """
    lines = [f"no network {name}" for name in own if name not in given]
    for name in own.keys() & given.keys():
        lines += _differences(own[name], given[name])
    if lines:
        listed = "; ".join(lines[:_LONGEST_LIST])
        rest = f"; and {len(lines) - _LONGEST_LIST} more" if len(lines) > _LONGEST_LIST else ""
        raise CheckpointError(f"{where}: its {kind} do not fit the model: {listed}{rest}")


def _differences(own: dict[str, Tensor], given: dict[str, Tensor]) -> list[str]:
    """A line for each key and shape in which a state dict differs from the ``own`` one."""
    lines = [f"missing {key}" for key in own if key not in given]
    lines += [f"unexpected {key}" for key in given if key not in own]
    shapes = [(key, tuple(given[key].shape), tuple(own[key].shape)) for key in own if key in given]
    return lines + [f"{key} is {found}, expected {wanted}" for key, found, wanted in shapes if found != wanted]


FORMAT_VERSION = 1
OWN_LAYOUT = "ours"
_LARGEST_HEADER = 100_000_000  # bytes, as safetensors has it
SAFETENSORS_LAYOUT = "safetensors"  # ours too
_NAME = re.compile(r"_checkpoint_(\d+)(?:_iter(\d+))?\.pt$")


@dataclass(frozen=True)
class Stripped:
    """What `common.checkpoints.strip_checkpoint` has left of a checkpoint."""

    dtype: str  # that its matrices were stored in
    ema: bool  # whether its weights are the EMA weights


@dataclass(frozen=True)
class Checkpoint:
    """All that a checkpoint holds; ``training`` is None in one that only serves inference."""

    model: str  # name of the model, as `train.py --model`
    config: dict[str, Any]  # the model's ModelConfig as plain types
    audio: AudioConfig
    text: TextConfig | None
    networks: dict[str, dict[str, Tensor]]  # network name -> state dict
    ema: dict[str, dict[str, Tensor]] | None = None
    training: dict[str, Any] | None = None  # epoch, iteration, optimizers, loss scaler, random states
    # Fields of ``audio`` that are assumed, since the published file that the weights come from does not record them.
    # Training knows the features it trains with, so the checkpoints it writes name none.
    assumed: tuple[str, ...] = ()
    assumed_config: tuple[str, ...] = ()  # and fields of ``config``, where the weights' shapes do not tell all of it
    stripped: Stripped | None = None  # None: a checkpoint of training, or a published one
    layout: str = OWN_LAYOUT  # of the file that it was read from, for people; no file records it

    @property
    def has_ema(self) -> bool:
        """Whether there are EMA weights, beside the raw ones or in their place."""
        return self.ema is not None or (self.stripped is not None and self.stripped.ema)


def plain_configs(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a checkpoint's model is, as files hold it; `read_configs` reads it."""
    text = None if checkpoint.text is None else to_plain(checkpoint.text)
    return {
        "model": checkpoint.model,
        "config": {"model": checkpoint.config, "audio": to_plain(checkpoint.audio), "text": text},
        "assumed": list(checkpoint.assumed),
        "assumed_config": list(checkpoint.assumed_config),
    }


def read_configs(values: dict[str, Any], *, where: str, **parts: Any) -> Checkpoint:
    """The checkpoint that has the configs of a file's dict, and the other ``parts``; raises as `check_configs`."""
    config = values["config"]
    audio = from_plain(AudioConfig, config["audio"], where=f"{where}: config.audio", error=CheckpointError)
    text = config["text"]
    if text is not None:
        text = from_plain(TextConfig, text, where=f"{where}: config.text", error=CheckpointError)
    parts |= {name: tuple(values.get(name, ())) for name in ("assumed", "assumed_config")}
    return check_configs(Checkpoint(values["model"], config["model"], audio, text, **parts), where=where)


def check_configs(checkpoint: Checkpoint, *, where: str) -> Checkpoint:
    """Return the checkpoint, whose configs are right.

    Raises:
        CheckpointError: the model is unknown, its configuration is wrong, or it names more speakers than it has.
    """
    if checkpoint.model not in (known := available_models()):
        raise CheckpointError(f"{where}: of the model {shown(checkpoint.model)}, expected one of {', '.join(known)}")
    spec = get_model(checkpoint.model)
    config = from_plain(spec.config, checkpoint.config, where=f"{where}: config.model", error=CheckpointError)
    names = () if checkpoint.text is None else checkpoint.text.speakers
    n_speakers = getattr(spec.inference, "n_speakers", None)
    if n_speakers is not None and len(names) > n_speakers(config):
        raise CheckpointError(f"{where}: names of {len(names)} speakers, expected at most {n_speakers(config)}")
    return checkpoint


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a kill at any moment leaves either the previous file or the new one, complete."""
    payload = {
        "format": FORMAT_VERSION,
        **{name: value for name, value in plain_configs(checkpoint).items() if value},
        "networks": checkpoint.networks,
        "ema": checkpoint.ema,
        "training": checkpoint.training,
    }
    if checkpoint.stripped is not None:
        payload["stripped"] = to_plain(checkpoint.stripped)
    write_atomically(path, lambda file: torch.save(payload, file))


class PartialFileError(CheckpointError):
    """A file that belongs to another one; ``main`` is that one, where it is known."""

    def __init__(self, message: str, *, main: Path | None) -> None:
        super().__init__(message)
        self.main = main


def read_payload(path: Path, *, on_demand: bool = False) -> dict[str, Any]:
    """The dict of plain types and tensors that a checkpoint file holds, whatever its layout.

    ``on_demand`` maps the file into memory, where its format lets it, so that tensors are read when they are used.

    Raises:
        CheckpointError: the file is missing, damaged, or holds anything but a dict of tensors and plain types.
    """
    check_file(path, kind="checkpoint file", error=CheckpointError)
    if is_onnx(path):
        wanted = "give the checkpoint that it was made of, or its safetensors"
        raise CheckpointError(f"{path}: an ONNX file, which is for inference alone; {wanted}")
    if safetensors_header(path) is not None:
        return read_safetensors_weights(path)[0]
    return read_pickled(path, on_demand=on_demand)


def safetensors_header(path: Path) -> bytes | None:
    """The JSON header of a file that begins as safetensors do, with the header's size; None for another."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        size, start = int.from_bytes(file.read(8), "little"), file.read(1)
        is_header = start == b"{" and size < min(path.stat().st_size, _LARGEST_HEADER)
        return start + file.read(size - 1) if is_header else None


def read_safetensors_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file in safetensors by name, and its metadata.

    Raises:
        CheckpointError: it is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118  (no mapping)
    except SafetensorError as error:
        raise CheckpointError(f"{path}: cannot be read, damaged or truncated ({error})") from error


def is_onnx(path: Path) -> bool:
    """Whether a file begins as ONNX models do, with the field of their version, and not as safetensors may."""
    with path.open("rb") as file:
        return file.read(1) == b"\x08" and safetensors_header(path) is None


def checkpoint_path(folder: Path, model: str, *, epoch: int, iteration: int | None = None) -> Path:
    """Where the checkpoint of a finished epoch goes, or, with ``iteration``, the rolling one after that update."""
    within = "" if iteration is None else f"_iter{iteration}"
    return folder / f"{model}_checkpoint_{epoch}{within}.pt"


def saved_checkpoints(folder: Path, model: str) -> list[Path]:
    """The model's checkpoints in ``folder``, oldest training state first."""
    found = ((_NAME.search(path.name), path) for path in folder.glob(f"{model}_checkpoint_*.pt"))
    placed = [((int(name[1]), int(name[2]) if name[2] else math.inf), path) for name, path in found if name]
    return [path for _, path in sorted(placed)]


def is_rolling(path: Path) -> bool:
    """Whether a checkpoint's name says that it is one of those within epochs, which newer ones replace."""
    found = _NAME.search(path.name)
    return found is not None and found.group(2) is not None


def epoch_of(path: Path) -> int:
    """The epoch that a checkpoint's name says."""
    found = _NAME.search(path.name)
    assert found is not None, f"{path} is not named as a checkpoint"
    return int(found[1])


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def strip_checkpoint(checkpoint: Checkpoint, *, dtype: str = "float32") -> Checkpoint:
    """What inference needs of a checkpoint alone, with matrices and kernels in one of ``DTYPES``.

    What has one value a channel (biases, norms, statistics) stays as it is: it takes no space, and rounding it costs
    accuracy.
    """
    name, raw = next(iter(checkpoint.networks.items()))  # the one that infers comes first
    state = (checkpoint.ema or {}).get(name, raw)
    ema = state is not raw or checkpoint.has_ema
    rounded = {key: _rounded(value, DTYPES[dtype]) for key, value in state.items()}
    return replace(
        checkpoint, networks={name: rounded}, ema=None, training=None, stripped=Stripped(dtype=dtype, ema=ema)
    )


def _rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    is_matrix = value.is_floating_point() and value.dim() > 1 and value.numel() > value.size(0)
    return value.to(dtype) if is_matrix else value
