"""What a command loads before it knows its job: libraries that take seconds wait until they are used."""

import re
import subprocess
import sys
from types import ModuleType

import pytest
from shell import ROOT

import extract_mels
import inference
import train
from models import available_models

SLOW_LIBRARIES = {
    *("torch._dynamo", "torch.utils.tensorboard", "sympy", "scipy", "librosa", "numba", "matplotlib"),
    *("tensorboard", "parselmouth", "jiwer", "pandas", "sklearn"),
    *("onnx", "onnxruntime", "safetensors"),
}


@pytest.mark.parametrize("command", ["inference", "train", "extract_mels"])
def test_no_command_loads_what_it_may_not_need(command: str):
    """For a list of options too: ``--help`` answers as soon as PyTorch is there."""
    program = f"import contextlib, io, sys, {command}\nwith contextlib.suppress(SystemExit), "
    program += f"contextlib.redirect_stdout(io.StringIO()): {command}.main(['--help'])\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not SLOW_LIBRARIES & set(run.stdout.split())


@pytest.mark.parametrize("model", available_models())
def test_help_of_training_shows_the_common_options_first_and_the_models_own_in_groups_of_its_name(
    model: str, capsys: pytest.CaptureFixture
):
    with pytest.raises(SystemExit, match="0"):
        train.main(["--model", model, "--help"])
    text = capsys.readouterr().out
    usage, _, rest = text.partition("\n\n")
    assert len(usage.splitlines()) < 4 and usage.endswith("[options]")
    first, *groups = re.split(r"\n\n(?=\S.*:\n)", rest.partition("options:\n")[2])
    common = (
        "--output --dataset-path --training-files --validation-files --resume --epochs --batch-size --learning-rate"
    )
    assert all(option in first for option in common.split()) and len(re.findall(r"^  -", first, re.MULTILINE)) < 16
    titles = [group.partition(":")[0] for group in groups]
    shared = ["computing", "checkpoints, validation and logs", "optimization", "audio", "text", "phonemes"]
    shared += ["architecture of the discriminators"]
    assert titles[:3] == shared[:3]
    name = re.sub(r"(\d)", r" \1", model)
    assert all(title in (*shared, model) or name in title for title in titles)


@pytest.mark.parametrize("command", [train, inference, extract_mels])
def test_every_command_says_its_version(command: ModuleType, capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit, match="0"):
        command.main(["--version"])
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert capsys.readouterr().out.startswith(f"speech-toolkit {version}, Python ")
