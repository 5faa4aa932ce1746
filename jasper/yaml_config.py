"""Jasper's YAML files in the published format: network, labels, features and augmentation, checked key by key."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from common.config import from_plain, naming_errors
from common.errors import InputError, OptionError, shown
from common.files import parse_yaml, read_text
from common.options import option
from jasper.augmentation import Augmentation, Checked
from jasper.config import FeatureConfig, ModelConfig

CONFIGS = Path(__file__).parent / "configs"
_REPEATED = ("in_feats", "frame_splicing")  # in the encoder section; the features determine them
_IN_LISTS = ("kernel_size", "stride", "dilation")  # in a block; published files have them as one-element lists


@dataclass(frozen=True, kw_only=True)
class _Perturbation(Checked):
    """A random change to a recording."""

    p: float = option(0.1, "probability that an utterance is changed", least=0, most=1)
    rng: None = None  # in published files; ignored


@dataclass(frozen=True)
class SpeedPerturbation(_Perturbation):
    """Faster or slower speech, tempo and pitch together; a rate above 1 is faster."""

    min_rate: float = option(0.85, "slowest", above=0)
    max_rate: float = option(1.15, "fastest", above=0)
    discrete: bool = False  # only min_rate, 1 or max_rate; else any rate between them


@dataclass(frozen=True)
class GainPerturbation(_Perturbation):
    """Louder or softer speech."""

    min_gain_dbfs: float = -10
    max_gain_dbfs: float = 10


@dataclass(frozen=True)
class ShiftPerturbation(_Perturbation):
    """Earlier (positive) or later speech; the rest is filled with zeros."""

    min_shift_ms: float = -5.0
    max_shift_ms: float = 5.0


@dataclass(frozen=True)
class DatasetSettings:
    """Which recordings to use, and how to read and perturb them; ``audio_dataset`` in YAML."""

    sample_rate: int = 16000  # Hz
    min_duration: float = 0.1  # s; shorter recordings are skipped
    max_duration: float = math.inf  # s; longer recordings are skipped
    pad_to_max_duration: bool = False  # in published files; ignored, because batches are padded to their longest
    max_utts: int = 0  # maximum number of recordings; 0: all
    normalize_transcripts: bool = True
    trim_silence: bool = False  # remove both ends where they are 60 dB below the loudest part
    speed_perturbation: SpeedPerturbation | None = None
    gain_perturbation: GainPerturbation | None = None
    shift_perturbation: ShiftPerturbation | None = None
    ignore_offline_speed_perturbation: bool = False  # don't use an utterance's copies at other speeds
    sort_by_duration: bool = False  # in published files; ignored


@dataclass(frozen=True)
class FilterbankSettings(FeatureConfig, Augmentation):
    """The features of recordings and their augmentation; ``filterbank_features`` in YAML, with published defaults."""

    sample_rate: int = 8000  # Hz
    window: str = "hamming"
    n_fft: int | None = None
    pad_align: int = 8  # frames
    max_duration: float = math.inf  # s
    pad_to_max_duration: bool = False


@dataclass(frozen=True)
class InputSettings:
    """How to read recordings for training or validation; ``input_train`` and ``input_val`` in YAML."""

    audio_dataset: DatasetSettings
    filterbank_features: FilterbankSettings


@dataclass(frozen=True)
class JasperSettings:
    """The contents of a YAML file; ``input_train`` determines the sampling rate and ``in_feats``."""

    labels: tuple[str, ...]
    input_train: InputSettings
    input_val: InputSettings
    jasper: dict[str, dict[str, Any]]  # encoder and decoder
    name: str = ""

    @cached_property
    def model(self) -> ModelConfig:
        """Architecture, labels and features; raises InputError that names the section."""
        filterbank = self.input_train.filterbank_features
        encoder, decoder = (self.jasper.get(part, {}) for part in ("encoder", "decoder"))
        values = {key: value for key, value in encoder.items() if key not in _REPEATED}
        values |= {"decoder_init": decoder.get("init", ModelConfig.decoder_init), "labels": self.labels}
        values["features"] = {one.name: getattr(filterbank, one.name) for one in fields(FeatureConfig)}
        found: ModelConfig = from_plain(ModelConfig, {"use_conv_masks": False} | values, where="jasper.encoder")
        return found

    def __post_init__(self) -> None:
        """Refuse validation features that differ from training's."""
        for name, wanted in vars(self.model.features).items():
            if (got := getattr(self.input_val.filterbank_features, name)) != wanted:
                raise InputError(f"input_val.filterbank_features.{name} {got}: expected {wanted}, as in input_train")


def load_config(path: Path, *, overrides: Sequence[str] = ()) -> JasperSettings:
    """Read a YAML file, or the one with that name in jasper/configs/, and apply ``overrides``, ``key=value``.

    Raises InputError, or OptionError if there are overrides, that names the file and the key.
    """
    path = _find(path)
    sections = _plain(parse_yaml(read_text(path), where=str(path)))
    for override in overrides:
        _override(sections, override)
    with naming_errors(str(path), error=OptionError if overrides else InputError):
        return settings_of(sections)


def settings_of(sections: dict[str, Any]) -> JasperSettings:
    """Convert a file's sections; raises InputError that names an unknown, missing or wrong key."""
    return from_plain(JasperSettings, _plain(sections), where="")


def _plain(value: Any) -> Any:
    """Copy sections that YAML's anchors share, and replace one-element lists in blocks with numbers."""
    if isinstance(value, dict):
        return {
            key: item[0] if key in _IN_LISTS and isinstance(item, list) and len(item) == 1 else _plain(item)
            for key, item in value.items()
        }
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _find(path: Path) -> Path:
    """Find the file ``path``, or the one with that name, with or without its suffix, in jasper/configs/."""
    published = (CONFIGS / path, CONFIGS / f"{path}.yaml", CONFIGS.parents[1] / path)
    found = next((file for file in (path, *published) if file.is_file()), None)
    if found is None:
        names = ", ".join(sorted(file.stem for file in CONFIGS.glob("*.yaml")))
        raise InputError(f"{path}: no such configuration; expected a file or one of {names}")
    return found


def _override(sections: Any, override: str) -> None:
    """Apply ``a.b.0.c=value``, with a YAML value, in place; raises OptionError."""
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
