"""Jasper's losses are the published ones, its updates those of the global batch, and validation shows transcripts."""

from pathlib import Path

import pytest
import torch
from golden_files import read_case
from tiny_jasper import CASES, FORMS, golden_network, part, small_network, targets, tiny_engine, utterances

from common.recognition.recognizer import error_counts
from common.training.objective import Networks
from jasper.augmentation import Augmentation, CutoutAugment, SpecAugment
from jasper.loss_function import JasperObjective, transcript_losses
from jasper.model import JasperOutput

FOLDER = "jasper"
LENGTHS = [4000, 3200, 2411, 1701, 3900, 3000]
VARIED = Augmentation(
    spec_augment=SpecAugment(freq_masks=2, max_freq=4, time_masks=2, max_time=6),
    cutout_augment=CutoutAugment(masks=1, min_freq=1, max_freq=3),
)


@pytest.mark.parametrize(("form", "index"), CASES)
def test_the_losses_of_utterances_equal_the_published_ones(folder: Path, form: str, index: int):
    about, tensors = read_case(folder, form)
    case = about["cases"][index]
    out = golden_network(folder, form)(tensors[f"input.x{index}"], tensors[f"input.lens{index}"])
    batch = targets(tensors[f"input.targets{index}"], tensors[f"input.target_lens{index}"])
    losses = transcript_losses(out, batch, blank=about["blank"])
    assert losses.tolist() == pytest.approx(case["ctc_per_sample"], rel=1e-5)
    assert float(losses.detach().mean()) == pytest.approx(case["ctc_loss"], rel=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_gradients_have_the_published_norms(folder: Path, form: str):
    about, tensors = read_case(folder, form)
    network = golden_network(folder, form)
    out = network(tensors["input.x0"], tensors["input.lens0"])
    batch = targets(tensors["input.targets0"], tensors["input.target_lens0"])
    transcript_losses(out, batch, blank=about["blank"]).mean().backward()
    norms = {name: float(parameter.grad.norm()) for name, parameter in network.named_parameters()}
    assert norms == pytest.approx(about["grad_norms_eval_case0"], rel=1e-3)


def test_a_transcript_too_long_for_its_frames_has_the_published_infinite_loss(folder: Path):
    about, tensors = read_case(folder, "ctc_edge")
    blank = tensors["input.log_probs"].size(-1) - 1
    out = JasperOutput(tensors["input.log_probs"], tensors["input.input_lens"])
    losses = transcript_losses(out, targets(tensors["input.targets"], tensors["input.target_lens"]), blank=blank)
    assert losses.tolist() == pytest.approx([float(value) for value in about["per_sample"]], rel=1e-5)


def trained(
    cuts: list[list[slice]], *, augmentation: Augmentation, frozen: bool = True
) -> tuple[Networks, list[float]]:
    """Networks after updates of one global batch each, cut in these ways, and their losses."""
    networks = {"jasper": small_network()}
    if not frozen:
        networks["jasper"].train()
    engine = tiny_engine(networks, augmentation=augmentation)
    losses = []
    for seed, rows in enumerate(cuts):
        whole = utterances(LENGTHS, seed=seed, augmentation=augmentation if augmentation.n_draws > 1 else None)
        losses.append(engine.step([part(whole, one) for one in rows], epoch=1).terms["ctc_loss"])
    return networks, losses


def test_augmentation_varies_training_and_leaves_validation_alone():
    network, objective = small_network(), JasperObjective(VARIED)
    varied, plain = utterances(LENGTHS, augmentation=VARIED), utterances(LENGTHS)
    before = varied.waves.clone()
    masked = objective.features(network, varied)
    assert torch.equal(varied.waves, before)
    assert torch.equal(objective.features(network, varied).features, masked.features)
    whole = objective.features(network, plain)
    assert torch.equal(whole.features, network.features(plain.waves, plain.wave_lengths).features)
    n_masked = int(((masked.features == 0) & (whole.features != 0)).sum())
    assert 0 < n_masked < whole.features.numel() // 2 and torch.equal(masked.lengths, whole.lengths)


@torch.no_grad()
def test_validation_gives_the_loss_and_the_error_rates_of_the_whole_set():
    networks = {"jasper": small_network()}
    network, objective = networks["jasper"], JasperObjective(VARIED)
    batches = [part(utterances(LENGTHS), rows) for rows in (slice(0, 2), slice(2, 6))]
    figures = tiny_engine(networks).evaluate(batches)
    whole = utterances(LENGTHS)
    network.eval()
    heard = network.decode(network.infer_waves(whole.waves, whole.wave_lengths))
    said = [network.labels.decode(row[:n]) for row, n in zip(whole.tokens.tolist(), whole.token_lengths.tolist())]
    errors = error_counts(said, heard)
    assert figures["wer"] == pytest.approx(100 * errors.wer) and figures["cer"] == pytest.approx(100 * errors.cer)
    sums = objective.numerators("jasper", networks, whole)["ctc_loss"]
    assert figures["ctc_loss"] == pytest.approx(float(sums) / 6, rel=1e-5)
    assert objective.total(figures, epoch=1) == figures["ctc_loss"]
