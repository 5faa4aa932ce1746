"""FastPitch's options of training and inference, its pitch transforms, and its entry in the table of models."""

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_voice import SMALL as TINY
from training_setup import set_up, values

from common.audio.pitch import PitchStatistics
from common.cli import ArgumentParser
from common.config import to_plain
from common.errors import InputError
from common.files import write_json
from common.options import add_options, read_options
from common.synthesis.utterances import Controls
from common.training.settings import TrainingSetup
from fastpitch.arg_parser import InferenceOptions
from fastpitch.config import ModelConfig
from fastpitch.custom_transforms import pitch_transform_custom
from fastpitch.fine_tuning import set_up_networks
from fastpitch.loss_function import build_objective
from fastpitch.model import FastPitch
from fastpitch.prosody_transforms import EnergyTransform, PitchTransform

MEAN, STD = torch.tensor(200.0), torch.tensor(50.0)


def words(folder: Path, *argv: str) -> list[str]:
    """A command line of training on a list of one line in ``folder``."""
    for name in ("train.txt", "val.txt"):
        (folder / name).write_text("mels/a.pt|durations/a.pt|pitch_char/a.pt|AH0\n")
    files = ["--training-files", str(folder / "train.txt"), "--validation-files", str(folder / "val.txt")]
    return ["-m", "FastPitch", "-o", "out", "-d", str(folder), *files, *argv]


def parse(folder: Path, *argv: str) -> Namespace:
    return Namespace(**values(*words(folder, *argv)))


def setup_of(folder: Path, *argv: str) -> TrainingSetup:
    return set_up(*words(folder, *argv))


def model_of(folder: Path, *argv: str) -> ModelConfig:
    return setup_of(folder, *argv).options.architecture


def test_without_options_the_published_model_is_built(goldens: Path, tmp_path: Path):
    published = json.loads((goldens / "fastpitch_1_0/full_size_keys.json").read_text())["config"]
    (tmp_path / "words.txt").write_text("mels/a.pt|durations/a.pt|pitch_char/a.pt|Words.\n")
    config = to_plain(model_of(tmp_path, "--training-files", str(tmp_path / "words.txt")))
    assert {key: config[key] for key in published} == published
    assert config["mask_convolutions"] is True


def test_without_options_the_published_recipe_is_trained(tmp_path: Path):
    args = parse(tmp_path)
    recipe = (args.epochs, args.batch_size, args.optimizer, args.learning_rate, args.weight_decay)
    assert recipe == (1500, 32, "lamb", 0.1, 1e-6)
    assert (args.grad_clip_thresh, args.epochs_per_checkpoint, args.warmup_steps) == (1000.0, 50, 1000)
    assert (args.ema_decay, args.gradient_accumulation_steps) == (0.0, 1)


def test_the_symbols_follow_from_the_text_options(tmp_path: Path):
    config = model_of(tmp_path, "--input-type", "phone", "--symbol-set", "arpabet", "--n-mel-channels", "40")
    assert (config.symbol_type, config.n_symbols, config.n_mel_channels) == ("phone", 88, 40)


def weights_of(folder: Path, *argv: str, epoch: int = 1) -> dict[str, float]:
    setup = setup_of(folder, *argv)
    return build_objective(setup.options, setup.audio).weights("fastpitch", epoch=epoch)


def test_loss_scales_come_from_the_command_line(tmp_path: Path):
    scales = "--dur-predictor-loss-scale 0.2 --pitch-predictor-loss-scale 0.3 --energy-predictor-loss-scale 0.4"
    expected = {"mel_loss": 1.0, "duration_predictor_loss": 0.2, "pitch_loss": 0.3}
    assert weights_of(tmp_path, *scales.split()) == expected
    assert weights_of(tmp_path, *scales.split(), "--energy-conditioning") == expected | {"energy_loss": 0.4}
    (tmp_path / "recorded.txt").write_text("wavs/a.wav|text\n")
    scales += " --learned-alignment --attn-loss-scale 0.5 --kl-loss-weight 0.6 --kl-loss-start-epoch 10"
    lists = f"--kl-loss-warmup-epochs 4 --training-files {tmp_path / 'recorded.txt'}"
    weights = weights_of(tmp_path, *scales.split(), *lists.split(), epoch=12)
    assert weights == expected | {"attn_loss": 0.5, "kl_loss": 0.3}


def test_pitch_statistics_travel_with_the_model(tmp_path: Path):
    network = FastPitch(TINY)

    def initialize(*argv: str) -> tuple[float, float]:
        setup = setup_of(tmp_path, *argv)
        given = {"text": setup.text, "training_set": None, "initial": None, "new": True}
        assert set_up_networks({"fastpitch": network}, setup.options, **given) == []
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
        (PitchTransform(custom=pitch_transform_custom, invert=True), [-1.5, -1.0833334, 0.6666667, -1.0]),
    ],
)
def test_pitch_transforms_apply_in_order_to_valid_tokens(transform: PitchTransform, expected: list[float]):
    assert transformed(transform) == pytest.approx(expected, abs=1e-5)


def test_other_transforms_need_no_statistics():
    assert transformed(PitchTransform(invert=True, amplify=2.0), std=torch.tensor(0.0)) == [-2.0, 1.0, 0.0, -4.0]


def speaking(*argv: str, network: FastPitch | None = None, config: ModelConfig = TINY) -> Controls:
    parser = ArgumentParser()
    add_options(parser, InferenceOptions)
    options = read_options(parser.parse_args(list(argv)), InferenceOptions)
    return (network or FastPitch(config)).controls(options, where=Path("voice.pt"))


def test_inference_options_become_controls(tmp_path: Path):
    assert speaking() == Controls()
    assert speaking("--pace", "1.5", "--max-duration", "20") == Controls(pace=1.5, max_duration=20.0)
    transforms = speaking("--pitch-transform-amplify", "0", "--pitch-transform-invert")
    assert transforms.pitch_transform == PitchTransform(amplify=0.0, invert=True)
    energy = replace(TINY, energy_conditioning=True)
    shifted = speaking("--energy-transform-shift", "-0.5", config=energy)
    assert shifted.energy_transform == EnergyTransform(shift=-0.5)
    network = FastPitch(TINY)
    write_json(tmp_path / "stats.json", {"mean": 99.0, "std": 10.0})
    given = ("--pitch-mean-std-file", str(tmp_path / "stats.json"))
    example = speaking("--pitch-transform-custom", *given, network=network).pitch_transform
    assert transformed(example) == transformed(PitchTransform(custom=pitch_transform_custom))
    assert (network.pitch_mean.item(), network.pitch_std.item()) == (99.0, 10.0)


def test_transforms_that_cannot_be_applied_are_refused():
    message = r"^voice\.pt: holds no pitch statistics to change pitch by in Hz; give --pitch-mean-std-file$"
    for option in (["--pitch-transform-shift", "10"], ["--pitch-transform-custom"]):
        with pytest.raises(InputError, match=message):
            speaking(*option)
    with pytest.raises(InputError, match=r"^voice\.pt: predicts no energy to transform; .* without --energy-cond"):
        speaking("--energy-transform-flatten")


def test_a_custom_transform_is_a_function_in_a_file_of_the_users(tmp_path: Path):
    given, voice = tmp_path / "my pitch.py", FastPitch(TINY)
    voice.set_pitch_statistics(PitchStatistics(mean=200.0, std=50.0))
    given.write_text("def pitch_transform_custom(pitch, pitch_lens):\n    pitch += 10\n    return pitch * 2\n")
    transform = speaking("--pitch-transform-custom", str(given), network=voice).pitch_transform
    assert transformed(transform) == pytest.approx([value * 2 + 220 / 50 for value in (1.0, -0.5, 0.0)] + [8.4])
    louder = replace(TINY, energy_conditioning=True)
    given.write_text(
        "def energy_transform_custom(energy, energy_lens):\n    return energy * 0 + energy_lens[:, None]\n"
    )
    changed = speaking("--energy-transform-custom", str(given), config=louder).energy_transform
    assert changed(torch.rand(2, 3), torch.tensor([3, 1])).tolist() == [[3, 3, 3], [1, 0, 0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "{path}: no such file"),
        ("pitch_transform = abs\n", "{path}: no function {name}; an example is in fastpitch/custom_"),
        ("{head}return p[:, 1:]\n", "{path}: {name} returned a Tensor (2, 2) of float32, expected finite values in a"),
        ("{head}return p.tolist()\n", "{path}: {name} returned [[250.0, 175.0, 200.0], [300.0, 650.0, 650.0]], exp"),
        ("{head}return p.log() * 1e400\n", "{path}: {name} returned a Tensor (2, 3) of float32, expected finite"),
    ],
)
def test_a_custom_transform_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, content: str, message: str):
    path, voice, name = tmp_path / "mine.py", FastPitch(TINY), "pitch_transform_custom"
    voice.set_pitch_statistics(PitchStatistics(mean=200.0, std=50.0))
    if content is not None:
        path.write_text(content.replace("{head}", "def pitch_transform_custom(p, lengths):\n    "))
    with pytest.raises(InputError) as caught:
        transformed(speaking("--pitch-transform-custom", str(path), network=voice).pitch_transform)
    assert str(caught.value).startswith(message.format(path=path, name=name)) and "\n" not in str(caught.value)


def test_options_of_the_originals_say_where_pitch_comes_from(tmp_path: Path):
    (tmp_path / "named.txt").write_text("wavs/a.wav|pitch/a.pt|text\n")
    words = ["--learned-alignment", "--training-files", str(tmp_path / "named.txt")]
    chosen = setup_of(tmp_path, *words, "--load-pitch-from-disk").options
    assert chosen.load_pitch_from_disk and chosen.pitch_cache is None
    (tmp_path / "named.txt").write_text("wavs/a.wav|text\n")
    chosen = setup_of(tmp_path, *words, "--pitch-online-dir", str(tmp_path / "kept")).options
    assert chosen.pitch_cache == tmp_path / "kept"
