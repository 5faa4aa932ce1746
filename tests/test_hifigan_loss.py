"""HiFi-GAN's losses and its adversarial step, against numbers of the original and against slower ways."""

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from golden_files import group, read_case, read_golden, series
from hifigan_goldens import formula_weights, generator_case
from safetensors.torch import load_file
from tiny_vocoder import ALIGNED, cut, hifigan_objective, segments, tiny_networks, vocoder_engine
from torch import Tensor, nn
from toy import weights

from common.nn.discriminators import DiscriminatorOutput, MultiScaleDiscriminator, SpectralNormConv1d
from common.training.adversarial import discriminator_loss, feature_loss, generator_loss
from common.training.engine import StepResult
from common.training.objective import Networks
from hifigan.config import ModelConfig
from hifigan.data_function import HifiganBatch
from hifigan.loss_function import HifiganObjective
from hifigan.model import Generator, build_networks


@pytest.mark.parametrize("name", ["mpd", "msd"])
def test_losses_equal_the_originals(name: str, goldens: Path):
    folder = goldens / "hifigan"
    about, tensors = read_case(folder, "discriminators_small_and_losses")
    expected = about["losses"][name]
    parts = range(len(expected["generator_losses"]))
    real = [tensors[f"output.{name}.y_d_r.{part}"] for part in parts]
    made = [tensors[f"output.{name}.y_d_g.{part}"] for part in parts]
    of_generator = [generator_loss(scores).item() for scores in made]
    assert of_generator == pytest.approx(expected["generator_losses"], rel=1e-5)
    assert sum(of_generator) == pytest.approx(expected["generator_loss"], rel=1e-5)
    of_discriminator = [discriminator_loss(*pair).item() for pair in zip(real, made)]
    halves = zip(expected["discriminator_real_losses"], expected["discriminator_generated_losses"])
    assert of_discriminator == pytest.approx([sum(pair) for pair in halves], rel=1e-5)
    assert sum(of_discriminator) == pytest.approx(expected["discriminator_loss"], rel=1e-5)
    distance = 0.0
    for part in parts:
        layers = range(len(group(tensors, f"output.{name}.fmap_r.{part}")))
        maps = [[tensors[f"output.{name}.{kind}.{part}.{layer}"] for layer in layers] for kind in ("fmap_r", "fmap_g")]
        distance += feature_loss(*maps).item()
    assert 2 * distance == pytest.approx(expected["feature_loss"], rel=1e-5)


class AdvancingMsd(MultiScaleDiscriminator):
    """Makes a power iteration in every forward pass of training, as the original does."""

    def forward(self, wave: Tensor) -> DiscriminatorOutput:
        for module in self.modules():
            if isinstance(module, SpectralNormConv1d):
                # New buffers: the graph of the pass before still needs the old ones.
                module.weight_u, module.weight_v = module.weight_u.clone(), module.weight_v.clone()
        super().advance_spectral_norm()
        return super().forward(wave)

    def advance_spectral_norm(self) -> None:
        """Nothing: the passes do it."""


class Steps(NamedTuple):
    """What some updates did."""

    results: list[StepResult]
    norms: list[dict[str, float]]  # of the gradients of each network and of each of the generator's parameters
    generator: dict[str, Tensor]


def golden_start(folder: Path) -> Networks:
    """The networks that the golden's iterations begin with."""
    published = read_golden(folder / "discriminators_full.json", "models")
    with torch.device("meta"):
        networks = build_networks(ModelConfig(msd_pooling_padding=1), ALIGNED, None)
    networks["generator"] = first_generator(folder)
    networks["mpd"].load_state_dict(formula_weights(published["mpd"]["parameters"]), assign=True)
    spectral = group(load_file(folder / "discriminators_full.safetensors"), "spectral")
    weights = formula_weights(published["msd_nvidia"]["parameters"]) | spectral
    networks["msd"].load_state_dict(weights, assign=True)
    return networks


def first_generator(folder: Path) -> Generator:
    """The generator that the golden's iterations begin with."""
    name = read_golden(folder / "train_step.json", "generator_initial").split(".")[0]
    return generator_case(folder, name)[0]


@pytest.fixture(scope="module")
def as_published(goldens: Path) -> Steps:
    """The golden's two iterations by our engine, with power iterations of spectral norm as often as the original."""
    folder = goldens / "hifigan"
    networks = golden_start(folder)
    networks["msd"].__class__ = AdvancingMsd
    about, inputs = read_case(folder, "train_step")
    settings = re.search(r"lr (\S+) betas \((\S+), (\S+)\) eps (\S+) weight_decay (\S+)", about["optimizer"])
    rate, *betas, eps, decay = map(float, settings.groups())
    recipe = {"learning_rate": rate, "betas": tuple(betas), "eps": eps, "weight_decay": decay}
    engine = vocoder_engine({name: network.train() for name, network in networks.items()}, **recipe)
    norms: list[dict[str, float]] = []

    def note(*names: str) -> None:
        for name in names:
            gradients = {key: p.grad for key, p in networks[name].named_parameters()}
            norms[-1][name] = torch.nn.utils.get_total_norm(gradients.values()).item()
            if name == "generator":
                norms[-1] |= {key: gradient.norm().item() for key, gradient in gradients.items()}

    engine.optimizers["discriminator"].register_step_pre_hook(lambda *_: note("mpd", "msd"))
    engine.optimizers["generator"].register_step_pre_hook(lambda *_: note("generator"))
    results = []
    for audio, mels in zip(series(inputs, "input.audio"), series(inputs, "input.mel"), strict=True):
        norms.append({})
        lengths = torch.full((len(audio),), audio.size(2))
        batch = HifiganBatch(("",) * len(audio), audio[:, 0], lengths, ALIGNED.hop_length, mels)
        results.append(engine.step([batch], epoch=1))
    return Steps(results, norms, dict(networks["generator"].state_dict()))


def expected_terms(step: dict[str, float]) -> dict[str, float]:
    return {
        "d_loss": step["loss_disc_all"],
        "g_loss": step["loss_gen_all"],
        "adversarial_loss": step["loss_gen_mpd"] + step["loss_gen_msd"],
        "feature_loss": step["loss_fm_mpd"] + step["loss_fm_msd"],
        "mel_loss": step["loss_mel_x45"],
    }


def test_two_adversarial_updates_equal_the_originals(as_published: Steps, goldens: Path):
    steps = read_golden(goldens / "hifigan" / "train_step.json", "steps")
    for step, result, norms in zip(steps, as_published.results, as_published.norms, strict=True):
        assert result.terms == pytest.approx(expected_terms(step), rel=1e-4)
        assert norms["mpd"] == pytest.approx(step["grad_norm_mpd"], rel=5e-3)
        assert norms["msd"] == pytest.approx(step["grad_norm_msd"], rel=5e-3)
        assert norms["generator"] == pytest.approx(step["grad_norm_gen"], rel=5e-3)
        assert result.grad_norms["generator"] == pytest.approx(step["grad_norm_gen"], rel=5e-3)
        both = (step["grad_norm_mpd"] ** 2 + step["grad_norm_msd"] ** 2) ** 0.5
        assert result.grad_norms["discriminator"] == pytest.approx(both, rel=5e-3)
        assert set(step["gen_grad_norms"]) == set(as_published.generator)
        for key, norm in step["gen_grad_norms"].items():
            assert norms[key] == pytest.approx(norm, rel=5e-3), key


def test_the_generator_after_two_updates_is_the_originals(as_published: Steps, goldens: Path):
    expected = group(load_file(goldens / "hifigan" / "train_step.safetensors"), "generator_after")
    assert set(expected) == set(as_published.generator)
    errors = torch.cat([(as_published.generator[key] - value).abs().flatten() for key, value in expected.items()])
    # AdamW makes a whole step of even the smallest gradient, so a few elements may differ by one.
    assert errors.mean() < 1e-6
    assert (errors > 2e-5).float().mean() < 1e-3


def trained(objective: HifiganObjective, sizes: tuple[int, ...], *, steps: int = 3, **options):
    """Weights and terms after some updates on 8 segments, cut into micro-batches of these sizes."""
    networks = tiny_networks()
    engine = vocoder_engine(networks, objective, **options)
    terms = [engine.step(cut(segments(8, seed=step), sizes), epoch=1).terms for step in range(steps)]
    return weights(networks), terms


def test_discriminators_can_score_both_sounds_in_one_pass():
    apart, together = (trained(hifigan_objective(concat_fwd=concat), (8,)) for concat in (False, True))
    for ours, theirs in zip(apart[1], together[1]):
        assert ours == pytest.approx(theirs, rel=1e-4)
    for key, value in apart[0].items():
        torch.testing.assert_close(together[0][key], value, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("sizes", [(8,), (2, 2, 2, 2)])
def test_spectral_norm_makes_one_power_iteration_an_update(sizes: tuple[int, ...]):
    networks, other = tiny_networks(), tiny_networks()
    engine = vocoder_engine(networks)
    other["msd"].advance_spectral_norm()
    engine.step(cut(segments(8), sizes), epoch=1)
    assert len(list(networks["msd"].buffers())) == 16
    for key, value in other["msd"].named_buffers():
        assert torch.equal(value, networks["msd"].get_buffer(key))
    other["msd"].load_state_dict(networks["msd"].state_dict())
    other["msd"].advance_spectral_norm()
    engine.step(cut(segments(8, seed=1), sizes), epoch=1)
    for key, value in other["msd"].named_buffers():
        assert torch.equal(value, networks["msd"].get_buffer(key))


@pytest.mark.parametrize("in_amp", [True, False])
def test_the_engine_computes_grouped_convolutions_in_float32_where_asked(in_amp: bool):
    networks = tiny_networks()
    networks["msd"].amp_grouped_conv = in_amp
    kinds: dict[bool, set[torch.dtype]] = {False: set(), True: set()}
    for module in networks["msd"].modules():
        if isinstance(module, nn.Conv1d):
            module.register_forward_hook(lambda m, _, out: kinds[m.groups > 1].add(out.dtype))
    engine = vocoder_engine(networks, amp_dtype=torch.bfloat16)
    result = engine.step([segments(4)], epoch=1)
    assert not result.skipped
    assert kinds == {True: {torch.bfloat16 if in_amp else torch.float32}, False: {torch.bfloat16}}
    full = trained(hifigan_objective(), (8,), steps=1)[1][0]
    half = trained(hifigan_objective(), (8,), steps=1, amp_dtype=torch.bfloat16)[1][0]
    assert half == pytest.approx(full, rel=0.03)
    assert half != full


def whole_recordings() -> list[HifiganBatch]:
    batches = [segments(1, seed=seed, size=256 * frames) for seed, frames in ((1, 9), (2, 20), (3, 14))]
    return [replace(batch, names=(f"u{index}",)) for index, batch in enumerate(batches)]


def joined(batches: list[HifiganBatch]) -> HifiganBatch:
    rows = [batch.audio[0] for batch in batches]
    return HifiganBatch(
        tuple(batch.names[0] for batch in batches),
        torch.nn.utils.rnn.pad_sequence(rows, batch_first=True),
        torch.tensor([len(row) for row in rows]),
        256,
    )


def test_validation_takes_complete_recordings_and_does_not_depend_on_batches():
    networks = tiny_networks()
    engine = vocoder_engine(networks)
    alone, batches = engine.evaluate(whole_recordings()), whole_recordings()
    assert engine.evaluate([joined(batches)]) == pytest.approx(alone, rel=1e-5)
    extractor = hifigan_objective()._loss_mel
    errors, frames = 0.0, 0
    with torch.inference_mode():
        for batch in batches:  # the loss of the paper, written plainly for one recording after the other
            wave = networks["generator"](engine.objective._input_mel(batch.audio))
            error = (extractor(wave) - extractor(batch.audio)).abs()
            errors, frames = errors + error.sum().item(), frames + error.numel()
    assert alone == {"mel_loss": pytest.approx(45 * errors / frames, rel=1e-5)}
