"""The machine that the benchmarks measure."""

import platform
from pathlib import Path

import torch

from common.precision import check_cuda


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
