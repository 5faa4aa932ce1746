"""Says which tests use which goldens: ``python -m tests.golden_usage FOLDER [arguments of pytest]``.

Runs the tests that use goldens on a copy of the folder, in one process, and lists the tests that opened each file,
themselves or in a program, then unused files and tests that failed, skipped or opened nothing. The kernel (inotify)
reports what is opened, as libraries in C and Rust open files too.
"""

import argparse
import ctypes
import os
import shutil
import struct
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

IN_OPEN = 0x20
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows


class OpenedFiles:
    """The files below a folder that any process has opened since they were last asked for."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_NONBLOCK)
        folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
        self._folders = {libc.inotify_add_watch(self._events, os.fsencode(path), IN_OPEN): path for path in folders}
        if self._events < 0 or min(self._folders) < 0:
            raise OSError(ctypes.get_errno(), "inotify is refused", str(folder))
        self._files = {path for path in folder.rglob("*") if path.is_file()}

    def take(self) -> set[Path]:
        opened = set()
        while True:
            try:
                events = os.read(self._events, 1 << 16)
            except BlockingIOError:
                return opened & self._files
            while events:
                watch, _, _, length = EVENT.unpack_from(events)
                name, events = events[EVENT.size : EVENT.size + length], events[EVENT.size + length :]
                opened.add(self._folders[watch] / os.fsdecode(name.rstrip(b"\0")))


class GoldenUsage:
    """Plugin of pytest that keeps the tests of goldens and records what they, their fixtures and modules open."""

    def __init__(self, folder: Path) -> None:
        self._opened = OpenedFiles(folder)
        self._of_fixture: dict[object, set[Path]] = defaultdict(set)
        self.listed: set[Path] = set()
        self.used: dict[str, set[Path]] = {}
        self.outcomes: dict[str, list[str]] = defaultdict(list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if "goldens" in item.fixturenames or hasattr(item.module, "GOLDENS")]
        self.listed = self._opened.take()  # what modules read to list their tests

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: object) -> Iterator[None]:
        before = self._opened.take()
        try:
            return (yield)
        finally:
            self._of_fixture[fixturedef] |= self._opened.take()
            self._of_fixture[None] |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._opened.take()
        self._of_fixture.pop(None, None)
        try:
            return (yield)
        finally:
            definitions = [one for found in item._fixtureinfo.name2fixturedefs.values() for one in found]
            shared = [self._of_fixture[one] for one in (*definitions, None) if one in self._of_fixture]
            self.used[item.nodeid] = self._opened.take().union(*shared)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.outcomes[report.outcome].append(report.nodeid)


def report(usage: GoldenUsage, folder: Path) -> str:
    """The files with their tests, and what is unused or did not pass."""
    files = {path: [] for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "README.md"}
    for test, opened in usage.used.items():
        for path in opened & set(files):
            files[path].append(test)
    lists = {f"{path.relative_to(folder)}: opened by": tests for path, tests in files.items() if tests}
    unused = {path for path, tests in files.items() if not tests}
    for title, paths in (("to list tests alone", unused & usage.listed), ("by no test", unused - usage.listed)):
        lists[f"opened {title}:"] = sorted(str(path.relative_to(folder)) for path in paths)
    lists["tests that opened nothing:"] = [test for test, opened in usage.used.items() if not opened]
    lists |= {f"tests that {outcome}:": tests for outcome, tests in usage.outcomes.items()}
    return "".join(
        f"{title} {len(names)}\n" + "".join(f"    {name}\n" for name in names) for title, names in lists.items()
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden_usage", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    options, extra = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(shutil.copytree(options.folder, Path(scratch).resolve() / "goldens"))
        os.environ["GOLDENS"] = str(folder)
        usage = GoldenUsage(folder)
        status = pytest.main(["-p", "no:xdist", *extra], plugins=[usage])
        print(report(usage, folder), end="")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
