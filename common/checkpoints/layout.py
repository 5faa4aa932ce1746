"""Shared code to read published layouts: names of weights, bare weights, and training states by number."""

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

# Prefixes from DistributedDataParallel and torch.compile; "1." is in some WaveGlow files, from apex.
_PREFIX = re.compile(r"^(?:(?:module|_orig_mod)\.)+(?:1\.)?")
# Parts of weight norm and spectral norm: torch.nn.utils.parametrizations' names -> the published files' names.
_PARAMETRIZED = re.compile(r"\.parametrizations\.weight\.(original0|original1|original|0\._u|0\._v)$")
_PARTS = {"original0": "g", "original1": "v", "original": "orig", "0._u": "u", "0._v": "v"}
_WEIGHTS_ALONE = ("model", "model_state_dict", "weights")  # entries that contain them if there is no state_dict
BATCH_NORM_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
# Optimizer settings that change results; others select a kernel.
_SETTINGS = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "grad_averaging")


def published_state(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a state dict in float32, with the names that published files use.

    Prefixes of wrapped networks are removed; the parts of weight norm and spectral norm are called ``weight_g``,
    ``weight_v``, ``weight_orig`` and so on, whatever this version of PyTorch calls them.
    """

    def standard_name(key: str) -> str:
        return _PARAMETRIZED.sub(lambda found: f".weight_{_PARTS[found[1]]}", _PREFIX.sub("", key))

    return as_float32({standard_name(key): value for key, value in state.items() if isinstance(key, str)})


def is_state(value: Any) -> bool:
    """Whether ``value`` is a non-empty dict of tensors by name."""
    pairs = value.items() if isinstance(value, dict) else ()
    return bool(pairs) and all(isinstance(key, str) and isinstance(item, Tensor) for key, item in pairs)


def with_state_dict(payload: dict[str, Any]) -> dict[str, Any]:
    """Move bare weights, or weights under another key, to ``state_dict``."""
    if is_state(payload):
        return {"state_dict": dict(payload)}
    if "state_dict" not in payload:
        for name in _WEIGHTS_ALONE:
            if is_state(payload.get(name)):
                return {"state_dict" if key == name else key: value for key, value in payload.items()}
    return payload


def as_float32(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert floating-point weights to float32; counters stay unchanged."""
    real = {key: value for key, value in state.items() if isinstance(value, Tensor) and value.is_floating_point()}
    return state | {key: value.detach().float() for key, value in real.items()}


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
    """Return the epoch, updates, optimizer and loss scale of a file with one ``network``; None without training state.

    ``keys`` are the state dict's; the optimizer numbers those that don't end in one of ``buffers``. ``needs`` is the
    part of the optimizer's state that must not be empty. The originals count epochs from ``first_epoch``. Without a
    key for the ``iteration``, the optimizer's step is used.
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
    """Convert an Adam-like optimizer's ``state_dict()`` to the format of `common.training.optim.state_by_name`.

    ``parameters`` are the names in the optimizer's order. The step becomes a tensor; older optimizers stored a number,
    and apex stored one number for all parameters. Raises ValueError if the number of parameters is different.
    """
    group = optimizer["param_groups"][0]
    if len(group["params"]) != len(parameters):
        raise ValueError(f"optimizer state for {len(group['params'])} parameters, expected {len(parameters)}")
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
