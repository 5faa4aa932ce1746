"""Harmonic against HiFi-GAN's discriminators: its losses, its phases, and runs that begin without them."""

from pathlib import Path

import pytest
import torch
from tiny_harmonic import AUDIO, harmonic_objective, parts, small_network
from tiny_models import HARMONIC, logged, without_samples
from tiny_vocoder import TINY, TINY_DISCRIMINATORS

from common.checkpoints.reading import load_checkpoint
from common.errors import CheckpointError
from common.nn.discriminators import build_discriminators
from common.training.adversarial import discriminator_loss, feature_loss, generator_loss
from common.training.objective import Networks

SWITCH = ["--adversarial", *TINY_DISCRIMINATORS]


def networks() -> Networks:
    """A small vocoder and tiny discriminators of HiFi-GAN."""
    return {"harmonic": small_network().train(), **build_discriminators(TINY)}


def test_the_losses_are_hifigans_and_weigh_against_the_mel_loss_as_there():
    objective, made = harmonic_objective(adversarial=True), networks()
    batch = parts(2, AUDIO)
    with torch.no_grad():
        sums = {phase: objective.numerators(phase, made, batch) for phase in ("discriminator", "harmonic")}
        alone = harmonic_objective().numerators("harmonic", made, batch)
        real, generated = (wave[:2].unsqueeze(1) for wave in objective.generate(made, batch))
        outputs = [[made[name](wave) for wave in (real, generated)] for name in ("mpd", "msd")]
    pairs = [pair for both in outputs for pair in zip(*(output.scores for output in both), strict=True)]
    features = [pair for both in outputs for pair in zip(*(output.features for output in both), strict=True)]
    expected = {
        "d_loss": sum(discriminator_loss(*pair) for pair in pairs),
        "adversarial_loss": sum(generator_loss(score) for _, score in pairs),
        "feature_loss": 2 * sum(feature_loss(*pair) for pair in features),
    }
    found = {**sums["discriminator"], **sums["harmonic"]}
    for name, mean in expected.items():
        torch.testing.assert_close(found.pop(name), mean * 2)  # segments
    torch.testing.assert_close(found, alone)
    weights = objective.weights("harmonic", epoch=1)
    ratios = [weights[name] / weights["mel_loss"] for name in ("adversarial_loss", "feature_loss")]
    assert ratios == pytest.approx([1 / 45] * 2)  # section 2.4 of arXiv:2010.05646, where 2 is in the value


def test_the_discriminators_teach_the_filter_and_not_the_pitch_network():
    made, objective = networks(), harmonic_objective(adversarial=True)
    sums = objective.numerators("harmonic", made, parts(2, AUDIO))
    (sums["adversarial_loss"] + sums["feature_loss"]).backward()
    assert all(parameter.grad is None for parameter in made["harmonic"].pitch.parameters())
    assert all(parameter.grad.abs().max() > 0 for parameter in made["harmonic"].filter.parameters())


def test_a_training_without_them_continues_with_new_discriminators(corpora: Path, tmp_path: Path):
    with without_samples():
        assert HARMONIC.train(corpora, tmp_path, "--epochs", "1") == 0
        plain = load_checkpoint(HARMONIC.checkpoint(tmp_path, 1))
        assert list(plain.networks) == ["harmonic"] and logged(tmp_path, "train_d_loss") == []
        assert HARMONIC.train(corpora, tmp_path, "--epochs", "2", "--resume", *SWITCH) == 0
        out = (tmp_path / "stdout.txt").read_text()
        # Further runs need not repeat the widths.
        assert HARMONIC.train(corpora, tmp_path, "--epochs", "3", "--resume", "--adversarial") == 0
    assert "1.pt holds the harmonic alone: mpd and msd begin with new weights" in out
    assert "1.pt holds no state of the optimizer of discriminator, which begins anew" in out
    for epoch in (2, 3):
        checkpoint = load_checkpoint(HARMONIC.checkpoint(tmp_path, epoch))
        assert list(checkpoint.networks) == ["harmonic", "mpd", "msd"] and list(checkpoint.ema) == ["harmonic"]
        assert checkpoint.training["iteration"] == epoch * plain.training["iteration"]
        steps = {int(state["step"]) for state in checkpoint.training["optimizers"]["harmonic"]["states"].values()}
        assert steps == {checkpoint.training["iteration"]}
    with pytest.raises(CheckpointError, match=r"its optimizers are of .*discriminator.*; give the run's options"):
        HARMONIC.train(corpora, tmp_path, "--epochs", "4", "--resume")
    with pytest.raises(CheckpointError, match=r"does not fit: discriminators.mpd_periods: \[2, 3\] .*, \[2, 5\] "):
        HARMONIC.train(corpora, tmp_path, "--epochs", "4", "--resume", "--adversarial", "--mpd-periods", "2", "5")
