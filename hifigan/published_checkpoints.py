"""HiFi-GAN's published checkpoints, NVIDIA's and the authors', with the files that belong to them in their folder."""

import re
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints import Checkpoint, PartialFileError, optimizer_by_name, published_state, read_payload
from common.config import AudioConfig, from_plain, naming_fields
from common.errors import CheckpointError, InputError, reason, shown
from common.files import read_json
from common.nn import split_weights
from hifigan.config import PUBLISHED_MELS, ModelConfig
from hifigan.json_config import AUDIO_KEYS

State = dict[str, Tensor]
_LARGEST_CONFIG = 100_000  # bytes; larger JSON files of a folder are not searched for a configuration
_PERIODS = [2, 3, 5, 7, 11]  # samples; no published file records them
_DISCRIMINATORS_FILE = {"g_": "do_", "hifigan_gen_": "hifigan_discrim_"}  # by the prefix of the generator's
_GENERATOR_FILE = {theirs: own for own, theirs in _DISCRIMINATORS_FILE.items()}
_LISTS = ("upsample_rates", "upsample_kernel_sizes", "resblock_kernel_sizes", "resblock_dilation_sizes")
_NETWORK = ("resblock", "upsample_initial_channel", *_LISTS)
_NVIDIA_KEYS = {field: field for field in AUDIO_KEYS} | {"n_mels": "num_mels"}
# Neither layout records framing and peak, which are assumed to be PUBLISHED_MELS; but vocoders fine-tuned on a
# generator's mels, which are usually centered, are written in the same way.
_FLAT_RESBLOCK = re.compile(r"resblocks\.(\d+)\.(convs.*)")
_FIRST_CONVS = re.compile(r"discriminators\.0\.convs\.\d+\.weight_(orig|v)")
_TRAINED_PARTS = {"discriminator": ("msd", "mpd"), "generator": ("generator",)}  # in their optimizers' order


def read_published(payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint | None:
    """A generator's file as a checkpoint, with the discriminators and optimizers of it or its folder if ``training``.

    Without discriminators in either, ``networks`` has the generator alone and ``training`` is None. The result is
    None for a file of another layout.

    Raises:
        CheckpointError: there is no configuration, or it does not fit; the discriminators' file is damaged, or given
            in place of the generator's.
    """
    weights = _generator_state(payload)
    if weights is None:
        if isinstance(payload.get("mpd"), dict) and isinstance(payload.get("msd"), dict):
            generator = _partner(path, _GENERATOR_FILE)
            advice = f"give its generator, {generator}" if generator else "its generator is not in the same folder"
            raise PartialFileError(
                f"{path}: holds HiFi-GAN's discriminators, which cannot infer; {advice}", main=generator
            )
        return None
    owner, config, audio, assumed = _description(payload, weights, path=path)
    n_kernels = len(config["resblock_kernel_sizes"])
    networks, ema = {"generator": _with_our_names(weights, n_kernels=n_kernels)}, {}
    if payload.get("gen_ema") is not None:
        ema["generator"] = _with_our_names(published_state(payload["gen_ema"]), n_kernels=n_kernels)
    state = None
    source = path if "mpd" in payload else _partner(path, _DISCRIMINATORS_FILE)
    if training and source is not None:
        discriminators = payload if source == path else read_payload(source)
        try:
            for name in ("mpd", "msd"):
                networks[name] = published_state(discriminators[name])
                if discriminators.get(f"{name}_ema") is not None:
                    ema[name] = published_state(discriminators[f"{name}_ema"])
            config |= _discriminator_config(networks["mpd"], networks["msd"])
            state = _training_state(discriminators, networks)
        except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{source}: damaged discriminators of HiFi-GAN ({reason(error)})") from error
    return Checkpoint(
        model="HiFi-GAN",
        config=config,
        audio=audio,
        text=None,
        networks=networks,
        ema=ema or None,
        training=state,
        assumed=assumed,
        layout=f"{owner} HiFi-GAN",
    )


def _generator_state(payload: dict[str, Any]) -> State | None:
    """The generator's weights in a payload: named so, as a ``state_dict``, or all of it; else None."""
    for state in (payload.get("generator"), payload.get("state_dict"), payload):
        if isinstance(state, dict):
            named = published_state(state)
            if "conv_pre.bias" in named and "conv_post.bias" in named and any(key.startswith("ups.") for key in named):
                return named
    return None


def _partner(path: Path, prefixes: dict[str, str]) -> Path | None:
    """The file that was saved together with ``path``, if it is there: the name with another prefix."""
    for own, other in prefixes.items():
        found = path.with_name(other + path.name.removeprefix(own))
        if path.name.startswith(own) and found.is_file():
            return found
    return None


def _description(
    payload: dict[str, Any], weights: State, *, path: Path
) -> tuple[str, dict[str, Any], AudioConfig, tuple[str, ...]]:
    """Whose the file is, the generator's part of ModelConfig, its mels, and the fields of these that are assumed.

    They come from ``config`` and ``train_setup`` of NVIDIA's file, where what it does not record is as in NVIDIA's
    recipe, or from the authors' ``config.json``, which is in the folder of theirs or given as ``config``.
    """
    values = payload.get("config")
    owner = "NVIDIA's" if isinstance(values, dict) and _missing_keys(values) else "the authors'"
    if isinstance(values, dict) and owner == "NVIDIA's":
        source = path
        missing = [key for key in _NETWORK if key not in values]
        if missing:
            raise CheckpointError(f"{path}: its configuration lacks {', '.join(missing)}")
        config = _network_config(values, weights, source=path, path=path) | {"msd_pooling_padding": 1}
        setup = payload.get("train_setup") or {}
        if not isinstance(setup, dict):
            raise CheckpointError(f"{path}: train_setup {shown(setup)}: expected keys with values")
        recorded = {field: setup[key] for field, key in _NVIDIA_KEYS.items() if key in setup}
        known = {"n_mels": config["n_mel_channels"], "hop_length": prod(config["upsample_rates"])} | recorded
    else:
        source, values = _authors_config(path) if values is None else (path, values)
        config = _network_config(values, weights, source=source, path=path) | {"msd_pooling_padding": 2}
        known = {field: values[key] for field, key in AUDIO_KEYS.items()}
    with naming_fields(f"{source}: its audio", error=CheckpointError):
        audio = from_plain(AudioConfig, known | PUBLISHED_MELS, where="")
    return owner, config, audio, (*(field for field in _NVIDIA_KEYS if field not in known), *PUBLISHED_MELS)


def _authors_config(path: Path) -> tuple[Path, dict[str, Any]]:
    """The configuration in a generator's folder: config.json, or the one JSON file of such a form."""
    expected = path.with_name("config.json")
    if expected.is_file():
        try:
            values = read_json(expected)
        except InputError as error:
            raise CheckpointError(f"{error}; it describes {path.name}") from error
        if missing := _missing_keys(values):
            raise CheckpointError(f"{expected}: no configuration of HiFi-GAN, it lacks {', '.join(missing)}")
        return expected, values
    fitting = {}
    for file in sorted(path.parent.glob("*.json")):
        if file.is_file() and file.stat().st_size <= _LARGEST_CONFIG:
            with suppress(InputError):
                fitting[file] = read_json(file)
    fitting = {file: values for file, values in fitting.items() if not _missing_keys(values)}
    if len(fitting) == 1:
        return next(iter(fitting.items()))
    names = ", ".join(file.name for file in fitting)
    problem = f"each of {names} could describe it" if fitting else "a HiFi-GAN generator without its configuration"
    wanted = "the right one" if fitting else "the config.json it was trained with"
    raise CheckpointError(f"{path}: {problem}; copy {wanted} to {expected}")


def _missing_keys(values: Any) -> list[str]:
    return [key for key in (*_NETWORK, *AUDIO_KEYS.values()) if not isinstance(values, dict) or key not in values]


def _network_config(values: dict[str, Any], weights: State, *, source: Path, path: Path) -> dict[str, Any]:
    """The generator's fields of ModelConfig, compared with the weights where these show them."""
    network = {key: values[key] for key in _NETWORK} | {"resblock": str(values["resblock"])}
    with naming_fields("", error=CheckpointError):
        from_plain(ModelConfig, network, where=str(source))
    shapes = {key.removesuffix("_v"): value.shape for key, value in weights.items()}
    n_ups = sum(re.fullmatch(r"ups\.\d+\.bias", key) is not None for key in weights)
    in_weights = {
        "resblock": "1" if any(".convs1." in key for key in weights) else "2",
        "upsample_initial_channel": shapes["conv_pre.weight"][0],
        "upsample_kernel_sizes": [shapes[f"ups.{index}.weight"][2] for index in range(n_ups)],
    }
    differing = [
        f"{key} is {network[key]}, in the weights {value}" for key, value in in_weights.items() if network[key] != value
    ]
    if differing:
        name = "its configuration" if source == path else str(source)
        raise CheckpointError(f"{path}: does not fit {name}: {'; '.join(differing)}")
    return network | {"n_mel_channels": shapes["conv_pre.weight"][1]}


def _with_our_names(published: State, *, n_kernels: int) -> State:
    """Residual blocks by stage and kernel, which the authors number consecutively, and all under weight norm.

    NVIDIA's first version had a last dimension of 1.
    """
    state = {}
    for key, value in published.items():
        if found := _FLAT_RESBLOCK.fullmatch(key):
            stage, kernel = divmod(int(found[1]), n_kernels)
            key = f"resblocks.{stage}.{kernel}.{found[2]}"
        state[key] = value.squeeze(3) if value.dim() == 4 else value
    return split_weights(state, is_normed=lambda key: key.endswith(".weight"))


def _discriminator_config(mpd: State, msd: State) -> dict[str, Any]:
    """Widths and groups, as the shapes of the first discriminator of each kind show them."""
    n_periods = sum(re.fullmatch(r"discriminators\.\d+\.conv_post\.bias", key) is not None for key in mpd)
    if n_periods != len(_PERIODS):
        raise ValueError(f"{n_periods} multi-period discriminators, expected {len(_PERIODS)}")
    periods, scales = (
        [value.shape for key, value in state.items() if _FIRST_CONVS.fullmatch(key) and _is_parameter(key, value)]
        for state in (mpd, msd)
    )
    widths = [shape[0] for shape in scales]
    return {
        "mpd_periods": list(_PERIODS),
        "mpd_channels": [shape[0] for shape in periods],
        "msd_channels": widths,
        "msd_groups": [before // shape[1] for before, shape in zip([1, *widths], scales)],
    }


def _training_state(payload: dict[str, Any], networks: dict[str, State]) -> dict[str, Any]:
    """Epoch, iteration, optimizers and loss scales.

    ``epoch`` is the last one that is finished. NVIDIA counts epochs from 1 and saves at their end. The authors count
    from 0, save within an epoch and repeat it when they resume: their number is that of the finished epochs.
    """
    counters = payload.get("train_state") or {"epoch": payload["epoch"], "iters_all": payload["steps"]}
    optimizers, scales, finite_since = {}, {}, {}
    for phase, names in _TRAINED_PARTS.items():
        parameters = [f"{n}.{key}" for n in names for key, value in networks[n].items() if _is_parameter(key, value)]
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


def _is_parameter(key: str, value: Tensor) -> bool:
    """False for the two vectors of spectral norm, which are buffers; one has the name of a weight norm's parameter."""
    return value.dim() > 1 or not key.endswith(("weight_u", "weight_v"))
