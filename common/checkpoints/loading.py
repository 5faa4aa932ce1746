"""Open checkpoints for inference, and build their networks."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from torch import nn

from common.checkpoints.checkpoint import Checkpoint, Weights
from common.checkpoints.exported import ExportedFile, open_exported
from common.checkpoints.reading import file_format, load_checkpoint
from common.config import AudioConfig, naming_errors
from common.errors import CheckpointError, InputError, OptionError, reason
from common.precision import Precision, precision_of_device
from common.registry import ModelSpec, available_models, get_model
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd

Networks = dict[str, nn.Module]
_LONGEST_DIFFERENCE = 500  # characters of a message


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint for inference, and its model."""

    spec: ModelSpec
    path: Path
    checkpoint: Checkpoint
    ema: bool  # whether to use its EMA weights
    exported: ExportedFile | None = None  # an ONNX file, which runs instead of the network


def open_checkpoint(
    path: Path, *, model: str | None = None, role: str | None = None, ema: bool | None = None
) -> LoadedCheckpoint:
    """Open a checkpoint of ``model``, or of any model with ``role``, for inference.

    By default, its EMA weights are used if it has any, with a note on stderr; ``ema=True`` uses them silently,
    ``ema=False`` the raw ones. Raises CheckpointError if it can't be read, is of another model, or lacks raw weights.
    """
    exported, checkpoint = read_model(path)
    expected = available_models(role) if model is None else [model]
    if checkpoint.model not in expected:
        raise CheckpointError(f"{path}: a checkpoint of {checkpoint.model}, expected one of {' or '.join(expected)}")
    if ema is False and checkpoint.has_ema and checkpoint.stripped is not None:
        raise CheckpointError(f"{path}: a stripped checkpoint with EMA weights only; leave out --no-ema")
    if ema is None and checkpoint.has_ema:
        choice = "" if checkpoint.stripped is not None else "; --no-ema for the raw ones"
        print(f"using the EMA weights of {path}{choice}", file=sys.stderr)
    uses_ema = ema is not False and checkpoint.has_ema
    return LoadedCheckpoint(get_model(checkpoint.model), path, checkpoint, ema=uses_ema, exported=exported)


def read_model(path: Path) -> tuple[ExportedFile | None, Checkpoint]:
    """Read a checkpoint without its training state, or one of our ONNX files and its description.

    Raises CheckpointError for other files and damaged ones.
    """
    return open_exported(path) if file_format(path) == "onnx" else (None, load_checkpoint(path, training=False))


def load_networks(
    checkpoint: Checkpoint, *, ema: bool = False, device: torch.device, where: str = "checkpoint", shared: bool = False
) -> tuple[Networks, Any]:
    """Build a checkpoint's networks for inference, on ``device`` in evaluation mode; also return its ModelConfig.

    ``ema`` selects the EMA weights; ``where`` names the checkpoint in errors. With ``shared``, the networks use the
    checkpoint's tensors, not copies. Raises CheckpointError if there are no EMA weights, or weights don't fit.
    """
    if ema and not checkpoint.has_ema:
        raise CheckpointError(f"{where}: has no EMA weights; leave out --ema")
    weights = {**checkpoint.networks, **(checkpoint.ema or {})} if ema else checkpoint.networks
    networks = new_networks(checkpoint, where=where, device="cpu", inference=True)
    load_weights(networks, weights, where=where, shared=shared)
    return {key: network.to(device).eval() for key, network in networks.items()}, checkpoint.config


def new_networks(checkpoint: Checkpoint, *, where: str, device: str = "meta", inference: bool = False) -> Networks:
    """Build a checkpoint's networks with new weights; on the device ``meta``, they only have shapes.

    With ``inference``, or if the checkpoint has only one network, networks for training only are left out.
    """
    build, inference = get_model(checkpoint.model).model.build_networks, inference or len(checkpoint.networks) == 1
    try:
        with torch.device(device), naming_errors(where, error=CheckpointError):
            return build(checkpoint.config, checkpoint.audio, checkpoint.text, inference=inference)
    except (RuntimeError, ValueError, TypeError, ArithmeticError, LookupError) as error:  # from PyTorch's modules
        raise CheckpointError(f"{where}: its configuration fits no network ({reason(error)})") from error


def check_fit(checkpoint: Checkpoint, *, where: str) -> Networks:
    """Build a checkpoint's networks and check that its weights fit; same errors as `load_weights`."""
    built = new_networks(checkpoint, where=where)
    load_weights({name: built[name] for name in checkpoint.networks if name in built}, checkpoint.networks, where=where)
    return built


def load_for_inference(loaded: LoadedCheckpoint, *, device: torch.device | str) -> tuple[Any, Any]:
    """Build the network for inference, with weight norm folded; also return its ModelConfig.

    Raises CheckpointError as `load_networks`; OptionError if an exported file is for other programs only, or the
    device isn't the CPU.
    """
    spec, exported, made, device = loaded.spec, loaded.exported, loaded.checkpoint, torch.device(device)
    if exported is None:
        shared = made.stripped is not None  # then its matrices are in memory, not only in the file
        networks, config = load_networks(made, ema=loaded.ema, device=device, where=str(loaded.path), shared=shared)
        network: Any = next(iter(networks.values()))
        network.prepare_for_inference()
        return network, config
    if (exported_network := spec.find("export", "ExportedNetwork")) is None:
        raise OptionError(f"{loaded.path}: exported files of {spec.name} are for other programs; give the checkpoint")
    if device.type != "cpu":
        raise OptionError(f"{loaded.path}: ONNX files are run on the CPU; leave out --cuda, or give the checkpoint")
    runners = exported.runners()
    return exported_network(runners.get("", runners), made.config, exported.description, device), made.config


def precision_for(opened: Sequence[LoadedCheckpoint], device: str) -> Precision:
    """Return `precision_of_device`, where "auto" is the CPU if a checkpoint is an ONNX file, which runs there."""
    runs_on_cpu = any(one.exported is not None for one in opened)
    return precision_of_device("cpu" if runs_on_cpu and device == "auto" else device)


def load_weights(
    networks: Mapping[str, nn.Module], weights: Weights, *, where: str, kind: str = "weights", shared: bool = False
) -> None:
    """Load each network's state dict strictly; ``kind`` names the weights in errors.

    With ``shared``, the networks use the state dict's tensors. Raises a CheckpointError that lists missing, unexpected
    and misshapen weights.
    """
    for name, network in networks.items():
        if name not in weights:
            raise CheckpointError(f"{where}: its {kind} do not fit the model: no network {name}")
        is_meta = any(parameter.is_meta for parameter in network.parameters())
        try:
            network.load_state_dict(weights[name], assign=shared or is_meta)
        except RuntimeError as error:
            differences = shorten(str(error).partition("\n")[2], _LONGEST_DIFFERENCE)
            raise CheckpointError(f"{where}: its {kind} do not fit the model: {differences}") from error


def check_model(config: Any, audio: AudioConfig, text: TextConfig | None) -> None:
    """Raise InputError if a text-to-mel model's numbers of mel channels or symbols differ from these configs.

    Symbols aren't checked without ``text``, or for phonological features without a table.
    """
    if config.n_mel_channels != audio.n_mels:
        raise InputError(f"the model outputs {config.n_mel_channels} mel channels, the audio has {audio.n_mels}")
    if text is None or (text.input_type == "pf" and not text.phone_features):
        return
    if config.n_symbols != (n_symbols := TextFrontEnd(text).n_symbols):
        what = "features, their table" if text.phone_features else f"symbols, symbol set {text.symbol_set}"
        raise InputError(f"the model reads {config.n_symbols} {what} has {n_symbols}")
