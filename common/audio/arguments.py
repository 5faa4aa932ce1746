"""Command-line options that describe mel-spectrograms."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.cli import non_negative_float, positive_float, positive_int
from common.config import FRAMINGS, AudioConfig, audio_preset, from_plain
from common.files import read_json

# Option's destination -> field of AudioConfig.
_FIELDS = {
    "sampling_rate": "sampling_rate",
    "filter_length": "filter_length",
    "hop_length": "hop_length",
    "win_length": "win_length",
    "n_mel_channels": "n_mels",
    "mel_fmin": "mel_fmin",
    "mel_fmax": "mel_fmax",
    "framing": "framing",
    "peak": "peak",
}


def add_audio_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one option for each field of `AudioConfig`; None means "not given"."""
    default = AudioConfig()
    group = parser.add_argument_group(
        "audio",
        "what the mel-spectrograms are; an option that is left out takes the value in brackets, or what suits another "
        "--sampling-rate",
    )

    def add(option: str, kind: Callable[[str], object], unit: str, *aliases: str, **kwargs: Any) -> None:
        name = _FIELDS[option.strip("-").replace("-", "_")]
        text = f"{unit} [{getattr(default, name)}]"
        group.add_argument(option, *aliases, type=kind, default=argparse.SUPPRESS, help=text, **kwargs)

    add("--sampling-rate", positive_int, "Hz", "-sr")
    add("--filter-length", positive_int, "size of the FFT, samples")
    add("--hop-length", positive_int, "samples")
    add("--win-length", positive_int, "samples")
    add("--n-mel-channels", positive_int, "mel channels", "--n-mels")
    add("--mel-fmin", non_negative_float, "Hz")
    add("--mel-fmax", positive_float, "Hz")
    add("--framing", str, "where frames start: centered as Tacotron 2's, aligned as HiFi-GAN's", choices=FRAMINGS)
    add("--peak", positive_float, "scale each clip to this largest absolute sample")


def audio_config_from_args(args: argparse.Namespace, *, base: AudioConfig | None = None) -> AudioConfig:
    """``base`` with the options that were given; its default is what suits the sampling rate (`audio_preset`)."""
    given = {name: getattr(args, option) for option, name in _FIELDS.items() if hasattr(args, option)}
    if base is None:
        base = audio_preset(given.get("sampling_rate", AudioConfig().sampling_rate))
    return replace(base, **given)


def features_config(folder: Path) -> AudioConfig | None:
    """What the mels in ``folder`` are, by the audio.json that extract_mels.py wrote there; None without one."""
    path = folder / "audio.json"
    return from_plain(AudioConfig, read_json(path), where=str(path)) if path.is_file() else None
