"""Commands to print at the end of a training."""

import shlex
import sys
from pathlib import Path

from common.checkpoints.checkpoint import saved_checkpoints
from common.config import AudioConfig
from common.registry import get_model
from common.training.options import RunOptions

_ROOT = Path(__file__).resolve().parents[2]


def next_steps(model: str, audio: AudioConfig, run: RunOptions) -> list[str]:
    """Return lines with commands to paste, for the last checkpoint of a training with mels ``audio``."""
    spec, checkpoint, command = get_model(model), str(saved_checkpoints(run.output, model)[-1]), "speech"
    if (_ROOT / "pyproject.toml").is_file():  # not installed
        command = f"PYTHONPATH={shlex.quote(str(_ROOT))} {shlex.quote(sys.executable)} -m speech_toolkit"
    named = [f"--{spec.option}", checkpoint]
    steps = [["speak", "Hello there.", *named], ["serve", *named], ["export", checkpoint]]
    if spec.role == "recognizer":
        lists = map(str, run.validation_files)
        steps[0] = ["transcribe", *named, "--input", *lists, "--dataset-path", str(run.dataset_path)]
    if spec.role == "vocoder" and audio != AudioConfig():  # the shipped voice makes other mels
        steps = steps[2:]
    if spec.find("export", "exports") is None:
        steps.pop()
    return [f"next, to {words[0]}: {command} {shlex.join(words)}" for words in steps]
