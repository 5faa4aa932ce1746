"""How a process computes: device, precision, threads and host memory."""

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from common.cli import ComputingOptions
from common.errors import OptionError, check_choice

Autocast = Callable[[], AbstractContextManager]  # the context that networks run in
_BFLOAT16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")  # x86, then ARM
_M_TRIM_THRESHOLD = -1  # glibc, malloc.h
_M_MMAP_MAX = -4


@dataclass(frozen=True)
class Precision:
    """The device that networks run on, and their precision."""

    cuda: bool = False
    amp_dtype: torch.dtype | None = None  # of autocast; None: float32 throughout

    @property
    def device(self) -> torch.device:
        """The current GPU with ``cuda``, otherwise the CPU."""
        return torch.device("cuda" if self.cuda else "cpu")

    @property
    def name(self) -> str:
        """The precision of most work: ``FP32``, ``TF32``, ``BF16`` or ``FP16``."""
        if self.amp_dtype is not None:
            return {torch.bfloat16: "BF16", torch.float16: "FP16"}[self.amp_dtype]
        allowed = self.cuda and torch.get_float32_matmul_precision() != "highest"
        return "TF32" if allowed and torch.cuda.get_device_capability() >= (8, 0) else "FP32"

    def autocast(self) -> AbstractContextManager:
        """Return the context that networks run in."""
        is_mixed = self.amp_dtype is not None
        return torch.autocast(self.device.type, dtype=self.amp_dtype or torch.bfloat16, enabled=is_mixed)

    def cast_weights(self, network: Any) -> None:
        """For inference, cast weights once instead of in each call under autocast; the results are the same.

        A module's attribute ``in_float32`` names children whose weights stay in float32.
        """
        if self.amp_dtype is None or not isinstance(network, nn.Module):
            return
        if isinstance(network, nn.Linear | nn.modules.conv._ConvNd):
            for name, weight in list(network.named_parameters(recurse=False)):
                setattr(network, name, nn.Parameter(weight.detach().to(self.amp_dtype), weight.requires_grad))
        for name, child in network.named_children():
            if name not in getattr(network, "in_float32", ()):
                self.cast_weights(child)


def prepare_computing(computing: ComputingOptions) -> Precision:
    """Configure PyTorch, and return the device and precision; raises OptionError if --cuda finds no usable GPU."""
    torch.backends.cudnn.benchmark = computing.cudnn_benchmark
    if computing.cuda:
        prepare_cuda()
        torch.set_float32_matmul_precision("high" if computing.tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = computing.tf32
    else:
        keep_freed_memory()
    if not computing.amp:
        return Precision(computing.cuda)
    if computing.amp_dtype != "auto":
        return Precision(computing.cuda, getattr(torch, computing.amp_dtype))
    if has_bfloat16(cuda=computing.cuda):
        return Precision(computing.cuda, torch.bfloat16)
    if not computing.cuda and os.environ.get("RANK", "0") == "0":
        print("note: --amp: this processor has no bfloat16 instructions; computing in float32", file=sys.stderr)
    return Precision(computing.cuda, torch.float16 if computing.cuda else None)


def prepare_cuda() -> None:
    """Turn off cuDNN's attention; raises OptionError if no GPU can be used."""
    if not torch.cuda.is_available():
        raise OptionError("--cuda: PyTorch sees no CUDA device here; leave it out to run on the CPU")
    torch.backends.cuda.enable_cudnn_sdp(False)  # it spends tens of ms planning for each new text length


def precision_of_device(device: str) -> Precision:
    """Return full precision on "cuda", "cpu" or "auto" (a GPU if there is one); same errors as `prepare_cuda`."""
    check_choice("device", device, ("auto", "cpu", "cuda"))
    cuda = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    if cuda:
        prepare_cuda()
    return Precision(cuda)


def has_bfloat16(*, cuda: bool) -> bool:
    """Whether the GPU or the processor has instructions for bfloat16.

    Emulated bfloat16 is several times slower than float32, but oneDNN reports support for every processor with AVX-512.
    The environment variable CPU_BFLOAT16 (true or false) overrides the result.
    """
    if cuda:
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if answer := os.environ.get("CPU_BFLOAT16"):
        return answer == "true"
    instructions = torch.cpu.get_capabilities()
    return torch.backends.mkldnn.is_available() and any(instructions.get(name) for name in _BFLOAT16_INSTRUCTIONS)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread within the block; for a short sentence, starting more takes longer."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


@contextmanager
def timed(device: torch.device, seconds: list[float]) -> Iterator[None]:
    """Append the time that the block's work takes on a device to ``seconds``, without earlier work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    yield
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds.append(time.perf_counter() - started)


def keep_freed_memory() -> None:
    """Reuse freed memory for later tensors instead of returning it; call this before computing on a CPU.

    By default, glibc maps new memory for each large tensor, and the kernel zeroes its pages, which takes longer than
    many operations. The process keeps its peak memory until it ends. Does nothing if the C library isn't glibc.
    """
    if hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)
