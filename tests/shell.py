"""Runs the shell scripts, or reads the commands that they would run."""

import argparse
import os
import shlex
import subprocess
from pathlib import Path

import train

ROOT = Path(__file__).resolve().parents[1]


def run_bash(*words: str | Path, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script with nothing in the environment but ``variables`` and where programs are; it sees no GPU."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "CUDA_VISIBLE_DEVICES": ""}
    environment |= {name: str(value) for name, value in variables.items()}
    command = ["bash", *map(str, words)]
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)


def dry_run(script: str | Path, *words: str, **variables: str | Path) -> list[list[str]]:
    """The words of each command that a script would run, by a Python named ``py``."""
    result = run_bash(ROOT / script, *words, DRY_RUN="1", PYTHON="py", **variables)
    assert result.returncode == 0, result.stderr
    return [shlex.split(line) for line in result.stdout.splitlines()]


def training_options(words: list[str]) -> argparse.Namespace:
    """What train.py makes of a command that runs it."""
    return train.parse_args(words[words.index("train.py") + 1 :])[0]


def n_processes(words: list[str]) -> int:
    """Processes on a machine that a command of train.py starts."""
    return int(words[words.index("--nproc-per-node") + 1]) if "--nproc-per-node" in words else 1
