"""The shell files are valid, and the environment that they make and run in is as they say."""

import os
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
        if path.name != "lib.sh":  # which is sourced
            assert path.read_text().startswith("#!/usr/bin/env bash\n") and os.access(path, os.X_OK), path


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
    rm -rf "$VENV"; mkdir -p "$VENV/bin"; touch "$VENV/$MARK"; echo made
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
    for (
        name
    ) in "constraints requirements-speak requirements-train requirements-serve requirements requirements-dev".split():
        (tmp_path / f"{name}.txt").write_text("torch\n")
    result = run_bash("-euo", "pipefail", "-c", ENSURE, "bash", ROOT, tmp_path, VENV_PYTHON=sys.executable)
    assert result.returncode == 0, result.stderr
    base, dev = "installed requirements.txt\n", "installed requirements-dev.txt\n"
    assert result.stdout == f"made\n{base}--\n{dev}--\n{dev}{base}--\n{base}--\nmade\n{base}"


@pytest.mark.parametrize(("python", "fits"), [("", False), ("exit 1", False), ("[ $1 != -m ]", True), ("exit 0", True)])
def test_an_environment_that_the_scripts_did_not_make_is_left_alone(python: str, fits: bool, tmp_path: Path):
    (venv := tmp_path / ".venv" / "bin").mkdir(parents=True)
    (venv / "python").write_text(f"#!/bin/sh\n{python}\n")
    (venv / "python").chmod(0o755 if python else 0o644)
    (venv / "work").write_text("mine")
    script = 'source "$1/scripts/lib.sh"; unset PYTHON; VENV=$2; DRY_RUN=0; ensure_venv'
    result = run_bash("-c", script, "bash", ROOT, tmp_path / ".venv", VENV_PYTHON=sys.executable)
    assert (result.returncode, result.stdout, (venv / "work").read_text()) == (0 if fits else 1, "", "mine")
    assert [*(tmp_path / ".venv").iterdir()] == [venv]
    assert result.stderr.count("\n") == (not fits) and ("PYTHON" in result.stderr) == (not fits)


DEBIAN = """
LOG=$2/log
apt-get() { echo "$*" >> "$LOG"; }
id() { echo 0; }
source "$1/scripts/lib.sh"
VENV=$2/.venv
printf '#!/bin/sh\\n[ "$1" = -c ] && exec "%s" "$@"\\nexit 1\\n' "$3" > "$2/python"; chmod +x "$2/python"
make_venv "$2/python"
"""


@pytest.mark.parametrize("asked", ["", "false", "true"])
def test_debian_packages_are_installed_where_that_is_asked_for_alone(asked: str, tmp_path: Path):
    result = run_bash("-c", DEBIAN, "bash", ROOT, tmp_path, sys.executable, INSTALL_PACKAGES=asked)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1) and "-venv" in result.stderr
    assert (tmp_path / "log").exists() == (asked == "true")
    assert (tmp_path / ".venv" / "made-by-scripts").is_file()


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
    files = sorted({*ROOT.glob("requirements*.txt")} - {ROOT / "requirements-evaluate.txt"})  # which is optional
    for line in [line for file in files for line in file.read_text().splitlines() if not line.startswith("-r")]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(tested[canonicalize_name(wanted.name)]), line
