"""From a model's name to what it trains for."""

import argparse

from common.config import AudioConfig
from common.registry import import_package
from common.training.objective import Objective


def build_objective(name: str, args: argparse.Namespace, audio: AudioConfig) -> Objective:
    """A model's objective."""
    return import_package(name).loss_function.build_objective(args, audio)
