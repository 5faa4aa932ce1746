"""scripts/benchmarks/gpu.sh runs to its end, and tells what failed or took too long."""

import itertools
import os
from contextlib import nullcontext
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


def test_every_line_that_waits_for_a_gpu_is_a_step_and_the_most_telling_come_first():
    steps = gpu.steps_of("work", cuda=True)
    assert [group for group, _ in itertools.groupby(group for group, _ in steps)] == [*gpu.GROUPS]
    commands = [command for _, command in steps]
    assert {words.split()[0] for words in gpu.TRAINING} == set(available_models()) == set(gpu.SMALL)
    assert any("--learned-alignment" in command for command in commands)
    assert all("bfloat16" in command for group, command in steps if group == "training")
    assert [command for group, command in steps if group == "tests" and "tests/test_gpu.py" in command]
    assert all(any(word in command for command in commands) for word in ("TACOTRON2=", "HIFIGAN=", "WAVEGLOW="))


def test_a_step_that_fails_or_hangs_is_said(tmp_path: Path):
    printed = tmp_path / "step.txt"
    assert gpu.take("$PYTHON -m scripts.benchmarks.table 1=none.json", printed, seconds=HANG_LIMIT) == gpu.FAILED
    assert "none.json" in printed.read_text()
    assert gpu.take("echo so far; sleep 99", printed, seconds=3) == gpu.TOO_LONG
    assert printed.read_text() == "so far\n"


@pytest.mark.parametrize(("minutes", "status"), [("0.06", gpu.TOO_LONG), ("9", gpu.STOPPED)])
def test_a_run_that_is_short_of_time_or_stopped_leaves_what_it_has(minutes, status, tmp_path: Path, monkeypatch):
    stop = f"(sleep 1; kill -INT {os.getpid()}) & " if status == gpu.STOPPED else ""
    steps = [("tests", "echo done"), ("tests", f"{stop}echo so far; exec sleep 99"), ("tests", "echo never")]
    monkeypatch.setattr(gpu, "steps_of", lambda *_, **__: steps)
    with pytest.raises(KeyboardInterrupt) if stop else nullcontext():
        assert gpu.main([str(tmp_path), "--cpu", "--minutes", minutes]) == 1
    page = (tmp_path / "gpu.md").read_text()
    assert "done\n" in page and "so far\n" in page and "never" not in page and f"|{status}|" in page
