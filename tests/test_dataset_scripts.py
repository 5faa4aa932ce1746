"""Corpora become lists and features of one kind of mels: what the scripts run, and what small programs write."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
import soundfile
import torch
from seed_commands import Project
from shell import ROOT, run_here
from training_setup import set_up

from common.audio.options import read_audio_config
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint, strip_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig, audio_preset, from_plain, to_plain
from common.errors import InputError, OptionError
from common.files import read_json, write_json
from common.text.config import TextConfig
from fastpitch.config import ModelConfig
from hifigan.config import PUBLISHED_MELS, ModelConfig as HifiganConfig
from scripts import launch
from scripts.datasets import describe_mels
from scripts.datasets.choose_texts import find_phones
from scripts.datasets.make_corpus import main as make_corpus_by_server
from scripts.datasets.make_filelists import main as make_filelists


def make_corpus(folder: Path, clips: int = 12) -> Path:
    (folder / "wavs").mkdir(parents=True)
    lines = []
    for number in range(clips):
        (folder / "wavs" / f"c{number:02}.wav").touch()
        lines.append(f"c{number:02}|It is No. {number}.|It is number {number}.\n")
    (folder / "metadata.csv").write_text("".join(lines))
    return folder


def make_lists(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["make_filelists", *map(str, words)])
    assert make_filelists() == 0


def test_a_corpus_is_split_without_overlap_and_the_same_way_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    corpus = make_corpus(tmp_path / "corpus")
    for folder in ("a", "b"):
        options = ("--name", "my", "--n-val", "3", "--n-test", "2")
        make_lists(monkeypatch, "-d", corpus, "-o", tmp_path / folder, *options)
    texts = {}
    for split, size in (("train", 7), ("val", 3), ("test", 2)):
        name = f"my_audio_text_{split}_filelist.txt"
        texts[split] = (tmp_path / "a" / name).read_text().splitlines()
        assert texts[split] == (tmp_path / "b" / name).read_text().splitlines()
        assert len(texts[split]) == size
    lines = [line for split in texts.values() for line in split]
    assert sorted(lines) == [f"wavs/c{n:02}.wav|It is number {n}." for n in range(12)]
    assert lines != sorted(lines)


def test_lists_are_made_again_and_those_that_differ_are_kept_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    corpus, lists = make_corpus(tmp_path / "corpus", clips=6), tmp_path / "lists"
    words = ("-d", corpus, "-o", lists, "--name", "my", "--n-val")
    make_lists(monkeypatch, *words, "1", "--n-test", "1")
    train = lists / "my_audio_text_train_filelist.txt"
    train.write_text("edited by hand\n")
    features = lists / "my_mel_dur_pitch_text_train_filelist.txt"  # of the former transcripts
    features.touch()
    (corpus / "wavs" / "c00.flac").touch()
    for _ in range(2):
        (corpus / "metadata.csv").write_text("".join(f"c0{number}|Corrected {number}.\n" for number in range(5)))
        capsys.readouterr()
        make_lists(monkeypatch, *words, "2", "--n-test", "0")
    assert ".old" not in capsys.readouterr().out  # nothing has changed
    assert not features.exists() and Path(f"{features}.old").exists()
    assert "wavs/c00.wav\n" in "".join(path.read_text() for path in lists.glob("my_audio_[tv]*.txt"))
    assert {*train.read_text().splitlines()} < {f"wavs/c0{number}.wav|Corrected {number}." for number in range(5)}
    assert len((lists / "my_audio_val.txt").read_text().splitlines()) == 2
    assert not (lists / "my_audio_test.txt").exists()  # its clip may be one to train on
    assert Path(f"{train}.old").read_text() == "edited by hand\n"


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CompletedProcess]:
    """Run prepare_dataset.sh and the programs that it starts in this process."""
    monkeypatch.setattr(launch, "run_or_print", lambda words: print(Project(ROOT).python([*map(str, words)])))
    return partial(run_here, ROOT / "scripts/prepare_dataset.sh", N_TEST="0")


def test_lists_that_somebody_else_made_are_kept(tmp_path: Path, prepare: Callable[..., CompletedProcess]):
    corpus, train = make_corpus(tmp_path / "corpus", clips=6), tmp_path / "my_audio_text_train_filelist.txt"
    (corpus / "audio.json").write_text("{}")
    (corpus / "metadata.csv").unlink()
    train.write_text("wavs/c00.wav|Mine.\n")
    settings = {"DATASET_PATH": corpus, "FILELISTS": tmp_path, "NAME": "my", "FEATURES": "false", "N_VAL": "2"}
    assert prepare(**settings).returncode == 0
    assert train.read_text() == "wavs/c00.wav|Mine.\n"


def test_a_speaker_of_a_single_clip_is_trained_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = [*(f"anna/{n}" for n in range(4)), "ben/1", *(f"cy/{n}" for n in range(2)), "zoe/1"]
    for name in names:
        (tmp_path / f"wavs/{name}.wav").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"wavs/{name}.wav").touch()
    (tmp_path / "metadata.csv").write_text("".join(f"{name}|text\n" for name in names))
    (tmp_path / "speakers.txt").write_text("anna\nben\ncy\nzoe\n")
    for number, (n_val, n_test, found) in enumerate([(2, 1, 2), (9, 0, 4), (3, 3, 3)]):
        words = ["--name", "my", "--n-val", str(n_val), "--n-test", str(n_test), "--seed", str(number)]
        make_lists(monkeypatch, "-d", tmp_path, "-o", tmp_path / str(number), *words)
        train, val = ((tmp_path / f"{number}/my_audio_text_{one}_filelist.txt").read_text() for one in ("train", "val"))
        assert {line.split("|")[-1] for line in train.splitlines()} == {"anna", "ben", "cy", "zoe"}
        assert val.count("\n") == found and not {*train.splitlines()} & {*val.splitlines()}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("", "no clips are left to train on: 0 go to validation and 0 to testing"),
        ("a|b|c|d\n", r"metadata\.csv:1: 'a\|b\|c\|d', expected clip\|transcript"),
        ("c00|hello\n\nc00|hello\n", r"metadata\.csv:3: 'c00\|hello', expected .*, each clip once"),
        ("c00|hello\nx|hello\n", r"wavs/x\.wav: no such file, but metadata\.csv lists it"),
        ("c00|hello\nc01|hello\n", "no clips are left to train on: 2 go to validation and 0 to testing"),
    ],
)
def test_a_faulty_corpus_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: str, message: str
):
    corpus = make_corpus(tmp_path / "corpus")
    (corpus / "metadata.csv").write_text(metadata)
    with pytest.raises(InputError, match=message):
        make_lists(monkeypatch, "-d", corpus, "-o", tmp_path / "out", "--name", "my", "--n-test", "0")
    assert not (tmp_path / "out").exists()


def test_recordings_alone_are_enough_for_a_vocoder(tmp_path: Path, prepare: Callable[..., CompletedProcess]):
    for name in ("a.wav", "anna/b.flac", "anna/c.wav"):
        (tmp_path / "corpus" / "wavs" / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(tmp_path / "corpus" / "wavs" / name, np.zeros(9), 16000)
    result = prepare(DATASET_PATH=tmp_path / "corpus", FILELISTS=tmp_path, NAME="my", N_VAL="1")
    note = f"note: {tmp_path}/corpus has no metadata.csv, so only lists of recordings are made"
    assert result.returncode == 0 and result.stderr.startswith(note)
    assert read_audio_config(tmp_path / "corpus" / "audio.json") == audio_preset(16000)
    lines = [(tmp_path / f"my_audio_{split}.txt").read_text().splitlines() for split in ("train", "val")]
    assert [len(names) for names in lines] == [2, 1]
    assert sorted(lines[0] + lines[1]) == ["wavs/a.wav", "wavs/anna/b.flac", "wavs/anna/c.wav"]
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "my_audio_train.txt", "my_audio_val.txt"}


def test_ljspeech_is_split_as_it_was_for_published_voices(tmp_path: Path, prepare: Callable[..., CompletedProcess]):
    ids = {split: (ROOT / f"filelists/ljs_{split}_ids.txt").read_text().split() for split in ("train", "val", "test")}
    assert {split: len(clips) for split, clips in ids.items()} == {"train": 12500, "val": 100, "test": 500}
    assert len(set().union(*ids.values())) == 13100
    part = ids["train"][:30] + ids["val"][5:7] + ids["test"][9:10]
    (tmp_path / "corpus" / "wavs").mkdir(parents=True)
    for clip in part:
        (tmp_path / "corpus" / "wavs" / f"{clip}.wav").touch()
    (tmp_path / "corpus" / "metadata.csv").write_text("".join(f"{clip}|text\n" for clip in part))
    (tmp_path / "corpus/audio.json").write_text("{}")  # the recordings are empty and say nothing of their mels
    result = prepare(FEATURES="false", DATASET_PATH=tmp_path / "corpus", FILELISTS=tmp_path, N_TEST="")
    assert "ljs_train_ids.txt names 12500 clips, and the corpus has 30 of them" in result.stdout
    for name, clips in (("train_v3", part[:30]), ("val", part[30:32]), ("test", part[32:])):
        found = (tmp_path / f"ljs_audio_{name}.txt").read_text().splitlines()
        assert found == [f"wavs/{clip}.wav" for clip in clips]


def test_texts_without_phones_are_named_and_left_out(capsys):
    texts = {"one": "Is it you?", "two": "Stop!", "three": "***"}
    assert [*find_phones(texts, language="en-us")] == ["one", "two"]
    assert "three" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["../a|Text.", "first|Twice.", "a b|Text."])
def test_a_line_that_is_no_text_is_named(tmp_path, line):
    (tmp_path / "list.txt").write_text(f"first|Text.\n{line}\n", "utf-8")
    with pytest.raises(InputError, match=r"list\.txt:[12]: "):
        make_corpus_by_server([f"{tmp_path}/list.txt", *f"-o {tmp_path}/out --voice a --from-server http://a".split()])


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
    words = ["--audio-config", other, "--n-mel-channels", "80"]
    words += ["--segment-size", "8000"] if model == "HiFi-GAN" else []
    assert audio_of(model, corpus, *words) == replace(WIDE, hop_length=200, n_mels=80)


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
