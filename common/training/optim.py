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

Schedule = Callable[[int, int, int], float]  # iteration and epoch, both from 1, updates an epoch -> learning rate
# How an optimizer is computed, not what: a checkpoint of another machine has no say in it.
_EXECUTION = ("fused", "foreach", "capturable", "differentiable")
# What options or the model's package say: those of today, not of the run that is resumed.
_OPTIONS = ("lr", "weight_decay", "betas")
_ADAMW = "decoupled_weight_decay"  # true in AdamW, false in Adam


@dataclass(frozen=True)
class Optimization:
    """What a model's optimizers are given beyond the common options."""

    schedule: Schedule
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9


class _ForeachOptimizer(torch.optim.Optimizer):
    """Updates all parameters of a group together, by few operations."""

    DEFAULTS: ClassVar[dict[str, Any]]  # its settings but the learning rate

    def __init__(self, params: Iterable[nn.Parameter], lr: float, **settings: Any) -> None:
        """``settings`` replace those of `DEFAULTS`."""
        super().__init__(params, {"lr": lr} | self.DEFAULTS | settings)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            weights: list[Tensor] = [p for p in group["params"] if p.grad is not None]
            for weight in weights:
                if not self.state[weight]:
                    step = torch.zeros((), device=weight.device)
                    self.state[weight].update(step=step, **self._new_state(weight, group))
            if weights:
                torch._foreach_add_(self._states(weights, "step"), 1.0)
                self._update(weights, [p.grad for p in weights if p.grad is not None], group)

    def _states(self, weights: list[Tensor], name: str) -> list[Tensor]:
        return [self.state[weight][name] for weight in weights]

    def _new_state(self, weight: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """The averages that a parameter begins with."""
        return {"exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}

    def _update(self, weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
        """Update ``weights`` by their gradients as ``group`` says."""
        raise NotImplementedError


class Lamb(_ForeachOptimizer):
    """LAMB (You et al., arXiv:1904.00962, algorithm 2) as FastPitch was trained with.

    No bias correction unless ``debias``; weight decay joins the Adam step before the trust ratio, which is
    min(|w|, clamp_value) / |step| and 1 where either norm is 0.
    """

    DEFAULTS: ClassVar = {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.0, "clamp_value": 10.0, "debias": False}

    def _update(self, weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
        means, squares = self._states(weights, "exp_avg"), self._states(weights, "exp_avg_sq")
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
        torch._foreach_mul_(steps, list(self._ratios(weights, steps, group).unbind()))
        torch._foreach_add_(weights, steps, alpha=-group["lr"])

    def _ratios(self, weights: list[Tensor], steps: list[Tensor], group: dict[str, Any]) -> Tensor:
        """Trust ratio of each parameter, with the bias correction in it."""
        weight_norms = torch.stack(torch._foreach_norm(weights)).clamp(max=group["clamp_value"])
        step_norms = torch.stack(torch._foreach_norm(steps))
        usable = (weight_norms > 0) & (step_norms > 0)
        ratios = torch.where(usable, weight_norms / step_norms, torch.ones_like(step_norms))
        if group["debias"]:
            beta1, beta2 = group["betas"]
            counts = torch.stack(self._states(weights, "step")).double()
            ratios = ratios * ((1 - beta2**counts).sqrt() / (1 - beta1**counts)).to(ratios)
        return ratios


class Novograd(_ForeachOptimizer):
    """NovoGrad (Ginsburg et al., arXiv:1905.11286, algorithm 1) as Jasper was trained with.

    Each parameter's gradient is divided by the root of a running mean of its squared norm (of the last norm, if
    beta2 is 0); weight decay joins it after that, and momentum sums it without bias correction. A running mean of 0
    is replaced by the next norm.
    """

    DEFAULTS: ClassVar = {
        "betas": (0.95, 0.0),
        "eps": 1e-8,
        "weight_decay": 0.0,
        "grad_averaging": False,  # weights what momentum adds by 1 - beta1
        "amsgrad": False,  # divides by the largest mean
    }

    def _new_state(self, weight: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        norms = ("exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg_sq",)
        return {"exp_avg": torch.zeros_like(weight)} | {name: torch.zeros((), device=weight.device) for name in norms}

    def _update(self, weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
        means = self._states(weights, "exp_avg")
        beta1, _ = group["betas"]
        share = 1 - beta1 if group["grad_averaging"] else 1.0
        factors = share / (self._norms(weights, gradients, group).sqrt() + group["eps"])
        steps = list(torch._foreach_mul(gradients, list(factors.unbind())))
        if group["weight_decay"] != 0:
            torch._foreach_add_(steps, weights, alpha=group["weight_decay"] * share)
        torch._foreach_mul_(means, beta1)
        torch._foreach_add_(means, steps)
        torch._foreach_add_(weights, means, alpha=-group["lr"])

    def _norms(self, weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> Tensor:
        """Squared norm to divide each gradient by, (parameters,); the state follows."""
        own = torch.stack(torch._foreach_norm(gradients)).square()
        squares = self._states(weights, "exp_avg_sq")
        before, beta2 = torch.stack(squares), group["betas"][1]
        norms = torch.where(before == 0, own, beta2 * before + (1 - beta2) * own)
        torch._foreach_copy_(squares, list(norms.unbind()))
        if group["amsgrad"]:
            largest = self._states(weights, "max_exp_avg_sq")
            norms = torch.maximum(torch.stack(largest), norms)
            torch._foreach_copy_(largest, list(norms.unbind()))
        return norms


def _never_compiled(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """An optimizer without torch's guards against compilation, which load the compiler: a second of each start."""
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
    """Keeps decay * average + (1 - decay) * current for every floating tensor; integers are copied.

    The average starts as a copy of the networks.
    """

    def __init__(self, networks: dict[str, nn.Module], *, decay: float) -> None:
        self.decay = decay
        self.networks = {name: copy.deepcopy(network) for name, network in networks.items()}  # with averaged weights
        self.averages = {name: network.state_dict() for name, network in self.networks.items()}
        self._current = {name: network.state_dict() for name, network in networks.items()}

    @torch.no_grad()
    def update(self, names: tuple[str, ...]) -> None:
        """Follow the networks of these names, as far as they are averaged, after their optimizer step."""
        pairs = [
            (average, self._current[name][key])
            for name in names
            for key, average in self.averages.get(name, {}).items()
        ]
        averages = [average for average, _ in pairs if average.is_floating_point()]
        currents = [current for _, current in pairs if current.is_floating_point()]
        if averages:
            torch._foreach_mul_(averages, self.decay)
            torch._foreach_add_(averages, currents, alpha=1 - self.decay)
        if integers := [average for average, _ in pairs if not average.is_floating_point()]:
            torch._foreach_copy_(integers, [current for _, current in pairs if not current.is_floating_point()])


def inverse_sqrt_schedule(learning_rate: float, *, warmup_steps: int) -> Schedule:
    """Linear warm-up to learning_rate / sqrt(warmup_steps), then learning_rate / sqrt(iteration).

    Without warm-up the rate is constant (Vaswani et al., arXiv:1706.03762, section 5.3, as FastPitch uses it).
    """

    def rate(iteration: int, epoch: int, steps_per_epoch: int = 1) -> float:
        if warmup_steps == 0:
            return learning_rate
        if iteration > warmup_steps:
            return learning_rate / iteration**0.5
        return learning_rate * iteration / warmup_steps**1.5

    return rate


def exponential_schedule(learning_rate: float, *, decay: float) -> Schedule:
    """learning_rate x decay^(epoch - 1): the first epoch has the full rate."""

    def rate(iteration: int, epoch: int, steps_per_epoch: int = 1) -> float:
        return learning_rate * decay ** (epoch - 1)

    return rate


def state_by_name(optimizer: torch.optim.Optimizer, named: dict[str, nn.Parameter]) -> dict[str, Any]:
    """An optimizer's settings and state with parameters by name, so that it outlives a change of their order."""
    names = {id(parameter): name for name, parameter in named.items()}
    settings = {key: value for key, value in optimizer.param_groups[0].items() if key not in ("params", *_EXECUTION)}
    states = {names[id(parameter)]: dict(state) for parameter, state in optimizer.state.items()}
    return {"settings": settings, "states": states}


def load_state_by_name(
    optimizer: torch.optim.Optimizer, saved: dict[str, Any], named: dict[str, nn.Parameter], *, where: str
) -> None:
    """Restore what `state_by_name` saved, except learning rate, weight decay and betas, which are today's options.

    CheckpointError where it is of other parameters, of other shapes or of another optimizer.
    """
    own, states = optimizer.param_groups[0], saved["states"]
    settings = {key: value for key, value in saved["settings"].items() if key not in (*_EXECUTION, *_OPTIONS)}
    fits = settings.keys() <= own.keys() and (not states or states.keys() == named.keys())
    if not fits or settings.get(_ADAMW, own.get(_ADAMW)) != own.get(_ADAMW):  # all else is the same in Adam and AdamW
        raise CheckpointError(f"{where}: its optimizer's state does not fit; was it trained with another --optimizer?")
    own.update(settings)
    for name, state in states.items():
        # Copies: optimizers update their state in place, and the checkpoint's tensors are not theirs.
        device = named[name].device
        restored = {key: torch.as_tensor(value).to(device, torch.float32, copy=True) for key, value in state.items()}
        found, expected = {key: one.shape for key, one in restored.items()}, _state_shapes(optimizer, named[name])
        if found != expected:  # which a fused optimizer would read and write all the same
            got, wanted = (", ".join(f"{key} {tuple(one)}" for key, one in some.items()) for some in (found, expected))
            raise CheckpointError(f"{where}: its optimizer's state of {name} is {got}; expected {wanted}")
        optimizer.state[named[name]] = restored


def _state_shapes(optimizer: torch.optim.Optimizer, weight: nn.Parameter) -> dict[str, torch.Size]:
    """The shapes of what an optimizer keeps of a parameter."""
    group, names = optimizer.param_groups[0], ("exp_avg", "exp_avg_sq")
    if isinstance(optimizer, _ForeachOptimizer):
        own = {name: one.shape for name, one in optimizer._new_state(weight.detach().to("meta"), group).items()}
    else:
        own = dict.fromkeys((*names, "max_exp_avg_sq") if group["amsgrad"] else names, weight.shape)
    return {"step": torch.Size()} | own
