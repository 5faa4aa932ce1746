"""WaveGlow trains: real clips, one update however the batch is cut, segments, options."""

from pathlib import Path

import pytest
import torch
from tiny_models import logged, without_samples
from tiny_waveglow import OPTIONS
from training_setup import parsed, set_up

import train
from common.audio.wav import load_wav
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.data.recordings import input_mel_extractor
from common.errors import OptionError
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
