"""Corpora become lists and features: what the scripts run, and what the small programs write."""

import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from shell import ROOT, run_bash

from common.audio.options import read_audio_config
from common.config import audio_preset
from common.errors import InputError
from scripts.datasets.choose_texts import find_phones, read_texts
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


def test_lists_are_made_again_and_those_that_differ_are_kept_elsewhere(tmp_path: Path):
    corpus, lists = make_corpus(tmp_path / "corpus", clips=6), tmp_path / "lists"
    (corpus / "audio.json").write_text("{}")
    settings = {"DATASET_PATH": corpus, "FILELISTS": lists, "NAME": "my", "FEATURES": "false"}
    script = ROOT / "scripts/prepare_dataset.sh"
    assert run_bash(script, N_VAL="1", N_TEST="1", **settings).returncode == 0
    train = lists / "my_audio_text_train_filelist.txt"
    train.write_text("edited by hand\n")
    features = lists / "my_mel_dur_pitch_text_train_filelist.txt"  # of the former transcripts
    features.touch()
    (corpus / "wavs" / "c00.flac").touch()
    for _ in range(2):
        (corpus / "metadata.csv").write_text("".join(f"c0{number}|Corrected {number}.\n" for number in range(5)))
        result = run_bash(script, N_VAL="2", N_TEST="0", **settings)
    assert ".old" not in result.stdout  # nothing has changed
    assert not features.exists() and Path(f"{features}.old").exists()
    assert "wavs/c00.wav\n" in "".join(path.read_text() for path in lists.glob("my_audio_[tv]*.txt"))
    assert {*train.read_text().splitlines()} < {f"wavs/c0{number}.wav|Corrected {number}." for number in range(5)}
    assert len((lists / "my_audio_val.txt").read_text().splitlines()) == 2
    assert not (lists / "my_audio_test.txt").exists()  # its clip may be one to train on
    assert Path(f"{train}.old").read_text() == "edited by hand\n"
    (corpus / "metadata.csv").unlink()  # of lists that somebody else made
    train.write_text("wavs/c00.wav|Mine.\n")
    assert run_bash(script, N_VAL="2", N_TEST="0", **settings).returncode == 0
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


def test_recordings_alone_are_enough_for_a_vocoder(tmp_path: Path):
    for name in ("a.wav", "anna/b.flac", "anna/c.wav"):
        (tmp_path / "corpus" / "wavs" / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(tmp_path / "corpus" / "wavs" / name, np.zeros(9), 16000)
    variables = {"DATASET_PATH": tmp_path / "corpus", "FILELISTS": tmp_path, "NAME": "my", "N_VAL": "1", "N_TEST": "0"}
    result = run_bash(ROOT / "scripts/prepare_dataset.sh", **variables)
    note = f"note: {tmp_path}/corpus has no metadata.csv: lists of recordings alone are made"
    assert result.returncode == 0 and result.stderr.startswith(note)
    assert read_audio_config(tmp_path / "corpus" / "audio.json") == audio_preset(16000)
    lines = [(tmp_path / f"my_audio_{split}.txt").read_text().splitlines() for split in ("train", "val")]
    assert [len(names) for names in lines] == [2, 1]
    assert sorted(lines[0] + lines[1]) == ["wavs/a.wav", "wavs/anna/b.flac", "wavs/anna/c.wav"]
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "my_audio_train.txt", "my_audio_val.txt"}


def test_ljspeech_is_split_as_it_was_for_published_voices(tmp_path: Path):
    ids = {split: (ROOT / f"filelists/ljs_{split}_ids.txt").read_text().split() for split in ("train", "val", "test")}
    assert {split: len(clips) for split, clips in ids.items()} == {"train": 12500, "val": 100, "test": 500}
    assert len(set().union(*ids.values())) == 13100
    part = ids["train"][:30] + ids["val"][5:7] + ids["test"][9:10]
    (tmp_path / "corpus" / "wavs").mkdir(parents=True)
    for clip in part:
        (tmp_path / "corpus" / "wavs" / f"{clip}.wav").touch()
    (tmp_path / "corpus" / "metadata.csv").write_text("".join(f"{clip}|text\n" for clip in part))
    (tmp_path / "corpus/audio.json").write_text("{}")  # the recordings are empty and say nothing of their mels
    script, settings = ROOT / "scripts/prepare_dataset.sh", {"FEATURES": "false", "DATASET_PATH": tmp_path / "corpus"}
    result = run_bash(script, FILELISTS=tmp_path, **settings)
    assert "ljs_train_ids.txt names 12500 clips, and the corpus has 30 of them" in result.stdout
    for name, clips in (("train_v3", part[:30]), ("val", part[30:32]), ("test", part[32:])):
        found = (tmp_path / f"ljs_audio_{name}.txt").read_text().splitlines()
        assert found == [f"wavs/{clip}.wav" for clip in clips]


def test_lists_of_both_kinds_are_read(tmp_path, capsys):
    (tmp_path / "own.txt").write_text("one|raw|Is it you?\ntwo|Stop!\nthree|***\n\n# no text\n", "utf-8")
    texts = read_texts(tmp_path / "own.txt")
    assert texts == {"one": "Is it you?", "two": "Stop!", "three": "***"}
    assert [*find_phones(texts, language="en-us")] == ["one", "two"]
    assert "three" in capsys.readouterr().err
    (tmp_path / "plain.txt").write_text("A plain line.\n", "utf-8")
    assert read_texts(tmp_path / "plain.txt") == {"plain-00001": "A plain line."}


@pytest.mark.parametrize("line", ["../a|Text.", "a|", "|Text.", "first|Twice.", "a b|Text."])
def test_a_line_that_is_no_text_is_named(tmp_path, line):
    (tmp_path / "list.txt").write_text(f"first|Text.\n{line}\n", "utf-8")
    with pytest.raises(InputError, match=r"list\.txt:2: "):
        read_texts(tmp_path / "list.txt")
