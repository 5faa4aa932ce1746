"""WaveGlow's network agrees with the published one and inverts itself, and its training does not depend on the cut."""

from pathlib import Path

import pytest
import torch
from golden_files import audio_config, group, listed, read_case, read_golden
from safetensors.torch import load_file
from tiny_models import logged, without_samples
from tiny_waveglow import (
    HOP,
    OBJECTIVE,
    OPTIONS,
    SMALL_HOP,
    golden_config,
    golden_network,
    golden_noise,
    segments,
    small_network,
)
from torch import nn
from toy import toy_engine
from training_setup import parsed, set_up

import train
from common.audio.denoiser import BIAS_FRAMES, Denoiser
from common.audio.wav import load_wav
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.data.recordings import input_mel_extractor
from common.errors import InputError, OptionError
from waveglow.loss_function import likelihood_sum
from waveglow.model import Invertible1x1Conv, ModelConfig, WaveGlow
from waveglow.training_setup import model_config

FULL_SIZE = "waveglow/full_size_state_dicts.json"
INFERENCES = [(case["index"], case["sigma"]) for case in listed("waveglow/waveglow_infer.json", "cases")]
PASSES = listed("waveglow/waveglow_forward.json", "cases")
INDICES = [case["index"] for case in PASSES]
LOSSES = [
    (sigma.removeprefix("sigma_"), case["index"]) for case in PASSES for sigma in case if sigma.startswith("sigma_")
]


@pytest.fixture
def folder(goldens: Path) -> Path:
    return goldens / "waveglow"


def prepared(folder: Path) -> WaveGlow:
    """The small published network with weights as they are published for inference."""
    network = golden_network(folder)
    network.prepare_for_inference()
    network.load_state_dict(group(load_file(folder / "waveglow_model.safetensors"), "state_dict_removed"))
    return network


@pytest.mark.parametrize("form", [golden_network, prepared])
@pytest.mark.parametrize("index", INDICES)
@torch.no_grad()
def test_the_flows_equal_the_published_ones(folder: Path, form, index: int):
    tensors = load_file(folder / "waveglow_forward.safetensors")
    network = form(folder)
    out = network(tensors[f"input.mel{index}"], tensors[f"input.audio{index}"])
    torch.testing.assert_close(out.z, tensors[f"output.{index}.z"], atol=1e-5, rtol=0)
    assert len(out.log_s) == len(out.log_det) == len(network.WN)
    for flow, (log_s, log_det) in enumerate(zip(out.log_s, out.log_det)):
        torch.testing.assert_close(log_s, tensors[f"output.{index}.log_s.{flow}"], atol=1e-5, rtol=0)
        torch.testing.assert_close(log_det, tensors[f"output.{index}.log_det_W.{flow}"], atol=0, rtol=1e-5)


@pytest.mark.parametrize(("sigma", "index"), LOSSES)
@torch.no_grad()
def test_the_loss_equals_the_published_one_however_often_it_is_computed(folder: Path, index: int, sigma: str):
    about, tensors = read_case(folder, "waveglow_forward")
    out = golden_network(folder)(tensors[f"input.mel{index}"], tensors[f"input.audio{index}"])
    for _ in range(2):
        loss = likelihood_sum(out, sigma=float(sigma)) / out.z.numel()
        assert float(loss) == pytest.approx(about["cases"][index][f"sigma_{sigma}"], rel=1e-5)


def test_the_gradients_have_the_published_norms(folder: Path):
    about, tensors = read_case(folder, "waveglow_forward")
    network = golden_network(folder)
    out = network(tensors["input.mel0"], tensors["input.audio0"])
    (likelihood_sum(out, sigma=1.0) / out.z.numel()).backward()
    norms = {name: float(parameter.grad.norm()) for name, parameter in network.named_parameters()}
    assert norms == pytest.approx(about["grad_norms_case0_sigma1"], rel=1e-4)


@pytest.mark.parametrize("form", [golden_network, prepared])
@pytest.mark.parametrize(("index", "sigma"), INFERENCES)
def test_the_sound_of_given_noise_equals_the_published_one(folder: Path, form, index, sigma):
    tensors = load_file(folder / "waveglow_infer.safetensors")
    network, mel, z = form(folder), tensors[f"input.mel{index}"], sigma * golden_noise(tensors, index)
    audio = network.inverse(mel, z)
    torch.testing.assert_close(audio, tensors[f"output.audio{index}"], atol=3e-5, rtol=0)
    torch.testing.assert_close(network(mel, audio).z, z, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", listed("waveglow/invertible_conv.json", "cases"))
@torch.no_grad()
def test_the_invertible_convolution_equals_the_published_one(folder: Path, name: str):
    tensors = group(load_file(folder / "invertible_conv.safetensors"), name)
    conv = Invertible1x1Conv(tensors["z"].size(1))
    conv.load_state_dict({"conv.weight": tensors["weight"]})
    y = conv(tensors["z"])
    torch.testing.assert_close(y, tensors["y"], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(conv.inverted()[:, :, None], tensors["W_inverse"], atol=1e-5, rtol=1e-5)
    for kept in (None, conv.inverted()):
        conv.kept_inverse = kept
        torch.testing.assert_close(conv(y, inverse=True), tensors["infer_of_y"], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("factor", [-1.0, 0.0, float("nan")])
def test_a_determinant_that_is_not_positive_ends_training_in_one_line_that_says_so(factor: float):
    networks = {"waveglow": small_network()}
    engine = toy_engine(networks, objective=OBJECTIVE)
    engine.finish(engine.step([segments(2)], epoch=1))
    with torch.no_grad():
        networks["waveglow"].convinv[2].conv.weight[0] *= factor
    with pytest.raises(InputError, match=r"^the determinant of flow 2's 1x1 convolution is no longer positive"):
        engine.finish(engine.step([segments(2)], epoch=1))


def listing(network: nn.Module) -> list[tuple[str, list[int]]]:
    return [(key, list(value.shape)) for key, value in network.state_dict().items()]


def published_listing(entries: dict[str, dict]) -> list[tuple[str, list[int]]]:
    return [(key, entry["shape"]) for key, entry in entries.items()]


def test_the_small_networks_state_has_the_published_names_shapes_and_order(folder: Path):
    published = read_golden(folder / "waveglow_model.json")
    network = golden_network(folder)
    assert listing(network) == published_listing(published["listing"])
    network.prepare_for_inference()
    expected = group(load_file(folder / "waveglow_model.safetensors"), "state_dict_removed")
    assert set(network.state_dict()) == set(expected)
    torch.testing.assert_close(dict(network.state_dict()), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in listed(FULL_SIZE) if name.startswith("wn_channels_")])
def test_full_size_networks_have_the_published_names_shapes_and_order(goldens: Path, name: str):
    published = read_golden(goldens / FULL_SIZE, name)
    config = golden_config(published["config"])
    assert config == ModelConfig(wn_channels=config.wn_channels)
    with torch.device("meta"):
        network = WaveGlow(config, hop_length=HOP)
    assert listing(network) == published_listing(published["weight_normed"])
    network.prepare_for_inference()
    assert dict(listing(network)) == dict(published_listing(published["removed"]))


def test_the_noise_that_the_denoiser_subtracts_is_the_published_one(folder: Path):
    about, tensors = read_case(folder, "denoiser")
    config, audio = golden_config(about["config"]), audio_config(about["parameters"])
    network = WaveGlow(config, hop_length=HOP)
    network.prepare_for_inference()
    # The upsampling's weights meet mels of zeros alone, and are not stored.
    state = {"upsample.weight": network.upsample.weight} | group(tensors, "state_dict_removed")
    network.load_state_dict(state)
    network.prepare_for_inference()
    noise = network.infer(torch.zeros(1, config.n_mel_channels, BIAS_FRAMES), sigma=about["parameters"]["sigma"])
    torch.testing.assert_close(noise, tensors["output.bias_audio"], atol=1e-5, rtol=0)
    assert about["strengths"]
    for strength in about["strengths"]:
        denoiser = Denoiser(noise[0], audio, strength=strength)
        torch.testing.assert_close(denoiser.bias, tensors["output.bias_spec"][0, :, 0], atol=5e-4, rtol=0)
        denoised = denoiser(tensors["input.audio"])
        torch.testing.assert_close(denoised, tensors[f"output.denoised_{strength}"][:, 0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("changes", [{}, {"n_group": 8, "n_early_every": 1}, {"n_early_every": 9}])
@torch.no_grad()
def test_sound_comes_back_from_its_noise(changes: dict):
    network = small_network(**changes)
    mel, audio = torch.randn(2, 6, 9), 0.3 * torch.randn(2, 9 * SMALL_HOP)
    out = network(mel, audio)
    assert out.z.shape == (2, network.config.n_group, audio.size(1) // network.config.n_group)
    assert not torch.allclose(out.z.transpose(1, 2).flatten(1), audio, atol=0.05)
    torch.testing.assert_close(network.inverse(mel, out.z), audio, atol=1e-5, rtol=0)


CPU = torch.device("cpu")
RATE = 22050  # Hz


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> list[str]:
    """Options of train.py that name lists of eight real clips."""
    clips, folder = shared_data / "LJSpeech-sample", tmp_path_factory.mktemp("lists")
    names = [f"wavs/{path.name}\n" for path in sorted((clips / "wavs").glob("*.wav"))[:8]]
    (folder / "train.txt").write_text("".join(names[2:]))
    (folder / "val.txt").write_text("".join(names[:2]))
    lists = ["--training-files", str(folder / "train.txt"), "--validation-files", str(folder / "val.txt")]
    return ["-d", str(clips), *lists]


def run_train(lists: list[str], output: Path, *extra: str) -> int:
    rest = ["-bs", "3", "-lr", "2e-3", "--n-mel-channels", "20"]
    with without_samples():
        return train.main(["-o", str(output), *lists, *OPTIONS, *rest, *extra])


@pytest.fixture(scope="module")
def run(lists: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a run of 6 epochs of two updates that nothing interrupts."""
    output = tmp_path_factory.mktemp("run")
    assert run_train(lists, output, "--epochs", "6") == 0
    return output


def test_the_loss_on_real_clips_falls(run: Path):
    for name in ("avg_train_loss", "val_loss"):
        values = logged(run, name)
        assert len(values) == 6
        assert values[-1] < values[0] - 0.4


def test_a_trained_network_returns_a_real_clip_from_its_noise(run: Path, lists: list[str]):
    networks, config = load_networks(load_checkpoint(run / "WaveGlow_checkpoint_6.pt"), device=CPU)
    assert config == ModelConfig(n_mel_channels=20, n_flows=4, n_early_every=2, wn_layers=2, wn_channels=16)
    clip = next((Path(lists[1]) / "wavs").glob("*.wav"))
    audio = load_wav(clip, sampling_rate=RATE, n_samples=128 * 256)[None]
    mel = input_mel_extractor(AudioConfig(n_mels=20))(audio)[:, :, :128]
    for prepares in (False, True):
        if prepares:
            networks["waveglow"].prepare_for_inference()
        with torch.no_grad():
            z = networks["waveglow"](mel, audio).z
        torch.testing.assert_close(networks["waveglow"].inverse(mel, z), audio, atol=1e-4, rtol=0)


def parse(*options: str):
    """Arguments and what training takes of them."""
    words = ["-m", "WaveGlow", "-o", "out", "--training-files", "a", "--validation-files", "b", *options]
    return parsed(words), set_up(*words)


def test_the_defaults_are_the_published_recipe():
    args, settings = parse()
    assert (args.epochs, args.batch_size, args.epochs_per_checkpoint) == (1001, 4, 50)
    assert (args.segment_length, args.sigma, args.grad_clip_thresh) == (8000, 1.0, float("inf"))
    assert (args.optimizer, args.learning_rate, args.weight_decay) == ("adam", 1e-4, 0.0)
    assert settings.audio == AudioConfig()
    assert model_config(settings.options, settings.audio, None, base=None) == ModelConfig()
    assert (settings.optimization.betas, settings.optimization.eps) == ((0.9, 0.999), 1e-8)
    assert {settings.optimization.schedule(*when) for when in ((1, 1), (100000, 999))} == {1e-4}
    with pytest.raises(OptionError, match=r"^--segment-length 512: .* 513 samples$"):
        parse("--segment-length", "512")
