"""Command-line options that describe mel-spectrograms."""

import argparse
from pathlib import Path

from common.audio.options import AudioOptions
from common.config import AudioConfig
from common.options import add_options, read_options


def add_audio_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `AudioOptions`; one that is not given sets nothing."""
    group = parser.add_argument_group(
        "audio",
        "what the mel-spectrograms are; an option that is left out takes the value in brackets, or what suits another "
        "--sampling-rate",
    )
    add_options(group, AudioOptions)
    for action in group._group_actions:
        action.default = argparse.SUPPRESS


def audio_config_from_args(args: argparse.Namespace, *, base: AudioConfig | None = None) -> AudioConfig:
    """The mels that the options describe, as `AudioOptions.config`."""
    return read_options(args, AudioOptions).config(corpus=args.dataset_path, base=base)


def corpus_config(args: argparse.Namespace) -> tuple[Path, AudioConfig] | None:
    """What a corpus's mels are, as `AudioOptions.of_corpus`."""
    return read_options(args, AudioOptions).of_corpus(args.dataset_path)
