"""Jasper's YAML files in the published format: network, labels, features and augmentation, checked key by key."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from common.config import from_plain
from common.errors import InputError, OptionError, shown
from common.files import parse_yaml, read_yaml
from jasper.config import BlockConfig, FeatureConfig, InputSettings, JasperSettings, ModelConfig

CONFIGS = Path(__file__).parent / "configs"
_INDEX = re.compile("[0-9]{1,6}")  # in a list
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
        OptionError: an override is none, or of a key that the file cannot have.
        InputError: the file is missing or not YAML, or a key is unknown, missing or has a wrong value; one line that
            names the file and the key.
    """
    path = _find(path)
    sections = read_yaml(path)
    if not isinstance(sections, dict):
        raise InputError(f"{path}: expected a mapping of keys to values, got {type(sections).__name__}")
    changed = copy(sections)
    for override in overrides:
        try:
            _override(changed, override)
        except InputError as error:
            raise OptionError(f"--override-config {shown(override)[1:-1]}: {error}") from error
    try:
        with _named(path):
            return settings_of(changed)
    except InputError as error:
        if not overrides:
            raise
        with _named(path):
            settings_of(sections)  # raises where the file alone is wrong
        raise OptionError(f"{error}; the file is right, but not with --override-config or --max-duration") from error


def settings_of(sections: dict[str, Any]) -> JasperSettings:
    """What the sections of a file say.

    Raises:
        InputError: a key is unknown, missing or has a wrong value; names it.
    """
    file: _File = from_plain(_File, _with_numbers(sections), where="")
    if not file.jasper.encoder.blocks:
        raise InputError("jasper.encoder.blocks: expected at least one")
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


def _with_numbers(sections: Any) -> Any:
    """Replace lists of one number, which published files have in blocks, by the number."""
    if isinstance(sections, dict):
        return {
            key: value[0] if key in _IN_LISTS and isinstance(value, list) and len(value) == 1 else _with_numbers(value)
            for key, value in sections.items()
        }
    return [_with_numbers(item) for item in sections] if isinstance(sections, list) else sections


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
    *parents, last = [int(part) if _INDEX.fullmatch(part) else part for part in key.split(".")]
    place: Any = sections
    try:
        value = parse_yaml(text, where=shown(text))
        for part in parents:
            section = place.get(part) if isinstance(place, dict) else place[part]
            place[part] = {} if section is None else copy(section)  # YAML's anchors share one section between keys
            place = place[part]
        place[last] = value
    except (IndexError, TypeError, AttributeError) as error:
        raise InputError("the configuration has no such key") from error
