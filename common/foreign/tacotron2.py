"""Tacotron 2's published checkpoints."""

from typing import Any

from torch import Tensor

from common.checkpoint import Checkpoint
from common.config import AudioConfig, TextConfig
from common.foreign.layout import optimizer_by_name, without_prefix

_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")  # of batch norm, by the end of their keys
_N_SYMBOLS = 148  # of the one symbol set that the original has


def read(payload: dict[str, Any], *, training: bool) -> Checkpoint:
    """Layout of the original's train.py: config, state_dict, optimizer, scaler, epoch."""
    config = dict(payload["config"])
    state = without_prefix(payload["state_dict"])
    english = config["n_symbols"] == _N_SYMBOLS
    return Checkpoint(
        model="Tacotron2",
        config=config,
        audio=AudioConfig(n_mels=config["n_mel_channels"]),
        text=TextConfig(symbol_set="english_basic", cleaners=("english_cleaners",)) if english else None,
        networks={"tacotron2": state},
        training=_training_state(payload, state) if training else None,
        assumed=(
            "sampling_rate",
            "filter_length",
            "hop_length",
            "win_length",
            "mel_fmin",
            "mel_fmax",
            "framing",
            "peak",
        ),
    )


def _training_state(payload: dict[str, Any], state: dict[str, Tensor]) -> dict[str, Any] | None:
    """Epoch, iteration, optimizer and loss scale; the original numbers epochs from 0 and counts no iterations."""
    optimizer = payload.get("optimizer")
    if not optimizer or not optimizer["param_groups"]:
        return None
    saved = optimizer_by_name(optimizer, [f"tacotron2.{key}" for key in state if not key.endswith(_BUFFERS)])
    steps = [int(values["step"]) for values in saved["states"].values()]
    scaler = payload.get("scaler") or {}
    scaler = (
        {
            "scales": {"tacotron2": float(scaler["scale"])},
            "finite_since": {"tacotron2": int(scaler["_growth_tracker"])},
        }
        if scaler
        else {}
    )
    return {
        "epoch": payload["epoch"] + 1,
        "iteration": max(steps, default=0),
        "optimizers": {"tacotron2": saved},
        "scaler": scaler,
    }
