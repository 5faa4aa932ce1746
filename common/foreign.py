"""Checkpoints of other implementations: recognised by their keys, and read into ours, one reader a layout."""

from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoint import Checkpoint
from common.config import AudioConfig, TextConfig
from common.errors import CheckpointError

_DDP_PREFIX = "module."
_NOT_PARAMETERS = ("pitch_mean", "pitch_std", "pos_emb.inv_freq")  # FastPitch's buffers, by the end of their keys
# FastPitch 1.0 stores no name of its symbol set, only the kind of input and how many symbols there are.
_SYMBOL_SETS = {
    ("char", 148): "english_basic",
    ("char", 123): "english_basic_lowercase",
    ("char", 176): "english_expanded",
    ("phone", 88): "arpabet",
    ("phone", 151): "ipa",
    ("phone", 173): "xsampa",
    ("phone", 46): "combilex",
}


def read_foreign(payload: dict[str, Any], *, path: Path) -> Checkpoint | None:
    """A checkpoint of a published layout as ours, or None for an unknown one; ``path`` is named in errors.

    Raises:
        CheckpointError: the layout is known but not read here, or the checkpoint is damaged.
    """
    layout = _recognise(payload)
    if layout is None:
        return None
    if layout != "FastPitch 1.0":
        raise CheckpointError(
            f"{path}: a checkpoint of {layout}, which this version cannot read; expected FastPitch 1.0"
        )
    try:
        return _read_fastpitch_1_0(payload)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(f"{path}: a damaged checkpoint of {layout} ({error!r})") from error


def _recognise(payload: dict[str, Any]) -> str | None:
    """Name of the layout, from keys that no other one has."""
    if isinstance(payload.get("generator"), dict) and "conv_pre.bias" in payload["generator"]:
        return "HiFi-GAN"
    if isinstance(payload.get("mpd"), dict) and isinstance(payload.get("msd"), dict):
        return "HiFi-GAN's discriminators"
    state = payload.get("state_dict")
    if not isinstance(state, dict):
        return None
    keys = {key.removeprefix(_DDP_PREFIX) for key in state if isinstance(key, str)}
    if {"encoder.word_emb.weight", "duration_predictor.fc.weight"} <= keys:
        return "FastPitch 1.1" if any(key.startswith("attention.") for key in keys) else "FastPitch 1.0"
    if "decoder.attention_rnn.weight_ih" in keys:
        return "Tacotron 2"
    if "convinv.0.conv.weight" in keys:
        return "WaveGlow"
    if any(key in keys for key in ("encoder.layers.0.conv.0.weight", "jasper_encoder.encoder.0.conv.0.weight")):
        return "Jasper"
    return None


def _read_fastpitch_1_0(payload: dict[str, Any]) -> Checkpoint:
    """Layout of FastPitch 1.0's train.py: config, state_dict, ema_state_dict, optimizer, epoch, iteration, scaler."""
    config = {"symbol_type": "char"} | payload["config"]  # the first version knew nothing but characters
    state = _without_prefix(payload["state_dict"])
    ema = payload.get("ema_state_dict")
    return Checkpoint(
        model="FastPitch",
        config=config,
        audio=AudioConfig(n_mels=config["n_mel_channels"]),
        text=_text_config(config["symbol_type"], config["n_symbols"]),
        networks={"fastpitch": state},
        ema=None if ema is None else {"fastpitch": _without_prefix(ema)},
        training=_training_state(payload, parameters=[key for key in state if not key.endswith(_NOT_PARAMETERS)]),
    )


def _without_prefix(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Keys without the prefix that wrapping in DistributedDataParallel leaves."""
    return {key.removeprefix(_DDP_PREFIX): value for key, value in state.items()}


def _text_config(symbol_type: str, n_symbols: int) -> TextConfig | None:
    """The text front end that fits, or None where no symbol set has that many symbols."""
    if symbol_type == "pf":
        return TextConfig(input_type="pf", symbol_set="", cleaners=())
    name = _SYMBOL_SETS.get((symbol_type, n_symbols))
    if name is None:
        return None
    return TextConfig(input_type=symbol_type, symbol_set=name, cleaners=("english_cleaners",) * (symbol_type == "char"))


def _training_state(payload: dict[str, Any], *, parameters: list[str]) -> dict[str, Any] | None:
    """Epoch, iteration and optimizer state; the original numbers parameters in the order of the state dict."""
    optimizer = payload.get("optimizer")
    if not optimizer:
        return None
    settings = {key: value for key, value in optimizer["param_groups"][0].items() if key != "params"}
    states = {}
    for index, values in optimizer["state"].items():
        kept = {key: values[key] for key in ("step", "exp_avg", "exp_avg_sq")}
        states[f"fastpitch.{parameters[index]}"] = kept
    if "amsgrad" not in settings:  # LAMB, whose state leaves these two at the values they always had
        settings |= {"clamp_value": 10.0, "debias": False}
    return {
        "epoch": payload["epoch"],
        "iteration": payload["iteration"],
        "optimizers": {"fastpitch": {"settings": settings, "states": states}},
    }
