"""Jasper's YAML files in the published format: network, labels, features and augmentation, checked key by key."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from common.config import from_plain, naming_errors
from common.errors import InputError, OptionError, shown
from common.files import parse_yaml, read_yaml
from jasper.config import BlockConfig, FeatureConfig, InputSettings, JasperSettings, ModelConfig

CONFIGS = Path(__file__).parent / "configs"
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
        OptionError: an override is none, or with ``overrides`` what InputError says without.
        InputError: the file is missing or not YAML, or a key is unknown, missing or has a wrong value; one line that
            names the file and the key.
    """
    path = _find(path)
    sections = _plain(read_yaml(path))
    for override in overrides:
        _override(sections, override)
    with naming_errors(str(path), error=OptionError if overrides else InputError):
        return settings_of(sections)


def settings_of(sections: dict[str, Any]) -> JasperSettings:
    """What the sections of a file say.

    Raises:
        InputError: a key is unknown, missing or has a wrong value; names it.
    """
    file: _File = from_plain(_File, _plain(sections), where="")
    encoder, filterbank = file.jasper.encoder, file.input_train.filterbank_features
    with naming_errors("input_train.filterbank_features"):
        features = FeatureConfig(**{one.name: getattr(filterbank, one.name) for one in fields(FeatureConfig)})
    with naming_errors("jasper.encoder"):
        model = ModelConfig(
            blocks=encoder.blocks,
            activation=encoder.activation,
            use_conv_masks=encoder.use_conv_masks,
            init=encoder.init,
            decoder_init=file.jasper.decoder.init,
            labels=file.labels,
            features=features,
        )
    for key, got, wanted, reason in _duplicates(file):
        if got != wanted:
            raise InputError(f"{key} {got}: expected {wanted}, {reason}")
    return JasperSettings(model=model, train=file.input_train, val=file.input_val)


def _plain(value: Any) -> Any:
    """A copy without shared sections, which YAML's anchors make, and numbers for lists of one in blocks."""
    if isinstance(value, dict):
        return {
            key: item[0] if key in _IN_LISTS and isinstance(item, list) and len(item) == 1 else _plain(item)
            for key, item in value.items()
        }
    return [_plain(item) for item in value] if isinstance(value, list) else value


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


def _find(path: Path) -> Path:
    """``path`` if there is such a file, else the one of that name, with or without its suffix, in jasper/configs/."""
    published = (CONFIGS / path, CONFIGS / f"{path}.yaml")
    found = next((file for file in (path, *published) if file.is_file()), None)
    if found is None:
        names = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.yaml")))
        raise InputError(f"{path}: no such configuration; expected a file or one of {names}")
    return found


def _override(sections: Any, override: str) -> None:
    """Apply ``a.b.0.c=value``, a YAML value, in place; raises OptionError."""
    key, equals, text = override.partition("=")
    *parents, last = [int(part) if part.isdecimal() else part for part in key.split(".")]
    try:
        if not equals:
            raise InputError("expected key=value, such as input_train.audio_dataset.trim_silence=false")
        value = parse_yaml(text, where=shown(text))
        for part in parents:
            if isinstance(sections, dict) and sections.get(part) is None:
                sections[part] = {}
            sections = sections[part]
        sections[last] = value
    except (InputError, LookupError, TypeError) as error:
        problem = error if isinstance(error, InputError) else "the configuration has no such key"
        raise OptionError(f"--override-config {override}: {problem}") from error
