"""The tool that says which tests use which goldens."""

import os
import subprocess
import sys
from pathlib import Path

from limits import HANG_LIMIT
from shell import ROOT

MODULE = """
import subprocess, sys
import pytest
from golden_files import GOLDENS

LISTED = (GOLDENS / "listed.json").read_text()

@pytest.fixture(scope="module")
def table(goldens):
    return (goldens / "table.json").read_text()

def test_one(table):
    pass

def test_two(goldens, table):
    subprocess.run([sys.executable, "-c", f"open({str(goldens / 'sub' / 'read.bin')!r})"], check=True)

def test_three():
    assert not (GOLDENS / "wrong.txt").read_text()

def test_four(goldens):
    pass
"""


def test_files_are_listed_with_the_tests_that_open_them_themselves_by_fixtures_or_in_programs(tmp_path: Path):
    folder = tmp_path / "given"
    for name in ("table.json", "sub/read.bin", "wrong.txt", "sub/unused.pt", "listed.json"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    (tmp_path / "test_made.py").write_text(MODULE)
    (tmp_path / "test_other.py").write_text("def test_without_goldens():\n    pass\n")
    words = [
        "-m",
        "tests.golden_usage",
        str(folder),
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "conftest",
        str(tmp_path),
    ]
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    run = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=os.environ | paths, capture_output=True, text=True, timeout=HANG_LIMIT
    )
    tests = {name: f"    test_made.py::test_{name}\n" for name in ("one", "two", "three", "four")}
    lists = run.stdout[run.stdout.index("sub/read.bin: ") :].replace(os.path.relpath(tmp_path, ROOT) + "/", "")
    assert lists == (
        f"sub/read.bin: opened by 1\n{tests['two']}"
        f"table.json: opened by 2\n{tests['one']}{tests['two']}"
        f"wrong.txt: opened by 1\n{tests['three']}"
        "opened to list tests alone: 1\n    listed.json\n"
        "opened by no test: 1\n    sub/unused.pt\n"
        f"tests that opened nothing: 1\n{tests['four']}"
        f"tests that failed: 1\n{tests['three']}"
    ), run.stdout + run.stderr
    assert run.returncode == 1
