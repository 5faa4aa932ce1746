"""HiFi-GAN's published checkpoints, NVIDIA's and the authors', with the files that belong to them beside them."""

import re
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint, read_payload
from common.checkpoints.layout import optimizer_by_name, without_prefix
from common.config import AudioConfig
from common.errors import CheckpointError, InputError
from common.files import read_json

State = dict[str, Tensor]
_LARGEST_CONFIG = 100_000  # bytes; other JSON files of a folder are not searched for a configuration
_PERIODS = [2, 3, 5, 7, 11]  # samples; no published file records them
_NETWORK = (
    "resblock",
    "upsample_rates",
    "upsample_kernel_sizes",
    "upsample_initial_channel",
    "resblock_kernel_sizes",
    "resblock_dilation_sizes",
)
# AudioConfig's fields and the names that the two layouts have for them
_AUTHORS_AUDIO = {
    "sampling_rate": "sampling_rate",
    "filter_length": "n_fft",
    "hop_length": "hop_size",
    "win_length": "win_size",
    "n_mels": "num_mels",
    "mel_fmin": "fmin",
    "mel_fmax": "fmax",
}
_NVIDIA_AUDIO = {
    "sampling_rate": "sampling_rate",
    "filter_length": "filter_length",
    "hop_length": "hop_length",
    "win_length": "win_length",
    "n_mels": "num_mels",
    "mel_fmin": "mel_fmin",
    "mel_fmax": "mel_fmax",
}
# Neither layout records these two; both were trained with aligned frames of recordings scaled to 0.95, but voices
# fine-tuned on a generator's mels, which are usually centered, are written in the same way.
_UNRECORDED = {"framing": "aligned", "peak": 0.95}
_FLAT_RESBLOCK = re.compile(r"resblocks\.(\d+)\.(convs.*)")
_TRAINED_PARTS = {"discriminator": ("msd", "mpd"), "generator": ("generator",)}  # in their optimizers' order


@dataclass(frozen=True)
class _Description:
    """What a layout says of a voice beside its weights."""

    source: Path  # the file that says it
    network: dict[str, Any]  # the generator's part of ModelConfig
    audio: AudioConfig
    assumed: tuple[str, ...]
    pooling_padding: int  # samples, of the multi-scale discriminator


def generator_state(payload: dict[str, Any]) -> State | None:
    """The generator's weights in a payload: named so, as a ``state_dict``, or all that there is; else None."""
    for state in (payload.get("generator"), payload.get("state_dict"), payload):
        if isinstance(state, dict):
            named = without_prefix(state)
            if "conv_pre.bias" in named and "conv_post.bias" in named and any(key.startswith("ups.") for key in named):
                return named
    return None


def read(payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint:
    """A generator's file as a checkpoint, with the discriminators and optimizers beside it if ``training``.

    Where no discriminators lie beside it, ``networks`` has the generator alone and ``training`` is None.

    Raises:
        CheckpointError: there is no configuration, or it does not fit; or the discriminators' file is damaged.
    """
    weights = _conv1d_tensors(generator_state(payload))
    averages = payload.get("gen_ema")
    averages = None if averages is None else _conv1d_tensors(without_prefix(averages))
    if isinstance(payload.get("config"), dict):
        description = _nvidia_description(payload, weights, path=path)
    else:
        description = _authors_description(weights, path=path)
    n_kernels = len(description.network["resblock_kernel_sizes"])
    networks = {"generator": _with_our_names(weights, n_kernels=n_kernels)}
    ema = {} if averages is None else {"generator": _with_our_names(averages, n_kernels=n_kernels)}
    config = dict(description.network) | {"msd_pooling_padding": description.pooling_padding}
    state = None
    beside = _beside(path, "discriminators")
    if training and beside is not None:
        discriminators = read_payload(beside)
        try:
            for name in ("mpd", "msd"):
                networks[name] = without_prefix(discriminators[name])
                if discriminators.get(f"{name}_ema") is not None:
                    ema[name] = without_prefix(discriminators[f"{name}_ema"])
            config |= _discriminator_config(networks["mpd"], networks["msd"])
            state = _training_state(discriminators, networks)
        except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{beside}: damaged discriminators of HiFi-GAN ({error!r})") from error
    return Checkpoint(
        model="HiFi-GAN",
        config=config,
        audio=description.audio,
        text=None,
        networks=networks,
        ema=ema or None,
        training=state,
        assumed=description.assumed,
    )


def not_a_generator(path: Path) -> CheckpointError:
    """The error for discriminators given in place of a generator, which names the file to give."""
    generator = _beside(path, "generator")
    advice = "its generator is not beside it" if generator is None else f"give the generator beside it, {generator}"
    return CheckpointError(f"{path}: holds HiFi-GAN's discriminators, which cannot speak; {advice}")


def _beside(path: Path, part: str) -> Path | None:
    """The file of the other ``part`` that was saved together with ``path``, if it is there."""
    pairs = (("g_", "do_"), ("hifigan_gen_", "hifigan_discrim_"))
    for generator, discriminators in pairs:
        own, other = (discriminators, generator) if part == "generator" else (generator, discriminators)
        if path.name.startswith(own):
            found = path.with_name(other + path.name.removeprefix(own))
            return found if found.is_file() else None
    return None


def _nvidia_description(payload: dict[str, Any], weights: State, *, path: Path) -> _Description:
    """From ``config`` and ``train_setup`` of the file; what it does not record is as NVIDIA's recipe has it."""
    setup = payload.get("train_setup") or {}
    missing = [key for key in _NETWORK if key not in payload["config"]]
    if missing:
        raise CheckpointError(f"{path}: its configuration lacks {', '.join(missing)}")
    network = _network_config(payload["config"], weights, source=path, path=path)
    known = {field: setup[key] for field, key in _NVIDIA_AUDIO.items() if key in setup}
    known = {"n_mels": network["n_mel_channels"], "hop_length": prod(network["upsample_rates"])} | known
    absent = tuple(field for field in _NVIDIA_AUDIO if field not in known)
    audio = _audio_config(known, source=path)
    return _Description(path, network, audio, assumed=absent + tuple(_UNRECORDED), pooling_padding=1)


def _authors_description(weights: State, *, path: Path) -> _Description:
    """From the ``config.json`` beside the file."""
    source, values = _authors_config(path)
    network = _network_config(values, weights, source=source, path=path)
    audio = _audio_config({field: values[key] for field, key in _AUTHORS_AUDIO.items()}, source=source)
    return _Description(source, network, audio, assumed=tuple(_UNRECORDED), pooling_padding=2)


def _authors_config(path: Path) -> tuple[Path, dict[str, Any]]:
    """The configuration beside a generator: config.json, or the one JSON file of such a form."""
    expected = path.with_name("config.json")
    if expected.is_file():
        try:
            values = read_json(expected)
        except InputError as error:
            raise CheckpointError(f"{error}; it describes {path.name}") from error
        missing = _missing(values)
        if missing:
            raise CheckpointError(f"{expected}: no configuration of HiFi-GAN, it lacks {', '.join(missing)}")
        return expected, values
    fitting = {}
    for file in sorted(path.parent.glob("*.json")):
        if file.is_file() and file.stat().st_size <= _LARGEST_CONFIG:
            try:
                values = read_json(file)
            except InputError:
                continue
            if not _missing(values):
                fitting[file] = values
    if len(fitting) == 1:
        return next(iter(fitting.items()))
    if fitting:
        names = ", ".join(file.name for file in fitting)
        raise CheckpointError(f"{path}: {names} beside it could each describe it; copy the right one to {expected}")
    raise CheckpointError(
        f"{path}: a HiFi-GAN generator without its configuration; put the config.json it was trained with "
        f"beside it, as {expected}"
    )


def _missing(values: Any) -> list[str]:
    keys = (*_NETWORK, *_AUTHORS_AUDIO.values())
    return [key for key in keys if key not in values] if isinstance(values, dict) else list(keys)


def _network_config(values: dict[str, Any], weights: State, *, source: Path, path: Path) -> dict[str, Any]:
    """The generator's fields of ModelConfig, compared with the weights where these show them."""
    network = {key: values[key] for key in _NETWORK} | {"resblock": str(values["resblock"])}
    wrong = [key for key in _NETWORK if key.endswith("s") and not isinstance(network[key], list)]
    if wrong:
        raise CheckpointError(f"{source}: {wrong[0]} is {network[wrong[0]]!r}, expected a list")
    first = _convolution(weights, "conv_pre")
    n_ups = sum(re.fullmatch(r"ups\.\d+\.bias", key) is not None for key in weights)
    shown = {
        "resblock": "1" if any(".convs1." in key for key in weights) else "2",
        "upsample_initial_channel": first.size(0),
        "upsample_kernel_sizes": [_convolution(weights, f"ups.{index}").size(2) for index in range(n_ups)],
    }
    differing = [
        f"{key} is {network[key]}, in the weights {value}" for key, value in shown.items() if network[key] != value
    ]
    if differing:
        name = "its configuration" if source == path else str(source)
        raise CheckpointError(f"{path}: does not fit {name}: {'; '.join(differing)}")
    return network | {"n_mel_channels": first.size(1)}


def _audio_config(values: dict[str, Any], *, source: Path) -> AudioConfig:
    try:
        floats = {key: float(values[key]) for key in ("mel_fmin", "mel_fmax") if values.get(key) is not None}
        return AudioConfig(**values | floats | _UNRECORDED)
    except (TypeError, ValueError, InputError) as error:
        raise CheckpointError(f"{source}: its audio cannot be read ({error})") from error


def _convolution(weights: State, name: str) -> Tensor:
    """The weight of a convolution, up to the scale of its rows."""
    return weights[f"{name}.weight_v"] if f"{name}.weight_v" in weights else weights[f"{name}.weight"]


def _conv1d_tensors(state: State) -> State:
    """Weights without the last dimension of 1 that NVIDIA's first version had, and under weight norm."""
    tensors = {}
    for key, value in state.items():
        if value.dim() == 4 and value.size(3) == 1:
            value = value.squeeze(3)
        if key.endswith(".weight"):
            norms = torch.norm_except_dim(value, 2, 0)
            # Where a whole row is zero, its norm is, and any direction will do but zero.
            tensors |= {f"{key}_g": norms, f"{key}_v": torch.where(norms == 0, 1.0, value)}
        else:
            tensors[key] = value
    return tensors


def _with_our_names(state: State, *, n_kernels: int) -> State:
    """Residual blocks by stage and kernel; the authors number them through."""
    renamed = {}
    for key, value in state.items():
        found = _FLAT_RESBLOCK.fullmatch(key)
        if found is not None:
            stage, kernel = divmod(int(found[1]), n_kernels)
            key = f"resblocks.{stage}.{kernel}.{found[2]}"
        renamed[key] = value
    return renamed


def _discriminator_config(mpd: State, msd: State) -> dict[str, Any]:
    """Widths and groups, as the shapes of the first discriminator of each kind show them."""
    n_periods = sum(re.fullmatch(r"discriminators\.\d+\.conv_post\.bias", key) is not None for key in mpd)
    if n_periods != len(_PERIODS):
        raise ValueError(f"{n_periods} multi-period discriminators, expected {len(_PERIODS)}")
    groups, width = [], 1
    for shape in _shapes(msd):
        groups.append(width // shape[1])
        width = shape[0]
    return {
        "mpd_periods": list(_PERIODS),
        "mpd_channels": [shape[0] for shape in _shapes(mpd)],
        "msd_channels": [shape[0] for shape in _shapes(msd)],
        "msd_groups": groups,
    }


def _shapes(state: State) -> list[torch.Size]:
    """Shapes (out, in / groups, ...) of the first discriminator's convolutions, but for the last one."""
    shapes = []
    while f"discriminators.0.convs.{len(shapes)}.bias" in state:
        name = f"discriminators.0.convs.{len(shapes)}"
        under_spectral_norm = f"{name}.weight_orig" in state
        shapes.append(state[f"{name}.weight_orig" if under_spectral_norm else f"{name}.weight_v"].shape)
    return shapes


def _training_state(payload: dict[str, Any], networks: dict[str, State]) -> dict[str, Any]:
    """Epoch, iteration, optimizers and loss scales.

    ``epoch`` is the last one that is finished. NVIDIA counts epochs from 1 and saves at their end. The authors count
    from 0, save within an epoch and repeat it when they go on: as many are finished as the number of it says.
    """
    counters = payload.get("train_state") or {"epoch": payload["epoch"], "iters_all": payload["steps"]}
    optimizers, scales, finite_since = {}, {}, {}
    for phase, names in _TRAINED_PARTS.items():
        parameters = [f"{name}.{key}" for name in names for key in networks[name] if _is_parameter(key, networks[name])]
        optimizers[phase] = optimizer_by_name(payload[f"optim_{phase[0]}"], parameters)
        scaler = payload.get(f"scaler_{phase[0]}")
        if scaler:
            scales[phase], finite_since[phase] = float(scaler["scale"]), int(scaler["_growth_tracker"])
    return {
        "epoch": counters["epoch"],
        "iteration": counters["iters_all"],
        "optimizers": optimizers,
        "scaler": {"scales": scales, "finite_since": finite_since},
    }


def _is_parameter(key: str, state: State) -> bool:
    """False for the two vectors of spectral norm, which are buffers; one has the name of a weight norm's parameter."""
    return not (key.endswith(("weight_u", "weight_v")) and f"{key[:-1]}orig" in state)
