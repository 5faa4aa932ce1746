"""Manifests, lists and folders of recordings, and LibriSpeech made into them."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from common.audio.wav import save_wav
from common.errors import InputError
from jasper.config import LABELS
from jasper.manifest import Entry, read_entries, select_entries
from jasper.waveform import change_speed, load_recording
from jasper.yaml_config import DatasetSettings
from scripts.datasets.preprocess_librispeech import main as preprocess

RATE = 16000


def add_wav(path: Path, *, seconds: float = 0.5, rate: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = 0.1 * torch.randn(round(seconds * rate), generator=torch.Generator().manual_seed(0))
    save_wav(path, noise, sampling_rate=rate, durable=False)
    return path


def write_manifest(path: Path, *items: object) -> Path:
    path.write_text(json.dumps(list(items)))
    return path


def test_a_manifest_as_published_is_read(tmp_path: Path):
    files = [{"fname": "clean-wav/a-0.9.wav", "speed": 0.9}, {"fname": "clean-wav/a.wav", "speed": 1}]
    item = {"transcript": "a word", "files": files, "original_duration": 2.5, "original_num_samples": 40000}
    (entry,) = read_entries(write_manifest(tmp_path / "m.json", item), folder=Path("data"))
    paths = (Path("data/clean-wav/a.wav"), Path("data/clean-wav/a-0.9.wav"))
    assert entry == Entry(paths, "a word", f"{tmp_path}/m.json: entry 1", 2.5)
    assert entry.name == f"data/clean-wav/a.wav ({tmp_path}/m.json: entry 1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{]", "m.json: Invalid JSON: "),
        ("[]", "m.json: holds no utterances"),
        ('[{"transcript": "a"}]', "m.json: entry 1: files: Field required"),
        ('[{"files": [{"fname": "a"}]}, {"files": [{}]}]', "m.json: entry 2: files: 0: fname: Field required"),
    ],
)
def test_a_bad_manifest_is_named_with_its_entry(tmp_path: Path, text: str, message: str):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_entries(path)
    assert str(raised.value).removeprefix(f"{tmp_path}/").startswith(message)
    assert len(str(raised.value).splitlines()) == 1


def test_nemos_manifest_is_read(tmp_path: Path):
    path = tmp_path / "m.jsonl"
    (tmp_path / "b.wav").write_bytes(b"")
    line = '{"audio_filepath": "%s.wav", "duration": 1.5, "text": "ein Wort", "offset": %s}\n'
    path.write_text(line % ("a", "0.0") + "\n" + line % ("b", "null"))
    first, second = read_entries(path, folder=Path("data"))
    assert first == Entry((Path("data/a.wav"),), "ein Wort", f"{path}: entry 1", 1.5)
    assert second.paths == (tmp_path / "b.wav",)
    for text, message in ((line % ("a", "2.5"), "entry 1: offset 2.5"), ('{"text": "a"}', "entry 1: audio_filepath")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_entries(path)


def test_lists_folders_and_files_are_read_too(tmp_path: Path):
    corpus = tmp_path / "corpus"
    for name in ("a", "b"):
        add_wav(corpus / "wavs" / f"{name}.wav")
    (corpus / "metadata.csv").write_text('a|Dr. "X"|doctor x\n\nb|only one\n')
    found = [(entry.paths[0].name, entry.transcript, entry.where) for entry in read_entries(corpus)]
    assert found == [
        ("a.wav", "doctor x", f"{corpus}/metadata.csv:1"),
        ("b.wav", "only one", f"{corpus}/metadata.csv:3"),
    ]
    folder = read_entries(corpus / "wavs")
    assert [(entry.paths[0].name, entry.transcript) for entry in folder] == [("a.wav", None), ("b.wav", None)]
    (one,) = read_entries(corpus / "wavs" / "a.wav")
    assert (one.paths[0], one.transcript) == (corpus / "wavs/a.wav", None)
    (tmp_path / "list.txt").write_text("wavs/a.wav|hello\n")
    (listed,) = read_entries(tmp_path / "list.txt", folder=corpus)
    assert (listed.paths[0], listed.transcript) == (corpus / "wavs/a.wav", "hello")


def test_an_empty_folder_and_an_absent_recording_are_named(tmp_path: Path):
    with pytest.raises(InputError, match="holds no recordings"):
        read_entries(tmp_path)
    with pytest.raises(InputError, match=r"absent\.wav: no such recording"):
        read_entries(tmp_path / "absent.wav")


def select(source: Path, *, folder: Path = Path(), **settings: object) -> list[Entry]:
    return select_entries([source], folder=folder, settings=DatasetSettings(**settings))


def test_utterances_that_are_too_short_or_long_are_left_out_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture):
    for name, seconds in (("a", 0.05), ("b", 0.5), ("c", 2.0)):
        add_wav(tmp_path / f"{name}.wav", seconds=seconds, rate=8000)
    entries = select(tmp_path, min_duration=0.1, max_duration=1.0)
    assert [(entry.paths[0].name, entry.duration) for entry in entries] == [("b.wav", 0.5)]
    assert "2 of 3 utterances are skipped" in capsys.readouterr().out
    assert len(load_recording(entries[0].paths[0], sampling_rate=RATE, trim=True)) == RATE // 2
    with pytest.raises(InputError, match="none of 3 utterances is from 5 to 6 s long"):
        select(tmp_path, min_duration=5.0, max_duration=6.0)


def test_a_manifests_recordings_must_be_there_and_are_looked_into_when_they_are_read(tmp_path: Path):
    item = {"transcript": "A Word!", "files": [{"fname": "a.wav"}], "original_duration": 1.0}
    source = write_manifest(tmp_path / "m.json", item)
    with pytest.raises(InputError, match=r"a\.wav: no such file \(.*m\.json: entry 1\)"):
        select(source, folder=tmp_path)
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    (entry,) = select(source, folder=tmp_path)
    assert entry.normalized(DatasetSettings(), LABELS) == "a word"
    assert entry.normalized(DatasetSettings(normalize_transcripts=False), LABELS) == "a word"
    with pytest.raises(InputError, match=r"a\.wav: .*\(.*m\.json: entry 1\)"):
        load_recording(entry.paths[0], sampling_rate=RATE, trim=False, where=entry.where)
    del item["original_duration"]
    with pytest.raises(InputError, match=r"a\.wav: .*\(.*m\.json: entry 1\)"):
        select(write_manifest(source, item), folder=tmp_path)


def make_librispeech(folder: Path) -> None:
    """Two utterances of a training subset and one of another."""
    generator = np.random.default_rng(0)
    for subset, name, text in (
        ("train-clean-100", "1-2-0000", "HELLO"),
        ("train-clean-100", "1-2-0001", "GOOD BYE"),
        ("dev-clean", "3-4-0000", "YES"),
    ):
        speaker, chapter, _ = name.split("-")
        chapter_folder = folder / subset / speaker / chapter
        chapter_folder.mkdir(parents=True, exist_ok=True)
        soundfile.write(chapter_folder / f"{name}.flac", 0.1 * generator.standard_normal(RATE), RATE)
        with (chapter_folder / f"{speaker}-{chapter}.trans.txt").open("a") as file:
            file.write(f"{name} {text}\n")


def test_librispeech_becomes_wavs_with_copies_and_manifests_and_goes_on_where_it_stopped(tmp_path: Path):
    make_librispeech(tmp_path)
    options = [str(tmp_path), "--speeds", "0.9", "1.1", "--n-workers", "1"]
    assert preprocess(options) == 0
    source = tmp_path / "librispeech-train-clean-100-wav.json"
    first, second = read_entries(source, folder=tmp_path)
    assert (first.transcript, second.transcript, first.duration) == ("hello", "good bye", 1.0)
    assert [path.name for path in second.paths] == ["1-2-0001.wav", "1-2-0001-0.9.wav", "1-2-0001-1.1.wav"]
    assert [file["speed"] for file in json.loads(source.read_text())[1]["files"]] == [1.0, 0.9, 1.1]
    original, slower = (load_recording(path, sampling_rate=RATE, trim=False) for path in first.paths[:2])
    torch.testing.assert_close(slower, change_speed(original, 0.9), rtol=0, atol=1e-4)
    (dev,) = read_entries(tmp_path / "librispeech-dev-clean-wav.json", folder=tmp_path)
    assert len(dev.paths) == 1
    kept, lost = first.paths[1], second.paths[2]
    stamp, manifest = kept.stat().st_mtime_ns, source.read_bytes()
    lost.unlink()
    source.unlink()
    preprocess(options)
    assert lost.is_file() and kept.stat().st_mtime_ns == stamp and source.read_bytes() == manifest


def test_a_broken_librispeech_ends_in_one_line(tmp_path: Path):
    with pytest.raises(InputError, match="train-clean-100: holds no transcripts"):
        preprocess([str(tmp_path)])
    make_librispeech(tmp_path)
    flac = tmp_path / "dev-clean/3/4/3-4-0000.flac"
    flac.write_bytes(flac.read_bytes()[:-2000])
    with pytest.raises(InputError, match=r"3-4-0000\.flac: .*truncated.*3-4\.trans\.txt:1"):
        preprocess([str(tmp_path), "--subsets", "dev-clean", "--n-workers", "1"])
    assert not (tmp_path / "librispeech-dev-clean-wav.json").exists()
