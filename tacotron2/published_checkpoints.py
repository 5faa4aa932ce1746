"""Tacotron 2's published checkpoints: recognized by their keys, read into ours."""

import re
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

_N_SYMBOLS = 148  # of the original's only symbol set
_KEY = "decoder.attention_rnn.weight_ih"  # that no other model has


def read_published(
    state: dict[str, Tensor], payload: dict[str, Any], *, path: Path, training: bool
) -> Checkpoint | None:
    """Read the layout of the original's train.py: config, state_dict, optimizer, scaler, epoch; None for another.

    For weights alone, also in float16, the configuration follows from their shapes.
    """
    if _KEY not in state:
        return None
    described = payload.get("config") or _config_of_weights(state)
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


def _config_of_weights(state: dict[str, Tensor]) -> dict[str, int]:
    def size(key: str, axis: int) -> int:
        return state[f"{key}.weight"].size(axis)

    def n_convolutions(part: str) -> int:
        return sum(re.fullmatch(rf"{part}\.convolutions\.\d+\.0\.conv\.weight", key) is not None for key in state)

    location = "decoder.attention_layer.location_layer.location_conv.conv"
    return {
        "n_mel_channels": size("decoder.linear_projection.linear_layer", 0),
        "n_symbols": size("embedding", 0),
        "symbols_embedding_dim": size("embedding", 1),
        "encoder_kernel_size": size("encoder.convolutions.0.0.conv", 2),
        "encoder_n_convolutions": n_convolutions("encoder"),
        "encoder_embedding_dim": size("encoder.convolutions.0.0.conv", 0),
        "attention_rnn_dim": state["decoder.attention_rnn.weight_hh"].size(1),
        "attention_dim": size("decoder.attention_layer.query_layer.linear_layer", 0),
        "attention_location_n_filters": size(location, 0),
        "attention_location_kernel_size": size(location, 2),
        "decoder_rnn_dim": state["decoder.decoder_rnn.weight_hh"].size(1),
        "prenet_dim": size("decoder.prenet.layers.0.linear_layer", 0),
        "postnet_embedding_dim": size("postnet.convolutions.0.0.conv", 0),
        "postnet_kernel_size": size("postnet.convolutions.0.0.conv", 2),
        "postnet_n_convolutions": n_convolutions("postnet"),
    }
