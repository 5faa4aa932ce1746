"""The authors' config.json, as defaults of options."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.audio.options import AudioOptions
from common.errors import InputError, OptionError, shown
from common.files import read_json
from common.options import options_of, read_value
from common.training.options import RunOptions
from hifigan.config import ModelConfig
from hifigan.options import ADAM_BETAS, TrainingOptions

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
# Options whose names are not the keys.
_OPTIONS = {key: field for field, key in AUDIO_KEYS.items()}
_OPTIONS |= {"fmax_for_loss": "mel_fmax_loss", "fmax_loss": "mel_fmax_loss"}
_IGNORED = ("num_gpus", "num_workers", "num_freq", "dist_config")


def defaults_of_file(given: Mapping[str, Any], initial: Any) -> dict[str, Any]:
    """What the file of --hifigan-config, in the form of the authors' config.json, says of options, by name.

    Raises InputError where it is no such file, has unknown keys, or values that an option cannot have.
    """
    path: Path | None = given["hifigan_config"]
    if path is None:
        return {}
    values = read_json(path)
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected a JSON object in the form of HiFi-GAN's config.json")
    betas = [values.pop(key, beta) for key, beta in zip(("adam_b1", "adam_b2"), ADAM_BETAS)]
    kinds = (ModelConfig, TrainingOptions, AudioOptions, RunOptions)
    declared = {name: (hint, known) for kind in kinds for name, hint, known in options_of(kind)}
    defaults = {}
    for key, value in (values | {"adam_betas": betas}).items():
        name = _OPTIONS.get(key, key)
        if key in _IGNORED:
            continue
        if name not in declared:
            raise InputError(f"{path}: unknown key {shown(key)}; expected those of HiFi-GAN's config.json")
        try:
            defaults[name] = read_value(value, *declared[name])
        except OptionError as error:
            raise InputError(f"{path}: {key} {error}") from error
    return defaults
