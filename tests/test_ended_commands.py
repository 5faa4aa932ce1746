"""Commands ended from outside: while they import, by a process that is killed, or without anywhere to print."""

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
import torch.distributed.run as torchrun
from kills import Forked, finish
from limits import HANG_LIMIT
from ranks import ROOT, run_ranks
from test_failing_writes import ended
from tiny_models import MODELS, at_iteration, without_samples

import train
from common.signals import StopSignals, stops_handled_by


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_end_any_command_as_ctrl_c_does(stop: signal.Signals, capsys):
    before = signal.getsignal(stop)
    assert ended(lambda _: signal.raise_signal(stop)) == 128 + stop
    assert capsys.readouterr().err == f"stopped by {stop.name}\n"
    assert signal.getsignal(stop) is before


def test_under_nohup_a_closed_terminal_ends_nothing():
    def main(_: Sequence[str]) -> None:
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGHUP)
        with stops_handled_by(signal.SIG_DFL):
            signal.raise_signal(signal.SIGHUP)
        assert signals.received is None

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert ended(main) == 0
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_job_finishes_its_work_unless_ctrl_c_is_pressed_after_the_first_signal(first: signal.Signals, capsys):
    def main(_: Sequence[str]) -> None:
        with StopSignals() as signals:
            signal.raise_signal(first)
            signal.raise_signal(signal.SIGTERM)  # of the script that a signal ended too
            assert signals.received == first
            signal.raise_signal(signal.SIGINT)
        raise AssertionError("not ended")

    assert ended(main) == 128 + signal.SIGINT
    assert capsys.readouterr().err == "interrupted\n"


PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from common.cli import run
from common.errors import InputError, OptionError
def main():
    rank, end = int(os.environ["RANK"]), sys.argv[1]
    if end == "wrong option":
        time.sleep(0 if rank else 2)
        raise OptionError("--speed: expected a number")
    import torch
    from common import distributed
    with distributed.processes(cuda=False) as ranks:
        if end == "killed" and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if end == "wrong input of one" and rank == 1:
            refuse()
        while True:
            ranks.sum(torch.zeros(1))
def refuse():
    time.sleep(1)
    raise InputError("list.txt:3: no such clip")
run(main)
"""


def run_by_torchrun(folder: Path, end: str) -> int | None:
    """Run two processes of ``PROGRAM`` that end as ``end`` says; returns the exit status of torchrun, a fork of us."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    words = ["--standalone", "--nproc-per-node", "2", str(program), end, str(folder)]
    with patch.dict(os.environ, {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}):
        launcher = multiprocessing.get_context("fork").Process(target=torchrun.main, args=(words,), daemon=True)
        launcher.start()
    launcher.join(HANG_LIMIT)
    return launcher.exitcode


@pytest.mark.parametrize(
    ("end", "line", "cause"),
    [
        ("wrong option", "error: --speed: expected a number", "exitcode  : 2"),
        pytest.param("wrong input of one", "error: list.txt:3: no such clip", "rank      : 1", marks=pytest.mark.slow),
        ("killed", "", "(SIGKILL)"),
    ],
)
def test_torchrun_reports_the_process_that_failed_after_its_one_line(
    tmp_path: Path, capfd, end: str, line: str, cause: str
):
    status, printed = run_by_torchrun(tmp_path, end), capfd.readouterr()
    assert (status, printed.out) == (1, "")
    own, _, report = printed.err.partition("Traceback (most recent call last):")
    assert line in own.splitlines() or not line
    assert cause in report.partition("Root Cause")[2]


def test_a_process_that_loses_another_without_torchrun_says_so_in_one_line(tmp_path: Path, capfd):
    program = PROGRAM.replace("sys.argv[1]", "'killed'")
    with pytest.raises(subprocess.CalledProcessError):
        run_ranks(program, tmp_path, world_size=3)
    first, last = sorted(capfd.readouterr().err.splitlines())
    assert first.startswith("error: process 0 of 3 has lost its connection to another one") and "--resume" in first
    assert last.startswith("error: process 2 of 3 has lost its connection")


def test_a_loader_process_that_is_killed_is_one_line(corpora: Path, tmp_path: Path, capsys):
    others = multiprocessing.active_children()  # of other tests

    def kill_a_loader() -> None:
        (loader,) = (process for process in multiprocessing.active_children() if process not in others)
        os.kill(loader.pid, signal.SIGKILL)

    with at_iteration(2, kill_a_loader), without_samples():
        assert ended(train.main, *MODELS[0].words(corpora, tmp_path, "--epochs", "2", "--num-workers", "1")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: DataLoader worker ") and "--resume" in line


def test_a_second_training_into_one_output_is_refused(corpora: Path, tmp_path: Path):
    words = MODELS[0].words(corpora, tmp_path, "--epochs", "2")
    refused = []
    with at_iteration(1, lambda: refused.append(finish(Forked("train", *words)))), without_samples():
        assert ended(train.main, *words, "--num-workers", "1") == 0
    ((status, _, error),) = refused
    assert status == 1 and error.count("\n") == 1
    assert f"error: {tmp_path}: another process is writing to it" in error
    assert finish(Forked("train", *words, "--resume"))[0] == 0  # nothing is locked for ever
