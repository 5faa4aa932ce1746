"""Rules of the project that ruff and mypy cannot check, and the layers: each finds its breach, the project has none."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import ROOT, project_files

ENTRY_POINTS = ("train", "inference", "extract_mels", "serve")
FUNCTION_LINES = 60  # without its docstring
FILE_LINES = 400  # tests excepted
ENTRY_POINT_LINES = 250
README_LINES = 250
FLAT_FILES = 16  # .py files of common/ that lie in no room

# Package registries, which this file must not name either: "!" is the last dot.
REGISTRIES = (
    (
        "pypi!org pythonhosted!org npmjs!org npmjs!com anaconda!org download.pytorch!org crates!io proxy.golang!org "
        "deb.debian!org"
    )
    .replace("!", ".")
    .split()
)
CLOCKS = ("sleep", "time", "monotonic", "perf_counter")
TEXT_LIMIT = 1_000_000  # bytes; larger files are data

Findings = Iterator[tuple[int, str]]  # line, message


def check(root: Path) -> list[str]:
    """All findings in the project folder ``root``, in order of file and line."""
    names = sorted(project_files(root))
    findings = [(name, line, message) for name in names for line, message in check_file(root / name, name)]
    flat = [name for name in names if name.startswith("common/") and name.count("/") == 1 and name.endswith(".py")]
    if len(flat) > FLAT_FILES + 1:  # and __init__.py
        findings.append((flat[-1], 1, f"common/ has {len(flat) - 1} flat files, the limit is {FLAT_FILES}; use a room"))
    return [f"{name}:{line}: {message}" for name, line, message in sorted(findings)]


def check_file(path: Path, name: str) -> Findings:
    """Findings of one file; ``name`` is its path from the project's root, with slashes."""
    if name == "platform/__init__.py":
        yield 1, "platform/ must not be a package: it would shadow the standard library's module"
    if path.stat().st_size > TEXT_LIMIT:
        return
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for host in REGISTRIES:
            if host in line.lower():
                yield number, f"names the package registry {host}; leave it to the machine's settings"
    if name == "README.md" and len(lines) > README_LINES:
        yield README_LINES, f"the file has {len(lines)} lines, the limit is {README_LINES}"
    if path.suffix == ".sh":
        first = 1 if text.startswith("#!") else 0
        if not "".join(lines[first : first + 1]).startswith("# "):
            yield first + 1, "the script must open with a comment that says its purpose"
    if path.suffix == ".py":
        yield from python_findings(ast.parse(text, name), path, name, n_lines=len(lines))


def python_findings(tree: ast.Module, path: Path, name: str, *, n_lines: int) -> Findings:
    """Rules for a Python file."""
    stem = name.removesuffix(".py")
    if not ast.get_docstring(tree):
        yield 1, "the file must open with a docstring of one sentence that says its purpose"
    if "/" not in name and stem not in (*ENTRY_POINTS, "models"):
        yield 1, "the top level holds the entry points and models.py only; move this file into a folder"
    limit = ENTRY_POINT_LINES if stem in ENTRY_POINTS else FILE_LINES
    if n_lines > limit and not name.startswith("tests/"):
        yield limit, f"the file has {n_lines} lines, the limit is {limit}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            yield node.lineno, ".cuda() fixes the device; choose it once and pass it (.to(device))"
        if isinstance(node, ast.Attribute) and node.attr == "path" and ast.unparse(node) == "sys.path":
            yield node.lineno, "sys.path is not to be touched; run from the project's root"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and function_lines(node) > FUNCTION_LINES:
            yield node.lineno, f"function {node.name} has {function_lines(node)} lines, the limit is {FUNCTION_LINES}"
        if name.startswith("tests/") and name != "tests/limits.py" and is_of_machines_speed(node):
            yield (
                node.lineno,
                "no test depends on a machine's speed; wait by wait_until or HANG_LIMIT of tests/limits.py",
            )
        if "/" not in name and isinstance(node, ast.Import | ast.ImportFrom):
            yield from top_level_import_findings(node, path)


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from ``def`` to its end, its docstring left out."""
    n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        docstring = node.body[0]
        n_lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return n_lines


def is_of_machines_speed(node: ast.AST) -> bool:
    """Whether a test sleeps, reads a clock, or waits no longer than a number of its own."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in CLOCKS and ast.unparse(node.func) == f"time.{name}":
        return True
    own = [keyword.value for keyword in node.keywords if keyword.arg == "timeout"]
    own += node.args if name in ("wait", "join", "result", "communicate") else []
    return any(isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) for limit in own)


def top_level_import_findings(node: ast.Import | ast.ImportFrom, path: Path) -> Findings:
    """Imports of a file at the top level, which import-linter does not see: no model and no other entry point."""
    allowed = ("common",) if path.stem == "models" else ("common", "models")
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for top in (name.split(".")[0] for name in names):
        ours = path.with_name(f"{top}.py").is_file() or any(path.with_name(top).glob("*.py"))
        if ours and top not in allowed:
            yield node.lineno, f"{path.name} must not import {top}; it may import {' and '.join(allowed)}"


DOC = '"""A file."""\n'
HOST = "py" + "pi.org"


def findings(root: Path) -> list[str]:
    for command in ("init", "add ."):
        subprocess.run(["git", "-C", str(root), *command.split()], check=True, capture_output=True)
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
    "a test that sleeps": ("tests/a.py", DOC + "import time\ntime.sleep(1)\n", 3, "no test depends on"),
    "a test that reads a clock": ("tests/a.py", DOC + "import time\nx = time.monotonic()\n", 3, "no test depends on"),
    "a test with a time-out": ("tests/a.py", DOC + "run('a', timeout=60)\n", 2, "no test depends on"),
    "a test that waits for seconds": ("tests/a.py", DOC + "x.wait(5)\n", 2, "no test depends on"),
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
        "tests/limits.py": DOC + "import time\ntime.sleep(0.1)\n",
        "tests/test_b.py": DOC + "x.wait(HANG_LIMIT)\nx.run(timeout=None)\n','.join('ab')\n",
        "scripts/a.sh": "#!/usr/bin/env bash\n# Does a thing.\ntrue\n",
    }
    write_tree(tmp_path, {**HOUSE, **files})
    assert findings(tmp_path) == []


def test_ignored_files_of_a_repository_are_not_checked(tmp_path: Path):
    write_tree(tmp_path, {".gitignore": "made/\n", "made/a.py": "x = 1\n", "common/a.py": DOC + "x.cuda()\n"})
    assert [line.split()[0] for line in findings(tmp_path)] == ["common/a.py:2:"]


def test_a_folder_without_git_is_checked_too(tmp_path: Path):
    write_tree(tmp_path, {".gitignore": ".venv/\n/data/\n*.tmp\n", ".venv/a.py": "", "data/a.py": "x.cuda()\n"})
    write_tree(tmp_path, {"common/data/a.py": DOC + "x.cuda()\n", "common/a.tmp/a.py": "x.cuda()\n"})
    assert [line.split()[0] for line in check(tmp_path)] == ["common/data/a.py:2:"]


def test_the_project_keeps_its_own_rules():
    assert check(ROOT) == []


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
ROOMS = [
    *"data_report evaluation importing extraction serving recognition synthesis training checkpoints".split(),
    *"data text nn audio pages".split(),
]
FLAT = [
    *"errors cli options config files registry distributed precision logger progress signals timing plots".split(),
    "torch_file",
]


@pytest.fixture(scope="module")
def layered_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of empty files that breaks no contract of our pyproject.toml."""
    root = tmp_path_factory.mktemp("layers")
    models = "fastpitch hifigan waveglow tacotron2 jasper harmonic".split()
    folders = ["speech_toolkit", "common", *(f"common/{room}" for room in ROOMS), *models]
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


# The most lines of .py and .sh files, as the design has them: an issue that adds a job says what it adds.
SIZES = {
    "flat files of common/": 2122,
    "audio, nn": 1754,
    "text": 5081,
    "data": 969,
    "checkpoints": 1459,
    "training": 2360,
    "synthesis": 3341,
    "recognition": 444,
    "serving": 2344,
    "extraction": 1323,
    "importing": 1994,
    "evaluation, data_report, pages": 2485,
    "the six models": 9239,
    "scripts": 6076,
    "platform": 312,
    "files at the root, speech_toolkit": 500,
    "tests": 36577,
}
MODELS = ("fastpitch", "hifigan", "waveglow", "tacotron2", "jasper", "harmonic")


def room_of(name: str) -> str:
    """The row of `SIZES` that a file counts in."""
    folder, _, rest = name.partition("/")
    if folder in MODELS:
        return "the six models"
    if not rest or folder == "speech_toolkit":
        return "files at the root, speech_toolkit"
    if folder != "common":
        return folder
    room = rest.partition("/")[0] if "/" in rest else "flat files of common/"
    return next((row for row in SIZES if room in row.split(", ")), room)


def test_each_room_keeps_its_size():
    lines: dict[str, int] = {}
    for name in project_files(ROOT):
        if name.endswith((".py", ".sh")):
            room = room_of(name)
            lines[room] = lines.get(room, 0) + (ROOT / name).read_text(encoding="utf-8").count("\n")
    assert lines.keys() == SIZES.keys()
    assert {room: count for room, count in lines.items() if count > SIZES[room]} == {}
