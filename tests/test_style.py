"""The style checker finds each breach of the layers' rules, and the project has none."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHECKER = ROOT / "scripts" / "check_style.py"
DOC = '"""A file."""\n'
HOST = "py" + "pi.org"


def run_checker(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(CHECKER), str(root)], capture_output=True, text=True, check=False)


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def long_function(n_lines: int, docstring_lines: int = 0) -> str:
    body = ['    """Text.' + "\n    more" * (docstring_lines - 1) + '\n    """'] if docstring_lines else []
    return DOC + "\n".join(["def f():", *body, *["    x = 1"] * (n_lines - 1)]) + "\n"


BREACHES = {
    "common imports a model": ("common/a.py", DOC + "import fastpitch.model\n", 2, "common must not import fastpitch"),
    "common imports an entry point": ("common/a.py", DOC + "from train import x\n", 2, "common must not import train"),
    "a model imports a sibling": ("hifigan/a.py", DOC + "from waveglow import b\n", 2, "hifigan must not import wave"),
    "a model imports a root file": ("fastpitch/a.py", DOC + "import models\n", 2, "fastpitch must not import models"),
    "a nested import": ("common/a.py", DOC + "def f():\n    import jasper\n", 3, "common must not import jasper"),
    "an import by name": (
        "common/a.py",
        DOC + "import importlib\nm = importlib.import_module('jasper.model')\n",
        3,
        "common must not import jasper.model",
    ),
    "a relative import of a sibling": ("common/a.py", DOC + "from .. import hifigan\n", 2, "not import hifigan"),
    "a dispatcher imports a model": ("models.py", DOC + "import fastpitch\n", 2, "models.py must not import fastpitch"),
    "an entry point imports another": ("train.py", DOC + "import inference\n", 2, "train.py must not import inference"),
    "an entry point imports a model": ("train.py", DOC + "import tacotron2\n", 2, "train.py must not import tacotron2"),
    "a model imports the tests": ("jasper/a.py", DOC + "import tests.x\n", 2, "jasper must not import tests.x"),
    "a script imports an entry point": ("scripts/a.py", DOC + "import train\n", 2, "scripts must not import train"),
    "a cuda call": ("common/a.py", DOC + "def f(x):\n    return x.cuda()\n", 3, ".cuda()"),
    "eval": ("tests/test_a.py", DOC + "x = eval('1')\n", 2, "eval()"),
    "exec": ("common/a.py", DOC + "exec('x = 1')\n", 2, "exec()"),
    "global": ("common/a.py", DOC + "def f():\n    global x\n    x = 1\n", 3, "global x"),
    "sys.path": ("scripts/a.py", DOC + "import sys\nsys.path.insert(0, '.')\n", 3, "sys.path"),
    "path from sys": ("scripts/a.py", DOC + "from sys import path\n", 2, "sys.path"),
    "a bare except": ("common/a.py", DOC + "try:\n    x = 1\nexcept:\n    x = 2\n", 4, "bare except"),
    "a long function": ("common/a.py", long_function(71), 2, "function f has 71 lines, the limit is 70"),
    "a long file": ("common/a.py", DOC + "x = 1\n" * 440, 440, "the file has 441 lines, the limit is 440"),
    "a long entry point": ("train.py", DOC + "x = 1\n" * 270, 270, "the file has 271 lines, the limit is 270"),
    "no docstring": ("common/a.py", "x = 1\n", 1, "must open with a docstring"),
    "a shell script without purpose": ("scripts/a.sh", "#!/bin/bash\ntrue\n", 2, "must open with a comment"),
    "a package named platform": ("platform/__init__.py", DOC, 1, "platform/ must not be a package"),
    "an unknown root file": ("helpers.py", DOC, 1, "the top level holds"),
    "a registry": ("README.md", f"one\ntwo https://{HOST}/simple\n", 2, "names the package registry"),
    "a registry in a hidden build file": (".ci/run", f"#!/bin/sh\npip -i {HOST.upper()}\n", 2, "names the package"),
    "a syntax error": ("common/a.py", DOC + "def f(:\n", 2, "syntax error"),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_each_rule_fires_on_its_breach_alone(breach: str, tmp_path: Path):
    name, text, line, message = BREACHES[breach]
    write_tree(tmp_path, {name: text})
    result = run_checker(tmp_path)
    lines = result.stdout.splitlines()
    assert result.returncode == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"{name}:{line}: ")
    assert message in lines[0]


def test_what_the_rules_allow_is_not_reported(tmp_path: Path):
    files = {
        "common/a.py": DOC + "import torch\nfrom common.b import c\nfrom . import d\ntorch.cuda.is_available()\n",
        "common/b.py": long_function(70, docstring_lines=30),
        "fastpitch/a.py": DOC + "import common.a\nfrom fastpitch import b\ndef f(model):\n    model.eval()\n",
        "models.py": DOC + "import importlib\nimport common\ndef f(name):\n    return importlib.import_module(name)\n",
        "train.py": DOC + "import models\nimport loss_functions\nimport common.cli\n",
        "tests/test_a.py": DOC + "import train\nimport fastpitch\n" + "x = 1\n" * 600,
        "scripts/a.sh": "#!/usr/bin/env bash\n# Does a thing.\ntrue\n",
        "platform/DGX1.sh": "# Trains.\n",
        "output/run.py": "exec('generated')\n",
    }
    write_tree(tmp_path, files)
    result = run_checker(tmp_path)
    assert (result.returncode, result.stdout) == (0, "")


def test_ignored_files_of_a_repository_are_not_checked(tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    write_tree(tmp_path, {".gitignore": "made/\n", "made/a.py": "x = 1\n", "common/a.py": DOC + "exec('')\n"})
    result = run_checker(tmp_path)
    assert result.stdout.splitlines() == ["common/a.py:2: exec() runs text as code"]


def test_the_project_keeps_its_own_rules():
    result = run_checker(ROOT)
    assert result.stdout == ""
    assert result.returncode == 0
