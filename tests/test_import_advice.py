"""Recordings that no training takes are refused before lists are written, with the command that imports them."""

import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from corpus import encode_aac, glide
from shell import ROOT, run_bash

import extract_mels
from common.errors import InputError
from scripts.datasets import describe_mels, make_filelists
from scripts.import_recordings import main as import_recordings


def make_corpus(folder: Path, sounds: dict[str, np.ndarray | None], rate: int = 22050, **rates: int) -> Path:
    """A corpus of clips, each of a name with a suffix and samples, by default a voice-like sound."""
    (folder / "wavs").mkdir(parents=True)
    for name, wave in sounds.items():
        own = rates.get(Path(name).stem, rate)
        soundfile.write(folder / "wavs" / name, glide(1.0, rate=own) if wave is None else wave, own)
    (folder / "metadata.csv").write_text("".join(f"{Path(name).stem}|Some text.\n" for name in sounds))
    return folder


def make_lists(monkeypatch: pytest.MonkeyPatch, corpus: Path, *words: str) -> None:
    options = ["-d", corpus, "-o", corpus / "lists", "--name", "my", "--n-val", "1", "--n-test", "0", *words]
    monkeypatch.setattr(sys, "argv", ["make_filelists", *map(str, options)])
    assert make_filelists.main() == 0


VOICE = glide(1.0)
REFUSED = {
    "stereo": ({"a.wav": np.stack([VOICE, VOICE], axis=1)}, {"rate": 44100}, r"wavs/a\.wav: 2 channels, 44100 Hz"),
    "mp3": ({"a.wav": None, "b.mp3": None}, {}, r"wavs/b\.wav: no such file, but b\.mp3 is"),
    "mp3 alone": ({"a.mp3": None, "b.mp3": None}, {}, r"wavs: no recordings \(\.wav or \.flac\)"),
    "M4A as WAV": ({"a.wav": None, "b.wav": None}, {}, r"wavs/b\.wav: a format that training does not read"),
    "two rates": (
        {"a.wav": None, "b.wav": None, "c.wav": None},
        {"b": 16000},
        r"my voice: sampling rates differ, 2 of 22050 Hz \(wavs/a\.wav\) and 1 of 16000 Hz \(wavs/b\.wav\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained_on_is_refused_before_lists_are_written(case: str, tmp_path: Path, monkeypatch):
    sounds, rates, message = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    corpus = make_corpus(Path("my voice"), sounds, **rates)
    if case == "M4A as WAV":
        encode_aac(corpus / "wavs/b.wav", np.stack([VOICE, VOICE], axis=1), 22050, "mp4")
    command = "; run bash scripts/import_recordings.sh 'my voice' 'my voice_22050'"
    with pytest.raises(InputError, match=f"{message}{command}$") as raised:
        make_lists(monkeypatch, corpus)
    assert len(str(raised.value)) < 160 and not (corpus / "lists").exists()
    words = ["describe_mels", "-d", str(corpus), "-o", str(corpus / "audio.json")]
    monkeypatch.setattr(sys, "argv", words)
    if case != "mp3":
        with pytest.raises(InputError, match=command):
            describe_mels.main()
    assert import_recordings(["my voice", "my voice_22050", "--num-workers", "1"]) == 0
    make_lists(monkeypatch, Path("my voice_22050")) if len(sounds) > 1 else None


def test_what_trains_badly_is_noted_while_lists_are_made(tmp_path: Path, monkeypatch, capsys):
    silence = np.zeros(4 * 44100)
    voice = glide(1.0, rate=44100)
    sounds = {"a.wav": np.r_[silence, voice, silence], "b.wav": voice / 100, "c.wav": np.tile(voice, 21)}
    corpus = make_corpus(tmp_path / "voice", sounds, 44100)
    make_lists(monkeypatch, corpus)
    assert capsys.readouterr().err.splitlines() == [
        f"note: {corpus}: the recordings have 44100 Hz, usual vocoders 22050 Hz",
        f"note: {corpus}: clips longer than 20 s: wavs/c.wav (21 s)",
        f"note: {corpus}: 1 of 3 recordings tried have 4.1 s of silence at an end (wavs/a.wav)",
        f"note: {corpus}: 1 of 3 recordings tried are quiet, speech at -52 dBFS (wavs/b.wav)",
        f"note: to mend it: bash scripts/import_recordings.sh {corpus} {corpus}_22050",
    ]
    options = [
        "--report",
        "-d",
        str(corpus),
        "--wav-text-filelist",
        str(corpus / "lists/my_audio_text_train_filelist.txt"),
    ]
    extract_mels.main([*options, "--num-workers", "1"])
    report = capsys.readouterr().out
    assert f": mended by bash scripts/import_recordings.sh {corpus} {corpus}_22050" in report
    assert make_corpus(tmp_path / "good", {"a.wav": None, "b.wav": None})
    make_lists(monkeypatch, tmp_path / "good")
    assert capsys.readouterr().err == ""


def test_speakers_become_the_last_column_of_the_lists(tmp_path: Path, monkeypatch):
    for name in ("anna/1", "anna/2", "max/1"):
        path = tmp_path / "source" / f"{name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, VOICE, 22050)
        path.with_suffix(".txt").write_text(f"Text of {name}.")
    corpus = tmp_path / "corpus"
    words = [str(tmp_path / "source"), str(corpus), "--num-workers", "1", "--speakers", "folders"]
    assert import_recordings(words) == 0
    make_lists(monkeypatch, corpus)
    paths = sorted((corpus / "lists").glob("my_audio_text_*"))
    lines = sorted(line for path in paths for line in path.read_text().splitlines())
    assert lines == [f"wavs/{name}.wav|Text of {name}.|{name.split('/')[0]}" for name in ("anna/1", "anna/2", "max/1")]
    make_lists(monkeypatch, corpus, "--speaker", "eva")
    assert all(line.endswith(".|eva") for path in paths for line in path.read_text().splitlines())


def test_scripts_without_transcripts_name_the_command(tmp_path: Path):
    corpus = make_corpus(tmp_path / "voice", {"a.wav": None, "b.wav": None})
    (corpus / "metadata.csv").rename(corpus / "a.txt")
    command = f"bash scripts/import_recordings.sh {corpus} {corpus}_22050"
    settings = {"DATASET_PATH": corpus, "FILELISTS": tmp_path, "N_VAL": "0", "N_TEST": "0", "NAME": "my"}
    result = run_bash(ROOT / "scripts/prepare_dataset.sh", **settings)
    assert result.returncode == 0 and command in result.stderr, result.stderr
    (tmp_path / "voice.pt").touch()
    result = run_bash(ROOT / "scripts/finetune_voice.sh", tmp_path / "voice.pt", corpus)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1) and result.stderr.endswith(f"; run {command}\n")
