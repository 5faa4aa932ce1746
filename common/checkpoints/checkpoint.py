"""Checkpoints: ``.pt`` files of plain types and tensors."""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints.layout import as_float32
from common.config import AudioConfig, from_plain, to_plain
from common.data.batch import Longest
from common.errors import CheckpointError, shown
from common.files import write_atomically
from common.registry import available_models, get_model
from common.text.config import TextConfig

Weights = dict[str, dict[str, Tensor]]  # network -> name -> tensor
FORMAT_VERSION = 1
OWN_LAYOUT = "ours"
SAFETENSORS_LAYOUT = "safetensors"  # ours too
_NAME = re.compile(r"_checkpoint_(\d+)(?:_iter(\d+))?\.pt$")


@dataclass(frozen=True)
class Stripped:
    """How `strip_checkpoint` stripped a checkpoint."""

    dtype: str  # of its matrices
    ema: bool  # whether its weights are the EMA weights


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint; ``training`` is None in a checkpoint for inference only."""

    model: str  # name of the model, as in `train.py --model`
    config: Any  # its ModelConfig
    audio: AudioConfig
    text: TextConfig | None
    networks: Weights
    ema: Weights | None = None
    training: dict[str, Any] | None = None  # epoch, iteration, optimizers, loss scaler, random states
    assumed: tuple[str, ...] = ()  # fields of ``audio`` that a published file doesn't record
    assumed_config: tuple[str, ...] = ()  # fields of ``config`` that neither the file nor the weights' shapes determine
    stripped: Stripped | None = None  # None: a training checkpoint, or a published one
    longest: Longest | None = None  # the longest training utterance, if known
    layout: str = OWN_LAYOUT  # of the file that it was read from, for messages; not stored

    @property
    def has_ema(self) -> bool:
        """Whether it has EMA weights, with or instead of the raw ones."""
        return self.ema is not None or (self.stripped is not None and self.stripped.ema)


def plain_configs(checkpoint: Checkpoint) -> dict[str, Any]:
    """Describe a checkpoint's model in the form that files store, for `read_own`."""
    text = checkpoint.text and to_plain(checkpoint.text)
    return {
        "model": checkpoint.model,
        "config": {"model": to_plain(checkpoint.config), "audio": to_plain(checkpoint.audio), "text": text},
        "assumed": list(checkpoint.assumed),
        "assumed_config": list(checkpoint.assumed_config),
        "longest": checkpoint.longest and to_plain(checkpoint.longest),
    }


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically: a kill leaves either the previous file or the new one."""
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


def read_own(payload: dict[str, Any], *, training: bool, where: str) -> Checkpoint:
    """Return the checkpoint from a dict that `save_checkpoint` wrote; ``training=False`` drops the training state.

    Raises a CheckpointError that names the field if the model is unknown or the configuration invalid.
    """
    model, config, networks = payload["model"], payload["config"], payload["networks"]
    if model not in (known := available_models()):
        raise CheckpointError(f"{where}: model {shown(model)}, expected one of {', '.join(known)}")

    def read(kind: type, values: Any, name: str) -> Any:
        return None if values is None else from_plain(kind, values, where=f"{where}: {name}", error=CheckpointError)

    stripped = payload.get("stripped")
    return Checkpoint(
        model,
        read(get_model(model).config.ModelConfig, config["model"], "config.model"),
        read(AudioConfig, config["audio"], "config.audio"),
        read(TextConfig, config["text"], "config.text"),
        networks=networks if stripped is None else {name: as_float32(state) for name, state in networks.items()},
        ema=payload["ema"],
        training=payload["training"] if training else None,
        assumed=tuple(payload.get("assumed", ())),
        assumed_config=tuple(payload.get("assumed_config", ())),
        stripped=read(Stripped, stripped, "stripped"),
        longest=read(Longest, payload.get("longest"), "longest"),
        layout=payload.get("layout", OWN_LAYOUT),
    )


def checkpoint_path(folder: Path, model: str, *, epoch: int, iteration: int | None = None) -> Path:
    """Return the path of an epoch's checkpoint or, with ``iteration``, of the rolling checkpoint after that update."""
    within = "" if iteration is None else f"_iter{iteration}"
    return folder / f"{model}_checkpoint_{epoch}{within}.pt"


def saved_checkpoints(folder: Path, model: str) -> list[Path]:
    """Return the model's checkpoints in ``folder``, oldest training state first."""
    found = ((_NAME.search(path.name), path) for path in folder.glob(f"{model}_checkpoint_*.pt"))
    placed = [((int(name[1]), int(name[2]) if name[2] else math.inf), path) for name, path in found if name]
    return [path for _, path in sorted(placed)]


def voice_name(path: Path) -> str:
    """Return a voice's name: the folder's if training named the checkpoint, otherwise the file's."""
    folder = path.resolve().parent.name
    made_by_training = _NAME.search(path.name) or path.stem.endswith(("_inference", "_inference_best"))
    return folder if made_by_training and folder != "output" else path.stem


def is_rolling(path: Path) -> bool:
    """Whether a checkpoint's name says that it was saved within an epoch; newer ones replace it."""
    return "_iter" in path.name


def strip_checkpoint(checkpoint: Checkpoint, *, dtype: str = "float32") -> Checkpoint:
    """Keep only what inference needs, with matrices and kernels in ``dtype``, such as bfloat16.

    Biases, norms and statistics stay float32: they're small, and rounding them costs accuracy.
    """
    name, raw = next(iter(checkpoint.networks.items()))  # the one for inference comes first
    state = (checkpoint.ema or {}).get(name, raw)
    ema = state is not raw or checkpoint.has_ema
    floats = {key: value for key, value in state.items() if value.is_floating_point() and value.dim() > 1}
    matrices = {key: value for key, value in floats.items() if value.numel() > value.size(0)}
    rounded = state | {key: value.to(getattr(torch, dtype)) for key, value in matrices.items()}
    return replace(checkpoint, networks={name: rounded}, ema=None, training=None, stripped=Stripped(dtype, ema=ema))
