"""NovoGrad and Jasper's learning-rate policies, against numbers of the original implementations."""

from pathlib import Path

import pytest
import torch
from golden_files import listed, read_case, read_golden
from torch import nn

from common.training.optim import Novograd
from jasper.arg_parser import TrainingOptions
from jasper.training_setup import jasper_schedule

FOLDER = "jasper"


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


def test_the_rates_of_updates_are_the_published_tables_and_not_one_step_late(folder: Path):
    tables = read_golden(folder / "optimizers.json", "lr_policy")
    assert tables
    for table in tables:
        given = table["kwargs"]
        options = TrainingOptions(
            lr_policy=given["policy"],
            warmup_epochs=given["warmup_epochs"],
            hold_epochs=given["hold_epochs"],
            min_lr=given["min_lr"],
            lr_exp_gamma=given.get("exp_gamma", 1.0),
        )
        rate = jasper_schedule(options, given["initial_lr"], n_epochs=given["num_epochs"])
        for step, epoch, expected in table["rows"]:
            assert rate(step, epoch, given["steps_per_epoch"]) == pytest.approx(expected, rel=1e-12)
