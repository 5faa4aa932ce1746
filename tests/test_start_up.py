"""What a command loads before it knows its job: libraries that take seconds wait until they are used."""

import subprocess
import sys

from shell import ROOT

SLOW_LIBRARIES = {
    *("torch._dynamo", "torch.utils.tensorboard", "sympy", "scipy", "librosa", "numba", "matplotlib"),
    *("tensorboard", "parselmouth", "jiwer", "pandas", "sklearn"),
    *("onnx", "onnxruntime", "safetensors"),
}


def test_no_command_loads_what_it_may_not_need():
    program = "import contextlib, io, sys\nimport extract_mels, inference, train\n"
    program += "for command in (extract_mels, inference, train):\n"
    program += "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
    program += "        command.main(['--help'])\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not SLOW_LIBRARIES & set(run.stdout.split())
