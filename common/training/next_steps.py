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
    spec, checkpoint, command = get_model(model), saved_checkpoints(run.output, model)[-1], "speech"
    if (_ROOT / "pyproject.toml").is_file():  # not installed
        command = f"PYTHONPATH={shlex.quote(str(_ROOT))} {shlex.quote(sys.executable)} -m speech_toolkit"
    used = {spec.option: checkpoint}
    for other in available_models("generator") if spec.role == "vocoder" else ():
        used |= {get_model(other).option: path for path in saved_checkpoints(run.output, other)[-1:]}
    named = [word for option, path in used.items() for word in (f"--{option}", str(path))]
    steps = [["speak", "Hello there.", *named], ["serve", *named], ["export", str(checkpoint)]]
    if spec.role == "recognizer":
        steps[0] = ["transcribe", *named, "--input", *map(str, run.validation_files)]
        steps[0] += ["--dataset-path", str(run.dataset_path)]
    if spec.find("export", "exports") is None:
        steps.pop()
    if spec.role == "vocoder" and len(used) == 1 and audio != AudioConfig():
        del steps[:2]
    return [f"next, to {words[0]}: {command} {shlex.join(words)}" for words in steps]
