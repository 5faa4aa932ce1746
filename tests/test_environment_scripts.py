"""The shell files are valid, and the environment that they make and run in is as they say."""

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from shell import ROOT, run_bash

SHELL_FILES = sorted([*ROOT.glob("scripts/*.sh"), *ROOT.glob("platform/*.sh"), ROOT / ".ci" / "run"])


def test_each_script_is_valid_bash():
    for path in SHELL_FILES:
        done = subprocess.run(["bash", "-n", str(path)], capture_output=True, check=False)
        assert done.stderr == b"", path
        is_run = path.name != "lib.sh" and path.parent.name != "platform"  # the others are sourced, or given to bash
        assert not is_run or path.read_text().startswith("#!/usr/bin/env bash\n")


def test_the_scripts_run_in_a_folder_with_spaces(tmp_path: Path):
    (tmp_path / "the toolkit").mkdir()
    for name in ("scripts", "platform", "phrases"):
        (tmp_path / "the toolkit" / name).symlink_to(ROOT / name)
    for script in ("scripts/train_jasper.sh", "platform/T4_FastPitch_AMP_1GPU.sh", "scripts/train_benchmark.sh"):
        result = run_bash(tmp_path / "the toolkit" / script, DRY_RUN="1", PYTHON="py")
        assert (result.returncode, "train.py" in result.stdout) == (0, True), result.stderr


ENSURE = """
source "$1/scripts/lib.sh"
ROOT=$2 VENV=$2/.venv
make_venv() {
    rm -rf "$VENV"; mkdir -p "$VENV/bin"; echo made
    printf '#!/bin/sh\\nexec "%s" "$@"\\n' "$1" > "$VENV/bin/python"; chmod +x "$VENV/bin/python"
}
install_requirements() { echo "installed $(basename "$1")"; }
fresh() { unset PYTHON; ensure_venv "$@"; [ "$PYTHON" = "$VENV/bin/python" ]; }
fresh; fresh; echo --
fresh dev; fresh dev; echo --
echo new >> "$ROOT/requirements.txt"; fresh dev; fresh; echo --
echo new >> "$ROOT/constraints.txt"; fresh; echo --
echo broken > "$VENV/bin/python"; fresh; fresh
"""


def test_the_environment_is_made_once_and_again_when_requirements_change(tmp_path: Path):
    for name in ("constraints.txt", "requirements-speak.txt", "requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).write_text("torch\n")
    result = run_bash("-euo", "pipefail", "-c", ENSURE, "bash", ROOT, tmp_path, VENV_PYTHON=sys.executable)
    assert result.returncode == 0, result.stderr
    base, dev = "installed requirements.txt\n", "installed requirements-dev.txt\n"
    assert result.stdout == f"made\n{base}--\n{dev}--\n{dev}{base}--\n{base}--\nmade\n{base}"


def test_a_python_that_does_not_fit_is_refused_in_one_line(tmp_path: Path):
    (tmp_path / "python9").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python9").chmod(0o755)
    result = run_bash("-c", f'source "{ROOT}/scripts/lib.sh"; find_python', VENV_PYTHON=tmp_path / "python9")
    assert result.returncode == 1
    assert result.stderr == f"error: VENV_PYTHON={tmp_path}/python9 is not a Python 3.10 to 3.14\n"


def test_a_home_that_cannot_be_written_to_is_not_used_for_caches(tmp_path: Path):
    script = f'source "{ROOT}/scripts/lib.sh"; VENV=$1; use_writable_caches; echo "$MPLCONFIGDIR $NUMBA_CACHE_DIR"'
    (tmp_path / "venv").mkdir()
    result = run_bash("-c", script, "bash", tmp_path / "venv", HOME=tmp_path / "absent")
    folders = [Path(word) for word in result.stdout.split()]
    assert len(folders) == 2
    assert all(folder.is_dir() and folder.is_relative_to(tmp_path / "venv") for folder in folders)
    assert run_bash("-c", script, "bash", tmp_path / "venv", HOME=tmp_path).stdout.split() == []


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_each_requirement_has_one_tested_version_on_each_python(python: str):
    environment = {"python_version": python, "python_full_version": f"{python}.2", "sys_platform": "linux"}
    tested: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        pinned = Requirement(line)
        if pinned.marker is None or pinned.marker.evaluate(environment):
            assert pinned.name not in tested, line
            tested[canonicalize_name(pinned.name)] = next(iter(pinned.specifier)).version
    files = sorted(ROOT.glob("requirements*.txt"))
    for line in [line for file in files for line in file.read_text().splitlines() if not line.startswith("-r")]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(tested[canonicalize_name(wanted.name)]), line
