"""LAMB, Adam, the learning-rate schedule and the weight average, against numbers of the original implementations."""

from itertools import permutations
from pathlib import Path

import pytest
import torch
from golden_files import group, listed, read_golden
from safetensors.torch import load_file
from torch import nn

from common.errors import CheckpointError
from common.training.optim import (
    OPTIMIZERS,
    ExponentialMovingAverage,
    Lamb,
    exponential_schedule,
    inverse_sqrt_schedule,
    load_state_by_name,
    state_by_name,
)


@pytest.mark.parametrize("run", listed("optim/lamb.json", "runs"), ids=lambda run: run["name"])
def test_every_step_equals_the_original_optimizers(run: dict, goldens: Path):
    folder = goldens / "optim"
    index = read_golden(folder / "lamb.json")
    problem, expected = load_file(folder / "problem.safetensors"), load_file(folder / run["file"])
    parameters = {key: nn.Parameter(problem[f"init.{key}"].clone()) for key in index["parameter_order"]}
    settings = index["hyperparameters"] | run["overrides"]
    kind = Lamb if "Lamb" in run["optimizer"] else torch.optim.Adam
    optimizer = kind(parameters.values(), **settings)
    schedule = inverse_sqrt_schedule(settings["lr"], warmup_steps=1000)
    n_steps = len({key.split(".")[0] for key in expected if key.startswith("step")})
    assert n_steps
    for step in range(1, n_steps + 1):
        for key, parameter in parameters.items():
            if "problem.safetensors grad" in run["gradients"]:
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
    rows = read_golden(goldens / "optim" / "lr_schedule.json", "rows")
    for row in rows:
        rate = inverse_sqrt_schedule(row["learning_rate"], warmup_steps=row["warmup_iters"])(row["total_iter"], 1)
        assert rate == pytest.approx(row["lr"], rel=1e-12)
    assert rows


def test_the_exponential_schedule_falls_by_epochs_and_not_by_updates():
    rate = exponential_schedule(3e-4, decay=0.9998)
    assert [rate(iteration, 1) for iteration in (1, 10_000)] == [3e-4, 3e-4]
    by_hand = 3e-4
    for epoch in range(2, 50):  # as the original, which multiplies after each epoch
        by_hand *= 0.9998
        assert rate(epoch, epoch) == pytest.approx(by_hand, rel=1e-9)


def test_average_equals_the_originals_but_copies_integers(goldens: Path):
    golden = load_file(goldens / "optim" / "ema.safetensors")
    network, model = nn.Module(), group(golden, "model")
    for key, value in group(golden, "ema_before").items():
        network.register_buffer(key.replace(".", "_"), value.clone())
    average = ExponentialMovingAverage({"net": network}, decay=read_golden(goldens / "optim" / "ema.json", "decay"))
    network.load_state_dict({key.replace(".", "_"): value for key, value in model.items()})
    n_updates = len({key.split(".")[0] for key in golden if key.startswith("ema_after")})
    assert n_updates
    for update in range(1, n_updates + 1):
        average.update(("net",), applied=torch.ones(()))
        for key, value in group(golden, f"ema_after{update}").items():
            ours = average.averages["net"][key.replace(".", "_")]
            expected = value if value.is_floating_point() else model[key]
            torch.testing.assert_close(ours, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_restored_optimizer_continues_exactly(name: str):
    torch.manual_seed(0)
    start, gradients = torch.randn(3, 4), [torch.randn(3, 4) for _ in range(6)]

    def run(weight: torch.Tensor, steps: list[torch.Tensor], saved: dict | None = None) -> tuple[nn.Parameter, dict]:
        parameter = nn.Parameter(weight.clone())
        optimizer = OPTIMIZERS[name]([parameter], 0.01, weight_decay=1e-6)
        if saved is not None:
            load_state_by_name(optimizer, saved, {"weight": parameter}, where="x.pt")
        for gradient in steps:
            parameter.grad = gradient.clone()
            optimizer.step()
        return parameter, state_by_name(optimizer, {"weight": parameter})

    whole, _ = run(start, gradients)
    first, saved = run(start, gradients[:3])
    assert torch.equal(whole, run(first.detach(), gradients[3:], saved)[0])


def test_options_of_today_win_over_those_of_the_saved_state():
    """What can be given on the command line; what cannot (LAMB's clamp) comes from the checkpoint."""

    def build(betas: tuple[float, float], rate: float) -> tuple[nn.Parameter, torch.optim.Optimizer]:
        parameter = nn.Parameter(torch.ones(2))
        parameter.grad = torch.ones(2)
        return parameter, OPTIMIZERS["lamb"]([parameter], rate, weight_decay=rate, betas=betas)

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
    first = OPTIMIZERS[trained]([parameter], 0.1, weight_decay=0.0)
    first.step()
    second = OPTIMIZERS[resumed]([parameter], 0.1, weight_decay=0.0)
    with pytest.raises(CheckpointError, match=r"x\.pt: .*optimizer"):
        load_state_by_name(second, state_by_name(first, {"p": parameter}), {"p": parameter}, where="x.pt")


def steps_of(name: str, *, found_inf: list[float | None], lr: float | torch.Tensor = 0.01) -> tuple[dict, dict]:
    """Parameters and state by name after an update for each of ``found_inf``, with NaN for gradients where it is 1."""
    torch.manual_seed(0)
    named = {"matrix": nn.Parameter(torch.randn(3, 4)), "bias": nn.Parameter(torch.randn(4))}
    gradients = [{key: torch.randn_like(weight) for key, weight in named.items()} for _ in found_inf]
    optimizer = OPTIMIZERS[name](named.values(), 0.01, weight_decay=0.1)
    optimizer.param_groups[0]["lr"] = lr
    for found, gradient in zip(found_inf, gradients):
        for key, weight in named.items():
            weight.grad = gradient[key] if found != 1 else torch.full_like(weight, torch.nan)
        optimizer.found_inf = None if found is None else torch.tensor(found)
        optimizer.step()
    return {key: weight.detach() for key, weight in named.items()}, state_by_name(optimizer, named)


def assert_equal_values(first: object, second: object) -> None:
    assert type(first) is type(second)
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key, value in first.items():
            assert_equal_values(value, second[key])
    else:
        assert torch.equal(torch.as_tensor(first), torch.as_tensor(second))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_that_the_device_found_not_finite_leaves_weights_and_state_as_they_were(name: str):
    weights, state = steps_of(name, found_inf=[None, None])
    for found in ([0.0, 0.0, 1.0, 1.0], [None, 0.0, 1.0]):
        ours, saved = steps_of(name, found_inf=found)
        assert_equal_values(ours, weights)
        assert_equal_values(saved["states"], state["states"])
    assert [float(one["step"]) for one in state["states"].values()] == [2.0, 2.0]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_learning_rate_on_the_device_is_the_number(name: str):
    ours, saved = steps_of(name, found_inf=[0.0] * 4, lr=torch.tensor(0.01))
    expected, state = steps_of(name, found_inf=[None] * 4)
    for key, value in expected.items():
        torch.testing.assert_close(ours[key], value, atol=1e-7, rtol=1e-6)
    assert saved["settings"]["lr"] == pytest.approx(state["settings"]["lr"])
    assert type(saved["settings"]["lr"]) is float


@pytest.mark.parametrize("name", ["lamb", "novograd"])
def test_updates_are_counted_on_the_device_and_saved_as_numbers(name: str):
    """Files of before hold numbers, published ones tensors; both continue the count."""
    for step in (7, torch.tensor(7.0), torch.tensor(7)):
        _, saved = steps_of(name, found_inf=[None])
        for state in saved["states"].values():
            state["step"] = step
        named = {"matrix": nn.Parameter(torch.ones(3, 4)), "bias": nn.Parameter(torch.ones(4))}
        optimizer = OPTIMIZERS[name](named.values(), 0.01, weight_decay=0.1)
        load_state_by_name(optimizer, saved, named, where="x.pt")
        for weight in named.values():
            weight.grad = torch.ones_like(weight)
        optimizer.step()
        assert all(isinstance(state["step"], torch.Tensor) for state in optimizer.state.values())
        assert [state["step"] for state in state_by_name(optimizer, named)["states"].values()] == [8, 8]
        assert all(type(state["step"]) is int for state in state_by_name(optimizer, named)["states"].values())


def test_an_average_follows_no_update_that_was_left_out():
    network = nn.BatchNorm1d(3)
    average = ExponentialMovingAverage({"net": network}, decay=0.9)
    expected = ExponentialMovingAverage({"net": network}, decay=0.9)
    with torch.no_grad():
        for value in (network.weight, network.bias, network.running_mean, network.running_var):
            value.add_(2)
    average.update(("net",), applied=torch.tensor(0.0))
    assert_equal_values(average.averages, expected.averages)
    average.update(("net",), applied=torch.tensor(1.0))
    expected.update(("net",), applied=torch.ones(()))
    assert_equal_values(average.averages, expected.averages)
