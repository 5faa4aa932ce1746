"""LAMB, Adam, the learning-rate schedule and the weight average, against numbers of the original implementations."""

import json
from itertools import permutations
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from common.errors import CheckpointError
from common.training.ema import ExponentialMovingAverage
from common.training.optim import (
    OPTIMIZERS,
    Lamb,
    build_optimizer,
    exponential_schedule,
    inverse_sqrt_schedule,
    load_state_by_name,
    state_by_name,
)

NAMES = ("w", "b", "conv", "big", "zero")
RUNS = (
    "lamb_fixed_grads",
    "lamb_quadratic",
    "lamb_quadratic_schedule",
    "lamb_debias",
    "lamb_clamp3",
    "lamb_wd0.01",
    "adam_fixed_grads",
    "adam_quadratic",
)


@pytest.mark.parametrize("name", RUNS)
def test_ten_steps_equal_the_original_optimizers(name: str, goldens: Path):
    folder = goldens / "optim"
    index = json.loads((folder / "lamb.json").read_text())
    run = next(run for run in index["runs"] if run["name"] == name)
    problem, expected = load_file(folder / "problem.safetensors"), load_file(folder / run["file"])
    parameters = {key: nn.Parameter(problem[f"init.{key}"].clone()) for key in index["parameter_order"]}
    settings = {"lr": 0.1, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 1e-6} | run["overrides"]
    kind = Lamb if name.startswith("lamb") else torch.optim.Adam
    optimizer = kind(parameters.values(), **settings)
    schedule = inverse_sqrt_schedule(index["hyperparameters"]["lr"], warmup_steps=1000)
    for step in range(1, 11):
        for key, parameter in parameters.items():
            if "grad1" in run["gradients"]:
                parameter.grad = problem[f"grad{step}.{key}"].clone()
            else:
                parameter.grad = problem[f"A.{key}"] * (parameter.detach() - problem[f"C.{key}"])
        if run["adjust_learning_rate_iterations"]:
            optimizer.param_groups[0]["lr"] = schedule(run["adjust_learning_rate_iterations"][step - 1], 1)
        optimizer.step()
        for key, parameter in parameters.items():
            torch.testing.assert_close(parameter.data, expected[f"step{step}.{key}"], atol=1e-5, rtol=1e-5)
    for key, parameter in parameters.items():
        for moment in ("exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(
                optimizer.state[parameter][moment], expected[f"final.{moment}.{key}"], atol=1e-5, rtol=1e-5
            )


def test_learning_rate_equals_the_originals_schedule(goldens: Path):
    rows = json.loads((goldens / "optim" / "lr_schedule.json").read_text())["rows"]
    for row in rows:
        rate = inverse_sqrt_schedule(row["learning_rate"], warmup_steps=row["warmup_iters"])(row["total_iter"], 1)
        assert rate == pytest.approx(row["lr"], rel=1e-12)
    assert len(rows) > 5


def test_the_exponential_schedule_falls_by_epochs_and_not_by_updates():
    rate = exponential_schedule(3e-4, decay=0.9998)
    assert [rate(iteration, 1) for iteration in (1, 10_000)] == [3e-4, 3e-4]
    by_hand = 3e-4
    for epoch in range(2, 50):  # as the original, which multiplies after each epoch
        by_hand *= 0.9998
        assert rate(epoch, epoch) == pytest.approx(by_hand, rel=1e-9)


def test_averages_decay_and_the_smallest_divisor_are_those_that_are_asked_for():
    gradients = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(1))
    start = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
    settings = {"betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.01}
    ours, theirs, other = (nn.Parameter(start.clone()) for _ in range(3))
    optimizers = [
        build_optimizer("adamw", [ours], learning_rate=0.01, **settings),
        torch.optim.AdamW([theirs], lr=0.01, **settings),
        build_optimizer("adamw", [other], learning_rate=0.01, weight_decay=0.01),
    ]
    for gradient in gradients:
        for parameter, optimizer in zip((ours, theirs, other), optimizers):
            parameter.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(ours, theirs, atol=1e-7, rtol=1e-6)
    assert (ours - other).abs().max() > 1e-4


def test_average_equals_the_originals_but_copies_integers(goldens: Path):
    golden = load_file(goldens / "optim" / "ema.safetensors")
    network = nn.Module()
    network.lin = nn.Linear(5, 3)
    network.register_buffer("buf", torch.zeros(4))
    network.register_buffer("count", torch.zeros(2, dtype=torch.int64))

    def named(prefix: str) -> dict:
        return {key[len(prefix) :]: value for key, value in golden.items() if key.startswith(prefix)}

    network.load_state_dict(named("ema_before."))
    average = ExponentialMovingAverage({"net": network}, decay=0.999)
    network.load_state_dict(named("model."))
    for update in ("ema_after1.", "ema_after2."):
        average.update(("net",))
        for key, value in named(update).items():
            if key != "count":
                torch.testing.assert_close(average.averages["net"][key], value, atol=1e-6, rtol=1e-6)
    assert torch.equal(average.averages["net"]["count"], golden["model.count"])


def test_average_starts_as_a_copy_that_training_does_not_touch():
    network = nn.Linear(2, 2)
    before = network.weight.detach().clone()
    average = ExponentialMovingAverage({"net": network}, decay=0.9)
    with torch.no_grad():
        network.weight.add_(1.0)
    assert torch.equal(average.averages["net"]["weight"], before)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_restored_optimizer_goes_on_exactly(name: str):
    torch.manual_seed(0)
    gradients = [torch.randn(3, 4) for _ in range(6)]

    def run(parameter: nn.Parameter, optimizer: torch.optim.Optimizer, steps: list[torch.Tensor]) -> None:
        for gradient in steps:
            parameter.grad = gradient.clone()
            optimizer.step()

    start = torch.randn(3, 4)
    whole = nn.Parameter(start.clone())
    run(whole, build_optimizer(name, [whole], learning_rate=0.01, weight_decay=1e-6), gradients)

    first = nn.Parameter(start.clone())
    optimizer = build_optimizer(name, [first], learning_rate=0.01, weight_decay=1e-6)
    run(first, optimizer, gradients[:3])
    saved = state_by_name(optimizer, {"weight": first})
    second = nn.Parameter(first.detach().clone())
    restored = build_optimizer(name, [second], learning_rate=0.01, weight_decay=1e-6)
    load_state_by_name(restored, saved, {"weight": second}, where="x.pt")
    run(second, restored, gradients[3:])
    assert torch.equal(whole, second)


def test_options_of_today_win_over_those_of_the_saved_state():
    """What can be given on the command line; what cannot (LAMB's clamp) comes from the checkpoint."""

    def build(betas: tuple[float, float], rate: float) -> tuple[nn.Parameter, torch.optim.Optimizer]:
        parameter = nn.Parameter(torch.ones(2))
        parameter.grad = torch.ones(2)
        return parameter, build_optimizer("lamb", [parameter], learning_rate=rate, weight_decay=rate, betas=betas)

    first, saved = build((0.8, 0.99), 0.1)
    saved.param_groups[0]["clamp_value"] = 3.0
    saved.step()
    second, restored = build((0.5, 0.9), 0.2)
    load_state_by_name(restored, state_by_name(saved, {"p": first}), {"p": second}, where="x.pt")
    group = restored.param_groups[0]
    assert (group["betas"], group["lr"], group["weight_decay"]) == ((0.5, 0.9), 0.2, 0.2)
    assert group["clamp_value"] == 3.0


@pytest.mark.parametrize(("trained", "resumed"), list(permutations(OPTIMIZERS, 2)))
def test_state_of_another_optimizer_is_refused(trained: str, resumed: str):
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    first = build_optimizer(trained, [parameter], learning_rate=0.1, weight_decay=0.0)
    first.step()
    second = build_optimizer(resumed, [parameter], learning_rate=0.1, weight_decay=0.0)
    with pytest.raises(CheckpointError, match=r"x\.pt: .*optimizer"):
        load_state_by_name(second, state_by_name(first, {"p": parameter}), {"p": parameter}, where="x.pt")


def test_state_of_another_shape_is_refused():
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    lamb = build_optimizer("lamb", [parameter], learning_rate=0.1, weight_decay=0.0)
    lamb.step()
    saved = state_by_name(lamb, {"p": parameter})
    other = nn.Parameter(torch.ones(3))
    fresh = build_optimizer("lamb", [other], learning_rate=0.1, weight_decay=0.0)
    with pytest.raises(CheckpointError, match=r"shape \(2,\), expected \(3,\)"):
        load_state_by_name(fresh, saved, {"p": other}, where="x.pt")
