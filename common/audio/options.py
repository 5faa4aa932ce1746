"""Options for mel-spectrograms and pitch, and audio.json, which describes the mels of a corpus or of features."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common.config import AudioConfig, audio_preset, from_plain, naming_errors
from common.errors import OptionError
from common.files import read_json
from common.options import group, option

SETTINGS = "audio.json"  # in a corpus's folder, and next to features
ESTIMATORS = ("praat", "pyin")  # of pitch
_limit = partial(option, None, least=20, most=4000, metavar="HZ")
PITCH_KINDS = ("pitch_mel", "pitch_char", "pitch_trichar")  # per frame, symbol, and third of a symbol


@dataclass(frozen=True)
class PitchRange:
    """The range to search for pitch; None: the estimator's default."""

    pitch_min: float | None = _limit(help="lowest pitch to find, Hz (Praat: 75, pYIN: 65.4)", variable="PITCH_MIN")
    pitch_max: float | None = _limit(help="highest pitch to find, Hz (Praat: 600, pYIN: 2093)", variable="PITCH_MAX")

    def __post_init__(self) -> None:
        low, high = self.pitch_min or 75, self.pitch_max or 600
        if low >= high:
            raise OptionError(f"--pitch-min {low:g}: expected less than --pitch-max {high:g}; give both")

    @property
    def pitch_range(self) -> tuple[float | None, float | None]:
        """The lowest and the highest pitch, in Hz."""
        return self.pitch_min, self.pitch_max


@dataclass(frozen=True)
class AudioOptions:
    """The settings of mel-spectrograms; ``values`` are the given fields of `AudioConfig`."""

    values: dict[str, Any] = group(AudioConfig, by_name=True)
    audio_config: Path | None = option(
        None,
        f"JSON file with defaults for these options (default: {SETTINGS} in the dataset's folder, if it exists)",
        metavar="FILE",
        variable="AUDIO_CONFIG",
    )

    def config(self, *, corpus: Path, base: AudioConfig | None = None) -> AudioConfig:
        """Apply the options to ``base``, ``corpus``'s settings, or the sampling rate's defaults; raises OptionError."""
        rate = self.values.get("sampling_rate", AudioConfig.sampling_rate)
        with naming_errors("", error=OptionError):
            return replace(base or self.of_corpus(corpus) or audio_preset(rate), **self.values)

    def of_corpus(self, folder: Path) -> AudioConfig | None:
        """Read a corpus's settings from --audio-config, or from the audio.json that prepare_dataset.sh wrote."""
        return features_config(folder) if self.audio_config is None else read_audio_config(self.audio_config)


def features_config(folder: Path) -> AudioConfig | None:
    """Read the audio.json that extract_mels.py wrote to ``folder``; None if there is none."""
    path = folder / SETTINGS
    return read_audio_config(path) if path.is_file() else None


def read_audio_config(path: Path) -> AudioConfig:
    """Read an `AudioConfig` from a JSON file; raises InputError."""
    return from_plain(AudioConfig, read_json(path), where=str(path))
