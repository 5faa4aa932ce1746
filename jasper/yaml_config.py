"""Jasper's YAML files in the published format: network, labels, features and augmentation, checked key by key."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


# Sections that may be absent or null.
_OPTIONAL = {
    "speed_perturbation": SpeedPerturbation,
    "gain_perturbation": GainPerturbation,
    "shift_perturbation": ShiftPerturbation,
    "spec_augment": SpecAugment,
    "cutout_augment": CutoutAugment,
}
# What a key that is left out means, as published.
_OPTIONAL_DEFAULTS = {
    name: _defaults(kind) | ({"rng": None} if name.endswith("perturbation") else {}) for name, kind in _OPTIONAL.items()
}
_INPUT = {
    "audio_dataset": _defaults(DatasetSettings) | {"sort_by_duration": False},
    "filterbank_features": _defaults(FeatureConfig)
    | {
        "sample_rate": 8000,
        "window": "hamming",
        "n_fft": None,
        "pad_align": 8,
        "dither": 1e-5,
        "spec_augment": None,
        "cutout_augment": None,
        "max_duration": math.inf,
        "pad_to_max_duration": False,
    },
}
_BLOCK = _defaults(BlockConfig) | {"filters": 0}
_FILE = {
    "name": "",
    "labels": [],
    "input_train": _INPUT,
    "input_val": _INPUT,
    "jasper": {
        "encoder": {
            "in_feats": 0,
            "frame_splicing": 1,
            "init": "xavier_uniform",
            "activation": "",
            "use_conv_masks": False,
            "blocks": [],
        },
        "decoder": {"in_feats": 0, "init": "xavier_uniform"},
    },
}
_NUMBER_OR_NULL = {"n_fft": 1, "preemph": 1.0, "highfreq": 1.0}  # an example of each, for its type
_REQUIRED = ("in_feats", "activation", "filters")
_UNREPEATED = ("kernel_size", "stride", "dilation")  # of a block; the files have them as lists of one
_SHARED = ("sample_rate", "max_duration", "pad_to_max_duration")  # keys of both sections of an input


def load_config(path: Path, *, overrides: Sequence[str] = ()) -> JasperSettings:
    """Read a YAML file, or the one of that name in jasper/configs/.

    ``overrides`` such as ``input_train.audio_dataset.trim_silence=false`` take precedence.

    Raises:
        InputError: the file is missing or not YAML, or a key is unknown, missing or has a wrong value; one line that
            names the file and the key.
    """
    path = _find(path)
    sections = read_sections(path, overrides=overrides)
    encoder, decoder = sections["jasper"]["encoder"], sections["jasper"]["decoder"]
    with _named(path):
        train, val = (_input(name, sections[name]) for name in ("input_train", "input_val"))
        features = _features(sections)
        blocks = [_built(f"jasper.encoder.blocks[{i}]", BlockConfig, one) for i, one in enumerate(encoder["blocks"])]
        with _named("jasper.encoder"):
            model = ModelConfig(
                blocks=tuple(blocks),
                activation=encoder["activation"],
                use_conv_masks=encoder["use_conv_masks"],
                init=encoder["init"],
                decoder_init=decoder["init"],
                labels=tuple(sections["labels"]),
                features=features,
            )
        expected = {
            "encoder.in_feats": (encoder["in_feats"], features.n_filt, "n_filt of the features"),
            "encoder.frame_splicing": (encoder["frame_splicing"], features.frame_splicing, "one of the features"),
            "decoder.in_feats": (decoder["in_feats"], blocks[-1].filters, "filters of the last block"),
        }
        for key, (got, wanted, reason) in expected.items():
            if got != wanted:
                raise InputError(f"jasper.{key} {got}: expected {wanted}, the {reason}")
    return JasperSettings(model=model, train=train, val=val)


def read_sections(path: Path, *, overrides: Sequence[str] = ()) -> Section:
    """The sections of a file with every key, those that it leaves out as published; types are checked.

    Raises:
        InputError: as `load_config`.
    """
    with _named(path):
        given = _read_yaml(path)
        if not isinstance(given, dict):
            raise InputError(f"expected a mapping of keys to values, got {type(given).__name__}")
    for override in overrides:
        _override(given, override)
    with _named(path):
        labels = given.get("labels")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise InputError(f"labels {labels!r}: expected a list of characters")
        sections = _filled("", given, _FILE)
        for name in ("input_train", "input_val"):
            dataset, features = sections[name]["audio_dataset"], sections[name]["filterbank_features"]
            if dataset["sort_by_duration"]:
                raise InputError(
                    f"{name}.audio_dataset.sort_by_duration: expected false; batches are length-bucketed anyway"
                )
            for key in _SHARED:
                if dataset[key] != features[key]:
                    raise InputError(
                        f"{name}.filterbank_features.{key} {features[key]}: expected {dataset[key]}, "
                        f"as {name}.audio_dataset.{key}"
                    )
        encoder = sections["jasper"]["encoder"]
        encoder["blocks"] = [
            _filled(f"jasper.encoder.blocks[{index}]", _without_lists(block), _BLOCK)
            for index, block in enumerate(encoder["blocks"])
        ]
    return sections


@contextmanager
def _named(where: Path | str) -> Iterator[None]:
    """Put the place of an error before its message."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _find(path: Path) -> Path:
    """``path`` if there is such a file, else the one of that name, with or without its suffix, in jasper/configs/."""
    published = (CONFIGS / path, CONFIGS / f"{path}.yaml")
    found = next((file for file in (path, *published) if file.is_file()), None)
    if found is None:
        names = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.yaml")))
        raise InputError(f"{path}: no such configuration; expected a file or one of {names}")
    return found


def _read_yaml(path: Path) -> Any:
    try:
        return _unshared(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read as UTF-8 text ({error})") from error
    except yaml.YAMLError as error:
        raise InputError(f"not YAML ({' '.join(str(error).split())})") from error


def _unshared(value: Any) -> Any:
    """A copy in which sections that YAML's anchors share are separate, so that one of them can be overridden."""
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    return [_unshared(item) for item in value] if isinstance(value, list) else value


def _override(sections: Section, override: str) -> None:
    """Apply ``a.b.0.c=value``; the value is YAML."""
    key, equals, text = override.partition("=")
    with _named(f"--override-config {override}"):
        if not equals or not key:
            raise InputError("expected key=value, such as input_train.audio_dataset.trim_silence=false")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InputError(f"{text!r} is not a YAML value") from error
        *parents, last = [int(part) if part.isdecimal() else part for part in key.split(".")]
        place: Any = sections
        try:
            for part in parents:
                if isinstance(place, dict) and place.get(part) is None:
                    place[part] = {}
                place = place[part]
            place[last] = value
        except (IndexError, TypeError) as error:
            raise InputError("the configuration has no such key") from error


def _filled(where: str, given: Any, defaults: Section) -> Section:
    """The values of a section, or their defaults; the type of each is that of its default."""
    if not isinstance(given, dict):
        got = "is missing" if given is None else f"{given!r}"
        raise InputError(f"{where} {got}: expected keys with values")
    names = {key: f"{where}.{key}" if where else key for key in (*given, *defaults)}
    for key in given:
        if key not in defaults:
            raise InputError(f"unknown key {names[key]}; expected one of {', '.join(sorted(defaults))}")
    values = {}
    for key, default in defaults.items():
        value = given.get(key, default)
        if isinstance(default, dict):
            value = _filled(names[key], given.get(key), default)
        elif key in _OPTIONAL:
            value = None if value is None else _filled(names[key], value, _OPTIONAL_DEFAULTS[key])
        elif key in given:
            may_be_null = key in _NUMBER_OR_NULL or default is None
            if value is not None or not may_be_null:
                value = _typed(names[key], value, _NUMBER_OR_NULL.get(key, default))
        elif key in _REQUIRED:
            raise InputError(f"{names[key]} is missing")
        values[key] = value
    return values


def _typed(name: str, value: Any, example: Any) -> Any:
    """``value`` as the type of ``example``; whole numbers serve as fractions."""
    if isinstance(example, bool):
        fits, kind = isinstance(value, bool), "true or false"
    elif isinstance(example, int):
        fits, kind = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    elif isinstance(example, float):
        value = _number(value)
        fits, kind = (
            isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value),
            "a number",
        )
    elif example is None:
        fits, kind = value is None, "null"
    else:
        fits, kind = isinstance(value, type(example)), {str: "a word", list: "a list"}[type(example)]
    if not fits:
        raise InputError(f"{name} {value!r}: expected {kind}")
    return value


def _number(value: Any) -> Any:
    """A word as the number that it says, if it does: YAML reads ``1e-5``, which has no point, as a word."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _without_lists(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    return {
        key: value[0] if key in _UNREPEATED and isinstance(value, list) and len(value) == 1 else value
        for key, value in block.items()
    }


def _built(where: str, kind: type, values: Section) -> Any:
    """An object of ``kind`` from those values of a section that it has fields for."""
    known = {one.name for one in fields(kind)}
    parts = {
        key: _built(f"{where}.{key}", _OPTIONAL[key], value) if key in _OPTIONAL and value is not None else value
        for key, value in values.items()
        if key in known
    }
    with _named(where):
        return kind(**parts)


def _input(name: str, section: Section) -> InputSettings:
    return InputSettings(
        dataset=_built(f"{name}.audio_dataset", DatasetSettings, section["audio_dataset"]),
        augmentation=_built(f"{name}.filterbank_features", Augmentation, section["filterbank_features"]),
    )


def _features(sections: Section) -> FeatureConfig:
    """The features, which training and validation must share."""
    train, val = (
        _built(f"{name}.filterbank_features", FeatureConfig, sections[name]["filterbank_features"])
        for name in ("input_train", "input_val")
    )
    for one in fields(FeatureConfig):
        wanted, got = getattr(train, one.name), getattr(val, one.name)
        if got != wanted:
            key = f"filterbank_features.{one.name}"
            raise InputError(f"input_val.{key} {got}: expected {wanted}, as input_train.{key}")
    return train
