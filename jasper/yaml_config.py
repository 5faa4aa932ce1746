"""Jasper's YAML files in the published format: network, labels, features and augmentation, checked key by key."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import yaml

from common.errors import InputError
from jasper.augmentation import Augmentation, CutoutAugment, SpecAugment
from jasper.checks import check_minimum
from jasper.config import BlockConfig, DatasetSettings, FeatureConfig, InputSettings, JasperSettings, ModelConfig

CONFIGS = Path(__file__).parent / "configs"
Section = dict[str, Any]
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word", NoneType: "null"}
_UNREPEATED = ("kernel_size", "stride", "dilation")  # of a block; the files have them as lists of one


# The sections of a file; defaults are the published ones.
@dataclass(frozen=True)
class _Filterbank(FeatureConfig):
    sample_rate: int = 8000  # Hz
    window: str = "hamming"
    n_fft: int | None = None
    pad_align: int = 8  # frames
    dither: float = 1e-5
    spec_augment: SpecAugment | None = None
    cutout_augment: CutoutAugment | None = None
    max_duration: float = math.inf  # s
    pad_to_max_duration: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_minimum(self, 0, "dither")


@dataclass(frozen=True)
class _Input:
    audio_dataset: DatasetSettings
    filterbank_features: _Filterbank

    def __post_init__(self) -> None:
        for key in ("sample_rate", "max_duration", "pad_to_max_duration"):
            wanted, got = getattr(self.audio_dataset, key), getattr(self.filterbank_features, key)
            if got != wanted:
                raise InputError(f"filterbank_features.{key} {got}: expected {wanted}, as audio_dataset.{key}")

    @property
    def features(self) -> FeatureConfig:
        return FeatureConfig(**{one.name: getattr(self.filterbank_features, one.name) for one in fields(FeatureConfig)})

    @property
    def settings(self) -> InputSettings:
        masks = self.filterbank_features
        return InputSettings(self.audio_dataset, Augmentation(masks.dither, masks.spec_augment, masks.cutout_augment))


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
    input_train: _Input
    input_val: _Input
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
    file = _read_file(path, overrides)
    encoder, decoder = file.jasper.encoder, file.jasper.decoder
    features, in_validation = file.input_train.features, file.input_val.features
    with _named(path):
        for one in fields(FeatureConfig):
            wanted, got = getattr(features, one.name), getattr(in_validation, one.name)
            if got != wanted:
                key = f"filterbank_features.{one.name}"
                raise InputError(f"input_val.{key} {got}: expected {wanted}, as input_train.{key}")
        with _named("jasper.encoder"):
            model = ModelConfig(
                blocks=encoder.blocks,
                activation=encoder.activation,
                use_conv_masks=encoder.use_conv_masks,
                init=encoder.init,
                decoder_init=decoder.init,
                labels=file.labels,
                features=features,
            )
        expected = {
            "encoder.in_feats": (encoder.in_feats, features.n_filt, "n_filt of the features"),
            "encoder.frame_splicing": (encoder.frame_splicing, features.frame_splicing, "one of the features"),
            "decoder.in_feats": (decoder.in_feats, encoder.blocks[-1].filters, "filters of the last block"),
        }
        for key, (got, wanted, reason) in expected.items():
            if got != wanted:
                raise InputError(f"jasper.{key} {got}: expected {wanted}, the {reason}")
    return JasperSettings(model=model, train=file.input_train.settings, val=file.input_val.settings)


def read_sections(path: Path, *, overrides: Sequence[str] = ()) -> Section:
    """The sections of a file with every key, those that it leaves out as published; raises as `load_config`."""
    return asdict(_read_file(path, overrides))


def _read_file(path: Path, overrides: Sequence[str]) -> _File:
    with _named(path):
        try:
            sections = _unshared(yaml.safe_load(path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as UTF-8 text ({error})") from error
        except yaml.YAMLError as error:
            raise InputError(f"not YAML ({' '.join(str(error).split())})") from error
        if not isinstance(sections, dict):
            raise InputError(f"expected a mapping of keys to values, got {type(sections).__name__}")
    for override in overrides:
        with _named(f"--override-config {override}"):
            _override(sections, override)
    with _named(path):
        return _section(_File, sections, "")


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


def _unshared(value: Any) -> Any:
    """A copy in which sections that YAML's anchors share are separate, so that one of them can be overridden."""
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    return [_unshared(item) for item in value] if isinstance(value, list) else value


def _override(sections: Section, override: str) -> None:
    """Apply ``a.b.0.c=value``; the value is YAML."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise InputError("expected key=value, such as input_train.audio_dataset.trim_silence=false")
    *parents, last = [int(part) if part.isdecimal() else part for part in key.split(".")]
    place: Any = sections
    try:
        value = yaml.safe_load(text)
        for part in parents:
            if isinstance(place, dict) and place.get(part) is None:
                place[part] = {}
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
        return tuple(_value(choices[0], _without_lists(item), f"{name}[{index}]") for index, item in enumerate(value))
    if hint is float and isinstance(value, str):  # YAML reads 1e-5, which has no point, as a word
        with suppress(ValueError):
            value = float(value)
    fits = isinstance(value, int | float if hint is float else hint) and isinstance(value, bool) == (hint is bool)
    if not fits or value != value:  # NaN
        raise InputError(f"{name} {value!r}: expected {_KINDS[hint]}")
    return value


def _without_lists(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    return {
        key: value[0] if key in _UNREPEATED and isinstance(value, list) and len(value) == 1 else value
        for key, value in block.items()
    }
