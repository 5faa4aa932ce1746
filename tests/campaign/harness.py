"""Cases of malformed input, how each is run in a forked child, and what every one of them must keep to."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

ROOT = Path(__file__).resolve().parents[2]

MOST_MEMORY = 2 * 2**30  # bytes over what the imports take
MOST_CPU = 60  # seconds
IDLE = 20  # seconds that a process may sleep in a row: how busy the machine is makes no difference to it
LONGEST_LINE = 3000  # characters of an error
CANARY = "canary"  # the file that hostile payloads try to make in the case's folder
SHOUT = "payload-ran-" * 3  # what they try to print, of which their text holds a third

_ERROR = re.compile(r"([\w. -]+: )?error: .")
_DOCUMENTED = re.compile(  # further lines of stderr; the last two are the MP3 decoder's, about damaged files
    r"(warning|note): .|using the EMA weights of |no GPU: |FastPitch 1.1, with |\w+: \d+/\d+ |"
    r"Note: |\[src/libmpg123|\s*$"
)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")  # but tab, newline and carriage return
_REFUSED = re.compile(rb"^refused: \d+ of \d+ utterances", re.MULTILINE)
_UNFINISHED = re.compile(r"^warning: .* the voice did not (end|speak) it", re.MULTILINE)  # as random weights may not
_OURS = {"stdout", "stderr", ".ses"}  # the last is onnxruntime's, in the folder for temporary files


@dataclass(frozen=True)
class Case:
    """A command on malformed input. ``write`` fills the case's folder and returns the words after the program."""

    label: str  # what is wrong, in words; the same label is the same case
    program: str
    write: Callable[[Path], list[str]] = field(repr=False)
    wrong: bool = True  # whether the input is known to be wrong, so that accepting it is a failure
    status: int | None = 1  # of a refusal; None: 1 or 2
    writes: tuple[str, ...] = ("out",)  # names in the case's folder that the command may make or change
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What a command did."""

    status: int  # negative: minus the number of the signal that ended it
    stdout: bytes
    stderr: bytes
    timed_out: bool
    left_behind: bool  # processes of its own
    peak: int  # bytes of memory over those of the imports
    address_space: int  # bytes, as far as it grew
    cpu: float  # seconds


class ForkServer:
    """Starts `fork_server`, and runs commands in children of it."""

    def __init__(self) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
        environment = {**os.environ, **threads, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", "TQDM_DISABLE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        program: str,
        argv: list[str],
        *,
        folder: Path,
        cpu: int = MOST_CPU,
        idle: int = IDLE,
        environment: dict[str, str] | None = None,
    ) -> Result:
        """Run ``python program.py argv``, or ``bash argv``, in ``folder``."""
        request: dict[str, Any] = {"program": program, "argv": argv, "folder": str(folder)}
        request |= {"environment": environment or {}, "cpu": cpu, "idle": idle}
        pipes = self._process.stdin, self._process.stdout
        assert pipes[0] is not None and pipes[1] is not None
        print(json.dumps(request), file=pipes[0], flush=True)
        reply: dict[str, Any] = json.loads(pipes[1].readline())
        return Result(stdout=(folder / "stdout").read_bytes(), stderr=(folder / "stderr").read_bytes(), **reply)

    def stop(self) -> None:
        """End it."""
        self._process.communicate()


def problems(case: Case, result: Result, new: set[str]) -> list[str]:
    """What a case breaks of the promises; ``new`` names what has appeared or changed in its folder."""
    text = result.stderr.decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    # Extraction lists what it refused, with reasons.
    listed = _REFUSED.search(result.stdout) or _UNFINISHED.search(text)
    found = []
    if "Traceback (most recent call last)" in text:
        found.append(f"traceback: {lines[-1][:300]}")
    elif result.timed_out:
        found.append("waits for ever")
    elif result.status not in (0, 1, 2):
        found.append(f"status {result.status}, {result.cpu:.0f} s of CPU: {' / '.join(lines)[-300:]}")
    elif result.status != 0 and len(errors) != 1 and not (result.status == 1 and listed):
        found.append(f"{len(errors)} lines of error: {' / '.join(lines)[:300]}")
    elif result.status != 0 and case.status not in (None, result.status):
        found.append(f"status {result.status} instead of {case.status}: {''.join(errors)[:300]}")
    elif result.status == 0 and case.wrong:
        found.append("accepted without a word")
    others = [line for line in lines if line not in errors and not _DOCUMENTED.match(line)]
    if others and not found and case.program != "http_bodies":  # whose stderr is a server's log
        found.append(f"undocumented line: {others[0][:300]}")
    if max(result.peak, result.address_space) > MOST_MEMORY or re.search("allocate|MemoryError", text):
        found.append(f"memory: {max(result.peak, result.address_space) >> 20} MiB: {text[:200]}")
    if result.left_behind:
        found.append("processes left behind")
    if any(len(line) > LONGEST_LINE for line in errors):
        found.append(f"an error of {max(map(len, errors))} characters: {errors[0][:120]}")
    if control := _CONTROL.search(result.stdout + result.stderr):
        found.append(f"prints the raw byte {control[0]!r}: {text[:200]!r}")
    if CANARY in new or SHOUT.encode() in result.stdout + result.stderr:
        found.append("a payload ran")
    if outside := sorted(name for name in new - {CANARY} if name.split("/")[0] not in case.writes):
        found.append(f"writes outside its output: {', '.join(outside)[:200]}")
    return found


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Paths below a folder, with their time of change and size."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        if not path.is_dir():
            found[path.relative_to(folder).as_posix()] = (status.st_mtime_ns, status.st_size)
    return found


def run_case(server: ForkServer, case: Case, folder: Path, **limits: int) -> list[str]:
    """Run a case in a new folder, which is removed unless it fails; returns what it breaks."""
    folder.mkdir(parents=True)
    argv = case.write(folder)
    before = files_of(folder)
    result = server.run(case.program, argv, folder=folder, environment=case.environment, **limits)
    after = {name: value for name, value in files_of(folder).items() if name not in _OURS}
    new = {name for name, value in after.items() if before.get(name) != value}
    new |= {name for name in before if name not in after}
    found = problems(case, result, new)
    if found:
        (folder / "command").write_text(" ".join([f"{case.program}.py", *argv]) + "\n", errors="replace")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return found


@dataclass
class Campaign:
    """Draws cases, runs each once, and keeps what they break."""

    server: ForkServer
    folder: Path
    seen: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)  # kind of failure -> its first case

    def run(self, name: str, cases: SearchStrategy[Case], *, count: int) -> None:
        """Run ``count`` draws."""

        @settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(cases)
        def each(case: Case) -> None:
            label = f"{name}: {case.label}"
            if label in self.seen:
                return
            self.seen.add(label)
            folder = self.folder / f"{name}{len(self.seen)}"
            for problem in run_case(self.server, case, folder):
                kind = re.sub(r"\d+|'[^']*'|\S*/\S*", "_", problem)[:160]
                self.failures.setdefault(kind, f"{label}\n    {problem}\n    {folder}")

        each()

    def check(self) -> None:
        """Fail with the first case of every kind of failure."""
        assert not self.failures, "\n".join(
            [f"{len(self.failures)} kinds of {len(self.seen)} cases:", *self.failures.values()]
        )
