"""Command-line options that describe mel-spectrograms."""

import argparse
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from common.cli import non_negative_float, option_of, positive_float, whole_number
from common.config import FRAMINGS, AudioConfig, audio_preset, differences, from_plain
from common.errors import InputError, OptionError
from common.files import read_json

_LARGEST_SIZE = 1 << 20  # Hz, samples
_MOST_MELS = 1 << 14
SETTINGS = "audio.json"  # in a corpus's folder and beside features: what the mels are


def add_audio_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one option for each field of `AudioConfig`, its destination; one that is not given sets nothing."""
    group = parser.add_argument_group(
        "audio",
        "what the mel-spectrograms are; an option that is left out takes the value in brackets, or what suits another "
        "--sampling-rate",
    )

    def add(field: str, meaning: str, *options: str, **kwargs: Any) -> None:
        text = f"{meaning} [{getattr(AudioConfig(), field)}]"
        group.add_argument(*options or [option_of(field)], dest=field, default=argparse.SUPPRESS, help=text, **kwargs)

    size = whole_number(1, _LARGEST_SIZE)
    add("sampling_rate", "Hz", "--sampling-rate", "-sr", type=size)
    add("filter_length", "size of the FFT, samples", type=size)
    add("hop_length", "samples", type=size)
    add("win_length", "samples", type=size)
    add("n_mels", "mel channels", "--n-mel-channels", "--n-mels", type=whole_number(1, _MOST_MELS))
    add("mel_fmin", "Hz", type=non_negative_float)
    add("mel_fmax", "Hz", type=positive_float)
    add("framing", "where frames start: centered as Tacotron 2's, aligned as HiFi-GAN's", choices=FRAMINGS)
    add("peak", "scale each clip to this largest absolute sample", type=positive_float)
    file = f"JSON whose values are the defaults of these (default: {SETTINGS} in the dataset's folder, if there is one)"
    group.add_argument("--audio-config", type=Path, default=argparse.SUPPRESS, metavar="FILE", help=file)


def audio_config_from_args(args: argparse.Namespace, *, base: AudioConfig | None = None) -> AudioConfig:
    """``base`` with the options that were given; its default is the corpus's kind, or what suits the sampling rate."""
    names = [field.name for field in fields(AudioConfig)]
    given = {name: getattr(args, name) for name in names if hasattr(args, name)}
    if base is None and (corpus := corpus_config(args)) is not None:
        base = corpus[1]
    try:
        return replace(base or audio_preset(given.get("sampling_rate", AudioConfig().sampling_rate)), **given)
    except InputError as error:
        raise OptionError(str(error)) from error


def corpus_config(args: argparse.Namespace) -> tuple[Path, AudioConfig] | None:
    """The file that says what a corpus's mels are, and what it says; None without one.

    It is --audio-config, else the audio.json that scripts/prepare_dataset.sh writes into the dataset's folder.
    """
    path: Path = getattr(args, "audio_config", args.dataset_path / SETTINGS)
    return (path, read_audio_config(path)) if hasattr(args, "audio_config") or path.is_file() else None


def corpus_note(audio: AudioConfig, corpus: tuple[Path, AudioConfig] | None) -> list[str]:
    """One line where mels are made otherwise than the corpus's file says; none where they are not."""
    lines = [] if corpus is None else differences(corpus[1], audio, names=("there", "here"))
    return [f"note: other mels than {corpus[0]} says: {'; '.join(lines)}"] if corpus and lines else []


def features_config(folder: Path) -> AudioConfig | None:
    """What the mels in ``folder`` are, by the audio.json that extract_mels.py wrote there; None without one."""
    path = folder / SETTINGS
    return read_audio_config(path) if path.is_file() else None


def read_audio_config(path: Path) -> AudioConfig:
    """The AudioConfig in a JSON file; raises InputError where there is none."""
    return from_plain(AudioConfig, read_json(path), where=str(path))
