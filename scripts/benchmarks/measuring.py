"""What the benchmarks share: their options, the machine that they measure, and the tables that they print."""

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import torch

from common.cli import ArgumentParser
from common.options import add_options, read_options
from common.precision import check_cuda

Row = dict[str, str]  # title of a column -> cell
Kind = TypeVar("Kind")


def read_command(kind: type[Kind], argv: Sequence[str] | None, *, prog: str, about: str | None) -> Kind:
    """The options of a benchmark, a dataclass, from its command line; the first line of ``about`` describes it."""
    parser = ArgumentParser(prog=prog, description=(about or "").partition("\n")[0])
    add_options(parser, kind)
    return read_options(parser.parse_args(argv), kind)


def choose_device(*, cuda: bool) -> torch.device:
    """The GPU or the CPU; raises OptionError if there is no GPU that can be used."""
    if cuda:
        check_cuda()
    return torch.device("cuda" if cuda else "cpu")


def machine(*, cuda: bool) -> str:
    """The name of the GPU, or of the processor with PyTorch's threads."""
    if cuda:
        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {torch.get_num_threads()} threads"


def cell(value: float | str | None, form: str) -> str:
    """A number or word, or a dash where there is none."""
    return "-" if value is None else format(value, form)


def markdown(rows: Sequence[Row]) -> list[str]:
    """Lines of a table whose rows have the same columns."""
    header = [[*rows[0]], ["---:"] * len(rows[0])] if rows else []
    return ["|" + "|".join(cells) + "|" for cells in (*header, *(row.values() for row in rows))]


class Table:
    """A table that is printed row by row, as its figures are measured."""

    def __init__(self) -> None:
        self._is_begun = False

    def add(self, row: Row) -> None:
        """Print a row, the first one below the titles of its columns."""
        print(*markdown([row])[2 if self._is_begun else 0 :], sep="\n", flush=True)
        self._is_begun = True
