"""Checkpoints stripped for inference: the network that infers, with EMA weights if there are any, and its configs."""

from dataclasses import replace

import torch
from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint, Stripped

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def strip_checkpoint(checkpoint: Checkpoint, *, dtype: str = "float32") -> Checkpoint:
    """What inference needs of a checkpoint alone, with matrices and kernels in one of ``DTYPES``.

    What has one value a channel (biases, norms, statistics) stays as it is: it takes no space, and rounding it costs
    accuracy.
    """
    name, raw = next(iter(checkpoint.networks.items()))  # the one that infers comes first
    state = (checkpoint.ema or {}).get(name, raw)
    ema = state is not raw or checkpoint.has_ema
    rounded = {key: _rounded(value, DTYPES[dtype]) for key, value in state.items()}
    return replace(
        checkpoint, networks={name: rounded}, ema=None, training=None, stripped=Stripped(dtype=dtype, ema=ema)
    )


def _rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    is_matrix = value.is_floating_point() and value.dim() > 1 and value.numel() > value.size(0)
    return value.to(dtype) if is_matrix else value
