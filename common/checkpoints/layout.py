"""What published layouts share: the prefix of wrapped networks, and the state of training by numbers."""

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

_PREFIX = re.compile(r"^module\.(1\.)?")  # the longer one of some of WaveGlow's, which apex wrapped
BATCH_NORM_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
# Those that change the numbers; the others choose a kernel, which depends on the machine.
_SETTINGS = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "grad_averaging")


def without_prefix(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The entries with names as keys, without the prefix that wrapping in DistributedDataParallel leaves."""
    return {_PREFIX.sub("", key): value for key, value in state.items() if isinstance(key, str)}


def as_float32(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights as float32; counters stay as they are."""
    return {key: value.float() if value.is_floating_point() else value for key, value in state.items()}


def training_state(
    payload: dict[str, Any],
    network: str,
    keys: Iterable[str],
    *,
    buffers: tuple[str, ...] = BATCH_NORM_BUFFERS,
    first_epoch: int = 1,
    iteration: str | None = None,
    needs: str = "param_groups",
) -> dict[str, Any] | None:
    """Epoch, updates, optimizer and loss scale of a file with one ``network``; None for no training.

    ``keys`` are those of the state dict, in whose order the optimizer numbers what is no buffer (by the end of the
    key); ``needs`` names the part of its state that must not be empty. The originals count epochs from
    ``first_epoch``; without a key for the ``iteration`` the optimizer knows it.
    """
    optimizer = payload.get("optimizer")
    if not optimizer or not optimizer[needs]:
        return None
    saved = optimizer_by_name(optimizer, [f"{network}.{key}" for key in keys if not key.endswith(buffers)])
    n_updates = max((int(values["step"]) for values in saved["states"].values()), default=0)
    state = {
        "epoch": payload["epoch"] + 1 - first_epoch,
        "iteration": n_updates if iteration is None else payload[iteration],
        "optimizers": {network: saved},
    }
    if scaler := payload.get("scaler"):
        scale, finite = float(scaler["scale"]), int(scaler["_growth_tracker"])
        state["scaler"] = {"scales": {network: scale}, "finite_since": {network: finite}}
    return state


def optimizer_by_name(optimizer: dict[str, Any], parameters: list[str]) -> dict[str, Any]:
    """An Adam-like optimizer's ``state_dict()`` as `common.training.optim.state_by_name` gives it.

    ``parameters`` are the names in the order in which the optimizer was given them. The step is a tensor, as
    torch's optimizers want it now; older ones stored a number, and apex's one number for all parameters.

    Raises:
        ValueError: the state is of another number of parameters.
    """
    group = optimizer["param_groups"][0]
    if len(group["params"]) != len(parameters):
        raise ValueError(f"optimizer state of {len(group['params'])} parameters, expected {len(parameters)}")
    names = dict(zip(group["params"], parameters, strict=True))
    states = {}
    for number, values in optimizer["state"].items():
        step = values["step"] if "step" in values else group["step"]
        states[names[number]] = {
            "step": torch.tensor(float(step)),
            "exp_avg": values["exp_avg"],
            "exp_avg_sq": values["exp_avg_sq"],
        }
    return {"settings": {key: group[key] for key in _SETTINGS if key in group}, "states": states}
