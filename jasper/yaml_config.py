"""Jasper's YAML files in the published format: network, labels, features and augmentation, checked key by key."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import yaml

from common.errors import InputError
from common.files import read_yaml
from jasper.config import BlockConfig, FeatureConfig, InputSettings, JasperSettings, ModelConfig

CONFIGS = Path(__file__).parent / "configs"
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word", NoneType: "null"}
_IN_LISTS = ("kernel_size", "stride", "dilation")  # of a block; published files have them as lists of one


# The other sections of a file; defaults are the published ones.
@dataclass(frozen=True)
class _Encoder:
    in_feats: int
    activation: str
    frame_splicing: int = 1
    init: str = "xavier_uniform"
    use_conv_masks: bool = False
    blocks: tuple[BlockConfig, ...] = ()


@dataclass(frozen=True)
class _Decoder:
    in_feats: int
    init: str = "xavier_uniform"


@dataclass(frozen=True)
class _Network:
    encoder: _Encoder
    decoder: _Decoder


@dataclass(frozen=True)
class _File:
    labels: tuple[str, ...]
    input_train: InputSettings
    input_val: InputSettings
    jasper: _Network
    name: str = ""


def load_config(path: Path, *, overrides: Sequence[str] = ()) -> JasperSettings:
    """Read a YAML file, or the one of that name in jasper/configs/.

    ``overrides`` such as ``input_train.audio_dataset.trim_silence=false`` take precedence.

    Raises:
        InputError: the file is missing or not YAML, or a key is unknown, missing or has a wrong value; one line that
            names the file and the key.
    """
    path = _find(path)
    sections = read_yaml(path)
    if not isinstance(sections, dict):
        raise InputError(f"{path}: expected a mapping of keys to values, got {type(sections).__name__}")
    for override in overrides:
        with _named(f"--override-config {override}"):
            _override(sections, override)
    with _named(path):
        return settings_of(sections)


def settings_of(sections: dict[str, Any]) -> JasperSettings:
    """What the sections of a file say.

    Raises:
        InputError: a key is unknown, missing or has a wrong value; names it.
    """
    file: _File = _section(_File, sections, "")
    encoder = file.jasper.encoder
    features = {one.name: getattr(file.input_train.filterbank_features, one.name) for one in fields(FeatureConfig)}
    with _named("jasper.encoder"):
        model = ModelConfig(
            blocks=encoder.blocks,
            activation=encoder.activation,
            use_conv_masks=encoder.use_conv_masks,
            init=encoder.init,
            decoder_init=file.jasper.decoder.init,
            labels=file.labels,
            features=FeatureConfig(**features),
        )
    for key, got, wanted, reason in _duplicates(file):
        if got != wanted:
            raise InputError(f"{key} {got}: expected {wanted}, {reason}")
    return JasperSettings(model=model, train=file.input_train, val=file.input_val)


def _duplicates(file: _File) -> Iterator[tuple[str, Any, Any, str]]:
    """Values that a file says twice: the second one's key, both values, and where the first one is."""
    for name, section in (("input_train", file.input_train), ("input_val", file.input_val)):
        for key in ("sample_rate", "max_duration", "pad_to_max_duration"):
            got, wanted = getattr(section.filterbank_features, key), getattr(section.audio_dataset, key)
            yield f"{name}.filterbank_features.{key}", got, wanted, f"as {name}.audio_dataset.{key}"
    features, in_validation = file.input_train.filterbank_features, file.input_val.filterbank_features
    for key in (one.name for one in fields(FeatureConfig)):
        full = f"filterbank_features.{key}"
        yield f"input_val.{full}", getattr(in_validation, key), getattr(features, key), f"as input_train.{full}"
    encoder, decoder = file.jasper.encoder, file.jasper.decoder
    yield "jasper.encoder.in_feats", encoder.in_feats, features.n_filt, "the n_filt of the features"
    yield "jasper.encoder.frame_splicing", encoder.frame_splicing, features.frame_splicing, "the one of the features"
    yield "jasper.decoder.in_feats", decoder.in_feats, encoder.blocks[-1].filters, "the filters of the last block"


@contextmanager
def _named(where: Path | str) -> Iterator[None]:
    """Put the place of an error before its message."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from error


def _find(path: Path) -> Path:
    """``path`` if there is such a file, else the one of that name, with or without its suffix, in jasper/configs/."""
    published = (CONFIGS / path, CONFIGS / f"{path}.yaml")
    found = next((file for file in (path, *published) if file.is_file()), None)
    if found is None:
        names = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.yaml")))
        raise InputError(f"{path}: no such configuration; expected a file or one of {names}")
    return found


def _override(sections: dict[str, Any], override: str) -> None:
    """Apply ``a.b.0.c=value``; the value is YAML."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise InputError("expected key=value, such as input_train.audio_dataset.trim_silence=false")
    *parents, last = [int(part) if part.isdecimal() else part for part in key.split(".")]
    place: Any = sections
    try:
        value = yaml.safe_load(text)
        for part in parents:
            section = place.get(part) if isinstance(place, dict) else place[part]
            place[part] = {} if section is None else copy(section)  # YAML's anchors share one section between keys
            place = place[part]
        place[last] = value
    except yaml.YAMLError as error:
        raise InputError(f"{text!r} is not a YAML value") from error
    except (IndexError, TypeError) as error:
        raise InputError("the configuration has no such key") from error


def _section(kind: type, given: Any, where: str) -> Any:
    """A section as the dataclass ``kind``: known keys, values of the fields' types, defaults for absent keys."""
    if not isinstance(given, dict):
        got = "is missing" if given is None else f"{given!r}"
        raise InputError(f"{where} {got}: expected keys with values")
    hints = get_type_hints(kind)
    names = {key: f"{where}.{key}" if where else key for key in (*given, *hints)}
    for key in given:
        if key not in hints:
            raise InputError(f"unknown key {names[key]}; expected one of {', '.join(sorted(hints))}")
    values = {}
    for field in fields(kind):
        if field.name in given or is_dataclass(hints[field.name]):
            values[field.name] = _value(hints[field.name], given.get(field.name), names[field.name])
        elif field.default is MISSING:
            raise InputError(f"{names[field.name]} is missing")
    with _named(where):
        return kind(**values)


def _value(hint: Any, value: Any, name: str) -> Any:
    """``value`` as the type of a field; whole numbers serve as fractions."""
    if is_dataclass(hint):
        return _section(hint, value, name)  # type: ignore[arg-type]  # a class, as hints are
    if NoneType in (choices := get_args(hint)):
        return None if value is None else _value(choices[0], value, name)
    if choices:  # a tuple of any length
        if not isinstance(value, list):
            raise InputError(f"{name} {value!r}: expected a list")
        return tuple(_value(choices[0], item, f"{name}[{index}]") for index, item in enumerate(value))
    if name.rpartition(".")[2] in _IN_LISTS and isinstance(value, list) and len(value) == 1:
        value = value[0]
    if hint is float and isinstance(value, str):  # YAML reads 1e-5, which has no point, as a word
        with suppress(ValueError):
            value = float(value)
    fits = isinstance(value, int | float if hint is float else hint) and isinstance(value, bool) == (hint is bool)
    if not fits or value != value:  # NaN
        raise InputError(f"{name} {value!r}: expected {_KINDS[hint]}")
    return value
