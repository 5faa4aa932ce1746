"""What ends a script ends what it has started: Bash passes no signal on."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from limits import HANG_LIMIT, wait_until
from shell import ROOT

# Stands for Python: says when it trains or extracts, and which signal it gets then.
PYTHON = rf"""#!/usr/bin/env bash
[ "$2" != speech_toolkit ] || PYTHONPATH='{ROOT}' exec '{sys.executable}' "$@"
[[ " $* " = *"train.py "* || " $* " = *"extract_mels.py "* ]] || exit 0
trap 'echo SIGTERM >>"$SAID"; exit 143' TERM
mkfifo "$SAID.never"
echo started >>"$SAID"
read -r <>"$SAID.never"
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux's setpriv is not installed")
@pytest.mark.parametrize(
    ("script", "stop"),
    [
        ("train_voices.sh", signal.SIGHUP),  # by another script
        ("train_benchmark.sh", signal.SIGKILL),  # by another script too
        ("prepare_dataset.sh", signal.SIGTERM),
    ],
)
def test_a_signal_to_a_script_alone_ends_what_it_has_started(script: str, stop: signal.Signals, tmp_path: Path):
    python, said = tmp_path / "python", tmp_path / "said"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "my_audio_text_train_filelist.txt").touch()
    said.touch()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(python), "SAID": str(said)}
    environment |= dict.fromkeys(("DATASET", "DATASET_PATH"), str(tmp_path))
    environment |= {"OUTPUT_DIR": str(tmp_path / "output"), "NUM_GPUS": "0"}
    environment |= {"FILELISTS": str(tmp_path), "NAME": "my", "FEATURES": "mels"}
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(["bash", ROOT / "scripts" / script], env=environment, **output)
    wait_until(said.read_text)
    process.send_signal(stop)
    assert process.wait(HANG_LIMIT) in (-stop, 128 + stop)
    wait_until(lambda: said.read_text() != "started\n")
    assert said.read_text() == "started\nSIGTERM\n"
