"""What the benchmarks share: the name of the machine that they measure, and the table that they print."""

import platform
from collections.abc import Sequence
from pathlib import Path

import torch

Row = dict[str, str]  # title of a column -> cell


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
