"""Files as other implementations write them, of tiny networks with random weights."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_waveglow
import torch
from tiny_checkpoint import build
from tiny_voice import MODEL as VOICE, new_voice
from torch import Tensor

from common.config import AudioConfig, to_plain
from common.nn.weight_norm import fold_weight_norm
from common.text.config import TextConfig
from hifigan.config import AUDIO_KEYS

State = dict[str, Tensor]
N_MELS = 16
ALIGNED = replace(tiny_vocoder.ALIGNED, n_mels=N_MELS)
GENERATOR = replace(tiny_vocoder.TINY, n_mel_channels=N_MELS, mpd_periods=(2, 3, 5, 7, 11), msd_pooling_padding=2)
WAVEGLOW = replace(tiny_waveglow.SMALL, n_mel_channels=N_MELS, n_group=8)


def fastpitch_1_0(*, seed: int = 0) -> dict[str, Any]:
    """FastPitch 1.0 of two speakers, whose symbols last about four frames."""
    config = replace(VOICE, energy_conditioning=False)
    stored = {key: value for key, value in to_plain(config).items() if key not in ("learned_alignment", "symbol_type")}
    return {"epoch": 3, "iteration": 40, "config": stored, "state_dict": _voice(config, seed=seed)}


def fastpitch_1_1(*, seed: int = 0) -> dict[str, Any]:
    """FastPitch 1.1 with energy, its own alignment and other EMA weights."""
    config = replace(VOICE, learned_alignment=True)
    stored = {key: value for key, value in to_plain(config).items() if key not in ("learned_alignment", "symbol_type")}
    setup = {"symbol_set": "english_basic", "text_cleaners": ["english_cleaners_v2"], "p_arpabet": 0.0}
    state, ema = _voice(config, seed=seed), _voice(config, seed=seed + 1)
    return {"config": stored, "train_setup": setup, "state_dict": state, "ema_state_dict": ema}


def _voice(config: Any, *, seed: int) -> State:
    return new_voice(config, AudioConfig(n_mels=N_MELS), TextConfig(), seed=seed).state_dict()


def tacotron2() -> dict[str, Any]:
    """Tacotron 2 that stops by itself after some frames."""
    network = tiny_tacotron2.tiny_network(n_symbols=148, n_mel_channels=N_MELS)
    names = ("max_decoder_steps", "mask_convolutions")
    config = {key: value for key, value in to_plain(network.config).items() if key not in names}
    return {"epoch": 4, "config": config, "state_dict": network.state_dict()}


def waveglow(*, folded: bool = False) -> dict[str, Any]:
    """WaveGlow's weights alone."""
    network = tiny_waveglow.lively(build("WaveGlow", WAVEGLOW, AudioConfig(n_mels=N_MELS), seed=1)["waveglow"])
    if folded:
        fold_weight_norm(network)
    return {"state_dict": network.state_dict()}


def jasper() -> dict[str, Any]:
    """Jasper's weights with its published labels."""
    features = replace(tiny_jasper.SMALL.features, sample_rate=16000)
    return {"state_dict": tiny_jasper.small_network(features=features).state_dict(), "best_wer": 0.5}


def save_authors_hifigan(folder: Path, *, step: int = 5) -> Path:
    """The authors' generator, discriminators and config.json; returns the generator's file."""
    networks = build("HiFi-GAN", GENERATOR, ALIGNED, seed=2)
    optimizers = {}
    for letter, names in (("g", ("generator",)), ("d", ("msd", "mpd"))):
        parameters = [parameter for name in names for parameter in networks[name].parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=2e-4, betas=(0.8, 0.99))
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 1e-3)
        optimizer.step()
        optimizers[f"optim_{letter}"] = optimizer.state_dict()
    states = {name: network.state_dict() for name, network in networks.items()}
    n_kernels = len(GENERATOR.resblock_kernel_sizes)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"generator": _flat_names(states["generator"], n_kernels)}, folder / f"g_{step:08d}")
    others = {"mpd": states["mpd"], "msd": states["msd"], "steps": step, "epoch": 1}
    torch.save(others | optimizers, folder / f"do_{step:08d}")
    (folder / "config.json").write_text(json.dumps(authors_config()))
    return folder / f"g_{step:08d}"


def authors_config() -> dict[str, Any]:
    """config.json of `save_authors_hifigan`."""
    names = ("resblock", "upsample_initial_channel", "upsample_rates", "upsample_kernel_sizes")
    lists = ("resblock_kernel_sizes", "resblock_dilation_sizes")
    architecture = {name: to_plain(GENERATOR)[name] for name in (*names, *lists)}
    return architecture | {key: getattr(ALIGNED, field) for field, key in AUDIO_KEYS.items()}


def _flat_names(state: State, n_kernels: int) -> State:
    """Residual blocks numbered one after the other, as the authors' are."""
    flat = {}
    for key, value in state.items():
        parts = key.split(".")
        if parts[0] == "resblocks":
            parts[1:3] = [str(int(parts[1]) * n_kernels + int(parts[2]))]
        flat[".".join(parts)] = value
    return flat


def renamed(state: State, change: Callable[[str], str]) -> State:
    """The same weights by other names."""
    return {change(key): value for key, value in state.items()}


def parametrized(key: str) -> str:
    """A weight's name as torch.nn.utils.parametrizations gives it."""
    for old, new in (("weight_g", "original0"), ("weight_v", "original1")):
        if key.endswith(old):
            return f"{key.removesuffix(old)}parametrizations.weight.{new}"
    return key
