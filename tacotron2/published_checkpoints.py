"""Read Tacotron 2's published checkpoints, which are recognized by their keys."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import training_state
from common.config import AudioConfig, from_plain
from common.errors import CheckpointError
from common.text.cleaners import TACOTRON2
from common.text.config import TextConfig
from tacotron2.config import ModelConfig

State = dict[str, Tensor]
_N_SYMBOLS = 148  # in the original's only symbol set
_KEY = "decoder.attention_rnn.weight_ih"  # no other model has this key


def read_published(state: State, payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint | None:
    """Read the layout of the original's train.py: config, state_dict, optimizer, scaler, epoch; None for others.

    A file with only weights, even in float16, has the published architecture.
    """
    if _KEY not in state:
        return None
    described = payload.get("config") or {"n_symbols": len(state["embedding.weight"])}
    config: ModelConfig = from_plain(ModelConfig, described, where=f"{path}: config", error=CheckpointError)
    english = config.n_symbols == _N_SYMBOLS
    return Checkpoint(
        model="Tacotron2",
        config=config,
        audio=AudioConfig(n_mels=config.n_mel_channels),
        text=TextConfig(symbol_set="english_basic", cleaners=(TACOTRON2,)) if english else None,
        networks={"tacotron2": state},
        training=training_state(payload, "tacotron2", state, first_epoch=0) if training else None,
        layout="Tacotron 2",
        assumed=tuple(field.name for field in fields(AudioConfig) if field.name != "n_mels"),
    )
