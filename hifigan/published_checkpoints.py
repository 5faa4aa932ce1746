"""Read HiFi-GAN's published checkpoints, NVIDIA's and the authors', with the related files in their folder."""

import re
from math import prod
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import optimizer_by_name, published_state
from common.checkpoints.reading import read_payload
from common.config import AudioConfig, from_plain
from common.errors import CheckpointError
from common.files import read_json
from common.nn.weight_norm import split_weights
from hifigan.config import AUDIO_KEYS, PUBLISHED_MELS, ModelConfig

State = dict[str, Tensor]
_DISCRIMINATORS_FILE = {"g_": "do_", "hifigan_gen_": "hifigan_discrim_"}  # prefixes, by the generator file's
_LISTS = ("upsample_rates", "upsample_kernel_sizes", "resblock_kernel_sizes", "resblock_dilation_sizes")
_NETWORK = ("resblock", "upsample_initial_channel", *_LISTS)
_NVIDIA_KEYS = {field: field for field in AUDIO_KEYS} | {"n_mels": "num_mels"}
# Neither layout records framing and peak, so PUBLISHED_MELS is assumed, although vocoders fine-tuned on a voice's
# mels, which are usually centered, have the same layout.
_FLAT_RESBLOCK = re.compile(r"resblocks\.(\d+)\.(convs.*)")
_FIRST_CONVS = re.compile(r"discriminators\.0\.convs\.\d+\.weight_(orig|v)")
_TRAINED_PARTS = {"discriminator": ("msd", "mpd"), "generator": ("generator",)}  # in the order of their optimizers


def read_published(state: State, payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint | None:
    """Read a generator's file and, if ``training``, the discriminators and optimizers in it or in its folder.

    Without these, ``networks`` has only the generator, and ``training`` is None. Returns None for another layout.
    Raises CheckpointError if there is no configuration, or if the file is the discriminators'.
    """
    weights = published_state(payload["generator"]) if "generator" in payload else state or published_state(payload)
    if not {"conv_pre.bias", "conv_post.bias", "ups.0.bias"} <= weights.keys():
        if "mpd" in payload and "msd" in payload:
            raise CheckpointError(f"{path}: holds only HiFi-GAN's discriminators; give the generator's file")
        return None
    first = weights["conv_pre.weight_v" if "conv_pre.weight_v" in weights else "conv_pre.weight"]
    owner, config, audio, assumed = _description(payload, n_mels=first.size(1), path=path)
    n_kernels = len(config["resblock_kernel_sizes"])
    networks, ema = {"generator": _with_our_names(weights, n_kernels=n_kernels)}, {}
    if payload.get("gen_ema") is not None:
        ema["generator"] = _with_our_names(published_state(payload["gen_ema"]), n_kernels=n_kernels)
    training_state = None
    source = path if "mpd" in payload else _discriminators_file(path)
    if training and source is not None:
        discriminators = payload if source == path else read_payload(source)
        for name in ("mpd", "msd"):
            networks[name] = published_state(discriminators[name])
            if discriminators.get(f"{name}_ema") is not None:
                ema[name] = published_state(discriminators[f"{name}_ema"])
        config |= _discriminator_config(networks["mpd"], networks["msd"])
        training_state = _training_state(discriminators, networks)
    return Checkpoint(
        model="HiFi-GAN",
        config=from_plain(ModelConfig, config, where=str(path), error=CheckpointError),
        audio=audio,
        text=None,
        networks=networks,
        ema=ema or None,
        training=training_state,
        assumed=assumed,
        layout=f"{owner} HiFi-GAN",
    )


def _discriminators_file(path: Path) -> Path | None:
    """Find the discriminators' file that was saved with the generator's ``path``."""
    for own, theirs in _DISCRIMINATORS_FILE.items():
        found = path.with_name(theirs + path.name.removeprefix(own))
        if path.name.startswith(own) and found.is_file():
            return found
    return None


def _description(
    payload: dict[str, Any], *, n_mels: int, path: Path
) -> tuple[str, dict[str, Any], AudioConfig, tuple[str, ...]]:
    """Return the file's owner, the generator's part of ModelConfig, the mels, and the names of assumed mel fields.

    They come from ``config`` and ``train_setup`` in NVIDIA's file, with the recipe's values for the rest, from the
    authors' ``config.json`` in the file's folder, or from a ``config`` with its contents.
    """
    values, source = payload.get("config"), path
    if values is None:
        source = path.with_name("config.json")
        if not source.is_file():
            raise CheckpointError(f"{path}: HiFi-GAN's generator without its config.json, expected {source}")
        values = read_json(source)
    is_nvidias = source == path and any(key not in values for key in AUDIO_KEYS.values())
    if missing := [key for key in (*_NETWORK, *(() if is_nvidias else AUDIO_KEYS.values())) if key not in values]:
        raise CheckpointError(f"{source}: its HiFi-GAN configuration lacks {', '.join(missing)}")
    config = {key: values[key] for key in _NETWORK} | {"resblock": str(values["resblock"])}
    from_plain(ModelConfig, config, where=str(source), error=CheckpointError)
    if is_nvidias:
        setup = payload.get("train_setup") or {}
        recorded = {field: setup[key] for field, key in _NVIDIA_KEYS.items() if key in setup}
        known = {"n_mels": n_mels, "hop_length": prod(config["upsample_rates"])} | recorded
    else:
        known = {field: values[key] for field, key in AUDIO_KEYS.items()}
    audio = from_plain(AudioConfig, known | PUBLISHED_MELS, where=f"{source}: its audio", error=CheckpointError)
    config |= {"n_mel_channels": n_mels, "msd_pooling_padding": 1 if is_nvidias else 2}
    owner = "NVIDIA's" if is_nvidias else "the authors'"
    return owner, config, audio, (*(field for field in _NVIDIA_KEYS if field not in known), *PUBLISHED_MELS)


def _with_our_names(published: State, *, n_kernels: int) -> State:
    """Rename the authors' residual blocks by stage and kernel, and add weight norm.

    The weights of NVIDIA's first version have a last dimension of 1.
    """
    state = {}
    for key, value in published.items():
        if found := _FLAT_RESBLOCK.fullmatch(key):
            stage, kernel = divmod(int(found[1]), n_kernels)
            key = f"resblocks.{stage}.{kernel}.{found[2]}"
        state[key] = value.squeeze(3) if value.dim() == 4 else value
    return split_weights(state, is_normed=lambda key: key.endswith(".weight"))


def _discriminator_config(mpd: State, msd: State) -> dict[str, Any]:
    """Infer widths and groups from the shapes of the first discriminator of each kind; no file records the periods."""
    periods, scales = (
        [value.shape for key, value in state.items() if _FIRST_CONVS.fullmatch(key) and _is_parameter(key, value)]
        for state in (mpd, msd)
    )
    widths = [shape[0] for shape in scales]
    groups = [before // shape[1] for before, shape in zip([1, *widths], scales)]
    return {"mpd_channels": [shape[0] for shape in periods], "msd_channels": widths, "msd_groups": groups}


def _training_state(payload: dict[str, Any], networks: dict[str, State]) -> dict[str, Any]:
    """Return the epoch, iteration, optimizers and loss scales.

    ``epoch`` is the last complete one. NVIDIA counts from 1 and saves at the end of an epoch; the authors count from 0,
    save within an epoch, and repeat it when they resume.
    """
    counters = payload.get("train_state") or {"epoch": payload["epoch"], "iters_all": payload["steps"]}
    optimizers, scales, finite_since = {}, {}, {}
    for phase, names in _TRAINED_PARTS.items():
        parameters = [f"{n}.{key}" for n in names for key, value in networks[n].items() if _is_parameter(key, value)]
        optimizers[phase] = optimizer_by_name(payload[f"optim_{phase[0]}"], parameters)
        scaler = payload.get(f"scaler_{phase[0]}")
        if scaler:
            scales[phase], finite_since[phase] = float(scaler["scale"]), int(scaler["_growth_tracker"])
    steps = {"epoch": counters["epoch"], "iteration": counters["iters_all"]}
    return steps | {"optimizers": optimizers, "scaler": {"scales": scales, "finite_since": finite_since}}


def _is_parameter(key: str, value: Tensor) -> bool:
    """Return False for spectral norm's two vectors: they are buffers, although one is named like a parameter."""
    return value.dim() > 1 or not key.endswith(("weight_u", "weight_v"))
