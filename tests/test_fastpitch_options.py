"""FastPitch's options of training and inference, and its pitch transforms."""

import json
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
from fastpitch.arg_parser import InferenceOptions
from fastpitch.custom_transforms import pitch_transform_custom
from fastpitch.fine_tuning import set_up_networks
from fastpitch.model import FastPitch
from fastpitch.prosody import PitchTransform

MEAN, STD = torch.tensor(200.0), torch.tensor(50.0)


def words(folder: Path, *argv: str) -> list[str]:
    """A command line of training on a list of one line in ``folder``."""
    (folder / "train.txt").write_text("mels/a.pt|durations/a.pt|pitch_char/a.pt|Words.\n")
    lists = ["--training-files", f"{folder}/train.txt", "--validation-files", f"{folder}/train.txt"]
    return ["-m", "FastPitch", "-o", "out", "-d", str(folder), *lists, *argv]


def test_without_options_the_published_model_is_trained_by_the_published_recipe(goldens: Path, tmp_path: Path):
    published = json.loads((goldens / "fastpitch_1_0/full_size_keys.json").read_text())["config"]
    config = to_plain(set_up(*words(tmp_path)).options.architecture)
    assert {key: config[key] for key in published} == published
    assert config["mask_convolutions"] is True
    args = values(*words(tmp_path))
    recipe = {"epochs": 1500, "batch_size": 32, "optimizer": "lamb", "learning_rate": 0.1, "weight_decay": 1e-6}
    recipe |= {"grad_clip_thresh": 1000.0, "epochs_per_checkpoint": 50, "warmup_steps": 1000, "ema_decay": 0.0}
    assert {key: args[key] for key in recipe} == recipe


def test_pitch_statistics_travel_with_the_model(tmp_path: Path):
    network = FastPitch(TINY)

    def initialize(*argv: str) -> tuple[float, float]:
        setup = set_up(*words(tmp_path, *argv))
        given = {"text": setup.text, "training_set": None, "initial": None, "new": True}
        assert set_up_networks({"fastpitch": network}, setup.options, **given) == []
        return network.pitch_mean.item(), network.pitch_std.item()

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


def speaking(*argv: str, network: FastPitch | None = None) -> Controls:
    parser = ArgumentParser()
    add_options(parser, InferenceOptions)
    options = read_options(parser.parse_args(list(argv)), InferenceOptions)
    return (network or FastPitch(TINY)).controls(options, where=Path("voice.pt"))


def test_inference_options_become_controls(tmp_path: Path):
    assert speaking() == Controls()
    assert speaking("--pace", "1.5", "--max-duration", "20") == Controls(pace=1.5, max_duration=20.0)
    transforms = speaking("--pitch-transform-amplify", "0", "--pitch-transform-invert")
    assert transforms.pitch_transform == PitchTransform(amplify=0.0, invert=True)
    network = FastPitch(TINY)
    write_json(tmp_path / "stats.json", {"mean": 99.0, "std": 10.0})
    given = ("--pitch-mean-std-file", str(tmp_path / "stats.json"))
    example = speaking("--pitch-transform-custom", *given, network=network).pitch_transform
    assert transformed(example) == transformed(PitchTransform(custom=pitch_transform_custom))
    assert (network.pitch_mean.item(), network.pitch_std.item()) == (99.0, 10.0)


def test_transforms_that_cannot_be_applied_are_refused():
    message = r"^voice\.pt: has no pitch statistics.* --pitch-mean-std-file$"
    for option in (["--pitch-transform-shift", "10"], ["--pitch-transform-custom"]):
        with pytest.raises(InputError, match=message):
            speaking(*option)


def test_a_custom_transform_is_a_function_in_a_file_of_the_users(tmp_path: Path):
    given, voice = tmp_path / "my pitch.py", FastPitch(TINY)
    voice.set_pitch_statistics(PitchStatistics(mean=200.0, std=50.0))
    given.write_text("def pitch_transform_custom(pitch, pitch_lens):\n    pitch += 10\n    return pitch * 2\n")
    transform = speaking("--pitch-transform-custom", str(given), network=voice).pitch_transform
    assert transformed(transform) == pytest.approx([value * 2 + 220 / 50 for value in (1.0, -0.5, 0.0)] + [8.4])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "{path}: no such file"),
        ("pitch_transform = abs\n", "{path}: no function {name}; see the example in fastpitch/custom_"),
        ("{head}return p[:, 1:]\n", "{path}: {name} returned a Tensor (2, 2) of float32, expected finite values in a"),
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
