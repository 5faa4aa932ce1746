"""scripts/benchmarks/gpu.sh runs to its end, and tells what failed or took too long."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest
from limits import HANG_LIMIT
from shell import ROOT, environment_of

from common.registry import available_models
from scripts.benchmarks import gpu


@pytest.mark.parametrize("groups", [("recognition", "extraction"), pytest.param(gpu.GROUPS, marks=pytest.mark.slow)])
def test_it_runs_to_its_end_on_a_cpu(groups: tuple[str, ...], tmp_path: Path, monkeypatch):
    monkeypatch.setattr(gpu, "ROOT", ROOT)
    with patch.dict(os.environ, environment_of(OMP_NUM_THREADS="1"), clear=True):
        status = gpu.main([str(tmp_path / "out"), "--cpu", "--only", *groups])
    page = (tmp_path / "out/gpu.md").read_text()
    assert status == 0, page
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
    assert gpu.take("sleep 99", seconds=0.1)[0] == gpu.TOO_LONG
