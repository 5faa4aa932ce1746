"""The checks of style and layers find each breach of their rules, and the project has none."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.check_style import check

ROOT = Path(__file__).resolve().parents[1]
DOC = '"""A file."""\n'
HOST = "py" + "pi.org"


def findings(root: Path) -> list[str]:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return check(root)


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def long_function(n_lines: int, docstring_lines: int = 0) -> str:
    body = ['    """Text.' + "\n    more" * (docstring_lines - 1) + '\n    """'] if docstring_lines else []
    return DOC + "\n".join(["def f():", *body, *["    x = 1"] * (n_lines - 1)]) + "\n"


BREACHES = {
    "models.py imports a model": (
        "models.py",
        DOC + "import fastpitch.model\n",
        2,
        "models.py must not import fastpitch; it may import common",
    ),
    "models.py imports an entry point": ("models.py", DOC + "import train\n", 2, "must not import train"),
    "an entry point imports another": ("train.py", DOC + "from inference import x\n", 2, "must not import inference"),
    "an entry point imports a model": ("train.py", DOC + "from fastpitch import x\n", 2, "must not import fastpitch"),
    "a nested import": ("train.py", DOC + "def f():\n    import fastpitch\n", 3, "must not import fastpitch"),
    "a cuda call": ("common/a.py", DOC + "def f(x):\n    return x.cuda()\n", 3, ".cuda()"),
    "sys.path": ("scripts/a.py", DOC + "import sys\nsys.path.insert(0, '.')\n", 3, "sys.path"),
    "a long function": ("common/a.py", long_function(61), 2, "function f has 61 lines, the limit is 60"),
    "a long file": ("common/a.py", DOC + "x = 1\n" * 400, 400, "the file has 401 lines, the limit is 400"),
    "a long entry point": ("train.py", DOC + "x = 1\n" * 250, 250, "the file has 251 lines, the limit is 250"),
    "a long README": ("README.md", "text\n" * 251, 250, "the file has 251 lines, the limit is 250"),
    "no docstring": ("common/a.py", "x = 1\n", 1, "must open with a docstring"),
    "a shell script without purpose": ("scripts/a.sh", "#!/bin/bash\ntrue\n", 2, "must open with a comment"),
    "a package named platform": ("platform/__init__.py", DOC, 1, "platform/ must not be a package"),
    "an unknown root file": ("helpers.py", DOC, 1, "the top level holds"),
    "a registry": ("README.md", f"one\ntwo https://{HOST}/simple\n", 2, "names the package registry"),
    "a registry in a hidden build file": (".ci/run", f"#!/bin/sh\npip -i {HOST.upper()}\n", 2, "names the package"),
}


# Files that every breach stands beside; they break no rule.
HOUSE = {
    "common/__init__.py": DOC,
    "fastpitch/__init__.py": DOC,
    "fastpitch/model.py": DOC,
    "inference.py": DOC + "import models\nimport common.cli\n",
    "platform/DGX1.sh": "# Trains.\n",
}


@pytest.mark.parametrize("breach", BREACHES)
def test_each_rule_fires_on_its_breach_alone(breach: str, tmp_path: Path):
    name, text, line, message = BREACHES[breach]
    write_tree(tmp_path, {**HOUSE, "train.py": DOC, name: text})
    lines = findings(tmp_path)
    assert len(lines) == 1
    assert lines[0].startswith(f"{name}:{line}: ")
    assert message in lines[0]


def test_common_has_at_most_sixteen_flat_files(tmp_path: Path):
    write_tree(tmp_path, {**HOUSE, **{f"common/{letter}.py": DOC for letter in "abcdefghijklmnop"}})
    assert findings(tmp_path) == []
    write_tree(tmp_path, {"common/q.py": DOC})
    assert findings(tmp_path) == ["common/q.py:1: common/ has 17 flat files, the limit is 16; use a room"]


def test_what_the_rules_allow_is_not_reported(tmp_path: Path):
    files = {
        "common/a.py": DOC + "import torch\nfrom common.b import c\nfrom . import d\ntorch.cuda.is_available()\n",
        "common/b.py": long_function(60, docstring_lines=30),
        "models.py": DOC + "import importlib\nimport common\ndef f(name):\n    return importlib.import_module(name)\n",
        "train.py": DOC + "import platform\nimport torch\nimport models\nimport common.cli\n",
        "tests/test_a.py": DOC + "import train\nimport fastpitch\n" + "x = 1\n" * 600,
        "scripts/a.sh": "#!/usr/bin/env bash\n# Does a thing.\ntrue\n",
    }
    write_tree(tmp_path, {**HOUSE, **files})
    assert findings(tmp_path) == []


def test_ignored_files_of_a_repository_are_not_checked(tmp_path: Path):
    write_tree(tmp_path, {".gitignore": "made/\n", "made/a.py": "x = 1\n", "common/a.py": DOC + "x.cuda()\n"})
    assert [line.split()[0] for line in findings(tmp_path)] == ["common/a.py:2:"]


def test_a_folder_without_git_is_checked_too(tmp_path: Path):
    write_tree(tmp_path, {"common/a.py": DOC + "x.cuda()\n", ".venv/a.py": "x.cuda()\n"})
    assert [line.split()[0] for line in check(tmp_path)] == ["common/a.py:2:"]


def test_the_project_keeps_its_own_rules():
    result = subprocess.run([sys.executable, "scripts/check_style.py"], cwd=ROOT, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "")


# (file, text, contract of pyproject.toml that it breaks)
IMPORTS = {
    "common imports a model": (
        "common/text/a.py",
        "def f():\n    import fastpitch.model\n",
        "A model imports common/ and itself",
    ),
    "a model imports a sibling": ("fastpitch/a.py", "from jasper import model\n", "A model imports common/ and itself"),
    "a model imports models.py": ("fastpitch/a.py", "import models\n", "import no file at the top level"),
    "common imports an entry point": ("common/text/a.py", "from train import x\n", "import no file at the top level"),
    "a script imports an entry point": ("scripts/a.py", "import train\n", "Scripts call entry points"),
    "a room imports upwards": ("common/text/a.py", "import common.training\n", "The rooms of common/ import downwards"),
    "a flat file imports a room": ("common/files.py", "import common.text\n", "The rooms of common/ import downwards"),
    "an unknown room": ("common/house/__init__.py", "", "The rooms of common/ import downwards"),
    "a circle": ("fastpitch/model.py", "import fastpitch.a\n", "No imports in a circle"),
}
ROOMS = "data_report evaluation extraction recognition synthesis training checkpoints data text nn audio".split()
FLAT = "errors cli config files registry distributed precision logger progress signals timing plots".split()


@pytest.fixture(scope="module")
def layered_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of empty files that breaks no contract of our pyproject.toml."""
    root = tmp_path_factory.mktemp("layers")
    folders = ["common", *(f"common/{room}" for room in ROOMS), *"fastpitch hifigan waveglow tacotron2 jasper".split()]
    write_tree(root, {f"{folder}/__init__.py": "" for folder in folders})
    write_tree(root, {f"common/{name}.py": "" for name in FLAT})
    write_tree(
        root, {"tests/a.py": "import scripts.a, fastpitch", "scripts/a.py": "import jasper", "jasper/model.py": ""}
    )
    write_tree(root, {"fastpitch/a.py": "import fastpitch.model", "fastpitch/model.py": "import common.text\n"})
    write_tree(root, {"pyproject.toml": (ROOT / "pyproject.toml").read_text()})
    return root


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    arguments = ["--no-cache", "--no-logo"]
    return subprocess.run([sys.executable, "-c", command, *arguments], cwd=root, capture_output=True, text=True)


def test_the_project_keeps_its_layers(layered_project: Path):
    for root in (layered_project, ROOT):
        result = lint_imports(root)
        assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("breach", IMPORTS)
def test_each_import_across_layers_breaks_its_contract_alone(breach: str, layered_project: Path, tmp_path: Path):
    name, text, contract = IMPORTS[breach]
    shutil.copytree(layered_project, tmp_path, dirs_exist_ok=True)
    write_tree(tmp_path, {name: text})
    result = lint_imports(tmp_path)
    broken = [line for line in result.stdout.splitlines() if line.endswith(" BROKEN")]
    assert result.returncode == 1
    assert len(broken) == 1, result.stdout
    assert contract in broken[0]
