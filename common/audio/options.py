"""Options of mel-spectrograms and pitch, and audio.json, which describes the mels of a corpus or of features."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common.config import AudioConfig, audio_preset, from_plain, naming_errors
from common.errors import OptionError
from common.files import read_json
from common.options import group, option

SETTINGS = "audio.json"  # in a corpus's folder and beside features
ESTIMATORS = ("praat", "pyin")  # of pitch
_limit = partial(option, None, least=20, most=4000, metavar="HZ")
PITCH_KINDS = ("pitch_mel", "pitch_char", "pitch_trichar")  # of frames, symbols and thirds of symbols


@dataclass(frozen=True)
class PitchRange:
    """The range in which pitch is estimated; None: the estimator's default."""

    pitch_min: float | None = _limit(help="lowest pitch to look for, Hz (Praat: 75, pYIN: 65.4)", variable="PITCH_MIN")
    pitch_max: float | None = _limit(help="highest pitch, Hz (Praat: 600, pYIN: 2093)", variable="PITCH_MAX")

    def __post_init__(self) -> None:
        low, high = self.pitch_min or 75, self.pitch_max or 600
        if low >= high:
            raise OptionError(f"--pitch-min {low:g} and --pitch-max {high:g}: expected less than the other; give both")

    @property
    def pitch_range(self) -> tuple[float | None, float | None]:
        """Hz, the lowest and the highest."""
        return self.pitch_min, self.pitch_max


@dataclass(frozen=True)
class AudioOptions:
    """The settings of mel-spectrograms; ``values`` are the fields of `AudioConfig` that are given."""

    values: dict[str, Any] = group(AudioConfig, by_name=True)
    audio_config: Path | None = option(
        None,
        f"JSON whose values are the defaults of these (default: {SETTINGS} in the dataset's folder, if there is one)",
        metavar="FILE",
        variable="AUDIO_CONFIG",
    )

    def config(self, *, corpus: Path, base: AudioConfig | None = None) -> AudioConfig:
        """The options over ``base``, the mels of ``corpus``, or the sampling rate's defaults; raises OptionError."""
        rate = self.values.get("sampling_rate", AudioConfig.sampling_rate)
        with naming_errors("", error=OptionError):
            return replace(base or self.of_corpus(corpus) or audio_preset(rate), **self.values)

    def of_corpus(self, folder: Path) -> AudioConfig | None:
        """Return the mels of a corpus from --audio-config, or from the audio.json that prepare_dataset.sh wrote."""
        return features_config(folder) if self.audio_config is None else read_audio_config(self.audio_config)


def features_config(folder: Path) -> AudioConfig | None:
    """Read the audio.json that extract_mels.py wrote in ``folder``; None without one."""
    path = folder / SETTINGS
    return read_audio_config(path) if path.is_file() else None


def read_audio_config(path: Path) -> AudioConfig:
    """Read a JSON file; raises InputError."""
    return from_plain(AudioConfig, read_json(path), where=str(path))
