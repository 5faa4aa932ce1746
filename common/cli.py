"""Shared parts of all command lines: the parser, device and precision, errors, and exit statuses."""

import argparse
import atexit
import os
import platform
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from common.errors import OptionError, line_and_status
from common.files import check_apart, read_text
from common.options import Option, option, option_of, read_word
from common.progress import discard_output, print_line
from common.signals import STOPS, ended_by, raise_stop, stops_handled_by

INFERENCE_LOG = "nvlog_infer.json"  # in the output folder
MANY_BATCHES = 10  # if there are more batches than this, latencies are printed
MEASURING = "computing and measuring"  # title in --help
_PROJECT_FILE = Path(__file__).resolve().parents[1] / "pyproject.toml"
_WRITTEN = {"output", "log_file", "target"}  # options that name files and folders to write


def toolkit_version() -> str:
    """Return this toolkit's version, read from its source folder or the installed package."""
    if not _PROJECT_FILE.is_file():
        return metadata.version("speech-toolkit")
    found = re.search(r'^version = "(.+)"$', read_text(_PROJECT_FILE), re.MULTILINE)
    return found[1] if found else "unknown"


@dataclass(frozen=True)
class ComputingOptions:
    """The device and the precision of a command."""

    cuda: bool = option(False, "use a GPU; under torchrun, one per process", off=("--cpu",))
    amp: bool = option(False, "mixed precision", variable="AMP", published=("--fp16",))
    amp_dtype: str = option(
        "auto",
        "auto: bfloat16 if the hardware supports it; otherwise float16 on a GPU, float32 on a CPU",
        choices=("auto", "bfloat16", "float16"),
    )
    tf32: bool = option(True, "compute in TF32 on GPUs that support it")
    cudnn_benchmark: bool = option(
        False, "let cuDNN time its algorithms for each shape; the first updates take longer", variable="CUDNN_BENCHMARK"
    )


# Options of the published toolkits that no longer exist, and the reply to them.
_OF_LAUNCHERS = dict.fromkeys(
    "--world-size --rank --dist-url --group-name --dist-backend --affinity --l2-promote".split(),
    "the launcher sets this (torchrun --nproc-per-node N, numactl); leave it out",
)


class ArgumentParser(argparse.ArgumentParser):
    """An argument parser that accepts ``--batch_size`` for ``--batch-size``, but no prefixes."""

    program: str | None = None  # replaces ``prog`` in messages, such as "speech speak"

    def __init__(self, **kwargs: Any) -> None:
        named = {"prog": self.program} if self.program else {}
        super().__init__(**{"allow_abbrev": False, "usage": "%(prog)s [options]", **kwargs, **named})
        for kind in (Path, float, None):  # for undeclared options: reject "", the value of an unset variable
            self.register("type", kind, partial(read_word, kind=kind or str, known=Option("")))
        if self.add_help:
            version = f"speech-toolkit {toolkit_version()}, Python {platform.python_version()}"
            self.add_argument("--version", action="version", version=version, help="show the versions and exit")
        self.published: dict[str, str] = {}  # option of the originals -> our option, or a message

    def answer_published(self, table: Mapping[str, str]) -> None:
        """Accept the originals' options as hidden ones; call this after adding all other options.

        ``table`` maps each name to one of our options or, for a removed option, to an error message (with spaces).
        """
        known = self._option_string_actions
        declared = ((option_of(action.dest), getattr(action, "declared", None)) for action in self._actions)
        self.published = {name: own for own, one in declared if one for name in one.published if name[0] == "-"}
        self.published |= {name: text for name, text in {**_OF_LAUNCHERS, **table}.items() if name not in known}
        known |= {name: known[text] for name, text in self.published.items() if text in known}
        hidden: dict[str, Any] = dict.fromkeys(("dest", "default", "help"), argparse.SUPPRESS)
        self.add_argument("--local-rank", **hidden)  # torch.distributed.launch sets LOCAL_RANK too

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        words = [_hyphenate(word) for word in (sys.argv[1:] if args is None else args)]
        for word, value in pairwise([*words, ""]):
            name = word.partition("=")[0]
            switch, answer = self._option_string_actions.get(name), self.published.get(name, "")
            if switch is not None and switch.nargs == 0 and value in ("True", "False"):
                self.error(f"{name} {value}: a switch takes no value; give {' or '.join(switch.option_strings)}")
            if switch is None and answer:
                other = f"here it is {answer}, which this model doesn't support; leave it out"
                self.error(f"{name}: {answer if ' ' in answer else other}")
        namespace, rest = super().parse_known_args(words, namespace)
        try:
            check_apart(*self.files_of(namespace))
        except OptionError as error:
            self.error(str(error))
        return namespace, rest

    def files_of(self, namespace: argparse.Namespace) -> tuple[list[tuple[str, Path]], list[tuple[str, Path]]]:
        """Return the files that options write and the files they read, for `check_apart`."""
        named: dict[bool, list[tuple[str, Path]]] = {True: [], False: []}
        for dest, action in {action.dest: action for action in self._actions}.items():
            value = getattr(namespace, dest, None)
            values = value if isinstance(value, list | tuple) else [value]
            paths = [one for one in values if isinstance(one, Path) and one != Path("-")]  # standard input or output
            is_written = dest in _WRITTEN or getattr(getattr(action, "declared", None), "writes", False)
            named[is_written] += [("/".join(action.option_strings) or dest, path) for path in paths]
        return named[True], named[False]

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _hyphenate(word: str) -> str:
    """Replace underscores in an option's name: ``--batch_size=8`` -> ``--batch-size=8``."""
    return re.sub("^--[^=]*", lambda name: name[0].replace("_", "-"), word)


def names_given(argv: Sequence[str] | None) -> set[str]:
    """Return the names of the options on a command line, spelled with hyphens."""
    return {_hyphenate(word).partition("=")[0] for word in (sys.argv[1:] if argv is None else argv)}


def run(main: Callable[[], int | None], *, teardown: bool = True) -> NoReturn:
    """Run a command's ``main`` and exit. An error prints one line without a traceback; the status is 1 (2 for options).

    A signal prints one line; the status is 128 + its number, or 141 if the output is closed, as by ``| head``. Without
    ``teardown``, skip Python's shutdown, which takes 0.4 s and 120 MB with PyTorch.
    """
    # Let idle threads sleep after 50 us, not 10 ms: on a busy machine, this saves two thirds of the CPU time.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # read when PyTorch is imported
    with stops_handled_by(raise_stop):
        try:
            try:
                status = main() or 0
                print_line("", end="")  # flush
            finally:  # ignore signals from here on
                for number in STOPS:
                    signal.signal(number, signal.SIG_IGN)
        except SystemExit as error:
            status = int(error.code or 0)
        except KeyboardInterrupt as stop:
            line, status = ended_by(stop)
            if os.environ.get("LOCAL_RANK", "0") == "0":  # torchrun's other processes get the same signal
                print(line, file=sys.stderr)
        except Exception as error:
            if isinstance(error.__cause__ or error, BrokenPipeError):
                discard_output()
                status = 128 + signal.SIGPIPE
            else:
                line, status = line_and_status(error)
                print(f"error: {line}\n", end="", file=sys.stderr)  # one write: a job's processes share stderr
    if not teardown:
        atexit._run_exitfuncs()  # ends multiprocessing's processes and closes logs
        with suppress(BrokenPipeError):
            sys.stdout.flush()
    # If a thread of torch.distributed needs the interpreter during teardown, the process aborts.
    if not teardown or os.environ.get("WORLD_SIZE", "1") != "1":
        os._exit(status)
    sys.exit(status)
