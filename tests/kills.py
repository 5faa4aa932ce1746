"""Commands that are signaled at a moment of their own, and the processes that they leave behind."""

import importlib
import json
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from pathlib import Path

from limits import HANG_LIMIT, wait_until
from shell import ROOT

PRELOADED = [
    "common.importing.run",
    "common.training.trainer",
    "parselmouth",
    "torch._dynamo",  # which the first optimizer imports
    "torch.utils.tensorboard",
    "extract_mels",
]


def at_write(
    number: signal.Signals, folder: Path, *, count: int, event: str = "os.rename", group: bool = False, times: int = 1
) -> str:
    """For `Forked`: a signal when a process renames its ``count``-th file of ``folder`` or, "open", opens it to write.

    It is sent to the process that was started, or to its whole ``group``, ``times`` times if so many processes do so.
    """
    tokens = [tempfile.mkstemp()[1] for _ in range(times)]
    return json.dumps([number, event, count, str(folder), group, tokens])


class Forked:
    """A program that leads a session, forked from a process that has imported PyTorch: it starts within 0.1 s."""

    def __init__(self, module: str, *words: object, signal_at: str | None = None) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._printed = [tempfile.mkstemp()[1] for _ in range(2)]
        self._process = context.Process(target=_run_forked, args=(module, [*map(str, words)], signal_at, self._printed))
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit status; that of a signal is negative."""
        return self._process.exitcode

    def communicate(self, *, timeout: float) -> tuple[str, str]:
        """Stdout and stderr, at its end."""
        self._process.join(timeout)
        out, err = (Path(name).read_text() for name in self._printed)
        return out, err


def _run_forked(module: str, words: list[str], signal_at: str | None, printed: list[str]) -> None:
    os.setsid()
    for number, name in enumerate(printed, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), number)
    if signal_at is not None:
        os.environ["SIGNAL_AT"] = signal_at
        runpy.run_path(str(ROOT / "tests/signal_at/sitecustomize.py"))
    import torch

    from common.cli import run

    torch.set_num_threads(1)
    sys.argv = [module, *words]
    run(importlib.import_module(module).main)


def finish(process: Forked) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a program, whose processes have all ended."""
    out, err = process.communicate(timeout=HANG_LIMIT)
    wait_until(lambda: not session_of(process))
    return process.returncode, out, err


def session_of(process: Forked) -> list[int]:
    """The live processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended
            continue
        if int(session) == process.pid and state != "Z":
            found.append(int(path.parent.name))
    return found
