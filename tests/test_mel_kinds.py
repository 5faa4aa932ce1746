"""One kind of mels for a corpus and all models trained on it: where it comes from, and what training says of it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile
import torch
from training_setup import set_up

from common.checkpoints.checkpoint import Checkpoint, save_checkpoint, strip_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig, audio_preset, from_plain, to_plain
from common.errors import InputError, OptionError
from common.files import read_json, write_json
from common.text.config import TextConfig
from fastpitch.config import ModelConfig
from hifigan.config import PUBLISHED_MELS, ModelConfig as HifiganConfig
from scripts.datasets import describe_mels

PUBLISHED = AudioConfig(**PUBLISHED_MELS)
VOCODER = HifiganConfig()
WIDE = replace(AudioConfig(), n_mels=100, mel_fmax=11000.0)  # a kind that no model has by default
MODELS = {"FastPitch": ("--learned-alignment",), "Tacotron2": (), "HiFi-GAN": (), "WaveGlow": ()}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus of which only a list is needed."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "train.txt").write_text("wavs/a.wav|text\n")
    return folder


def audio_of(model: str, corpus: Path, *words: str | Path) -> AudioConfig:
    """The mels that a command line of train.py describes."""
    lists = [word for name in ("training", "validation") for word in (f"--{name}-files", corpus / "train.txt")]
    argv = ["-m", model, "-d", corpus, "-o", corpus / "out", *lists, *MODELS[model], *words]
    return set_up(*map(str, argv)).audio


def save_voice(path: Path, audio: AudioConfig, **fields: object) -> Path:
    """What a checkpoint says of its mels, without weights."""
    save_checkpoint(path, Checkpoint("FastPitch", ModelConfig(), audio, TextConfig(), {}, **fields))
    return path


def describe(folder: Path, audio: AudioConfig) -> Path:
    folder.mkdir(exist_ok=True)
    write_json(folder / "audio.json", to_plain(audio))
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_every_model_takes_the_corpuss_kind_and_else_the_same_default(model: str, corpus: Path, tmp_path: Path):
    assert audio_of(model, corpus) == AudioConfig()
    assert audio_of(model, corpus, "--sampling-rate", "16000") == audio_preset(16000)
    describe(corpus, WIDE)
    assert audio_of(model, corpus) == WIDE
    assert audio_of(model, corpus, "--mel-fmax", "9000") == replace(WIDE, mel_fmax=9000.0), "an option is obeyed"
    other = describe(tmp_path / "other", replace(WIDE, hop_length=200)) / "audio.json"
    assert audio_of(model, corpus, "--audio-config", other, "--n-mel-channels", "80", *_segment(model)) == replace(
        WIDE, hop_length=200, n_mels=80
    )


def _segment(model: str) -> tuple[str, ...]:
    return ("--segment-size", "8000") if model == "HiFi-GAN" else ()


@pytest.mark.parametrize("model", ["HiFi-GAN", "WaveGlow"])
def test_a_vocoder_is_trained_for_a_voice(model: str, corpus: Path, tmp_path: Path):
    voice = save_voice(tmp_path / "voice.pt", WIDE)
    describe(corpus, AudioConfig())
    assert audio_of(model, corpus, "--for-voice", voice) == WIDE
    assert audio_of(model, corpus, "--for-voice", voice, "--n-mel-channels", "100") == WIDE
    with pytest.raises(OptionError, match=r"mel_fmax: 9000\.0 \(the options\), 11000\.0 \(--for-voice .*voice\.pt\)"):
        audio_of(model, corpus, "--for-voice", voice, "--mel-fmax", "9000")
    stripped, checkpoint = tmp_path / "stripped.pt", load_checkpoint(voice)
    networks: dict = {"generator": {}}
    save_checkpoint(stripped, strip_checkpoint(replace(checkpoint, networks=networks, ema=networks)))
    assert audio_of(model, corpus, "--for-voice", stripped) == WIDE
    vocoder = tmp_path / "vocoder.pt"
    save_checkpoint(vocoder, replace(load_checkpoint(voice), model="HiFi-GAN", config=VOCODER))
    with pytest.raises(InputError, match="a checkpoint of HiFi-GAN, expected one of FastPitch or Tacotron2"):
        audio_of(model, corpus, "--for-voice", vocoder)


def test_sources_of_a_hifigans_mels_must_agree(corpus: Path, tmp_path: Path):
    voice, mels = save_voice(tmp_path / "voice.pt", AudioConfig()), describe(tmp_path / "mels", WIDE)
    both = ("--for-voice", voice, "--input-mels-dir", mels)
    with pytest.raises(OptionError, match=r"n_mels: 100 \(--input-mels-dir .*mels\), 80 \(--for-voice .*; mel_fmax: "):
        audio_of("HiFi-GAN", corpus, *both)
    save_voice(voice, AudioConfig(), assumed=("n_mels", "mel_fmax"))  # as of a published file that does not record them
    assert audio_of("HiFi-GAN", corpus, *both) == WIDE
    with pytest.raises(OptionError, match=r"framing: 'aligned' \(the options\), 'centered' .*; peak: 0\.95 "):
        audio_of("HiFi-GAN", corpus, "--for-voice", voice, "--framing", "aligned", "--peak", "0.95")
    describe(corpus, WIDE)
    assert audio_of("HiFi-GAN", corpus, "--framing", "aligned", "--peak", "0.95") == replace(WIDE, **PUBLISHED_MELS)


def test_a_training_that_is_continued_keeps_its_mels(corpus: Path, tmp_path: Path):
    describe(corpus, AudioConfig())
    output = corpus / "out"
    for epoch in (9, 10):
        checkpoint = load_checkpoint(save_voice(tmp_path / "voice.pt", PUBLISHED))
        trained = replace(checkpoint, model="HiFi-GAN", config=VOCODER)
        save_checkpoint(output / f"HiFi-GAN_checkpoint_{epoch}.pt", trained)
    assert audio_of("HiFi-GAN", corpus, "--resume") == PUBLISHED
    assert audio_of("HiFi-GAN", corpus, "--checkpoint-path", output / "HiFi-GAN_checkpoint_9.pt") == PUBLISHED
    (output / "HiFi-GAN_checkpoint_10.pt").write_bytes(b"cut off")  # training resumes from the one before it
    assert audio_of("HiFi-GAN", corpus, "--resume") == PUBLISHED
    assert audio_of("HiFi-GAN", corpus, "--resume", "--input-mels-dir", describe(tmp_path / "mels", WIDE)) == WIDE


def described(monkeypatch: pytest.MonkeyPatch, corpus: Path, *words: str | Path) -> AudioConfig:
    argv = ["describe_mels", "-d", corpus, "-o", corpus / "audio.json", *words]
    monkeypatch.setattr(sys, "argv", [str(word) for word in argv])
    assert describe_mels.main() == 0
    return from_plain(AudioConfig, read_json(corpus / "audio.json"), where="")


def test_a_corpuss_kind_suits_its_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for index, rate in enumerate((44100, 44100)):
        (tmp_path / "wavs").mkdir(exist_ok=True)
        soundfile.write(tmp_path / "wavs" / f"{index}.flac", torch.zeros(9).numpy(), rate)
    assert described(monkeypatch, tmp_path) == audio_preset(44100)
    words = ("--resume", "--mel-fmax=9000", "--peak-norm")  # arguments of extract_mels.py
    assert described(monkeypatch, tmp_path, *words) == replace(audio_preset(44100), mel_fmax=9000.0, peak=32767 / 32768)
    assert described(monkeypatch, tmp_path, "-sr", "8000") == audio_preset(8000)
    assert described(monkeypatch, tmp_path, "--like", save_voice(tmp_path / "voice.pt", WIDE)) == WIDE
    (tmp_path / "wavs" / "0.flac").write_bytes(b"none")
    with pytest.raises(InputError, match=r"0\.flac: "):
        described(monkeypatch, tmp_path)
