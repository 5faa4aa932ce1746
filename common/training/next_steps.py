"""The commands that a finished training ends with: to speak or transcribe, to serve and to export."""

import shlex
import sys
from pathlib import Path

from common.checkpoints.checkpoint import saved_checkpoints
from common.config import AudioConfig
from common.registry import available_models, get_model
from common.training.options import RunOptions

_ROOT = Path(__file__).resolve().parents[2]


def next_steps(model: str, audio: AudioConfig, run: RunOptions) -> list[str]:
    """Lines of commands that can be pasted, for the last checkpoint of a training with mels ``audio``.

    A vocoder speaks with the voice in its folder, or with the shipped one where that makes its mels.
    """
    spec, checkpoint = get_model(model), saved_checkpoints(run.output, model)[-1]
    used = {spec.option: checkpoint}
    if spec.role == "vocoder":
        for other in available_models("generator"):
            used |= {get_model(other).option: path for path in saved_checkpoints(run.output, other)[-1:]}
    named = [word for option, path in used.items() for word in (f"--{option}", str(path))]
    steps = {"speak": ["speak", "Hello there.", *named], "serve": ["serve", *named]}
    if spec.role == "recognizer":
        lists = ["--input", *map(str, run.validation_files), "--dataset-path", str(run.dataset_path)]
        steps = {"transcribe": ["transcribe", *named, *lists], "serve": ["serve", *named]}
    elif spec.role == "vocoder" and len(used) == 1 and audio != AudioConfig():
        steps = {}
    if spec.find("export", "exports") is not None:
        steps["export"] = ["export", str(checkpoint)]
    return [f"next, to {name}: {_command()} {shlex.join(words)}" for name, words in steps.items()]


def _command() -> str:
    """How the command `speech` is called from the current folder."""
    if not (_ROOT / "pyproject.toml").is_file():
        return "speech"  # installed
    here, python = Path.cwd(), Path(sys.executable)
    python = python.relative_to(here) if python.is_relative_to(here) else python
    path = "" if here == _ROOT else f"PYTHONPATH={shlex.quote(str(_ROOT))} "
    return f"{path}{shlex.quote(str(python))} -m speech_toolkit"
