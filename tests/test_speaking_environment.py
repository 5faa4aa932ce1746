"""Speaking and serving need few packages, and no command loads libraries before it needs them."""

import importlib.metadata
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from shell import ROOT

MOST_PACKAGES = 35 + (sys.version_info < (3, 11))  # on which anyio needs exceptiongroup too
# Of PyTorch's builds for GPUs, which its build for CPUs does without
OF_GPUS = re.compile(r"nvidia-|cuda-|triton$")


def installed_by(path: Path) -> set[str]:
    """The packages that the lines of a requirements file install here, with all that they require themselves."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in path.read_text().splitlines()]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found or OF_GPUS.match(name) or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += map(Requirement, importlib.metadata.requires(name) or [])
    return found


@pytest.fixture(scope="module")
def packages() -> set[str]:
    return installed_by(ROOT / "requirements-speak.txt")


@pytest.fixture(scope="module")
def restricted(packages: set[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables with which ``python -S`` finds these packages, and PyTorch's for GPUs, and no others."""
    folder = tmp_path_factory.mktemp("packages")
    for one in importlib.metadata.distributions():
        name = canonicalize_name(one.name)
        if name not in packages and not OF_GPUS.match(name):
            continue
        for part in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            if not (folder / part).exists():
                (folder / part).symlink_to(one.locate_file(part))
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_speaking_and_serving_install_few_packages(packages: set[str]):
    assert len(packages) <= MOST_PACKAGES, sorted(packages)


def test_a_text_is_spoken_without_other_packages(restricted: dict[str, str], tmp_path: Path):
    words = ["--text", "Dr. Müller paid £3.50.", "-o", str(tmp_path / "a.mp3"), "--subtitles", "srt"]
    command = [sys.executable, "-S", "inference.py", *words]
    done = subprocess.run(command, cwd=ROOT, env=restricted, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.mp3").stat().st_size > 10_000 and (tmp_path / "a.srt").is_file()


def test_a_server_speaks_without_other_packages(restricted: dict[str, str]):
    command = [sys.executable, "-S", "serve.py", "--port", "0"]
    server = subprocess.Popen(command, cwd=ROOT, env=restricted, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = next(found[0] for line in server.stdout if (found := re.search("http://[0-9.:]+", line)))
        body = b'{"model": "tts-1", "voice": "alloy", "input": "Hello there.", "response_format": "flac"}'
        request = urllib.request.Request(f"{address}/v1/audio/speech", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert answer.read(4) == b"fLaC"
        with urllib.request.urlopen(address) as page:
            assert b"<html" in page.read()
        with urllib.request.urlopen(f"{address}/metrics") as metrics:
            assert b"speech_requests_total" in metrics.read()
    finally:
        server.terminate()
    assert server.wait() == 0


SLOW_LIBRARIES = {
    *("torch._C", "torch._dynamo", "torch.utils.tensorboard", "sympy", "scipy", "librosa", "numba", "matplotlib"),
    *("tensorboard", "parselmouth", "jiwer", "pandas", "sklearn"),
    *("onnx", "onnxruntime", "safetensors"),
}


def test_no_command_loads_what_it_may_not_need():
    program = "import contextlib, io, sys\nimport extract_mels, inference, train\n"
    program += "for main, words in ((extract_mels.main, []), (inference.main, []), (train.main, []), "
    program += "(inference.main, ['--jasper', 'a.pt'])):\n"
    program += "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
    program += "        main([*words, '--help'])\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not SLOW_LIBRARIES & set(run.stdout.split())
