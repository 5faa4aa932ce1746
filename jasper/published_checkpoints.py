"""Read Jasper's published checkpoints, including those of its first version, whose keys have other names."""

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import published_state, training_state
from common.config import from_plain, naming_errors
from common.errors import CheckpointError
from jasper.config import LABELS, ModelConfig
from jasper.yaml_config import settings_of

State = dict[str, Tensor]
_FIRST_NAMES = re.compile(r"^jasper_(?:encoder|decoder)\.(encoder|decoder)(?:_layers)?\.")  # of the first version
_DROPPED = ("acoustic_model.", "audio_preprocessor.")  # in the first version: not part of the network
_LAYER = re.compile(r"encoder\.layers\.(\d+)\.(conv|res)\.(\d+)\.(?:(\d+)\.)?weight")
_FIRST_WEIGHTS = ("encoder.layers.0.conv.0.weight", "jasper_encoder.encoder.0.conv.0.weight")  # of either version
_N_CLASSES = len(LABELS) + 1  # in every published file: labels and CTC's blank
# No file records them; they are the recipe's, unless its YAML file had other values.
_UNRECORDED = ("sampling_rate", "filter_length", "hop_length", "win_length", "mel_fmin", "mel_fmax")


def read_published(given: State, payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint | None:
    """Read the layout of the original's train.py: epoch, step, best_wer, state_dict, ema_state_dict, optimizer, scaler.

    The configuration is in a separate YAML file, whose contents may be in ``config``. Without it, the
    blocks' widths, repeats and residual connections come from the weights' shapes; the rest is as published. Raises
    CheckpointError for a damaged file or other labels, InputError for a wrong ``config``.
    """
    if given.keys().isdisjoint(_FIRST_WEIGHTS):
        return None
    state, ema = _renamed(given), payload.get("ema_state_dict")
    if described := payload.get("config"):  # the YAML file's sections, added by convert_checkpoint.sh
        with naming_errors(str(path), error=CheckpointError):
            config: ModelConfig = settings_of(described).model
    else:
        config = from_plain(ModelConfig, _config_of(state, path), where=str(path), error=CheckpointError)
    resumable = training and "epoch" in payload
    return Checkpoint(
        model="Jasper",
        config=config,
        audio=config.features.audio,
        text=None,
        networks={"jasper": state},
        ema=None if ema is None else {"jasper": _renamed(published_state(ema))},
        training=training_state(payload, "jasper", state, iteration="step", needs="state") if resumable else None,
        layout="Jasper",
        assumed=() if described else _UNRECORDED,
        assumed_config=() if described else tuple(field.name for field in fields(ModelConfig)),
    )


def _renamed(given: State) -> State:
    kept = {key: value for key, value in given.items() if not key.startswith(_DROPPED)}
    return {_FIRST_NAMES.sub(r"\1.layers.", key): value for key, value in kept.items()}


def _config_of(state: State, path: Path) -> dict[str, Any]:
    """Infer the architecture from the weights' shapes, with published values for the rest."""
    if (n_classes := state["decoder.layers.0.weight"].size(0)) != _N_CLASSES:
        raise CheckpointError(f"{path}: {n_classes} classes, expected {_N_CLASSES}")
    n_mels = state[_FIRST_WEIGHTS[0]].size(1)
    convs: dict[int, list[torch.Size]] = {}
    residuals: Counter[int] = Counter()
    for key, weight in state.items():
        found = _LAYER.fullmatch(key)
        if found is not None and weight.dim() == 3:
            block = int(found[1])
            if found[2] == "conv":
                convs.setdefault(block, []).append(weight.shape)
            else:
                residuals[block] += 1
    last_residual = max(residuals, default=-1)
    blocks = []
    for block, shapes in sorted(convs.items()):
        filters, _, kernel_size = shapes[0]
        # As published, the first block halves the frames, and the first one after the residual blocks is dilated.
        is_dilated = block == last_residual + 1 and 0 < block < len(convs) - 1
        values: dict[str, Any] = {"filters": filters, "repeat": len(shapes), "kernel_size": kernel_size}
        values |= {"stride": 2 if block == 0 else 1, "dilation": 2 if is_dilated else 1}
        values["dropout"] = 0.4 if block > last_residual >= 0 else 0.3 if filters >= 640 else 0.2
        values["residual"] = block in residuals
        values["residual_dense"] = block in residuals and max(residuals.values()) > 1
        blocks.append(values)
    return {"blocks": blocks, "labels": list(LABELS), "features": {"n_filt": n_mels}}
