"""scripts/benchmarks/gpu.sh: it runs to its end, and tells what failed, took too long or was left out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from limits import HANG_LIMIT
from shell import ROOT, run_bash

from common.registry import available_models
from scripts.benchmarks import gpu


def run_on_cpu(folder: Path, *words: str) -> subprocess.CompletedProcess:
    variables = {"OMP_NUM_THREADS": "1", "PYTHON": sys.executable}
    return run_bash(ROOT / "scripts/benchmarks/gpu.sh", folder, "--cpu", *words, **variables)


@pytest.mark.parametrize("groups", [("recognition", "extraction"), pytest.param((), marks=pytest.mark.slow)])
def test_it_runs_to_its_end_on_a_cpu(groups: tuple[str, ...], tmp_path: Path):
    done = run_on_cpu(tmp_path / "out", "--seconds", str(10 * HANG_LIMIT), *(("--only", *groups) if groups else ()))
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / "out/gpu.json").read_text())
    expected = [
        step.name for step in gpu.steps_of(tmp_path, cuda=False) if not groups or step.name.split()[0] in groups
    ]
    assert [step["step"] for step in written["steps"]] == expected
    assert {step["status"] for step in written["steps"]} == {"done"}
    assert {"date", "device", "torch", "commit"} <= written.keys()
    printed = {step["step"]: "\n".join(step["output"]) for step in written["steps"]}
    assert "Sequences/s" in printed["recognition table"]
    for step in written["steps"]:
        if step["step"].startswith("training"):
            assert step["figures"]["fp32"]["frames_per_second"] > 0
    page = (tmp_path / "out/gpu.md").read_text()
    assert all(f"|{name}|done|" in page and f"## {name}" in page for name in expected)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["gpu.json", "gpu.md"]


def test_every_line_that_waits_for_a_gpu_is_a_step(tmp_path: Path):
    steps = {step.name: step for step in gpu.steps_of(tmp_path, cuda=True)}
    assert {f"training {model}" for model in available_models()} <= steps.keys()
    assert all("--cuda" in step.command for name, step in steps.items() if name.startswith("training"))
    assert "tests/test_gpu.py" in steps["tests"].command
    assert {f"inference {model}, full precision" for model in ("Tacotron2", "HiFi-GAN", "WaveGlow")} <= steps.keys()


def test_a_step_that_fails_or_hangs_is_said():
    failed = gpu.take(gpu.Step("a", "scripts.benchmarks.table training 1=none.json", 60), seconds=HANG_LIMIT)
    assert failed["status"] == gpu.FAILED and "none.json" in failed["output"][-1]
    assert gpu.take(gpu.Step("b", "timeit -n 1000000000 -r 1", 1), seconds=1)["status"] == gpu.TOO_LONG


def test_what_there_is_no_time_for_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture):
    assert gpu.main([str(tmp_path), "--cpu", "--seconds", "1", "--only", "tests", "extraction"]) == 1
    assert capsys.readouterr().out.count(gpu.LEFT_OUT) == 2
    assert {step["status"] for step in json.loads((tmp_path / "gpu.json").read_text())["steps"]} == {gpu.LEFT_OUT}
