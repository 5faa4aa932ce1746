"""NovoGrad and Jasper's learning-rate policies, against numbers of the original implementations."""

from pathlib import Path

import pytest
import torch
from golden_files import listed, read_case, read_golden
from torch import nn

from common.training.optim import Novograd, build_optimizer, load_state_by_name, schedule_over, state_by_name
from jasper.training_setup import jasper_schedule


@pytest.fixture(scope="module")
def folder(goldens: Path) -> Path:
    return goldens / "jasper"


@pytest.mark.parametrize("name", listed("jasper/optimizers.json", "novograd"))
def test_every_step_equals_the_original_optimizer(folder: Path, name: str):
    about, tensors = read_case(folder, "optimizers")
    published = about["novograd"]
    weights = [nn.Parameter(tensors[f"param0.{index}"].clone()) for index in range(len(about["shapes"]))]
    optimizer = Novograd(weights, **published[name]["kwargs"])
    for step in range(published[name]["step"]):
        for index, weight in enumerate(weights):
            weight.grad = tensors[f"grad.{step}.{index}"].clone()
        optimizer.step()
        for index, weight in enumerate(weights):
            expected = tensors[f"novograd_{name.replace('.', 'p')}.{step}.{index}"]
            torch.testing.assert_close(weight.data, expected, atol=5e-6, rtol=0)
            assert torch.equal(weight.grad, tensors[f"grad.{step}.{index}"])
    norms = [float(optimizer.state[weight]["exp_avg_sq"]) for weight in weights]
    assert norms == pytest.approx(published[name]["final_exp_avg_sq"], rel=1e-5)


def test_the_originals_adamw_is_what_its_rule_says_and_not_torchs(folder: Path):
    """No published weights were made with it; ``adamw`` here is torch's, so that its state loads."""
    about, tensors = read_case(folder, "optimizers")
    rate, decay = about["adamw"]["kwargs"]["lr"], about["adamw"]["kwargs"]["weight_decay"]
    n_steps = sum(key.startswith("adamw.") and key.endswith(".0") for key in tensors)
    assert n_steps
    for index in range(len(about["shapes"])):
        weight = tensors[f"param0.{index}"].double()
        own = nn.Parameter(tensors[f"param0.{index}"].clone())
        optimizer = build_optimizer(
            "adamw", [own], learning_rate=rate, weight_decay=decay, betas=(0.9, 0.999), eps=1e-8
        )
        mean, square = torch.zeros_like(weight), torch.zeros_like(weight)
        for step in range(1, n_steps + 1):
            gradient = tensors[f"grad.{step - 1}.{index}"].double()
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient.square()
            size = rate * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
            weight = weight - size * (decay * weight + mean / (square.sqrt() + 1e-8))
            torch.testing.assert_close(weight.float(), tensors[f"adamw.{step - 1}.{index}"], atol=5e-6, rtol=0)
            own.grad = gradient.float()
            optimizer.step()
        # The decay alone differs, by what bias correction scales it.
        assert 1e-6 < float((own.detach() - weight.float()).abs().max()) < 1e-3


def test_its_state_goes_on_exactly(tmp_path: Path):
    torch.manual_seed(0)
    gradients = [[torch.randn(3, 2), torch.randn(4)] for _ in range(6)]

    def weights() -> dict[str, nn.Parameter]:
        return {"a": nn.Parameter(torch.ones(3, 2)), "b": nn.Parameter(torch.ones(4))}

    def run(named: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer, steps: slice) -> None:
        for row in gradients[steps]:
            for weight, gradient in zip(named.values(), row):
                weight.grad = gradient
            optimizer.step()

    def make(named: dict[str, nn.Parameter]) -> Novograd:
        return Novograd(named.values(), 0.1, betas=(0.9, 0.5), weight_decay=0.01, amsgrad=True)

    whole = weights()
    run(whole, make(whole), slice(6))
    first = weights()
    optimizer = make(first)
    run(first, optimizer, slice(3))
    torch.save(state_by_name(optimizer, first), tmp_path / "state.pt")
    second = {name: nn.Parameter(weight.detach().clone()) for name, weight in first.items()}
    optimizer = make(second)
    load_state_by_name(optimizer, torch.load(tmp_path / "state.pt", weights_only=True), second, where="state.pt")
    run(second, optimizer, slice(3, 6))
    for name, weight in whole.items():
        assert torch.equal(second[name], weight)


def test_values_that_it_cannot_have_are_refused():
    weight = [nn.Parameter(torch.ones(1))]
    for values in ({"lr": 0.0}, {"lr": 0.1, "betas": (1.0, 0.0)}, {"lr": 0.1, "eps": -1.0}):
        with pytest.raises(ValueError, match="Novograd"):
            Novograd(weight, **values)


def test_the_rates_of_updates_are_the_published_tables_and_not_one_step_late(folder: Path):
    tables = read_golden(folder / "optimizers.json", "lr_policy")
    assert tables
    for table in tables:
        given = table["kwargs"]
        schedule = jasper_schedule(
            given["initial_lr"],
            policy=given["policy"],
            warmup_epochs=given["warmup_epochs"],
            hold_epochs=given["hold_epochs"],
            n_epochs=given["num_epochs"],
            min_lr=given["min_lr"],
            gamma=given.get("exp_gamma", 1.0),
        )
        rate = schedule_over(schedule, steps_per_epoch=given["steps_per_epoch"])
        for step, epoch, expected in table["rows"]:
            assert rate(step, epoch) == pytest.approx(expected, rel=1e-12)


def test_the_polynomial_policy_falls_from_the_full_rate_to_the_least():
    schedule = jasper_schedule(
        0.01, policy="polynomial", warmup_epochs=1, hold_epochs=1, n_epochs=4, min_lr=0.001, gamma=1.0
    )
    rate = schedule_over(schedule, steps_per_epoch=10)
    steps = [(1, 1), (10, 1), (20, 2), (30, 3), (40, 4), (50, 5)]
    expected = [0.01 * 2 / 11, 0.01, 0.01, 0.001 + 0.009 * 0.25, 0.001, 0.001]
    assert [rate(*step) for step in steps] == pytest.approx(expected, rel=1e-12)
    falling = [rate(step, 3) for step in range(20, 41)]
    assert falling == sorted(falling, reverse=True) and len(set(falling)) == 21


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="'cosine': expected one of exponential, polynomial, legacy"):
        jasper_schedule(0.01, policy="cosine", warmup_epochs=0, hold_epochs=0, n_epochs=1, min_lr=0.0, gamma=1.0)
