"""Command-line options that describe mel-spectrograms."""

import argparse
from dataclasses import fields, replace
from pathlib import Path

from common.config import AudioConfig, audio_preset, differences, from_plain
from common.errors import InputError, OptionError
from common.files import read_json
from common.options import add_options

SETTINGS = "audio.json"  # in a corpus's folder and beside features: what the mels are


def add_audio_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one option for each field of `AudioConfig`, its destination; one that is not given sets nothing."""
    usual = ", ".join(f"{one.name} {one.default}" for one in fields(AudioConfig))
    about = "what the mel-spectrograms are; an option that is left out takes what suits the --sampling-rate; usual:"
    group = parser.add_argument_group("audio", f"{about} {usual}")
    add_options(group, AudioConfig, defaults={one.name: argparse.SUPPRESS for one in fields(AudioConfig)})
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
