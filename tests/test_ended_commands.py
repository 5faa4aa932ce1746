"""Commands ended from outside: while they import, by a process that is killed, or without anywhere to print."""

import ctypes
import json
import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from limits import HANG_LIMIT, wait_until
from ranks import ROOT, run_ranks
from test_failing_writes import ended
from tiny_models import MODELS, at_iteration, without_samples

import train
from common import launch
from common.errors import LAUNCHED, FailedElsewhereError, InputError, OptionError
from common.signals import STOPS, StopSignals, ending_at_once

# Stands for PyTorch, which takes seconds to import.
_SLOW = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(600)\n"
COMMANDS = (
    *("train.py", "inference.py", "extract_mels.py", "serve.py"),
    *("-m scripts.export_model", "-m scripts.benchmarks.gpu", "-m scripts.datasets.make_corpus"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_during_imports_is_one_line(command: str, tmp_path: Path):
    for module in ("torch", "numpy", "soundfile"):  # whichever comes first
        (tmp_path / f"{module}.py").write_text(_SLOW)
    words = [sys.executable, *command.split(), "--help"]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_a_current_folder_that_is_gone_is_one_line(tmp_path: Path):
    (tmp_path / "gone").mkdir()
    words = ["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" "$3" --help', "sh", str(tmp_path / "gone")]
    done = subprocess.run([*words, sys.executable, str(ROOT / "train.py")], capture_output=True, text=True, check=False)
    said = "error: the current folder has been removed; go to one that is there\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_importing_the_toolkit_leaves_the_signals_of_another_program_alone(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("import signal, common\nprint(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("stop", STOPS)
def test_a_signal_amid_a_callback_from_c_ends_the_command_too(stop: signal.Signals, capsys):
    """Python prints an exception that a callback raises, and goes on."""
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def stopped(*_: int) -> int:
        if not times:
            times.append(1)
            signal.raise_signal(stop)
        return 0

    def main(_: Sequence[str]) -> int:
        ctypes.CDLL(None).qsort(ctypes.create_string_buffer(2), 2, 1, compare(stopped))
        wait_until(lambda: False)

    times: list[int] = []
    assert ended(main) == 128 + stop and times
    assert capsys.readouterr().err in ("interrupted\n", f"stopped by {stop.name}\n")


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
        with ending_at_once():
            signal.raise_signal(signal.SIGHUP)
        assert signals.received is None

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert ended(main) == 0
    signal.signal(signal.SIGHUP, before)


def test_a_terminal_that_hangs_up_twice_asks_once(capsys):
    def main(_: Sequence[str]) -> None:
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)
        assert signals.received == signal.SIGHUP
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)

    assert ended(main) == 128 + signal.SIGHUP
    assert capsys.readouterr().err == "stopped by SIGHUP\n"


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_the_script_that_a_signal_ended_too_is_no_second_request(first: signal.Signals, monkeypatch):
    def main(_: Sequence[str]) -> None:
        with StopSignals() as signals:
            signal.raise_signal(first)
            monkeypatch.setattr(os, "getppid", lambda: 1)
            signal.raise_signal(signal.SIGTERM)
            done.append(signals.received)
            signal.raise_signal(signal.SIGTERM)  # which the user sends
            done.append("not ended")

    done: list[object] = []
    assert ended(main) == 128 + signal.SIGTERM
    assert done == [first]


LOSE_ONE = """
import os, signal, sys, torch
from pathlib import Path
from common import distributed
from common.cli import run
folder = Path(sys.argv[1])
def main():
    with distributed.processes(cuda=False) as ranks:
        sys.stderr = (folder / f"{ranks.rank}.txt").open("w", buffering=1)
        if ranks.rank == 1:
            pid = os.getpid() if folder.name == "itself" else os.getppid()
            (folder / "pid").write_text(str(pid))
            os.kill(pid, signal.SIGKILL)
        while True:
            ranks.sum(torch.zeros(1))
run(main)
"""


@pytest.mark.parametrize("world_size", [2, 4])
def test_a_process_of_several_that_is_killed_is_named_in_one_line(tmp_path: Path, world_size: int):
    folder = tmp_path / "itself"
    folder.mkdir()
    with pytest.raises(subprocess.CalledProcessError):
        run_ranks(LOSE_ONE, folder, world_size=world_size)
    said = {rank: (folder / f"{rank}.txt").read_text().splitlines() for rank in range(world_size)}
    (line,) = said.pop(0)
    lost = (folder / "pid").read_text()
    also = r"(, \d \(process id \d+\))*"  # others that have noticed it and ended before this one looks
    assert re.match(rf"error: process 1 \(process id {lost}\){also} of {world_size} has ended; .*--resume", line)
    # One that notices late finds those that have said it gone, and says it again, in a line too.
    late = [line for lines in said.values() for line in lines]
    assert len(late) < world_size and all("process 0 (" in line and f" 1 (process id {lost})" in line for line in late)


PROGRAM = """
import os, signal, sys, torch
from common import distributed
from common.cli import run
from common.errors import InputError
def main():
    rank = int(os.environ["RANK"])
    if sys.argv[1] == "killed at its start" and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with distributed.processes(cuda=False) as ranks:
        if sys.argv[1] == "killed" and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] == "wrong input":
            ranks.together(refuse if rank else lambda: None)
        while True:
            ranks.sum(torch.zeros(1))
def refuse():
    raise InputError("list.txt:3: no such clip")
run(main)
"""


@pytest.mark.parametrize(
    ("end", "status", "line"),
    [
        ("wrong input", 1, r"error: list\.txt:3: no such clip"),
        ("killed", 137, r"error: process 1 \(process id \d+\) was ended by SIGKILL, .* --resume"),
        pytest.param(
            "killed at its start", 137, "error: process 1 .* was ended by SIGKILL, .*", marks=pytest.mark.slow
        ),
    ],
)
def test_processes_of_the_launcher_end_in_one_line(tmp_path: Path, end: str, status: int, line: str):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "common.launch", "--standalone", "--nproc-per-node", "2", program, end]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_LIMIT)
    assert (done.returncode, done.stdout) == (status, "")
    assert re.fullmatch(rf"{line}\n", done.stderr), done.stderr


# Stands for a command in a process of the launcher; without PyTorch.
ENDS = """
import os, signal, sys, time
from pathlib import Path
from common.errors import LAUNCHED, say_last
waits = Path(os.environ[LAUNCHED], "waits.tmp")
ends = dict(end.split("=", 1) for end in sys.argv[1:])
status, line = ends[os.environ["RANK"]].split(" ", 1)
if status == "waits":
    signal.signal(signal.SIGTERM, lambda *_: (say_last("stopped by SIGTERM", 143), os._exit(143)))
    waits.touch()
    time.sleep(600)
if int(status) < 0:
    while not waits.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), -int(status))
if line != "nothing":
    say_last(line, int(status))
sys.exit(int(status))
"""


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """Runs two processes that end as they are told, such as by "1 error: why"; the exit status and stderr."""
    handlers = {number: signal.getsignal(number) for number in (*STOPS, signal.SIGQUIT)}
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    program = tmp_path / "program.py"
    program.write_text(ENDS)

    def run(*ends: str) -> tuple[int, str]:
        words = [f"{rank}={end}" for rank, end in enumerate(ends)]
        status = launch.main(["--standalone", "--nproc-per-node", "2", str(program), *words])
        return status, capfd.readouterr().err

    monkeypatch.setenv(LAUNCHED, "")
    yield run
    logging.disable(logging.NOTSET)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [
        (("2 error: why", "2 error: why"), 2, "error: why"),
        (("waits -", "1 error: why"), 1, "error: why"),
        (("waits -", "-9 -"), 137, r"error: process 1 \(process id \d+\) was ended by SIGKILL, .* --resume"),
        (("143 stopped by SIGTERM", "143 stopped by SIGTERM"), 143, "stopped by SIGTERM"),
        (("waits -", "-15 -"), 143, "stopped by SIGTERM"),
        (("1 ", "waits -"), 1, ""),  # has said it itself
        (("1 nothing", "1 nothing"), 1, "error: process [01] ended with exit status 1; another machine.* says why"),
    ],
)
def test_the_launcher_prints_one_line_of_the_process_that_has_failed(
    launched: Callable[..., tuple[int, str]], ends: tuple[str, str], status: int, said: str
):
    ended_with, printed = launched(*ends)
    assert ended_with == status
    assert re.fullmatch(f"{said}\n" if said else "", printed), printed


def test_a_program_that_the_launcher_does_not_find_is_one_line(capfd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(LAUNCHED, "")
    assert launch.main(["--standalone", "--nproc-per-node", "2", "absent.py"]) == 2
    assert capfd.readouterr().err == "error: absent.py: no such file; give a program, such as train.py\n"


class EndedAmidTheError(InputError):
    def __str__(self) -> str:
        for stop in STOPS:
            signal.raise_signal(stop)
        return "list.txt:3: no such clip"


def test_a_signal_that_comes_while_a_command_says_its_error_changes_nothing(capsys):
    def main(_: Sequence[str]) -> None:
        raise EndedAmidTheError

    assert ended(main) == 1
    assert capsys.readouterr().err == "error: list.txt:3: no such clip\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OptionError("--cuda: no GPU"), [2, "error: --cuda: no GPU"]),
        (FailedElsewhereError(), None),
        (KeyboardInterrupt(), [130, "interrupted"]),
        (SystemExit(1), [1, ""]),
    ],
)
def test_a_process_of_the_launcher_leaves_its_last_line_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys, error: BaseException, line: list[object] | None
):
    def main(_: Sequence[str]) -> None:
        raise error

    monkeypatch.setenv(LAUNCHED, str(tmp_path))
    monkeypatch.setenv("RANK", "1")
    ended(main)
    assert capsys.readouterr().err == ""
    assert [json.loads(path.read_text()) for path in tmp_path.iterdir()] == ([] if line is None else [line])


@pytest.mark.parametrize("is_launched", [True, False])
def test_what_the_launcher_ends_for_its_error_says_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys, is_launched: bool
):
    def main(_: Sequence[str]) -> None:
        try:
            raise InputError("no such clip")
        finally:
            signal.raise_signal(signal.SIGTERM)  # as torchrun does when another process ends first

    if is_launched:
        monkeypatch.setenv(LAUNCHED, str(tmp_path))
    assert ended(main) == (1 if is_launched else 143)
    said = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    assert said == ([[1, "error: no such clip"]] if is_launched else [])
    assert capsys.readouterr().err == ("" if is_launched else "stopped by SIGTERM\n")


@pytest.mark.slow
def test_processes_whose_torchrun_is_killed_end_with_it(tmp_path: Path):
    folder = tmp_path / "parent"
    folder.mkdir()
    with pytest.raises(subprocess.CalledProcessError):
        run_ranks(LOSE_ONE, folder, world_size=2)
    wait_until((folder / "0.txt").read_text)
    (line,) = (folder / "0.txt").read_text().splitlines()
    assert line == "stopped by SIGTERM" or line.startswith("error: process 1 (process id ")


def test_a_loader_process_that_is_killed_is_one_line(corpora: Path, tmp_path: Path, capsys):
    others = multiprocessing.active_children()  # of other tests

    def kill_a_loader() -> None:
        (loader,) = (process for process in multiprocessing.active_children() if process not in others)
        os.kill(loader.pid, signal.SIGKILL)

    with at_iteration(2, kill_a_loader), without_samples():
        assert ended(train.main, *MODELS[0].words(corpora, tmp_path, "--epochs", "2", "--num-workers", "1")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: DataLoader worker ") and "--resume" in line
