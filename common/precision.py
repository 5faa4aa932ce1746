"""How a process computes: device, number formats, kernels and host memory, for training and inference alike."""

import argparse
import ctypes
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from common.errors import OptionError

Autocast = Callable[[], AbstractContextManager]  # the context that networks run in
_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_M_TRIM_THRESHOLD = -1  # glibc, malloc.h
_M_MMAP_MAX = -4


def add_precision_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the options that choose device and precision."""
    parser.add_argument("--cuda", action="store_true", help="use the GPU, or GPUs under torchrun")
    parser.add_argument("--amp", action="store_true", help="mixed precision")
    parser.add_argument(
        "--amp-dtype",
        choices=("auto", *_DTYPES),
        default="auto",
        help="auto: bfloat16 on CPUs and on GPUs that have it, else float16",
    )
    parser.add_argument("--tf32", action=argparse.BooleanOptionalAction, default=True, help="on GPUs that have it")
    parser.add_argument("--cudnn-benchmark", action="store_true", help="let cuDNN try its algorithms for each shape")


def check_precision_arguments(args: argparse.Namespace) -> None:
    """Refuse options that would do nothing.

    Raises:
        OptionError: names the option and what to do.
    """
    if args.amp_dtype != "auto" and not args.amp:
        raise OptionError(f"--amp-dtype {args.amp_dtype} chooses the precision of --amp; add --amp")
    if args.cudnn_benchmark and not args.cuda:
        raise OptionError("--cudnn-benchmark needs --cuda")


def check_cuda() -> None:
    """Raises OptionError if no GPU can be used."""
    if not torch.cuda.is_available():
        raise OptionError("--cuda: PyTorch sees no CUDA device here; leave it out to run on the CPU")


def amp_dtype_from_args(args: argparse.Namespace) -> torch.dtype | None:
    """What autocast computes in; None without ``--amp``."""
    if not args.amp:
        return None
    if args.amp_dtype != "auto":
        return _DTYPES[args.amp_dtype]
    if args.cuda and not torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.float16
    return torch.bfloat16


def precision_name(args: argparse.Namespace) -> str:
    """The kind of numbers that most work is done in: ``FP32``, ``TF32``, ``BF16`` or ``FP16``."""
    dtype = amp_dtype_from_args(args)
    if dtype is not None:
        return {torch.bfloat16: "BF16", torch.float16: "FP16"}[dtype]
    has_tf32 = args.cuda and args.tf32 and torch.cuda.get_device_capability() >= (8, 0)
    return "TF32" if has_tf32 else "FP32"


def choose_kernels(args: argparse.Namespace) -> None:
    """Set how this process computes float32 products on GPUs; CPUs always compute them in full."""
    torch.backends.cudnn.benchmark = args.cudnn_benchmark
    if args.cuda:
        torch.set_float32_matmul_precision("high" if args.tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = args.tf32


def autocast(device: torch.device, dtype: torch.dtype | None) -> AbstractContextManager:
    """The context that networks run in; ``dtype`` None: float32 throughout."""
    return torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None)


def keep_freed_memory() -> bool:
    """Let freed memory serve the next tensors instead of being returned; call it before work on a CPU.

    By default glibc maps each large tensor anew, and the system then clears it page by page on first use, which takes
    longer than many operations on it. The process keeps its peak memory until it ends. Returns whether the C library
    could be told so: it is glibc's own setting.
    """
    if not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(set_option(_M_MMAP_MAX, 0)) and bool(set_option(_M_TRIM_THRESHOLD, -1))
