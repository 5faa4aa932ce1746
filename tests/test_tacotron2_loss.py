"""Tacotron 2's losses and gradients against the published ones, and what a step learns however its batch is cut."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import group, read_golden
from safetensors.torch import load_file
from tiny_tacotron2 import one_of, published, tacotron2_objective, tiny_batch, tiny_network, without_dropout
from torch import Tensor, nn
from toy import split, toy_engine

from common.data.batch import join_batches
from tacotron2.data_function import Tacotron2Batch
from tacotron2.loss_function import sums_of_errors
from tacotron2.model import Tacotron2, TrainingOutput

FOLDER = "tacotron2"
PHASE = "tacotron2"
SIZES = [(5, 9), (11, 20), (2, 4), (8, 14)]


@pytest.fixture
def case(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "tacotron2_forward.safetensors")


def golden_batch(case: dict[str, Tensor]) -> Tacotron2Batch:
    given = group(case, "input")
    names = ("",) * len(given["input_lengths"])
    return Tacotron2Batch(
        names, given["text_padded"], given["input_lengths"], given["mel_padded"], given["output_lengths"]
    )


def golden_output(case: dict[str, Tensor], name: str) -> TrainingOutput:
    """Stored outputs of a golden; the alignments have no part in the loss."""
    out = group(case, name)
    return TrainingOutput(out["mel_outputs"], out["mel_outputs_postnet"], out["gate_outputs"], torch.empty(0))


def published_means(out: TrainingOutput, batch: Tacotron2Batch) -> dict[str, float]:
    """Plain means over everything, padding included, by the objective for the original's training."""
    objective = tacotron2_objective(mask_padding=False)
    sums = sums_of_errors(out, batch, mask_padding=False)
    return {name: float(total / objective.counts(PHASE, batch)[name]) for name, total in sums.items()}


@pytest.mark.parametrize(
    ("stored", "outputs"),
    [("mask_padding_true", "output"), ("mask_padding_false", "nomask"), ("prenet_masks", "masked_output")],
)
def test_losses_equal_the_published_ones(folder: Path, case: dict[str, Tensor], stored: str, outputs: str):
    expected = read_golden(folder / "tacotron2_forward.json", "loss", stored)
    means = published_means(golden_output(case, outputs), golden_batch(case))
    assert means["mel_loss"] == pytest.approx(expected["mel"], rel=1e-5)
    assert means["mel_postnet_loss"] == pytest.approx(expected["mel_postnet"], rel=1e-5)
    assert means["gate_loss"] == pytest.approx(expected["gate"], rel=1e-5)
    assert sum(means.values()) == pytest.approx(expected["total"], rel=1e-5)


def test_masked_losses_are_the_published_sums_over_the_valid_elements_alone(folder: Path, case: dict[str, Tensor]):
    expected = read_golden(folder / "tacotron2_forward.json", "loss", "mask_padding_true")
    batch = golden_batch(case)
    objective = tacotron2_objective()
    sums = sums_of_errors(golden_output(case, "output"), batch, mask_padding=True)
    counts = objective.counts(PHASE, batch)
    everything = batch.mels.size(0) * batch.mels.size(2)
    share = everything / int(batch.mel_lengths.sum())
    for name, stored in (("mel_loss", "mel"), ("mel_postnet_loss", "mel_postnet"), ("gate_loss", "gate")):
        assert float(sums[name] / counts[name]) == pytest.approx(expected[stored] * share, rel=1e-5)


def test_gradient_norms_and_batch_statistics_equal_the_published_ones(folder: Path, case: dict[str, Tensor]):
    expected = read_golden(folder / "tacotron2_forward.json", "loss", "train_no_dropout")
    network, batch = without_dropout(published(folder, mask_padding=False)).train(), golden_batch(case)
    objective = tacotron2_objective(mask_padding=False)
    sums = objective.numerators(PHASE, {"tacotron2": network}, batch)
    counts = objective.counts(PHASE, batch)
    loss = sum(total / counts[name] for name, total in sums.items())
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected["total"], rel=1e-5)
    norms = {name: float(parameter.grad.norm()) for name, parameter in network.named_parameters()}
    assert set(norms) == set(expected["grad_norms"])
    for name, norm in expected["grad_norms"].items():
        assert norms[name] == pytest.approx(norm, rel=1e-3, abs=2e-6), name
    state = network.state_dict()
    for name, value in group(case, "train.bn_after").items():
        torch.testing.assert_close(state[name], value, atol=1e-5, rtol=1e-5)


def test_masked_training_gives_gradients_that_padding_has_no_part_in():
    network = without_dropout(tiny_network()).train()
    _freeze_batch_norm(network)
    objective, batch = tacotron2_objective(), tiny_batch(SIZES)
    longer = replace(
        batch, tokens=torch.nn.functional.pad(batch.tokens, (0, 3)), mels=torch.nn.functional.pad(batch.mels, (0, 5))
    )
    gradients = []
    for given in (batch, longer):
        network.zero_grad()
        sum(objective.numerators(PHASE, {"tacotron2": network}, given).values()).backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in network.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(
            gradients[1][name], gradient, atol=1e-3, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
        )


def _freeze_batch_norm(network: Tacotron2) -> None:
    """Let batch norm use its running statistics, the one thing in which utterances of a micro-batch touch."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()


def _train(cut: tuple[int, ...], *, frozen: bool, n_steps: int = 2, guide: float = 0.0) -> dict[str, Tensor]:
    """Weights after steps on batches of four utterances, cut into micro-batches of these sizes."""
    objective = tacotron2_objective(guided_attention_weight=guide)
    network = without_dropout(tiny_network()).train()
    if frozen:
        _freeze_batch_norm(network)
    engine = toy_engine({"tacotron2": network}, objective=objective, optimizer="lamb", learning_rate=0.02)
    for step in range(n_steps):
        whole = tiny_batch(SIZES, seed=step)
        rows = [one_of(whole, row) for row in range(len(SIZES))]
        engine.step([join_batches(part) for part in split(rows, cut)], epoch=1)
    return {name: value.clone() for name, value in network.state_dict().items()}


@pytest.mark.parametrize(("cut", "guide"), [((1, 1, 1, 1), 0.0), ((3, 1), 0.0), ((2, 2), 1.0)])
def test_what_a_step_learns_does_not_depend_on_how_the_batch_is_cut_but_for_batch_norm(
    cut: tuple[int, ...], guide: float
):
    whole, parts = _train((4,), frozen=True, guide=guide), _train(cut, frozen=True, guide=guide)
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, atol=2e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def test_validation_reports_losses_and_figures_of_attention_as_means_over_all_utterances():
    network, batch = tiny_network(), tiny_batch(SIZES)
    objective = tacotron2_objective()
    engine = toy_engine({"tacotron2": network}, objective=objective)
    rows = [one_of(batch, row) for row in range(len(SIZES))]
    together, apart = engine.evaluate([batch]), engine.evaluate(rows)
    assert set(together) == {"mel_loss", "mel_postnet_loss", "gate_loss", "attention_diagonality", "attention_focus"}
    for name, value in together.items():
        assert apart[name] == pytest.approx(value, abs=1e-4), name
    assert 0 < together["attention_focus"] <= 1


def test_guided_attention_draws_attention_to_the_diagonal_and_stands_in_the_log():
    network = without_dropout(tiny_network()).train()
    _freeze_batch_norm(network)
    batch = tiny_batch(SIZES)
    objective = tacotron2_objective(guided_attention_weight=50.0)
    engine = toy_engine({"tacotron2": network}, objective=objective, optimizer="adam", learning_rate=0.01)
    before = engine.evaluate([batch])
    for _ in range(40):
        engine.step([batch], epoch=1)
    after = engine.evaluate([batch])
    assert after["guided_attention_loss"] < 0.7 * before["guided_attention_loss"]
    assert after["attention_diagonality"] > before["attention_diagonality"] + 0.1
