"""Optimizers, EMA and learning-rate schedules, and the optimizers' state by parameter name."""

import copy
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from common.errors import CheckpointError

Schedule = Callable[[int, int, int], float]  # (iteration from 1, epoch from 1, updates per epoch) -> rate
States = dict[str, list[Tensor]]  # by name, of each weight
# Execution settings, which depend on the machine and aren't stored.
_EXECUTION = ("fused", "foreach", "capturable", "differentiable")
# Settings that a resumed run takes from its options, not from the checkpoint.
_OPTIONS = ("lr", "weight_decay", "betas")
_ADAMW = "decoupled_weight_decay"  # true in AdamW, false in Adam


@dataclass(frozen=True)
class Optimization:
    """Settings of a model's optimizers beyond the common options."""

    schedule: Schedule
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9


class _ForeachOptimizer(torch.optim.Optimizer):
    """Base class of optimizers that update all parameters of a group with foreach operations."""

    DEFAULTS: ClassVar[dict[str, Any]]  # all settings except the learning rate
    SCALARS: ClassVar[tuple[str, ...]] = ("step",)  # states with a single value per parameter

    def __init__(self, params: Iterable[nn.Parameter], lr: float, **settings: Any) -> None:
        """``settings`` override `DEFAULTS`."""
        super().__init__(params, {"lr": lr} | self.DEFAULTS | settings)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            weights: list[Tensor] = [p for p in group["params"] if p.grad is not None]
            names = ["step", "exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * group.get("amsgrad", False)
            for weight in weights:
                for name in names if not self.state[weight] else ():
                    like = weight.new_zeros(()) if name in self.SCALARS else torch.zeros_like(weight)
                    self.state[weight][name] = like
            if weights:
                states: States = {name: [self.state[weight][name] for weight in weights] for name in names}
                torch._foreach_add_(states["step"], 1.0)
                self._update(weights, [p.grad for p in weights if p.grad is not None], states, group)

    def _update(self, weights: list[Tensor], gradients: list[Tensor], states: States, group: dict[str, Any]) -> None:
        """Update ``weights`` and their ``states`` in place with the settings in ``group``."""
        raise NotImplementedError


class Lamb(_ForeachOptimizer):
    """LAMB (You et al., arXiv:1904.00962, algorithm 2), as used to train the published FastPitch.

    There is no bias correction without ``debias``. Weight decay is added to the Adam step before the trust ratio is
    computed: min(|w|, clamp_value) / |step|, or 1 if either norm is 0.
    """

    DEFAULTS: ClassVar = {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.0, "clamp_value": 10.0, "debias": False}

    def _update(self, weights: list[Tensor], gradients: list[Tensor], states: States, group: dict[str, Any]) -> None:
        means, squares = states["exp_avg"], states["exp_avg_sq"]
        beta1, beta2 = group["betas"]
        torch._foreach_mul_(means, beta1)
        torch._foreach_add_(means, gradients, alpha=1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - beta2)

        steps = list(torch._foreach_sqrt(squares))
        torch._foreach_add_(steps, group["eps"])
        torch._foreach_reciprocal_(steps)
        torch._foreach_mul_(steps, means)
        if group["weight_decay"] != 0:
            torch._foreach_add_(steps, weights, alpha=group["weight_decay"])
        weight_norms = torch.stack(torch._foreach_norm(weights)).clamp(max=group["clamp_value"])
        step_norms = torch.stack(torch._foreach_norm(steps))
        usable = (weight_norms > 0) & (step_norms > 0)
        ratios = torch.where(usable, weight_norms / step_norms, torch.ones_like(step_norms))
        if group["debias"]:
            counts = torch.stack(states["step"]).double()
            ratios = ratios * ((1 - beta2**counts).sqrt() / (1 - beta1**counts)).to(ratios)
        torch._foreach_mul_(steps, list(ratios.unbind()))
        torch._foreach_add_(weights, steps, alpha=-group["lr"])


class Novograd(_ForeachOptimizer):
    """NovoGrad (Ginsburg et al., arXiv:1905.11286, algorithm 1), as used to train the published Jasper.

    Each parameter's gradient is divided by the root of a running mean of its squared norm (the current norm if beta2
    is 0). Then weight decay is added, and momentum accumulates the result without bias correction. A running mean of 0
    is replaced by the current squared norm.
    """

    DEFAULTS: ClassVar = {
        "betas": (0.95, 0.0),
        "eps": 1e-8,
        "weight_decay": 0.0,
        "grad_averaging": False,  # scale what is added to momentum by 1 - beta1
        "amsgrad": False,  # divide by the largest mean so far
    }
    SCALARS: ClassVar = ("step", "exp_avg_sq", "max_exp_avg_sq")

    def _update(self, weights: list[Tensor], gradients: list[Tensor], states: States, group: dict[str, Any]) -> None:
        means, squares, (beta1, beta2) = states["exp_avg"], states["exp_avg_sq"], group["betas"]
        own, before = torch.stack(torch._foreach_norm(gradients)).square(), torch.stack(squares)
        norms = torch.where(before == 0, own, beta2 * before + (1 - beta2) * own)
        torch._foreach_copy_(squares, list(norms.unbind()))
        if group["amsgrad"]:
            norms = torch.maximum(torch.stack(states["max_exp_avg_sq"]), norms)
            torch._foreach_copy_(states["max_exp_avg_sq"], list(norms.unbind()))
        share = 1 - beta1 if group["grad_averaging"] else 1.0
        factors = share / (norms.sqrt() + group["eps"])
        steps = list(torch._foreach_mul(gradients, list(factors.unbind())))
        if group["weight_decay"] != 0:
            torch._foreach_add_(steps, weights, alpha=group["weight_decay"] * share)
        torch._foreach_mul_(means, beta1)
        torch._foreach_add_(means, steps)
        torch._foreach_add_(weights, means, alpha=-group["lr"])


def _never_compiled(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """Unwrap optimizer methods whose decorators import the compiler in the first step, which takes a second."""
    names = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
    methods: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    return type(kind.__name__, (kind,), methods | {"step": torch.no_grad()(inspect.unwrap(kind.step))})


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "lamb": _never_compiled(Lamb),
    "adam": partial(_never_compiled(torch.optim.Adam), fused=True),
    "adamw": partial(_never_compiled(torch.optim.AdamW), fused=True),
    "novograd": _never_compiled(Novograd),
}


class ExponentialMovingAverage:
    """Keeps decay * average + (1 - decay) * current for each floating-point tensor of a network; copies integers.

    The average starts as a copy of the network.
    """

    def __init__(self, name: str, network: nn.Module, *, decay: float) -> None:
        self.name = name
        self.networks = {name: copy.deepcopy(network)}  # with averaged weights
        self.averages = {name: self.networks[name].state_dict()}
        self._decay = decay
        pairs = list(zip(self.averages[name].values(), network.state_dict().values()))
        self._floats = [pair for pair in pairs if pair[0].is_floating_point()]
        self._integers = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def update(self) -> None:
        """Update the averages after a step of the network's optimizer."""
        averages, currents = ([pair[side] for pair in self._floats] for side in (0, 1))
        torch._foreach_mul_(averages, self._decay)
        torch._foreach_add_(averages, currents, alpha=1 - self._decay)
        for average, current in self._integers:
            average.copy_(current)


def inverse_sqrt_schedule(learning_rate: float, *, warmup_steps: int) -> Schedule:
    """Warm up linearly, then use learning_rate / sqrt(iteration) (arXiv:1706.03762, section 5.3); or stay constant."""

    def rate(iteration: int, epoch: int, steps_per_epoch: int = 1) -> float:
        if warmup_steps == 0:
            return learning_rate
        if iteration > warmup_steps:
            return learning_rate / iteration**0.5
        return learning_rate * iteration / warmup_steps**1.5

    return rate


def exponential_schedule(learning_rate: float, *, decay: float) -> Schedule:
    """learning_rate x decay^(epoch - 1): the first epoch has the full rate."""
    return lambda iteration, epoch, *_: learning_rate * decay ** (epoch - 1)


def state_by_name(optimizer: torch.optim.Optimizer, named: dict[str, nn.Parameter]) -> dict[str, Any]:
    """Return an optimizer's settings and state by parameter name, independent of parameter order."""
    names = {id(parameter): name for name, parameter in named.items()}
    settings = {key: value for key, value in optimizer.param_groups[0].items() if key not in ("params", *_EXECUTION)}
    states = {names[id(parameter)]: dict(state) for parameter, state in optimizer.state.items()}
    return {"settings": settings, "states": states}


def load_state_by_name(
    optimizer: torch.optim.Optimizer, saved: dict[str, Any], named: dict[str, nn.Parameter], *, where: str
) -> None:
    """Restore the result of `state_by_name`, except learning rate, weight decay and betas.

    Raises CheckpointError if the parameters, their shapes or the optimizer differ.
    """
    own, states = optimizer.param_groups[0], saved["states"]
    settings = {key: value for key, value in saved["settings"].items() if key not in (*_EXECUTION, *_OPTIONS)}
    fits = settings.keys() <= own.keys() and (not states or states.keys() == named.keys())
    if not fits or settings.get(_ADAMW, own.get(_ADAMW)) != own.get(_ADAMW):  # all that differs between Adam and AdamW
        raise CheckpointError(f"{where}: its optimizer state does not fit; was it trained with another --optimizer?")
    own.update(settings)
    scalars = getattr(optimizer, "SCALARS", ("step",))
    for name, state in states.items():
        weight = named[name]
        wanted = {key: torch.Size() if key in scalars else weight.shape for key in ("step", "exp_avg", "exp_avg_sq")}
        # Copy, since optimizers update their state in place and must not change the checkpoint's tensors.
        restored = {key: torch.as_tensor(value).to(weight, copy=True) for key, value in state.items()}
        if not wanted.items() <= {key: one.shape for key, one in restored.items()}.items():
            raise CheckpointError(f"{where}: its optimizer state for {name} does not have the weight's shape")
        optimizer.state[weight] = restored
