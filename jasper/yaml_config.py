"""The published YAML files: network, labels, features and augmentation of a Jasper, checked key by key."""

import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from common.errors import InputError
from jasper.augmentation import Augmentation, CutoutAugment, SpecAugment
from jasper.config import (
    BlockConfig,
    DatasetSettings,
    FeatureConfig,
    GainPerturbation,
    InputSettings,
    JasperSettings,
    ModelConfig,
    ShiftPerturbation,
    SpeedPerturbation,
)

CONFIGS = Path(__file__).parent / "configs"
Section = dict[str, Any]


def _defaults(kind: type) -> Section:
    return {one.name: one.default for one in fields(kind)}


# What a key that is left out means, as published.
_SPEED = _defaults(SpeedPerturbation) | {"rng": None}
_GAIN = _defaults(GainPerturbation) | {"rng": None}
_SHIFT = _defaults(ShiftPerturbation) | {"rng": None}
_DATASET = _defaults(DatasetSettings) | {"sort_by_duration": False}
_FEATURES = _defaults(FeatureConfig) | {
    "sample_rate": 8000,
    "window": "hamming",
    "n_fft": None,
    "pad_align": 8,
    "dither": 1e-5,
    "spec_augment": None,
    "cutout_augment": None,
    "max_duration": math.inf,
    "pad_to_max_duration": False,
}
_NESTED = {
    "speed_perturbation": _SPEED,
    "gain_perturbation": _GAIN,
    "shift_perturbation": _SHIFT,
    "spec_augment": _defaults(SpecAugment),
    "cutout_augment": _defaults(CutoutAugment),
}
_BLOCK = _defaults(BlockConfig) | {"filters": 0}
_ENCODER = {
    "in_feats": 0,
    "frame_splicing": 1,
    "init": "xavier_uniform",
    "activation": "",
    "use_conv_masks": False,
    "blocks": [],
}
_DECODER = {"in_feats": 0, "init": "xavier_uniform"}
_NUMBERS_OR_NOTHING = {"n_fft": 1, "preemph": 1.0, "highfreq": 1.0}  # an example of each, for its type
_REQUIRED = ("in_feats", "activation", "filters")
_UNREPEATED = ("kernel_size", "stride", "dilation")  # of a block; the files have them as lists of one
# Keys that both parts of an input have.
_SHARED = ("sample_rate", "max_duration", "pad_to_max_duration")


def load_config(path: Path, *, overrides: Sequence[str] = ()) -> JasperSettings:
    """What a YAML file says, or the one of that name in jasper/configs/.

    ``overrides`` such as ``input_train.audio_dataset.trim_silence=false`` take precedence.

    Raises:
        InputError: the file is missing or no YAML, or a key is unknown, missing or of a wrong value; one line that
            names the file and the key.
    """
    path = _find(path)
    filled = read_sections(path, overrides=overrides)
    network, labels = filled["jasper"], filled["labels"]
    inputs = {name: _input(path, name, filled[name]) for name in ("input_train", "input_val")}
    features = {name: _feature_config(path, name, filled[name]) for name in inputs}
    for one in fields(FeatureConfig):
        heard, validated = (getattr(config, one.name) for config in features.values())
        if heard != validated:
            key = f"filterbank_features.{one.name}"
            raise InputError(f"{path}: input_val.{key} {validated}: expected {heard}, as input_train.{key}")
    encoder, decoder = network["encoder"], network["decoder"]
    model = _built(
        path,
        "jasper.encoder",
        ModelConfig,
        {
            "blocks": tuple(
                _built(path, f"jasper.encoder.blocks[{index}]", BlockConfig, block)
                for index, block in enumerate(encoder["blocks"])
            ),
            "activation": encoder["activation"],
            "use_conv_masks": encoder["use_conv_masks"],
            "init": encoder["init"],
            "decoder_init": decoder["init"],
            "labels": tuple(labels),
            "features": features["input_train"],
        },
    )
    wanted = {
        "encoder.in_feats": (encoder["in_feats"], model.features.n_filt, "n_filt of the features"),
        "encoder.frame_splicing": (encoder["frame_splicing"], model.features.frame_splicing, "one of the features"),
        "decoder.in_feats": (decoder["in_feats"], model.blocks[-1].filters, "filters of the last block"),
    }
    for key, (got, expected, reason) in wanted.items():
        if got != expected:
            raise InputError(f"{path}: jasper.{key} {got}: expected {expected}, the {reason}")
    return JasperSettings(model=model, train=inputs["input_train"], val=inputs["input_val"])


def read_sections(path: Path, *, overrides: Sequence[str] = ()) -> Section:
    """The file's sections with every key, those that it leaves out as published; types are checked.

    Raises:
        InputError: as `load_config`.
    """
    given = _unshared(_read_yaml(path))
    if not isinstance(given, dict):
        raise InputError(f"{path}: expected a mapping of keys to values, got {type(given).__name__}")
    for override in overrides:
        _override(given, override)
    _check_keys(path, "", given, ("name", "labels", "input_train", "input_val", "jasper"))
    _check_keys(path, "jasper", _mapping(path, "jasper", given.get("jasper")), ("encoder", "decoder"))
    labels = given.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise InputError(f"{path}: labels {labels!r}: expected a list of characters")
    encoder = _filled(path, "jasper.encoder", given["jasper"].get("encoder"), _ENCODER)
    blocks = [
        _filled(path, f"jasper.encoder.blocks[{index}]", _without_lists(block), _BLOCK)
        for index, block in enumerate(encoder["blocks"])
    ]
    return {
        "labels": labels,
        "input_train": _filled_input(path, "input_train", given.get("input_train")),
        "input_val": _filled_input(path, "input_val", given.get("input_val")),
        "jasper": {
            "encoder": encoder | {"blocks": blocks},
            "decoder": _filled(path, "jasper.decoder", given["jasper"].get("decoder"), _DECODER),
        },
    }


def _find(path: Path) -> Path:
    """``path`` if there is such a file, else the one of that name, with or without its ending, in jasper/configs/."""
    published = (CONFIGS / path, CONFIGS / f"{path}.yaml")
    found = next((file for file in (path, *published) if file.is_file()), None)
    if found is None:
        names = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.yaml")))
        raise InputError(f"{path}: no such configuration; expected a file or one of {names}")
    return found


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: no YAML ({' '.join(str(error).split())})") from error


def _unshared(value: Any) -> Any:
    """A copy in which what YAML's anchors share is separate, so that one of them can be overridden."""
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    return [_unshared(item) for item in value] if isinstance(value, list) else value


def _override(sections: Section, override: str) -> None:
    """Set what ``a.b.0.c=value`` says; the value is YAML."""
    key, equals, text = override.partition("=")
    where = f"--override-config {override}"
    if not equals or not key:
        raise InputError(f"{where}: expected key=value, such as input_train.audio_dataset.trim_silence=false")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: {text!r} is no YAML value") from error
    *parents, last = [int(part) if part.isdecimal() else part for part in key.split(".")]
    place: Any = sections
    try:
        for part in parents:
            if isinstance(place, dict) and place.get(part) is None:
                place[part] = {}
            place = place[part]
        place[last] = value
    except (IndexError, TypeError) as error:
        raise InputError(f"{where}: the configuration has no such place") from error


def _check_keys(path: Path, where: str, given: Section, known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            name = f"{where}.{key}" if where else key
            raise InputError(f"{path}: unknown key {name}; expected one of {', '.join(sorted(known))}")


def _mapping(path: Path, where: str, given: Any) -> Section:
    if not isinstance(given, dict):
        got = "is missing" if given is None else f"{given!r}"
        raise InputError(f"{path}: {where} {got}: expected keys with values")
    return given


def _filled_input(path: Path, where: str, given: Any) -> Section:
    given = _mapping(path, where, given)
    _check_keys(path, where, given, ("audio_dataset", "filterbank_features"))
    dataset = _filled(path, f"{where}.audio_dataset", given.get("audio_dataset"), _DATASET)
    features = _filled(path, f"{where}.filterbank_features", given.get("filterbank_features"), _FEATURES)
    for key in _SHARED:
        if dataset[key] != features[key]:
            raise InputError(
                f"{path}: {where}.filterbank_features.{key} {features[key]}: expected {dataset[key]}, "
                f"as {where}.audio_dataset.{key}"
            )
    return {"audio_dataset": dataset, "filterbank_features": features}


def _filled(path: Path, where: str, given: Any, defaults: Section) -> Section:
    """The values of a section, or defaults; the type of each is that of its default."""
    given = _mapping(path, where, given)
    _check_keys(path, where, given, tuple(defaults))
    for key in _REQUIRED:
        if key in defaults and key not in given:
            raise InputError(f"{path}: {where}.{key} is missing")
    values = dict(defaults)
    for key, value in given.items():
        name = f"{where}.{key}"
        if key in _NESTED and value is not None:
            values[key] = _filled(path, name, value, _NESTED[key])
        elif key not in _NESTED:
            example = _NUMBERS_OR_NOTHING.get(key, defaults[key])
            may_be_none = key in _NUMBERS_OR_NOTHING or defaults[key] is None
            values[key] = value if value is None and may_be_none else _typed(path, name, value, example)
    if values.get("sort_by_duration"):
        raise InputError(f"{path}: {where}.sort_by_duration: expected false; batches are of like length as they are")
    return values


def _typed(path: Path, name: str, value: Any, example: Any) -> Any:
    """``value`` as the type of ``example``; whole numbers serve as fractions."""
    if isinstance(example, bool):
        fits, kind = isinstance(value, bool), "true or false"
    elif isinstance(example, int):
        fits, kind = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    elif isinstance(example, float):
        number = _number(value)
        fits, kind, value = number is not None, "a number", number if number is not None else value
    elif example is None:
        fits, kind = value is None, "null"
    else:
        fits, kind = isinstance(value, type(example)), {str: "a word", list: "a list"}[type(example)]
    if not fits:
        raise InputError(f"{path}: {name} {value!r}: expected {kind}")
    return value


def _number(value: Any) -> float | int | None:
    """YAML reads ``1e-5``, which has no point, as a word."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    return value if is_number else None


def _without_lists(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    return {
        key: value[0] if key in _UNREPEATED and isinstance(value, list) and len(value) == 1 else value
        for key, value in block.items()
    }


def _built(path: Path, where: str, kind: type, values: Section) -> Any:
    known = {one.name for one in fields(kind)}
    try:
        return kind(**{key: value for key, value in values.items() if key in known})
    except InputError as error:
        raise InputError(f"{path}: {where}: {error}") from error


def _part(path: Path, where: str, kind: type, values: Section | None) -> Any:
    return None if values is None else _built(path, where, kind, values)


def _feature_config(path: Path, name: str, given: Section) -> FeatureConfig:
    return _built(path, f"{name}.filterbank_features", FeatureConfig, given["filterbank_features"])


def _input(path: Path, name: str, given: Section) -> InputSettings:
    dataset, features = given["audio_dataset"], given["filterbank_features"]
    where = f"{name}.audio_dataset"
    parts = {
        "speed_perturbation": SpeedPerturbation,
        "gain_perturbation": GainPerturbation,
        "shift_perturbation": ShiftPerturbation,
    }
    perturbations = {key: _part(path, f"{where}.{key}", kind, dataset[key]) for key, kind in parts.items()}
    where = f"{name}.filterbank_features"
    masks = {
        key: _part(path, f"{where}.{key}", kind, features[key])
        for key, kind in {"spec_augment": SpecAugment, "cutout_augment": CutoutAugment}.items()
    }
    return InputSettings(
        dataset=_built(path, f"{name}.audio_dataset", DatasetSettings, dataset | perturbations),
        augmentation=_built(path, where, Augmentation, masks | {"dither": features["dither"]}),
    )
