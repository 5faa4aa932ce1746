"""Runs the shell scripts of a clean copy of the project, or reads the commands that they would run."""

import argparse
import atexit
import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from training_setup import parsed

from common.errors import line_and_status
from scripts.launch import load_scripts


def project_files(root: Path) -> list[str]:
    """Paths from ``root`` of the files that git tracks, or of all files of a copy without git."""
    found = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=False)
    names = found.stdout.split("\0")
    if not any(names):  # in a copy
        names = [path.relative_to(root).as_posix() for path in root.rglob("*") if "__pycache__" not in path.parts]
    return [name for name in names if name and (root / name).is_file()]


def _clean_copy() -> Path:
    """A copy of the files that git tracks, one for all processes of a run of the tests, which removes it at its end."""
    if "TESTED_PROJECT" not in os.environ:
        copy = Path(tempfile.mkdtemp(prefix="project_")).resolve()
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        for name in TRACKED:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, copy / name)
        os.environ["TESTED_PROJECT"] = str(copy)
    return Path(os.environ["TESTED_PROJECT"])


SOURCE = Path(__file__).resolve().parents[1]  # where a user's output/, lists and corpora lie, too: not to be worked in
TRACKED = project_files(SOURCE)
ROOT = _clean_copy()
PROCESSOR = ("CPU_BFLOAT16", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")  # by which another one is imitated


SCRIPTS = load_scripts()


@dataclass(frozen=True)
class ShellFile:
    """A file that users start: its comment, the script that it runs, and the variables and arguments that it gives."""

    comment: str
    runs: str | None
    fixed: dict[str, str]
    words: list[str]  # those with NAME= are defaults of variables


def read_shell_file(path: Path) -> ShellFile:
    """Read a file of scripts/ or platform/."""
    text = path.read_text(encoding="utf-8")
    lines = text.removeprefix("#!/usr/bin/env bash\n").splitlines()
    comment = "\n".join(line[2:] for line in itertools.takewhile(re.compile("#( |$)").match, lines))
    started = r'source .*?/(?:(?!lib\.sh)(\w+)\.sh"|lib\.sh" && run (\w+))'
    found = re.search(rf"^((?:[A-Z_]+=\S+ )*){started}(.*)", text, re.MULTILINE)
    if found is None:
        return ShellFile(comment, None, {}, [])
    fixed, other, name, words = found.groups()
    variables = dict(word.split("=", 1) for word in fixed.split())
    own = [word for word in shlex.split(words) if word != "$@"]
    if name is None:
        folder = path.parent if path.parent.name == "scripts" else path.parents[1] / "scripts"
        inner = read_shell_file(folder / f"{other}.sh")
        name, variables, own = inner.runs, inner.fixed | variables, [*inner.words, *own]
    return ShellFile(comment, name, variables, own)


def environment_of(**variables: str | Path) -> dict[str, str]:
    """An environment of these variables, and of where programs are and what processor this is."""
    environment = {name: os.environ[name] for name in ("PATH", *PROCESSOR) if name in os.environ}
    environment |= {"HOME": os.environ.get("HOME", "/"), "CUDA_VISIBLE_DEVICES": "", "PYTHON": sys.executable}
    return environment | {name: str(value) for name, value in variables.items()}


def run_bash(*words: str | Path, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script with nothing in the environment but ``variables``, where programs are and what processor this is.

    It sees no GPU. The Python of the tests runs it by default, since a script without PYTHON makes .venv. Dry runs of
    scripts are of this process, which is faster.
    """
    environment = environment_of(**variables)
    if variables.get("DRY_RUN") == "1" and Path(words[0]).is_file() and Path(words[0]).suffix == ".sh":
        file = read_shell_file(Path(words[0]))
        if file.runs and not any("$" in value for value in file.fixed.values()):
            return run_here(*words, **variables)
    command = ["bash", *map(str, words)]
    script = Path(words[0])
    folder = script.absolute().parents[1] if script.suffix == ".sh" else Path("/")  # as users start scripts
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def words_of(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables set before a command, and its words."""
    words = shlex.split(command, comments=True)
    variables = {}
    while words and re.fullmatch(r"[A-Z_0-9]+=.*", words[0], re.DOTALL):
        name, _, variables[name] = words.pop(0).partition("=")
    return variables, words


def paste(command: str, folder: Path = ROOT, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a line in a project's folder with `run_bash`, which reads it itself only where not all of it is plain words.

    Of such a line only spaces, double quotes and a comment at the end mean anything to bash.
    """
    line = command.partition(" #")[0]
    if re.fullmatch(r"[\w ./:,=\"@%+-]+", line):
        settings, words = words_of(line)
        if words[0] == "bash" and words[1].endswith(".sh"):
            return run_bash(folder / words[1], *words[2:], **(variables | settings))
    return run_bash("-c", f"cd '{folder}' && {command}", **variables)


def run_here(script: str | Path, *words: str | Path, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    """`run_bash` in this process: start a script as scripts/lib.sh would, in its project's folder."""
    path, file = Path(script), read_shell_file(Path(script))
    environ, words = environment_of(**variables) | file.fixed, [*file.words, *map(str, words)]
    status, said, notes, before = 0, io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(path.absolute().parents[1])
    try:
        with patch.dict(os.environ, environ, clear=True), redirect_stdout(said), redirect_stderr(notes):
            try:
                SCRIPTS[file.runs].start(os.environ, words)
            except Exception as error:
                line, status = line_and_status(error)
                print(f"error: {line}", file=notes)
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess([str(path), *words], status, said.getvalue(), notes.getvalue())


def dry_run(script: str | Path, *words: str, **variables: str | Path) -> list[list[str]]:
    """The words of each command that a script would run, by a Python named ``py``."""
    result = run_bash(ROOT / script, *words, DRY_RUN="1", **variables)
    assert result.returncode == 0, result.stderr
    return [shlex.split(line) for line in result.stdout.replace(sys.executable, "py").splitlines()]


def training_options(words: list[str]) -> argparse.Namespace:
    """What train.py makes of a command that runs it."""
    return parsed(words[next(place for place, word in enumerate(words) if word.endswith("train.py")) + 1 :])


def n_processes(words: list[str]) -> int:
    """Processes on a machine that a command of train.py starts."""
    return int(words[words.index("--nproc-per-node") + 1]) if "--nproc-per-node" in words else 1
