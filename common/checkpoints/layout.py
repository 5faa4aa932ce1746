"""What published layouts share: the prefix of wrapped networks, and optimizer state by number."""

import re
from typing import Any

import torch
from torch import Tensor

_PREFIX = re.compile(r"^module\.(1\.)?")  # the longer one of some of WaveGlow's, which apex wrapped
# Those that change the numbers; the others choose a kernel, which depends on the machine.
_SETTINGS = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "grad_averaging")


def without_prefix(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The entries with names as keys, without the prefix that wrapping in DistributedDataParallel leaves."""
    return {_PREFIX.sub("", key): value for key, value in state.items() if isinstance(key, str)}


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
