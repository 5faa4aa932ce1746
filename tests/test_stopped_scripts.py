"""What ends a script ends what it has started: Bash passes no signal on."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from limits import HANG_LIMIT, wait_until
from shell import ROOT

# Stands for Python: says when it runs train.py, and which signal it gets then.
PYTHON = r"""#!/usr/bin/env bash
[[ " $* " = *" train.py "* ]] || exit 0
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
    ],
)
def test_a_signal_to_a_script_alone_ends_the_training_that_it_has_started(
    script: str, stop: signal.Signals, tmp_path: Path
):
    python, said = tmp_path / "python", tmp_path / "said"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "recordings").mkdir()
    said.touch()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(python), "SAID": str(said)}
    environment |= dict.fromkeys(("DATASET", "DATASET_PATH"), str(tmp_path))
    environment |= {"OUTPUT_DIR": str(tmp_path / "output"), "STAGES": "vocoder", "NUM_GPUS": "0"}
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(["bash", ROOT / "scripts" / script], env=environment, **output)
    wait_until(said.read_text)
    process.send_signal(stop)
    assert process.wait(HANG_LIMIT) == -stop
    wait_until(lambda: said.read_text() != "started\n")
    assert said.read_text() == "started\nSIGTERM\n"
