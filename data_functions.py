"""From a model's name to its dataset."""

import argparse
from pathlib import Path

from common.config import AudioConfig, TextConfig
from common.data.batch import Dataset
from common.registry import import_package


def build_dataset(
    name: str, args: argparse.Namespace, filelist: Path, *, audio: AudioConfig, text: TextConfig | None
) -> Dataset:
    """A model's dataset of the utterances in ``filelist``."""
    return import_package(name).data_function.build_dataset(args, filelist, audio=audio, text=text)
