"""The shell files are valid, and the environment that they make and run in is as they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from shell import ROOT, run_bash

SHELL_FILES = sorted([*ROOT.glob("scripts/**/*.sh"), *ROOT.glob("platform/*.sh"), ROOT / ".ci" / "run"])


def test_each_script_is_valid_bash():
    for path in SHELL_FILES:
        done = subprocess.run(["bash", "-n", str(path)], capture_output=True, check=False)
        assert done.stderr == b"", path
        if path.name != "lib.sh":  # which is sourced
            assert path.read_text().startswith("#!/usr/bin/env bash\n") and os.access(path, os.X_OK), path


VENV = """
source "$1/scripts/lib.sh"
ROOT=$2 VENV=$2/.venv
cat >"$2/bin/python3" <<END
#!/bin/sh
[ "\\$1" != -m ] || [ "\\$2" != venv ] || { mkdir -p "\\$3/bin"; cp "\\$0" "\\$3/bin/python"; echo made; exit $3; }
[ "\\$1" != -m ] || { shift \\$((\\$# - 1)); echo "installed \\$(basename "\\$1")"; exit; }
exec "$4" "\\$@"
END
chmod +x "$2/bin/python3"
PATH=$2/bin:$PATH
fresh() { unset PYTHON; use_python "$@"; [ "$PYTHON" = "$VENV/bin/python" ]; }
"""
RUNS = """
fresh; fresh; echo --
fresh dev; fresh dev; echo --
echo new >> "$ROOT/requirements.txt"; fresh dev; fresh; echo --
echo broken > "$VENV/bin/python"; fresh
"""


def prepared(folder: Path, status: str = "0") -> list[str | Path]:
    """Arguments of the program above, in whose folder are requirements."""
    (folder / "bin").mkdir()
    for name in ("constraints", "requirements", *(f"requirements-{one}" for one in ("speak", "train", "serve", "dev"))):
        (folder / f"{name}.txt").write_text("torch\n")
    return ["bash", ROOT, folder, status, sys.executable]


def test_the_environment_is_made_once_and_again_when_requirements_change(tmp_path: Path):
    result = run_bash("-euo", "pipefail", "-c", VENV.replace(" >/dev/null", "") + RUNS, *prepared(tmp_path))
    assert result.returncode == 0, result.stderr
    base, dev = "installed requirements.txt\n", "installed requirements-dev.txt\n"
    assert result.stdout == f"{base}--\n{dev}--\n{dev}--\n{dev}"
    assert result.stderr.count("making ") == 2


def test_an_environment_that_cannot_be_made_is_one_line_and_nothing_is_left(tmp_path: Path):
    result = run_bash("-euo", "pipefail", "-c", VENV + "fresh", *prepared(tmp_path, "1"))
    assert result.returncode == 1 and not (tmp_path / ".venv").exists()
    assert result.stderr.splitlines()[-1].startswith("error: python3 -m venv ") and "python3-venv" in result.stderr


@pytest.mark.parametrize(("python", "fits"), [("", False), ("exit 1", False), ("exit 0", True)])
def test_an_environment_that_the_scripts_did_not_make_is_left_alone(python: str, fits: bool, tmp_path: Path):
    (venv := tmp_path / ".venv" / "bin").mkdir(parents=True)
    (venv / "python").write_text(f"#!/bin/sh\n{python}\n")
    (venv / "python").chmod(0o755 if python else 0o644)
    (venv / "work").write_text("mine")
    result = run_bash("-euo", "pipefail", "-c", VENV + "fresh", *prepared(tmp_path))
    assert (result.returncode, result.stdout, (venv / "work").read_text()) == (0 if fits else 1, "", "mine")
    assert [*(tmp_path / ".venv").iterdir()] == [venv]
    assert result.stderr.count("\n") == (not fits) and ("PYTHON" in result.stderr) == (not fits)


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
