"""Read WaveGlow's published checkpoints: training checkpoints, and files with the complete network."""

import re
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import training_state
from common.config import AudioConfig, from_plain
from common.errors import CheckpointError
from common.nn.weight_norm import split_weights
from waveglow.config import ModelConfig
from waveglow.model import UPSAMPLING_FRAMES

State = dict[str, Tensor]
_NORMED = re.compile(r"WN\.\d+\.(start|(in|cond|res_skip)_layers\.\d+)\.weight")
_FUSED = re.compile(r"(WN\.\d+)\.cond_layer\.(.+)")
# Copies of the same tensors, in the order that the original's TorchScript needs.
_REPEATED = ("WN_rev.", "convinv_rev.")
# No file records them; they are the recipe's, unless its options were changed.
_UNRECORDED = ("sampling_rate", "filter_length", "win_length", "mel_fmin", "mel_fmax")


def read_published(given: State, payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint | None:
    """Read the layout of the original's train.py: config, state_dict, optimizer, epoch, scaler; None for any other.

    If the file holds only a network for inference, the configuration comes from the weights' shapes; the conditioning
    of all layers may be one convolution, weight norm may be folded, and weights may be float16.
    """
    if "convinv.0.conv.weight" not in given:
        return None
    state = {key: value for key, value in given.items() if not key.startswith(_REPEATED)}
    state = split_weights(_with_separate_conditioning(state), is_normed=lambda key: bool(_NORMED.fullmatch(key)))
    resumable = training and "epoch" in payload and list(given) == list(state)
    n_mels, _, kernel_size = state["upsample.weight"].shape
    config = _config(payload["config"]) if payload.get("config") else _config_of_weights(state)
    return Checkpoint(
        model="WaveGlow",
        config=from_plain(ModelConfig, config, where=f"{path}: config", error=CheckpointError),
        audio=AudioConfig(n_mels=n_mels, hop_length=kernel_size // UPSAMPLING_FRAMES),
        text=None,
        networks={"waveglow": state},
        training=training_state(payload, "waveglow", given, first_epoch=0, needs="state") if resumable else None,
        layout="WaveGlow",
        assumed=_UNRECORDED,
    )


def _config(values: dict[str, Any]) -> dict[str, Any]:
    """Convert the original's constructor arguments to our fields."""
    own = {name: value for name, value in values.items() if name != "WN_config"}
    return own | {f"wn_{name.removeprefix('n_')}": value for name, value in values["WN_config"].items()}


def _config_of_weights(state: State) -> dict[str, Any]:
    widths: list[int] = []
    while (key := f"convinv.{len(widths)}.conv.weight") in state:
        widths.append(state[key].size(0))
    n_early = [flow for flow in range(1, len(widths)) if widths[flow] < widths[flow - 1]]
    first = state["WN.0.in_layers.0.weight_v"]
    return {
        "n_mel_channels": state["upsample.weight"].size(0),
        "n_flows": len(widths),
        "n_group": widths[0],
        "n_early_every": n_early[0] if n_early else len(widths),
        "n_early_size": widths[n_early[0] - 1] - widths[n_early[0]] if n_early else 2,
        "wn_layers": sum(re.fullmatch(r"WN\.0\.in_layers\.\d+\.bias", key) is not None for key in state),
        "wn_kernel_size": first.size(2),
        "wn_channels": first.size(1),
    }


def _with_separate_conditioning(state: State) -> State:
    """Split conditioning that later versions compute for all layers of a network at once, with concatenated rows."""
    separate = {}
    for key, value in state.items():
        found = _FUSED.fullmatch(key)
        if found is None:
            separate[key] = value
            continue
        prefix, kind = found.groups()
        n_rows = state[f"{prefix}.in_layers.0.bias"].size(0)
        for index, rows in enumerate(value.split(n_rows)):
            separate[f"{prefix}.cond_layers.{index}.{kind}"] = rows
    return separate
