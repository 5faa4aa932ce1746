"""WaveGlow trains: real clips, one update however the batch is cut, segments, options."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from tiny_models import logged, without_samples
from tiny_waveglow import OPTIONS
from torch import Tensor
from training_setup import parsed, set_up

import train
from common.audio.wav import load_wav
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.data.recordings import input_mel_extractor
from common.errors import OptionError
from waveglow.arg_parser import TrainingOptions
from waveglow.data_function import WaveGlowDataset
from waveglow.model import ModelConfig
from waveglow.training_setup import model_config

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


# --- data


def ramp(path: Path, count: int) -> None:
    """A recording whose samples say where they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.arange(count, dtype=np.int16), RATE, subtype="PCM_16")


def dataset(folder: Path, counts: list[int], *, segment_length: int = 1000, seed: int = 1) -> WaveGlowDataset:
    names = [f"wavs/{index}.wav" for index in range(len(counts))]
    for name, count in zip(names, counts):
        ramp(folder / name, count)
    (folder / "list.txt").write_text("".join(f"{name}|a text\n" for name in names))
    options = TrainingOptions(segment_length=segment_length, dataset_path=folder, seed=seed)
    return WaveGlowDataset(options, folder / "list.txt", audio=AudioConfig())


def positions(segment: Tensor) -> list[int]:
    return (segment * 32768).round().int().tolist()


def test_silence_follows_a_recording_that_is_shorter_than_a_segment(tmp_path: Path):
    data = dataset(tmp_path, [700, 1000])
    for item in (data.draw(0, epoch=1), data[0]):
        assert positions(item.audio[0]) == [*range(700), *[0] * 300]
    batch = data.collate([data[0], data[1]])
    assert batch.audio.shape == (2, 1000)
    assert batch.n_samples == (1000, 1000)
    assert int(batch.n_frames) == 2 * 3
    training = data.collate([data.draw(0, epoch=1), data.draw(1, epoch=1)])
    assert training.recordings is None


# --- options


def parse(*options: str):
    """Arguments and what training takes of them."""
    words = ["-m", "WaveGlow", "-o", "out", "--training-files", "a", "--validation-files", "b", *options]
    return parsed(words), set_up(*words)


def test_the_defaults_are_the_published_recipe():
    args, settings = parse()
    assert (args.epochs, args.batch_size, args.epochs_per_checkpoint) == (1001, 4, 50)
    assert (args.segment_length, args.sigma, args.grad_clip_thresh) == (8000, 1.0, float("inf"))
    assert (args.optimizer, args.learning_rate, args.weight_decay) == ("adam", 1e-4, 0.0)
    assert settings.audio == AudioConfig() and model_config(settings.options, settings.audio) == ModelConfig()
    assert (settings.optimization.betas, settings.optimization.eps) == ((0.9, 0.999), 1e-8)
    assert {settings.optimization.schedule(*when) for when in ((1, 1), (100000, 999))} == {1e-4}
    with pytest.raises(OptionError, match=r"^--segment-length 512: .* 513 samples$"):
        parse("--segment-length", "512")


def test_options_say_the_architecture_and_leave_a_checkpoints_where_they_are_silent():
    given = "--flows 6 --groups 16 --early-every 3 --early-size 4 --wn-channels 256 --wn-kernel-size 5 --wn-layers 7"
    expected = ModelConfig(80, 6, 16, 3, 4, 7, 5, 256)
    assert model_config(parse(*given.split())[1].options, AudioConfig()) == expected
    options = parse("--wn-layers", "4")[1].options
    assert model_config(options, AudioConfig(n_mels=20), base=expected) == replace(
        expected, wn_layers=4, n_mel_channels=20
    )
