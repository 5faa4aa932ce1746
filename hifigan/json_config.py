"""The authors' config.json, as defaults of options."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.cli import LARGEST_INT, fraction, non_negative_float, non_negative_int, positive_float, positive_int
from common.errors import InputError, shown
from common.files import read_json
from hifigan.options import ADAM_BETAS

# Fields of AudioConfig and their keys.
AUDIO_KEYS = {
    "sampling_rate": "sampling_rate",
    "filter_length": "n_fft",
    "hop_length": "hop_size",
    "win_length": "win_size",
    "n_mels": "num_mels",
    "mel_fmin": "fmin",
    "mel_fmax": "fmax",
}
# Destinations of the options whose names are not the keys.
_DESTINATIONS = {key: field for field, key in AUDIO_KEYS.items()}
_DESTINATIONS |= {"fmax_for_loss": "mel_fmax_loss", "fmax_loss": "mel_fmax_loss"}
_IGNORED = ("num_gpus", "num_workers", "num_freq", "dist_config")


def _list_of(kind: Callable[[str], Any]) -> Callable[[str], tuple]:
    def read(text: str) -> tuple:
        items = json.loads(text)
        if not isinstance(items, list) or not items:
            raise ValueError
        return tuple(kind(json.dumps(item)) for item in items)

    return read


_NUMBERS = _list_of(positive_int)
_INTEGER = (positive_int, f"a whole number of at least 1 and at most {LARGEST_INT}")
_BAND_END = (lambda text: None if text == "null" else positive_float(text), "a number above 0, or null")
# Key -> what reads the value's JSON text or raises, and what values it accepts.
_KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "resblock": ({"1": "1", '"1"': "1", "2": "2", '"2"': "2"}.__getitem__, '"1" or "2"'),
    **dict.fromkeys(("upsample_initial_channel", "batch_size", "segment_size", "sampling_rate"), _INTEGER),
    **dict.fromkeys(("num_mels", "n_fft", "hop_size", "win_size"), _INTEGER),
    **dict.fromkeys(
        ("upsample_rates", "upsample_kernel_sizes", "resblock_kernel_sizes"),
        (_NUMBERS, "a list of whole numbers of at least 1"),
    ),
    "resblock_dilation_sizes": (_list_of(_NUMBERS), "a list of lists of whole numbers of at least 1"),
    **dict.fromkeys(("learning_rate", "lr_decay"), (positive_float, "a number above 0")),
    **dict.fromkeys(("adam_b1", "adam_b2"), (fraction, "a number of at least 0 and below 1")),
    "seed": (non_negative_int, "a whole number of at least 0"),
    "fmin": (non_negative_float, "a number of at least 0"),
    **dict.fromkeys(("fmax", "fmax_for_loss", "fmax_loss"), _BAND_END),
}


def read_json_config(path: Path) -> dict[str, Any]:
    """Defaults of options, by destination, from a JSON file in the form of the authors' config.json.

    Raises:
        InputError: it is not such a file, has unknown keys, or values that a key cannot have.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected a JSON object in the form of HiFi-GAN's config.json")
    if unknown := sorted(values.keys() - _KINDS.keys() - set(_IGNORED)):
        raise InputError(f"{path}: unknown keys {shown(unknown)}; expected those of HiFi-GAN's config.json")
    defaults = {}
    for key in (key for key in _KINDS if key in values):
        text, (read, wanted) = json.dumps(values[key]), _KINDS[key]
        try:
            defaults[_DESTINATIONS.get(key, key)] = read(text)
        except (ValueError, KeyError, TypeError, argparse.ArgumentTypeError) as error:
            raise InputError(f"{path}: {key} {shown(values[key])}: expected {wanted}") from error
    betas = tuple(defaults.pop(key, beta) for key, beta in zip(("adam_b1", "adam_b2"), ADAM_BETAS))
    return defaults | {"adam_betas": betas}
