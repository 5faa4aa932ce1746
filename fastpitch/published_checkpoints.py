"""Read FastPitch's published checkpoints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import published_state, training_state
from common.config import AudioConfig, from_plain
from common.errors import CheckpointError
from common.text.cleaners import cleaners_of_1_1
from common.text.config import TextConfig
from common.text.symbols import CHARACTER_SETS, EXPANDED_1_1, get_symbol_table
from fastpitch.config import ModelConfig

State = dict[str, Tensor]
_BUFFERS = ("pitch_mean", "pitch_std", "pos_emb.inv_freq")  # endings of their keys
_AUDIO_FIELDS = ("sampling_rate", "filter_length", "hop_length", "win_length", "mel_fmin", "mel_fmax")
# FastPitch 1.0 stores only the input type and the number of symbols.
_SYMBOL_SETS = {
    ("char", 148): "english_basic",
    ("char", 123): "english_basic_lowercase",
    ("char", 176): "english_expanded",
    ("char", 175): EXPANDED_1_1,
    ("phone", 88): "arpabet",
    ("phone", 151): "ipa",
    ("phone", 173): "xsampa",
    ("phone", 46): "combilex",
}


def read_published(state: State, payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint | None:
    """Read the layout of FastPitch's train.py: config, state_dict, ema_state_dict, optimizer, epoch, iteration, scaler.

    Version 1.1 adds train_setup, its options. Returns None for another layout; raises CheckpointError without config.
    """
    if not {"encoder.word_emb.weight", "duration_predictor.fc.weight"} <= state.keys():
        return None
    if payload.get("config") is None:
        advice = "give it as JSON: bash scripts/convert_checkpoint.sh SOURCE TARGET --config config.json"
        raise CheckpointError(f"{path}: FastPitch's weights without their configuration; {advice}")
    config = {"symbol_type": "char"} | payload["config"]  # NVIDIA's versions read only characters
    config["learned_alignment"] = any(key.startswith("attention.") for key in state)
    setup, ema = payload.get("train_setup") or {}, payload.get("ema_state_dict")
    text = _text_config(setup, config["symbol_type"], config["n_symbols"])
    if text is not None and (setup or config["learned_alignment"]):  # version 1.1 has its own cleaners
        text = replace(text, cleaners=cleaners_of_1_1(text.cleaners))
    recorded = {"n_mels": config["n_mel_channels"]} | {key: setup[key] for key in _AUDIO_FIELDS if key in setup}
    audio = from_plain(AudioConfig, recorded, where=f"{path}: train_setup", error=CheckpointError)
    return Checkpoint(
        model="FastPitch",
        config=from_plain(ModelConfig, config, where=f"{path}: config", error=CheckpointError),
        audio=audio,
        text=text,
        layout=f"FastPitch {'1.1' if setup or config['learned_alignment'] else '1.0'}",
        networks={"fastpitch": state},
        ema=None if ema is None else {"fastpitch": published_state(ema)},
        training=_training_state(payload, state) if training else None,
    )


def _text_config(setup: dict[str, Any], symbol_type: str, n_symbols: int) -> TextConfig | None:
    """Return the front end stored by FastPitch 1.1, else one that fits; None if no symbol set has that many symbols.

    1.1's dictionary and heteronyms aren't in its checkpoints; the toolkit's replace them.
    """
    if symbol_type == "pf":
        return TextConfig(input_type="pf", symbol_set="", cleaners=())
    stored = setup.get("symbol_set")
    if stored == "english_expanded" and n_symbols == len(get_symbol_table(EXPANDED_1_1).symbols):
        stored = EXPANDED_1_1
    if stored in CHARACTER_SETS and n_symbols == len(get_symbol_table(stored).symbols):
        return TextConfig(
            symbol_set=stored,
            cleaners=tuple(setup.get("text_cleaners", ())),
            p_arpabet=setup.get("p_arpabet", 0.0),
            prepend_space=setup.get("prepend_space_to_text", False),
            append_space=setup.get("append_space_to_text", False),
        )
    name = _SYMBOL_SETS.get((symbol_type, n_symbols))
    if name is None:
        return None
    return TextConfig(input_type=symbol_type, symbol_set=name, cleaners=("english_cleaners",) * (symbol_type == "char"))


def _training_state(payload: dict[str, Any], state: State) -> dict[str, Any] | None:
    """Return the training state, with the steps and settings of our LAMB."""
    training = training_state(payload, "fastpitch", state, buffers=_BUFFERS, iteration="iteration")
    saved = {} if training is None else training["optimizers"]["fastpitch"]
    if saved and "amsgrad" not in saved["settings"]:  # LAMB doesn't store these constants
        saved["settings"] |= {"clamp_value": 10.0, "debias": False}
        for values in saved["states"].values():
            values["step"] = int(values["step"])  # counted on the host
    return training
