"""scripts/benchmarks/gpu.sh runs to its end, and tells what failed or took too long."""

import sys
from pathlib import Path

import pytest
from limits import HANG_LIMIT
from shell import ROOT, run_bash

from common.registry import available_models
from scripts.benchmarks import gpu


@pytest.mark.parametrize("groups", [("recognition", "extraction"), pytest.param(gpu.GROUPS, marks=pytest.mark.slow)])
def test_it_runs_to_its_end_on_a_cpu(groups: tuple[str, ...], tmp_path: Path):
    variables = {"OMP_NUM_THREADS": "1", "PYTHON": sys.executable}
    done = run_bash(ROOT / "scripts/benchmarks/gpu.sh", tmp_path / "out", "--cpu", "--only", *groups, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "out/gpu.md").read_text()
    assert "Sequences/s" in page
    steps = [step for step in gpu.steps_of("", cuda=False) if step[0] in groups]
    assert page.count("\n## ") == page.count("|done|") == len(steps)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["gpu.md"]


def test_every_line_that_waits_for_a_gpu_is_a_step():
    commands = [command for _, command in gpu.steps_of("work", cuda=True)]
    training = [command for command in commands if "benchmark.sh train" in command]
    assert [command.split()[-1] for command in training] == [*gpu.TRAINING]
    assert set(gpu.TRAINING) == set(available_models())
    assert "tests/test_gpu.py" in commands[0]
    assert all(any(word in command for command in commands) for word in ("TACOTRON2=", "HIFIGAN=", "WAVEGLOW="))


def test_a_step_that_fails_or_hangs_is_said():
    status, output = gpu.take("$PYTHON -m scripts.benchmarks.table 1=none.json", seconds=HANG_LIMIT)
    assert status == gpu.FAILED and "none.json" in output
    assert gpu.take("$PYTHON -m timeit -n 1000000000 -r 1", seconds=1)[0] == gpu.TOO_LONG
