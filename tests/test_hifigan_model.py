"""HiFi-GAN's networks agree with the published ones, and an utterance does not depend on its batch."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import group, listed, read_case, read_golden, series
from hifigan_goldens import GENERATORS, formula_weights, generator_case, model_config
from torch import Tensor, nn

from common.config import AudioConfig
from common.nn.discriminators import MultiPeriodDiscriminator, MultiScaleDiscriminator
from hifigan.config import PRESETS, ModelConfig
from hifigan.model import Generator, RowConvTranspose, build_networks, to_torchscript

FOLDER = "hifigan"
SMALL = ModelConfig(
    n_mel_channels=6,
    upsample_rates=(4, 2),
    upsample_kernel_sizes=(8, 6),
    upsample_initial_channel=16,
    resblock_kernel_sizes=(3, 5),
    resblock_dilation_sizes=((1, 3), (1, 2)),
)
SMALL_2 = replace(SMALL, resblock="2")


def record(generator: Generator, mel: Tensor) -> dict[str, Tensor]:
    """Intermediate results of a forward pass, by the goldens' names."""
    found = {}

    def keep(name: str) -> Callable:
        return lambda module, inputs, output: found.update({name: output[:1, :, 0].clone()})

    modules = {"conv_pre": generator.conv_pre, "conv_post": generator.conv_post}
    modules |= {f"up{index}": module for index, module in enumerate(generator.ups)}
    modules |= {f"stage{index}": module for index, module in enumerate(generator.resblocks)}
    hooks = [module.register_forward_hook(keep(name)) for name, module in modules.items()]
    generator(mel)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("form", ["state_dict", "state_dict_removed"])
@pytest.mark.parametrize("name", GENERATORS)
@torch.inference_mode()
def test_the_generator_equals_the_published_one(folder: Path, name: str, form: str):
    generator, tensors = generator_case(folder, name)
    if form == "state_dict_removed":  # weights as they are published for inference, into a network made for it
        generator = Generator(model_config(read_golden(folder / f"{name}.json", "config")))
        generator.prepare_for_inference()
        generator.load_state_dict(group(tensors, form))
    for mel, expected in zip(series(tensors, "input.mel"), series(tensors, "output.wav"), strict=True):
        wave = generator(mel)
        torch.testing.assert_close(wave, expected.squeeze(1), atol=2e-5, rtol=0)
        assert torch.equal(generator.infer(mel), wave)
    steps = group(tensors, "inter")
    assert len(steps) == 2 + 2 * len(generator.ups)
    n_stored = max(step.size(-1) for step in steps.values())  # longer ones are cut
    found = {key: step[..., :n_stored] for key, step in record(generator, tensors["input.mel0"]).items()}
    torch.testing.assert_close(found, steps, atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", GENERATORS)
@torch.inference_mode()
def test_a_trained_generator_prepared_for_inference_has_the_published_folded_weights(folder: Path, name: str):
    generator, tensors = generator_case(folder, name)
    before = generator(tensors["input.mel0"])
    generator.prepare_for_inference()
    torch.testing.assert_close(generator(tensors["input.mel0"]), before, atol=1e-6, rtol=0)
    expected = group(tensors, "state_dict_removed")
    assert set(generator.state_dict()) == set(expected)
    torch.testing.assert_close(dict(generator.state_dict()), expected, atol=1e-6, rtol=1e-5)
    generator.prepare_for_inference()
    torch.testing.assert_close(dict(generator.state_dict()), expected, atol=1e-6, rtol=1e-5)


def listing(network: nn.Module) -> list[tuple[str, list[int]]]:
    return [(key, list(value.shape)) for key, value in network.state_dict().items()]


def expected_listing(entries: dict[str, dict]) -> list[tuple[str, list[int]]]:
    return [(key, entry["shape"]) for key, entry in entries.items()]


def n_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


FULL_SIZE = listed("hifigan/full_size_state_dicts.json")


@pytest.mark.parametrize("name", [name for name in FULL_SIZE if name.startswith("generator_")])
def test_full_size_generators_have_the_published_names_shapes_and_order(folder: Path, name: str):
    published = read_golden(folder / "full_size_state_dicts.json", name)
    config = model_config(published["config"])
    preset = PRESETS.get(name.removeprefix("generator_"))
    assert preset in (None, config)
    with torch.device("meta"):
        generator = Generator(config)
    assert listing(generator) == expected_listing(published["nvidia_training"])
    assert n_parameters(generator) == published["n_params_training"]
    generator.prepare_for_inference()
    assert listing(generator) == expected_listing(published["nvidia_removed"])
    assert n_parameters(generator) == published["n_params_removed"]


@pytest.mark.parametrize("name", ["mpd", "msd"])
def test_full_size_discriminators_have_the_published_names_shapes_and_order(folder: Path, name: str):
    published = read_golden(folder / "full_size_state_dicts.json", name)
    with torch.device("meta"):
        network = build_networks(ModelConfig(), AudioConfig(), None)[name]
    assert listing(network) == expected_listing(published["state_dict"])
    assert n_parameters(network) == published["n_params"]
    assert [key for key, _ in network.named_buffers()] == published["buffers"]


def narrow(
    pooling_padding: int, *, channel_divisor: int = 32, group_divisor: int = 4
) -> tuple[MultiPeriodDiscriminator, MultiScaleDiscriminator]:
    """Discriminators of fewer channels and groups, with at least one."""
    full = ModelConfig(msd_pooling_padding=pooling_padding)
    divisors = {"mpd_channels": channel_divisor, "msd_channels": channel_divisor, "msd_groups": group_divisor}
    divided = {key: tuple(max(n // by, 1) for n in getattr(full, key)) for key, by in divisors.items()}
    config = replace(full, **divided)
    networks = build_networks(config, AudioConfig(), None)
    return networks["mpd"].eval(), networks["msd"].eval()


@torch.inference_mode()
def test_small_discriminators_equal_the_published_ones(folder: Path):
    about, tensors = read_case(folder, "discriminators_small_and_losses")
    divisors = {key: about[key] for key in ("channel_divisor", "group_divisor")}
    for name, network in zip(("mpd", "msd"), narrow(1, **divisors)):
        network.load_state_dict(group(tensors, f"{name}_state_dict"))
        for wave, suffix in (("y", "r"), ("y_hat", "g")):
            output = network(tensors[f"input.{wave}"])
            expected = group(tensors, f"output.{name}")
            scores = {f"y_d_{suffix}.{part}": value for part, value in enumerate(output.scores)}
            features = {
                f"fmap_{suffix}.{part}.{layer}": value
                for part, values in enumerate(output.features)
                for layer, value in enumerate(values)
            }
            found = scores | features
            assert set(found) == {key for key in expected if f"_{suffix}." in key}
            torch.testing.assert_close(found, {key: expected[key] for key in found}, atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def full_msd(goldens: Path) -> tuple[MultiScaleDiscriminator, dict, dict[str, Tensor]]:
    """The multi-scale discriminator of full size, and its published numbers."""
    network, published, tensors = load_full(goldens / "hifigan", "msd", "msd_nvidia")
    return network, published, tensors


def load_full(folder: Path, name: str, case: str) -> tuple[nn.Module, dict, dict[str, Tensor]]:
    about, tensors = read_case(folder, "discriminators_full")
    published = about["models"]
    with torch.device("meta"):
        network = build_networks(ModelConfig(), AudioConfig(), None)[name]
    weights = formula_weights(published[case]["parameters"])
    if name == "msd":
        weights |= group(tensors, "spectral")
    network.load_state_dict(weights, assign=True)
    return network.eval(), published, tensors


def check_full(network: nn.Module, tensors: dict[str, Tensor], case: str) -> None:
    for wave, suffix in (("y", "r"), ("y_hat", "g")):
        output = network(tensors[f"input.{wave}"])
        expected = group(tensors, f"output.{case}.y_d_{suffix}")
        assert len(output.scores) == len(expected)
        for part, scores in enumerate(output.scores):
            torch.testing.assert_close(scores, expected[str(part)], atol=1e-5, rtol=0)


@torch.inference_mode()
def test_the_full_size_multi_period_discriminator_equals_the_published_one(folder: Path):
    network, _, tensors = load_full(folder, "mpd", "mpd")
    check_full(network, tensors, "mpd")


@pytest.mark.parametrize(("case", "pooling_padding"), [("msd_nvidia", 1), ("msd_jik876", 2)])
@torch.inference_mode()
def test_the_full_size_multi_scale_discriminator_equals_both_published_ones(full_msd, case: str, pooling_padding: int):
    network, _, tensors = full_msd
    network.pooling_padding = pooling_padding
    check_full(network, tensors, case)


@torch.inference_mode()
def test_advancing_spectral_norm_equals_what_the_published_one_does_in_its_forward_passes(full_msd):
    network, published, tensors = full_msd
    network = copy.deepcopy(network).train()
    network.pooling_padding = 1
    expected = published["msd_nvidia"]["train_mode_one_forward"]
    for wave, name in (("y", "y_d_r0_stats"), ("y_hat", "y_d_g0_stats")):  # the original made an iteration a pass
        network.advance_spectral_norm()
        scores = network(tensors[f"input.{wave}"]).scores[0]
        torch.testing.assert_close(scores.flatten()[:16], torch.tensor(expected[name]["first"]), atol=1e-5, rtol=0)
        assert scores.mean().item() == pytest.approx(expected[name]["mean"], abs=1e-6)
    buffers = dict(network.named_buffers())
    torch.testing.assert_close(buffers, group(tensors, "spectral_after_train_forward"), atol=1e-5, rtol=0)


def seeded_generator(config: ModelConfig) -> Generator:
    torch.manual_seed(7)
    return Generator(config).eval()


def loud(generator: Generator) -> Generator:
    """The same with weights that make sound about as loud as speech: fresh ones hardly make any."""
    with torch.no_grad():
        for name, parameter in generator.named_parameters():
            if name.endswith("weight_g"):
                parameter.mul_(1.55)
    return generator


@pytest.mark.parametrize("scripted", [False, True])
@pytest.mark.parametrize("config", [SMALL, SMALL_2])
@torch.inference_mode()
def test_an_utterance_in_a_batch_equals_itself_alone_whatever_is_in_the_padding(config: ModelConfig, scripted: bool):
    generator = loud(seeded_generator(config))
    generator.prepare_for_inference()
    speaker = to_torchscript(generator) if scripted else generator
    lengths = torch.tensor([9, 1, 14, 5])
    mel = torch.randn(4, 6, 14, generator=torch.Generator().manual_seed(3))
    for row, length in enumerate(lengths.tolist()):
        mel[row, :, length:] = torch.nan if row % 2 else 30.0
    waves = speaker.infer(mel, lengths)
    assert waves.shape == (4, 14 * 8)
    for row, length in enumerate(lengths.tolist()):
        alone = generator.infer(mel[row : row + 1, :, :length])[0]
        assert alone.abs().max() > 0.02
        torch.testing.assert_close(waves[row, : length * 8], alone, atol=1e-6, rtol=0)
        assert torch.equal(waves[row, length * 8 :], torch.zeros((14 - length) * 8))


@pytest.mark.parametrize("rate", [2, 4, 8])
@pytest.mark.parametrize("width", [1, 4, 8, 12, 16, 32])
def test_gradients_of_upsampling_in_bfloat16_are_those_of_float32(width: int, rate: int):
    """On processors with AMX, oneDNN's bfloat16 gives noise in place of the gradient of narrow layers' input."""
    torch.manual_seed(0)
    layer = RowConvTranspose(2 * width, width, 2 * rate, rate, rate // 2)
    x = torch.randn(2, 2 * width, 1, 16).contiguous(memory_format=torch.channels_last).requires_grad_()
    target = torch.randn(2, width, 1, 16 * rate)
    gradients = {}
    for half in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = (layer(x.bfloat16() if half else x).float() * target).sum()
        (gradients[half],) = torch.autograd.grad(loss, [x])
    difference = gradients[True] - gradients[False]
    assert difference.norm() < 0.02 * gradients[False].norm()  # roundings of 2**-9 each
