"""What a command loads before it knows its job: libraries that take seconds wait until they are used."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SLOW_LIBRARIES = {
    *("torch._dynamo", "torch.utils.tensorboard", "sympy", "scipy", "librosa", "numba", "matplotlib"),
    *("tensorboard", "parselmouth", "jiwer", "pandas", "sklearn"),
}


@pytest.mark.parametrize("command", ["inference", "train", "extract_mels"])
def test_no_command_loads_what_it_may_not_need(command: str):
    """For a list of options too: ``--help`` answers as soon as PyTorch is there."""
    program = f"import contextlib, io, sys, {command}\nwith contextlib.suppress(SystemExit), "
    program += f"contextlib.redirect_stdout(io.StringIO()): {command}.main(['--help'])\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not SLOW_LIBRARIES & set(run.stdout.split())
