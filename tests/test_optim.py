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


def test_average_equals_the_originals_but_copies_integers(goldens: Path):
    golden = load_file(goldens / "optim" / "ema.safetensors")
    network, model = nn.Module(), group(golden, "model")
    for key, value in group(golden, "ema_before").items():
        network.register_buffer(key.replace(".", "_"), value.clone())
    average = ExponentialMovingAverage("net", network, decay=read_golden(goldens / "optim" / "ema.json", "decay"))
    network.load_state_dict({key.replace(".", "_"): value for key, value in model.items()})
    n_updates = len({key.split(".")[0] for key in golden if key.startswith("ema_after")})
    assert n_updates
    for update in range(1, n_updates + 1):
        average.update()
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


@pytest.mark.parametrize(("trained", "resumed"), list(permutations(OPTIMIZERS, 2)))
def test_state_of_another_optimizer_is_refused(trained: str, resumed: str):
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    first = OPTIMIZERS[trained]([parameter], 0.1, weight_decay=0.0)
    first.step()
    second = OPTIMIZERS[resumed]([parameter], 0.1, weight_decay=0.0)
    with pytest.raises(CheckpointError, match=r"x\.pt: .*optimizer"):
        load_state_by_name(second, state_by_name(first, {"p": parameter}), {"p": parameter}, where="x.pt")


@pytest.mark.parametrize("name", ["lamb", "novograd"])
def test_updates_are_counted_from_what_files_hold(name: str):
    """Files of before hold numbers, published ones tensors; both continue the count."""
    for step in (7, torch.tensor(7.0), torch.tensor(7)):
        first, second = nn.Parameter(torch.ones(3, 4)), nn.Parameter(torch.ones(3, 4))
        optimizers = [OPTIMIZERS[name]([weight], 0.01, weight_decay=0.1) for weight in (first, second)]
        for weight, optimizer in zip((first, second), optimizers):
            if weight is second:
                saved = state_by_name(optimizers[0], {"weight": first})
                saved["states"]["weight"]["step"] = step
                load_state_by_name(optimizer, saved, {"weight": weight}, where="x.pt")
            weight.grad = torch.ones_like(weight)
            optimizer.step()
        assert float(state_by_name(optimizers[1], {"weight": second})["states"]["weight"]["step"]) == 8
