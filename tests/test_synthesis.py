"""Batches, files and vocoders of inference, with a vocoder network of a package made for the test."""

import dataclasses
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

import inference
from common import registry
from common.audio import load_wav
from common.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig, to_plain
from common.errors import InputError, OptionError
from common.files import save_tensor, write_json
from common.logger import read_log
from common.phrases import Phrase
from common.synthesizer import OutputFolder, Spoken, Utterance, fade_out, plan_batches
from common.vocoder import NetworkVocoder

AUDIO = AudioConfig(hop_length=64, n_mels=8)


def phrase(name: str = "a.wav") -> Phrase:
    return Phrase(where="list:1", output=PurePosixPath(name), text="x")


def test_batches_are_of_like_length_and_hold_every_utterance_once():
    lengths = torch.randint(1, 50, (23,), generator=torch.Generator().manual_seed(0)).tolist()
    utterances = [Utterance(phrase(f"{i}.wav"), tokens=torch.zeros(n)) for i, n in enumerate(lengths)]
    batches = plan_batches(utterances, 5)
    assert [len(batch) for batch in batches] == [5, 5, 5, 5, 3]
    assert [utterance.length for batch in batches for utterance in batch] == sorted(lengths, reverse=True)
    assert {utterance.phrase.output for batch in batches for utterance in batch} == {
        u.phrase.output for u in utterances
    }


def test_the_end_fades_linearly_to_silence_and_the_rest_stays():
    wave = torch.ones(10)
    assert fade_out(wave, 5).tolist() == pytest.approx([1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0])
    assert fade_out(wave, 99).tolist() == pytest.approx([1 - i / 9 for i in range(10)])
    assert torch.equal(fade_out(wave, 0), wave)
    assert torch.equal(wave, torch.ones(10))


def test_a_wave_beyond_full_scale_is_scaled_and_a_quiet_one_stays_quiet(tmp_path):
    folder = OutputFolder(tmp_path, audio=AUDIO, fade_out_frames=0, save_mels=False)
    wave = torch.sin(torch.arange(2000) / 10)
    for name, scale, peak in (("loud.wav", 3.0, 1.0), ("sub/quiet.wav", 0.25, 0.25)):
        folder.write(Spoken(phrase(name), torch.zeros(8, 4), wave * scale))
        written = load_wav(tmp_path / name, sampling_rate=22050)
        torch.testing.assert_close(written, wave / wave.abs().max() * peak, rtol=0, atol=2e-4)
    assert folder.n_written == 2


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write there"):
        OutputFolder(tmp_path / "file" / "out", audio=AUDIO, fade_out_frames=0, save_mels=True)


class LookingAhead(nn.Module):
    """A vocoder whose samples depend on two frames before and two after, as a convolutional one's do."""

    receptive_frames = 2

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(8, 64, 5, padding=2)

    def infer(self, mel: Tensor) -> Tensor:
        """mel (B, 8, F) -> wave (B, F * 64)."""
        return torch.tanh(self.conv(mel)).transpose(1, 2).flatten(1)

    def prepare_for_inference(self) -> None:
        """Nothing to fold."""


def test_a_vocoder_network_speaks_each_mel_as_if_it_were_alone():
    torch.manual_seed(0)
    vocoder = NetworkVocoder(LookingAhead(), AUDIO, name="x", autocast=torch.inference_mode)
    mels = [torch.randn(8, n) for n in (9, 4, 1)]
    batch = nn.utils.rnn.pad_sequence([mel.t() for mel in mels], batch_first=True).transpose(1, 2)
    waves = vocoder.speak(batch, torch.tensor([9, 4, 1]))
    for mel, wave in zip(mels, waves):
        assert wave.shape == (mel.size(1) * 64,)
        torch.testing.assert_close(wave, vocoder.speak(mel[None], torch.tensor([mel.size(1)]))[0], rtol=0, atol=1e-6)


@pytest.fixture
def vocoder_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model HiFi-GAN is in the table of models, in a package that holds the network above."""
    package = tmp_path / "packages" / "toy_vocoder"
    package.mkdir(parents=True)
    for name in ("__init__", "arg_parser", "data_function", "loss_function"):
        (package / f"{name}.py").touch()
    (package / "model.py").write_text(
        "from dataclasses import dataclass\n"
        "from tests_network import LookingAhead\n"
        "@dataclass(frozen=True)\n"
        "class ModelConfig:\n"
        "    width: int = 8\n"
        "def build_networks(config, audio, text):\n"
        "    return {'generator': LookingAhead()}\n"
    )
    module = ModuleType("tests_network")
    module.LookingAhead = LookingAhead
    monkeypatch.setitem(sys.modules, "tests_network", module)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setitem(registry._PACKAGES, "HiFi-GAN", "toy_vocoder")


def test_a_vocoder_checkpoint_makes_the_sound_once_its_package_is_here(tmp_path, vocoder_package):
    torch.manual_seed(0)
    network = LookingAhead()
    voice = tmp_path / "vocoder.pt"
    checkpoint = Checkpoint("HiFi-GAN", {"width": 8}, AUDIO, None, {"generator": network.state_dict()})
    save_checkpoint(voice, checkpoint)
    mels = {"a": torch.randn(8, 7), "b": torch.randn(8, 3)}
    for name, mel in mels.items():
        save_tensor(tmp_path / "given" / f"{name}.pt", mel)
    (tmp_path / "list.tsv").write_text("mel\toutput\ngiven/a.pt\ta\ngiven/b.pt\tb\n")
    argv = ["-i", str(tmp_path / "list.tsv"), "-o", str(tmp_path / "out"), "--dataset-path", str(tmp_path)]
    inference.main([*argv, "--hifigan", str(voice), "--fade-out", "0"])
    for name, mel in mels.items():
        wave = load_wav(tmp_path / "out" / f"{name}.wav", sampling_rate=22050)
        silence = torch.full((1, 8, 2), torch.tensor(1e-5).log())
        expected = network.infer(torch.cat([mel[None], silence], dim=2))[0, : mel.size(1) * 64].detach()
        torch.testing.assert_close(wave, expected, rtol=0, atol=1 / 32768)
    data = [record["data"] for record in read_log(tmp_path / "out" / "nvlog_infer.json") if record["type"] == "LOG"]
    assert any("hifigan_samples/s" in figures for figures in data)
    with pytest.raises(OptionError, match="--no-audio leaves no work for --hifigan"):
        inference.main([*argv, "--hifigan", str(voice), "--no-audio", "--save-mels"])
    other = dataclasses.replace(AUDIO, mel_fmax=None, sampling_rate=16000)
    write_json(tmp_path / "given" / "audio.json", to_plain(other))
    with pytest.raises(InputError, match=r"sampling_rate: 16000 \(.*mel_fmax: None \("):
        inference.main([*argv, "--hifigan", str(voice)])
