"""``python -m common.launch``: ``torchrun``, whose options it takes, with one line for what ends its processes.

Each leaves its last line to this process (`common.errors.say_last`); ``torchrun`` would add pages of its own.
"""

import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous import RendezvousError

from common.distributed import AFTER_LOSS
from common.errors import LAUNCHED, one_line, reason
from common.signals import Requests, TerminatedError, ended_by, heeded, ignore_stops


def main(argv: Sequence[str]) -> int:
    """Start processes; the exit status is that of the one that has failed, or 128 + the signal that ended one of them
    or this process.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="launch_") as folder:
            os.environ[LAUNCHED] = folder
            line, status = _launch(argv, Path(folder))
    except OSError as error:
        line, status = f"error: the processes cannot be started: {reason(error)}", 1
    if line:
        print(line, file=sys.stderr)
    return status


def _launch(argv: Sequence[str], folder: Path) -> tuple[str, int]:
    """Run ``torchrun``; the line to print, "" for none, and the exit status. Processes leave theirs in ``folder``."""
    args = run.parse_args(argv)
    if not (args.module or args.no_python) and not Path(args.training_script).is_file():
        return one_line(f"error: {args.training_script}: no such file; give a program, such as train.py"), 2
    logging.disable()
    requests = Requests()

    def end(number: int, frame: FrameType | None) -> None:
        if requests.counts(number):
            raise SignalException(f"received {number}", signal.Signals(number))

    for stop in heeded():  # torchrun would answer SIGHUP under nohup too, and a terminal that hangs up twice
        signal.signal(stop, end)
    try:
        try:
            run.main(["--signals-to-handle", "SIGQUIT", *argv])
        finally:
            ignore_stops()
    except ChildFailedError as error:
        return _failed(_left_lines(folder), error.failures)
    except SignalException as error:
        by_user = KeyboardInterrupt() if error.sigval == signal.SIGINT else TerminatedError(error.sigval)
        line, status = ended_by(by_user)
        ended = [said for left, said in _left_lines(folder) if left >= 128]
        return (_first(ended) if ended else line), status
    except (RuntimeError, OSError, ValueError, RendezvousError) as error:
        return f"error: the processes cannot be started: {reason(error)}", 1
    return "", 0


def _left_lines(folder: Path) -> list[tuple[int, str]]:
    """Exit status and last line of each process that has left them, the first one first."""
    paths = [path for path in folder.iterdir() if not path.suffix]
    return [tuple(json.loads(path.read_text())) for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns)]


def _first(lines: Sequence[str]) -> str:
    """The first line that is one: a training that can be resumed, and all but one process of some, leave ""."""
    return next(filter(None, lines), "")


def _failed(left: Sequence[tuple[int, str]], failures: Mapping[int, ProcessFailure]) -> tuple[str, int]:
    """The line and exit status for processes that have failed: of the cause, not of those that were ended for it."""
    for status, line in left:
        if status < 128:
            return line, status
    killed = {rank: failure for rank, failure in failures.items() if failure.exitcode < 0}
    others = {rank: failure for rank, failure in failures.items() if failure.exitcode > 0}
    not_by_us = [rank for rank in killed if killed[rank].exitcode != -signal.SIGTERM]
    if left and not not_by_us:
        return _first([line for _, line in left]), left[0][0]
    if not_by_us or not others:
        rank = min(not_by_us or killed)
        number = -killed[rank].exitcode
        ended = f"process {rank} (process id {killed[rank].pid}) was ended by {signal.Signals(number).name}"
        return f"error: {ended}{AFTER_LOSS}", 128 + number
    rank = min(others)
    status = others[rank].exitcode
    return f"error: process {rank} ended with exit status {status}; another machine, or a line above, says why", status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
