"""HiFi-GAN's command line: published defaults, presets, the authors' config.json, what does not go together."""

import json
from argparse import Namespace
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from golden_files import audio_config, read_golden
from training_setup import set_up, values

from common.checkpoints.checkpoint import Checkpoint
from common.config import AudioConfig, to_plain
from common.errors import InputError, OptionError
from common.training.objective import Objective
from common.training.options import parse_command_line
from common.training.settings import TrainingSetup
from common.training.start import read_command
from hifigan.config import PRESETS, ModelConfig
from hifigan.loss_function import HifiganObjective
from hifigan.model import build_networks, set_up_networks
from hifigan.training_setup import model_config

REQUIRED = ("-m HiFi-GAN -o out --training-files a.txt --validation-files b.txt").split()


def parse(*argv: str) -> Namespace:
    return Namespace(**values(*REQUIRED, *argv))


def settings(*argv: str) -> TrainingSetup:
    return set_up(*REQUIRED, *argv)


def fine_tuning(*argv: str) -> TrainingSetup:
    """With --fine-tuning, from a trained vocoder."""
    command = read_command(parse_command_line([*REQUIRED, "--fine-tuning", *argv]))
    trained = Checkpoint(model="HiFi-GAN", config=ModelConfig(), audio=AudioConfig(), text=None, networks={})
    return command.spec.training_setup.set_up(
        command.options, replace(command.request, resumed=(Path("x.pt"), trained))
    )


def config(*argv: str) -> ModelConfig:
    setup = settings(*argv)
    return model_config(setup.options, setup.audio)


def objective(*argv: str) -> Objective:
    setup = settings(*argv)
    return HifiganObjective(setup.options, setup.audio)


def test_without_options_training_is_as_published():
    args, found = parse(), settings()
    assert (args.optimizer, args.weight_decay, args.batch_size) == ("adamw", 0.01, 16)
    assert found.options.segment_size == 8192
    assert (args.epochs, args.gradient_accumulation_steps, args.seed, args.ema_decay) == (6500, 1, 1234, 0.0)
    assert args.grad_clip_thresh == float("inf")
    assert (args.epochs_per_checkpoint, args.validation_interval, args.samples_interval) == (10, 10, 100)
    assert {1000, 6500 // 1000 * 1000, 10000} <= set(args.keep_milestones)
    assert (found.optimization.betas, found.optimization.eps) == ((0.8, 0.99), 1e-8)
    assert [found.optimization.schedule(iteration, 1) for iteration in (1, 900)] == [3e-4, 3e-4]
    assert found.optimization.schedule(5, 11) == pytest.approx(3e-4 * 0.9998**10, rel=1e-12)
    assert found.audio == AudioConfig(22050, 1024, 256, 1024, 80, 0.0, 8000.0)  # as published voices'
    assert (found.text, found.adaptable) == (None, ())
    assert config() == PRESETS["v1"] == ModelConfig()
    assert objective()._loss_mel.config == replace(found.audio, framing="aligned", mel_fmax=None)


@pytest.mark.parametrize(
    ("sampling_rate", "hop_length", "fmax"), [("16000", 200, 8000.0), ("44100", 512, None), ("48000", 512, None)]
)
@pytest.mark.parametrize("preset", ["v1", "v2", "v3"])
def test_rates_fit_the_hop_length_of_other_sampling_rates(
    preset: str, sampling_rate: str, hop_length: int, fmax: float | None
):
    words = ("--sampling-rate", sampling_rate, "--preset", preset)
    audio, found = settings(*words).audio, config(*words)
    assert (audio.hop_length, audio.mel_fmax, audio.framing, audio.peak) == (hop_length, fmax, "centered", None)
    assert prod(found.upsample_rates) == hop_length
    assert len(found.upsample_rates) == len(PRESETS[preset].upsample_rates)
    assert list(found.upsample_rates) == sorted(found.upsample_rates, reverse=True)
    segment_size = settings(*words).options.segment_size
    assert 0 <= 8192 - segment_size < hop_length
    assert segment_size % hop_length == 0
    build_networks(found, audio, None, inference=True)  # kernel sizes fit these rates


def write_json(folder: Path, **values: object) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    return str(path)


def test_the_authors_configuration_describes_their_model_and_recipe(goldens: Path):
    path = goldens / "hifigan" / "checkpoints" / "jik876_full_shapes" / "config.json"
    args, found = parse("--hifigan-config", str(path)), settings("--hifigan-config", str(path))
    values = read_golden(path)
    assert model_config(found.options, found.audio) in PRESETS.values()
    given = [values[name] for name in ("batch_size", "segment_size", "seed", "fmax_for_loss")]
    assert [args.batch_size, args.segment_size, args.seed, args.mel_fmax_loss] == given
    assert found.optimization.betas == (values["adam_b1"], values["adam_b2"])
    expected = values["learning_rate"] * values["lr_decay"]
    assert found.optimization.schedule(7, 2) == pytest.approx(expected, rel=1e-12)
    assert found.audio == audio_config(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"resblock": "1", "n_ftt": 1024}', "unknown key 'n_ftt'; expected"),
        ('{"learning_rate": "fast"}', "learning_rate fast: expected a number above 0"),
        ('{"upsample_rates": [8, 2.5]}', r"upsample_rates 2\.5: expected a whole number"),
    ],
)
def test_a_configuration_that_is_none_is_one_line(text: str, message: str, tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        parse("--hifigan-config", str(path))
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--fine-tuning", "--fine-tuning needs --input-mels-dir"),
        ("--fine-tuning --input-mels-dir mels", "--fine-tuning needs a trained vocoder: --checkpoint-path"),
        ("--segment-size 8000", "--segment-size 8000: expected a multiple of the hop length, 256"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: str, message: str):
    with pytest.raises(OptionError, match=message):
        settings(*words.split())


def describe(folder: Path, audio: AudioConfig) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "audio.json").write_text(json.dumps(to_plain(audio)))
    return str(folder)


@pytest.mark.parametrize(("words", "expected"), [((), True), (("--amp", "--no-amp-grouped-conv"), False)])
def test_grouped_convolutions_are_in_amp_by_default(words: tuple[str, ...], expected: bool):
    options = settings(*words).options
    networks = build_networks(replace(PRESETS["v3"], mpd_channels=(4,), msd_channels=(16,) * 7), AudioConfig(), None)
    assert set_up_networks(networks, options, text=None, new=True) == []
    assert networks["msd"].amp_grouped_conv is expected
