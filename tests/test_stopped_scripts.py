"""What ends a script ends what it has started: Bash passes no signal on."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from limits import HANG_LIMIT, wait_until
from shell import ROOT, run_bash

# Stands for Python: says when it trains or extracts, and which signal it gets then.
PYTHON = r"""#!/usr/bin/env bash
[[ " $* " = *" train.py "* || " $* " = *" extract_mels.py "* ]] || exit 0
trap 'echo SIGTERM >>"$SAID"; exit 143' TERM
mkfifo "$SAID.never"
echo started >>"$SAID"
read -r <>"$SAID.never"
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux's setpriv is not installed")
@pytest.mark.parametrize(
    ("script", "stop"),
    [
        ("train_digits.sh", signal.SIGTERM),
        ("train_voices.sh", signal.SIGHUP),  # by another script
        ("train_benchmark.sh", signal.SIGKILL),  # by another script too
        ("prepare_dataset.sh", signal.SIGTERM),
    ],
)
def test_a_signal_to_a_script_alone_ends_what_it_has_started(script: str, stop: signal.Signals, tmp_path: Path):
    python, said = tmp_path / "python", tmp_path / "said"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "recordings").mkdir()
    (tmp_path / "my_audio_text_train_filelist.txt").touch()
    said.touch()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(python), "SAID": str(said)}
    environment |= dict.fromkeys(("DATASET", "DATASET_PATH"), str(tmp_path))
    environment |= {"OUTPUT_DIR": str(tmp_path / "output"), "STAGES": "vocoder", "NUM_GPUS": "0"}
    environment |= {"FILELISTS": str(tmp_path), "NAME": "my", "FEATURES": "mels"}
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(["bash", ROOT / "scripts" / script], env=environment, **output)
    wait_until(said.read_text)
    process.send_signal(stop)
    assert process.wait(HANG_LIMIT) == -stop
    wait_until(lambda: said.read_text() != "started\n")
    assert said.read_text() == "started\nSIGTERM\n"


_RUNS = r"\b(run_child|(run|exec)_or_print|run_once|run_python)\b"
# In a subshell, which outlives its script, so that the command is not told of the script's end.
_PIPE = r"(?<!\|)\|(?!\|)"
_IN_SUBSHELL = re.compile(rf"([$<>(]\(|^ *\(|{_PIPE})[^;|&]*{_RUNS}|{_RUNS}[^|]*{_PIPE}|{_RUNS}.*[^>&]&( |$)")


def in_subshell(script: str) -> list[str]:
    """The lines of a script, continued ones joined, that run a command in a subshell."""
    lines = re.sub(r"'[^']*'", "", script.replace("\\\n", " ")).splitlines()
    return [line for line in lines if not line.lstrip().startswith("#") and _IN_SUBSHELL.search(line)]


def test_no_script_runs_a_command_in_a_subshell():
    scripts = [path for folder in ("scripts", "platform") for path in (ROOT / folder).rglob("*.sh")]
    assert len(scripts) > 50
    assert {path.name: lines for path in scripts if (lines := in_subshell(path.read_text()))} == {}


@pytest.mark.parametrize(
    "line",
    [
        'run_or_print "$PYTHON" train.py "$@" | tee log',
        'run_or_print "$PYTHON" train.py \\\n    "$@" 2>&1 | tee log',
        'said="$(run_child "$PYTHON" train.py)"',
        'read -r said < <(run_child "$PYTHON" train.py)',
        "(run_child train.py)",
        "true | run_child train.py",
        "run_child train.py &",
        "run_child train.py & wait",
    ],
)
def test_a_command_in_a_subshell_is_noticed(line: str):
    assert in_subshell(f"set -e\n{line}\n")


@pytest.mark.parametrize("line", ["run_child a && b || c", "run_child a 2>&1 >&3", "{ time run_child a 2>&3; } 3>&2"])
def test_a_command_in_the_script_itself_is_not(line: str):
    assert not in_subshell(line)


@pytest.mark.parametrize("closed", [">&-", ">/dev/full"])
@pytest.mark.parametrize("words", ["scripts/train_jasper.sh --help", "scripts/speak.sh Hello."])
def test_output_of_a_script_that_cannot_be_written_is_one_line(words: str, closed: str):
    result = run_bash("-c", f"bash {ROOT}/{words} {closed}", DRY_RUN="1", PYTHON="py")
    assert (result.returncode, result.stderr) == (1, "error: standard output: cannot be written\n")


def test_a_folder_that_slurm_names_and_is_none_is_one_line():
    result = run_bash(ROOT / "scripts/slurm_train.sh", SLURM_SUBMIT_DIR="/absent\n'")
    said = "error: /absent?' is not the project's folder; submit the job from there\n"
    assert (result.returncode, result.stderr) == (1, said)
