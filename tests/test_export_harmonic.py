"""Exported harmonic vocoders make the sound that the checkpoint makes of the same noise."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import tiny_voice
import torch
from test_export import VOICE, network
from test_harmonic_model import ALIGNED, ODD
from tiny_harmonic import AUDIO, small_network, speech_mel

import inference
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig
from common.errors import OptionError
from scripts import checkpoint_tools

TEXT = "one word after the other, and then more of them, until pieces are needed."


def save(path: Path, audio: AudioConfig) -> Path:
    """A small vocoder's checkpoint, whose noise is faint."""
    network = small_network(audio)
    n_bins = audio.filter_length // 2 + 1
    torch.nn.init.constant_(network.filter.end.bias[n_bins : 2 * n_bins].detach(), -4)
    config = network.config
    save_checkpoint(path, Checkpoint("Harmonic", config, audio, None, {"harmonic": network.state_dict()}))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice, and a vocoder of its mels, each as checkpoint and in ONNX; the vocoder in safetensors, too."""
    made = tmp_path_factory.mktemp("harmonic")
    tiny_voice.save_voice(made / "voice.pt", model=VOICE)
    save(made / "harmonic.pt", tiny_voice.AUDIO)
    for name, kind in (("voice", "onnx"), ("harmonic", "onnx"), ("harmonic", "safetensors")):
        checkpoint_tools.export([str(made / f"{name}.pt"), "--format", kind])
    return made


def speak(folder: Path, vocoder: str, output: Path, *words: str) -> np.ndarray:
    """The sound of `inference.py`."""
    models = ["--fastpitch", str(folder / "voice.pt"), "--harmonic", str(folder / vocoder)]
    assert inference.main([*models, "--text", TEXT, "-o", str(output), *words]) == 0
    return soundfile.read(output)[0]


@pytest.mark.parametrize(
    "audio, longest", [(AUDIO, 2000), (ALIGNED, 90), (ODD, 90)], ids=["centered", "aligned", "odd hop"]
)
def test_short_and_long_mels_sound_as_in_pytorch(tmp_path: Path, audio: AudioConfig, longest: int):
    path = save(tmp_path / "a.pt", audio)
    checkpoint_tools.export([str(path)])
    expected, made = network(path), network(tmp_path / "a.onnx")
    mel = speech_mel(longest, audio)
    for n_frames in (1, 2, 7, longest):
        waves = [one.infer(mel[:, :, -n_frames:].contiguous(), seed=5) for one in (expected, made)]
        assert waves[0].shape == (1, n_frames * audio.hop_length) and waves[0].abs().max() > 1e-3
        torch.testing.assert_close(waves[1], waves[0], atol=1e-3, rtol=0)


def test_an_utterance_is_the_same_in_any_batch(folder: Path):
    made, expected = network(folder / "harmonic.onnx"), network(folder / "harmonic.pt")
    mel, lengths = speech_mel(40, tiny_voice.AUDIO).expand(3, -1, -1), torch.tensor([40, 1, 17])
    together = made.infer(mel, lengths)
    torch.testing.assert_close(together, expected.infer(mel, lengths), atol=1e-4, rtol=0)
    for wave, length in zip(together, lengths):
        alone = made.infer(mel[:1, :, :length].contiguous())[0]
        torch.testing.assert_close(wave[: len(alone)], alone, atol=1e-4, rtol=0)
        assert (wave[len(alone) :] == 0).all()


@pytest.mark.parametrize("suffix", ["onnx", "safetensors"])
def test_inference_speaks_with_a_file_as_with_the_checkpoint(folder: Path, tmp_path: Path, suffix: str):
    sounds = [speak(folder, f"harmonic.{kind}", tmp_path / f"{kind}.wav", "--seed", "7") for kind in ("pt", suffix)]
    assert np.abs(sounds[0]).max() > 0.01
    np.testing.assert_allclose(sounds[1], sounds[0], atol=1e-3)


def test_other_corrections_are_refused_and_a_pitch_that_is_not_taken_is_pointed_out(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(OptionError, match="--mel-corrections 3: 2 are in the exported network; give that number"):
        speak(folder, "harmonic.onnx", tmp_path / "a.wav", "--mel-corrections", "3")
    torch.save(speech_mel(40, tiny_voice.AUDIO)[0], tmp_path / "a.mel.pt")
    torch.save(torch.full((40,), 180.0), tmp_path / "a.pitch.pt")
    (tmp_path / "list.tsv").write_text("output\tmel\tpitch\na.wav\ta.mel.pt\ta.pitch.pt\n")
    words = ["-i", str(tmp_path / "list.tsv"), "--dataset-path", str(tmp_path), "-o", str(tmp_path / "out")]
    assert inference.main([*words, "--harmonic", str(folder / "harmonic.onnx")]) == 0
    assert "pitch" in capsys.readouterr().err
