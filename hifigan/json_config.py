"""The authors' config.json, as defaults of options."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.cli import non_negative_float, non_negative_int, positive_float, positive_int
from common.errors import InputError
from common.files import read_json

_Kind = tuple[Callable[[str], Any], str]  # reads the value's JSON text, or raises; what values it accepts


def fraction(text: str) -> float:
    """An ``argparse`` type: a number of at least 0 and below 1."""
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number of at least 0 and below 1")
    return value


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(positive_int(json.dumps(item)) for item in json.loads(text))


def _lists_of_numbers(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(_numbers(json.dumps(item)) for item in json.loads(text))


_INTEGER: _Kind = (positive_int, "a whole number of at least 1")
_POSITIVE: _Kind = (positive_float, "a number above 0")
_FRACTION: _Kind = (fraction, "a number of at least 0 and below 1")
_NUMBERS: _Kind = (_numbers, "a list of whole numbers of at least 1")
_LISTS: _Kind = (_lists_of_numbers, "a list of lists of whole numbers of at least 1")
_BAND_END: _Kind = (lambda text: None if text == "null" else positive_float(text), "a number above 0, or null")
# Key -> destination of the option that it gives a default.
_KEYS: dict[str, tuple[str, _Kind]] = {
    "resblock": ("resblock", ({"1": "1", '"1"': "1", "2": "2", '"2"': "2"}.__getitem__, '"1" or "2"')),
    "upsample_rates": ("upsample_rates", _NUMBERS),
    "upsample_kernel_sizes": ("upsample_kernel_sizes", _NUMBERS),
    "upsample_initial_channel": ("upsample_initial_channel", _INTEGER),
    "resblock_kernel_sizes": ("resblock_kernel_sizes", _NUMBERS),
    "resblock_dilation_sizes": ("resblock_dilation_sizes", _LISTS),
    "batch_size": ("batch_size", _INTEGER),
    "learning_rate": ("learning_rate", _POSITIVE),
    "lr_decay": ("lr_decay", _POSITIVE),
    "seed": ("seed", (non_negative_int, "a whole number of at least 0")),
    "segment_size": ("segment_size", _INTEGER),
    "sampling_rate": ("sampling_rate", _INTEGER),
    "num_mels": ("n_mel_channels", _INTEGER),
    "n_fft": ("filter_length", _INTEGER),
    "hop_size": ("hop_length", _INTEGER),
    "win_size": ("win_length", _INTEGER),
    "fmin": ("mel_fmin", (non_negative_float, "a number of at least 0")),
    "fmax": ("mel_fmax", _BAND_END),
    "fmax_for_loss": ("mel_fmax_loss", _BAND_END),
    "fmax_loss": ("mel_fmax_loss", _BAND_END),
}
_BETAS = ("adam_b1", "adam_b2")
_IGNORED = ("num_gpus", "num_workers", "num_freq", "dist_config")


def read_json_config(path: Path, *, adam_betas: tuple[float, float]) -> dict[str, Any]:
    """Defaults of options, by destination, from a JSON file in the form of the authors' config.json.

    ``adam_betas`` are the defaults of those, of which the file may give one.

    Raises:
        InputError: it is not such a file, has unknown keys, or values that a key cannot have.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected a JSON object in the form of HiFi-GAN's config.json")
    unknown = sorted(set(values) - {*_KEYS, *_BETAS, *_IGNORED})
    if unknown:
        raise InputError(f"{path}: unknown keys {', '.join(unknown)}; expected those of HiFi-GAN's config.json")
    defaults = {name: _read(path, key, values[key], kind) for key, (name, kind) in _KEYS.items() if key in values}
    betas = [
        _read(path, key, values[key], _FRACTION) if key in values else beta for key, beta in zip(_BETAS, adam_betas)
    ]
    return defaults | {"adam_betas": tuple(betas)}


def _read(path: Path, key: str, value: Any, kind: _Kind) -> Any:
    read, wanted = kind
    text = json.dumps(value)
    try:
        return read(text)
    except (ValueError, KeyError, TypeError, argparse.ArgumentTypeError) as error:
        raise InputError(f"{path}: {key} {text}: expected {wanted}") from error
