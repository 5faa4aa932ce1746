"""FastPitch's command line, its pitch transforms, and the table that finds its package."""

import json
from argparse import Namespace
from pathlib import Path

import pytest
import torch

import models
from common.audio.arguments import add_audio_arguments
from common.checkpoints.checkpoint import Checkpoint
from common.cli import ArgumentParser
from common.config import AudioConfig, TextConfig, to_plain
from common.errors import CheckpointError, InputError, OptionError
from common.files import write_json
from common.registry import available_models, import_package
from fastpitch.arg_parser import add_arguments, config_from_args, set_up_networks
from fastpitch.model import FastPitch, ModelConfig
from fastpitch.prosody_transforms import PitchTransform

MEAN, STD = torch.tensor(200.0), torch.tensor(50.0)
TINY = ModelConfig(
    symbols_embedding_dim=8,
    in_fft_output_size=8,
    out_fft_output_size=8,
    in_fft_n_layers=1,
    out_fft_n_layers=1,
    in_fft_conv1d_filter_size=8,
    out_fft_conv1d_filter_size=8,
    dur_predictor_filter_size=8,
    pitch_predictor_filter_size=8,
)


def parse(*argv: str) -> Namespace:
    parser = ArgumentParser()
    add_audio_arguments(parser)
    add_arguments(parser)
    return parser.parse_args(list(argv))


def test_without_options_the_published_model_is_built(goldens: Path):
    published = json.loads((goldens / "fastpitch_1_0/full_size_keys.json").read_text())["config"]
    config = to_plain(config_from_args(parse(), AudioConfig()))
    assert {key: config[key] for key in published} == published
    assert config["mask_convolutions"] is True


def test_every_published_architecture_option_is_there(goldens: Path):
    published = json.loads((goldens / "fastpitch_1_0/full_size_keys.json").read_text())["config"]
    derived = {"n_mel_channels", "symbol_type", "n_symbols", "padding_idx"}  # follow from the audio and text options
    for name in set(published) - derived:
        value = 3 if isinstance(published[name], int) and "size" in name else published[name]
        args = parse(f"--{name}", str(value))
        assert getattr(args, name) == value


def test_the_symbols_follow_from_the_text_options():
    config = config_from_args(parse("--input-type", "phone", "--symbol-set", "arpabet"), AudioConfig(n_mels=40))
    assert (config.symbol_type, config.n_symbols, config.n_mel_channels) == ("phone", 88, 40)


def test_the_duration_loss_scale_has_two_spellings():
    assert parse("--duration-predictor-loss-scale", "0.3").dur_predictor_loss_scale == 0.3
    assert parse("--dur_predictor_loss_scale", "0.4").dur_predictor_loss_scale == 0.4
    assert parse().dur_predictor_loss_scale == parse().pitch_predictor_loss_scale == 0.1


def test_pitch_statistics_travel_with_the_model(tmp_path: Path):
    network = FastPitch(TINY)

    def initialize(*argv: str) -> tuple[float, float]:
        args = parse(*argv)
        args.dataset_path, args.training_files = tmp_path, Path("lists/train.txt")
        set_up_networks({"fastpitch": network}, args, new=True)
        return network.state_dict()["pitch_mean"].item(), network.state_dict()["pitch_std"].item()

    with pytest.raises(InputError, match=r"pitch_char_stats__train\.json: no such file.*--pitch-mean-std-file"):
        initialize()
    write_json(tmp_path / "pitch_char_stats__train.json", {"mean": 150.5, "std": 40.25})
    assert initialize() == (150.5, 40.25)
    write_json(tmp_path / "other.json", {"mean": 99.0, "std": 10.0})
    assert initialize("--pitch-mean-std-file", str(tmp_path / "other.json")) == (99.0, 10.0)


def transformed(transform: PitchTransform, *, std: torch.Tensor = STD) -> list[float]:
    pitch = torch.tensor([[1.0, -0.5, 0.0], [2.0, 9.0, 9.0]])
    out = transform(pitch, torch.tensor([3, 1]), MEAN, std)
    assert not out[1, 1:].any()  # padding stays silent
    return [*out[0].tolist(), out[1, 0].item()]


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (PitchTransform(), [1.0, -0.5, 0.0, 2.0]),
        (PitchTransform(flatten=True), [0.0, 0.0, 0.0, 0.0]),
        (PitchTransform(invert=True), [-1.0, 0.5, 0.0, -2.0]),
        (PitchTransform(amplify=1.5), [1.5, -0.75, 0.0, 3.0]),
        (PitchTransform(amplify=0.0), [0.0, 0.0, 0.0, 0.0]),
        (PitchTransform(shift=25.0), [1.5, 0.0, 0.5, 2.5]),
        (PitchTransform(flatten=True, shift=-50.0), [-1.0, -1.0, -1.0, -1.0]),
        (PitchTransform(invert=True, amplify=2.0, shift=25.0), [-1.5, 1.5, 0.5, -3.5]),
        # in Hz 250, 175, 200 rise from half to 1.17 times, and 300 alone is halved
        (PitchTransform(custom=True, invert=True), [-1.5, -1.0833334, 0.6666667, -1.0]),
    ],
)
def test_pitch_transforms_apply_in_order_to_valid_tokens(transform: PitchTransform, expected: list[float]):
    assert transformed(transform) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("transform", [PitchTransform(shift=10.0), PitchTransform(custom=True)])
def test_a_transform_in_hertz_needs_the_models_statistics(transform: PitchTransform):
    with pytest.raises(InputError, match=r"holds no pitch statistics.*--pitch-mean-std-file"):
        transformed(transform, std=torch.tensor(0.0))


def test_other_transforms_need_no_statistics():
    assert transformed(PitchTransform(invert=True, amplify=2.0), std=torch.tensor(0.0)) == [-2.0, 1.0, 0.0, -4.0]


def test_a_transform_that_is_not_finite_is_refused():
    with pytest.raises(OptionError, match="--pitch-transform-shift nan: expected a finite number"):
        PitchTransform(shift=float("nan"))


def test_only_models_that_are_here_can_be_chosen():
    assert "FastPitch" in available_models()
    with pytest.raises(OptionError, match=r"^model 'FastSpeech': expected one of FastPitch"):
        import_package("FastSpeech")
    package = models.get_package("FastPitch")
    assert package.model.ModelConfig is ModelConfig
    for name in ("add_arguments", "config_from_args"):
        assert callable(getattr(package.arg_parser, name))


def stored(network: FastPitch, **changes) -> Checkpoint:
    weights = {"fastpitch": network.state_dict()}
    values = {"model": "FastPitch", "config": to_plain(TINY), "audio": AudioConfig(), "text": TextConfig()}
    return Checkpoint(**(values | {"networks": weights} | changes))


def test_a_checkpoints_networks_are_loaded_ready_to_infer():
    network = FastPitch(TINY)
    networks, config = models.load_networks(stored(network), device=torch.device("cpu"))
    assert config == TINY
    assert not networks["fastpitch"].training
    for key, value in network.state_dict().items():
        assert torch.equal(networks["fastpitch"].state_dict()[key], value)


def test_averaged_weights_are_taken_when_asked_for():
    network, average = FastPitch(TINY), FastPitch(TINY)
    checkpoint = stored(network, ema={"fastpitch": average.state_dict()})
    networks, _ = models.load_networks(checkpoint, ema=True, device=torch.device("cpu"))
    assert torch.equal(networks["fastpitch"].proj.weight, average.proj.weight)
    assert not torch.equal(network.proj.weight, average.proj.weight)


def test_a_checkpoint_without_the_network_or_with_another_configuration_is_refused():
    cpu = torch.device("cpu")
    with pytest.raises(CheckpointError, match=r"^voice\.pt: its weights do not fit the model: no network fastpitch$"):
        models.load_networks(stored(FastPitch(TINY), networks={}), device=cpu, where="voice.pt")
    with pytest.raises(InputError, match=r"^voice\.pt: ModelConfig has no field energy"):
        models.load_networks(stored(FastPitch(TINY), config={"energy": True}), device=cpu, where="voice.pt")
    wider = to_plain(TINY) | {"dur_predictor_filter_size": 16}
    with pytest.raises(CheckpointError, match=r"layers\.0\.conv\.weight is \(8, 8, 3\), expected \(16, 8, 3\).*more$"):
        models.load_networks(stored(FastPitch(TINY), config=wider), device=cpu, where="voice.pt")
