"""What cannot be written: one line that names the file, nothing lost that was there, and no temporary file left."""

import contextlib
import io
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch
from corpus import make_corpus
from matplotlib.figure import Figure
from test_inference_errors import make_checkpoint
from tiny_models import MODELS, Runs, at_iteration, without_samples

import extract_mels
import inference
import train
from common.audio.wav import SOUND_FORMATS, save_wav
from common.cli import run
from common.errors import OutputError
from common.files import check_output_file, make_folder, write_text
from common.plots import save_png
from common.synthesis.output_folder import OutputFolder
from common.torch_file import save_tensor

FASTPITCH = MODELS[0]


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file can grow beyond ``size`` bytes, as on a disk with so much room."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def ended(main: Callable[[Sequence[str]], int], *words: str | Path) -> int:
    """The exit status of a command."""
    with pytest.raises(SystemExit) as caught:
        run(lambda: main([str(word) for word in words]))
    return caught.value.code


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


NOISE = torch.rand(60_000, generator=torch.Generator().manual_seed(0)) - 0.5
WRITERS: dict[str, Callable[[Path], None]] = {
    "small.pt": lambda path: save_tensor(path, torch.zeros(3)),
    "large.pt": lambda path: save_tensor(path, torch.zeros(100_000)),
    "text.txt": lambda path: write_text(path, "words" * 2000),
    "a.png": lambda path: save_png(Figure(), path),
    **{f"a{suffix}": lambda path: save_wav(path, NOISE, sampling_rate=16000) for suffix in SOUND_FORMATS},
}


@pytest.mark.parametrize("size", [0, 700])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_one_line_and_keeps_the_old_file(name: str, size: int, tmp_path: Path, capfd):
    path = tmp_path / "sub" / name
    write_text(path, "old")
    with full_disk(size), pytest.raises(OutputError, match=rf"{name}: cannot be written \(File too large\)$"):
        WRITERS[name](path)
    assert path.read_text() == "old" and files(tmp_path) == [f"sub/{name}"]
    assert capfd.readouterr() == ("", "")  # libraries print what they meet in a callback


def test_places_where_nothing_can_be_written_are_refused_and_stay_as_they_are(tmp_path: Path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "pipe").symlink_to("/dev/null")
    for place, reason in {
        tmp_path / "folder": "a folder or device is there",
        tmp_path / "file/a/b.txt": "Not a directory",
        tmp_path / "pipe": "a folder or device is there",
        tmp_path / ("a" * 260): "File name too long",
    }.items():
        for write in (lambda path: write_text(path, "new"), check_output_file):
            with pytest.raises(OutputError) as caught:
                write(place)
            assert str(caught.value).startswith(f"{place}: cannot be written ({reason}")
    with pytest.raises(OutputError, match=r"; elsewhere$"):
        make_folder(tmp_path / "file" / "a", "; elsewhere")
    assert files(tmp_path) == ["file"] and Path("/dev/null").is_char_device()


def test_a_link_is_written_through_and_stays_a_link(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "a.txt")
    for text in ("new", "newer"):
        write_text(tmp_path / "link.txt", text)
        assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "real" / "a.txt").read_text() == text
    check_output_file(tmp_path / "link.txt")
    assert files(tmp_path) == ["link.txt", "real/a.txt"]


def closed_pipe() -> io.TextIOWrapper:
    """Standard output whose reader has gone, as with ``| head``."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def test_output_that_cannot_be_printed_is_one_line_or_the_status_of_a_closed_pipe(monkeypatch, capsys):
    def main(_: Sequence[str]) -> int:
        print("x")
        return 0

    monkeypatch.setattr(sys, "stdout", Path("/dev/full").open("w"))  # noqa: SIM115
    assert ended(main) == 1
    assert capsys.readouterr().err == "error: standard output: cannot be written (No space left on device)\n"
    monkeypatch.setattr(sys, "stdout", closed_pipe())
    assert ended(main) == 128 + signal.SIGPIPE
    assert capsys.readouterr().err == ""


@pytest.fixture
def trained(make_once, corpora: Path, tmp_path: Path) -> Path:
    """A folder with the checkpoint of the first epoch of FastPitch."""
    first = Runs(make_once, corpora, FASTPITCH).plain / "FastPitch_checkpoint_1.pt"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / first.name).write_bytes(first.read_bytes())
    return tmp_path / "out"


def train_on(corpora: Path, output: Path, *words: str) -> int:
    """The exit status of two epochs of FastPitch."""
    with without_samples():
        return ended(train.main, *FASTPITCH.words(corpora, output, "--epochs", "2", "--ema-decay", "0.9", *words))


def test_a_checkpoint_on_a_full_disk_leaves_the_one_before_and_says_how_to_go_on(trained, corpora, capsys):
    old = trained / "FastPitch_checkpoint_1.pt"
    before = old.read_bytes()
    with full_disk(30_000):  # the logs have room
        assert train_on(corpora, trained, "--resume") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {trained}/FastPitch_checkpoint_2.pt: cannot be written (File too large); ")
    assert f"the last checkpoint is {old}: add --resume" in line
    assert old.read_bytes() == before and not list(trained.rglob("*.tmp"))
    assert train_on(corpora, trained, "--resume") == 0


@pytest.mark.parametrize("failing", ["log", "TensorBoard", "full output", "closed output"])
def test_what_cannot_be_logged_ends_training_and_names_the_last_checkpoint(
    failing, trained, corpora, monkeypatch, capsys
):
    log, named, words = trained / "nvlog.json", "standard output", []
    output = closed_pipe() if failing == "closed output" else Path("/dev/full").open("w")  # noqa: SIM115
    if failing == "TensorBoard":
        named = trained / "val"
        named.touch()
        words = ["--validation-interval", "2"]

    def fail() -> None:
        if failing == "log":
            log.rename(trained / "kept.json")
            log.symlink_to("/dev/full")
        if "output" in failing:
            monkeypatch.setattr(sys, "stdout", output)

    with at_iteration(4, fail):
        assert train_on(corpora, trained, "--resume", *words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {log if failing == 'log' else named}: cannot be written (")
    assert f"the last checkpoint is {trained}/FastPitch_checkpoint_" in line and "--resume" in line


def test_training_is_refused_at_once_where_it_could_not_write(corpora, tmp_path, capsys):
    (tmp_path / "file").touch()
    for words, reason in {
        (): f"{tmp_path}/file: cannot be written (File exists); choose another --output",
        ("-o", f"{tmp_path}/out", "--log-file", "/dev/full"): "/dev/full: cannot be written (No space left on device)",
    }.items():
        assert train_on(corpora, tmp_path / "file", *words) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {reason}")
    assert not list(tmp_path.rglob("*.pt"))


def test_training_replaces_no_recording_list_or_checkpoint(corpora, tmp_path, capsys):
    output, words = tmp_path / "out", FASTPITCH.words(corpora, tmp_path)
    folder, first = (Path(words[words.index(name) + 1]) for name in ("-d", "--training-files"))
    mel, voice = folder / first.read_text().partition("|")[0], output / "FastPitch_inference.pt"
    make_checkpoint(voice)
    (tmp_path / "link.json").symlink_to(mel)
    before = [mel.read_bytes(), voice.read_bytes()]
    for given, status in {
        ("--log-file", voice): 1,
        ("--log-file", first): 2,
        ("--log-file", tmp_path / "link.json"): 1,
    }.items():
        assert train_on(corpora, output, *given) == status
        (line,) = capsys.readouterr().err.splitlines()
        assert str(given[1]) in line
    assert before == [mel.read_bytes(), voice.read_bytes()]


def test_inference_that_cannot_write_is_one_line_and_keeps_what_is_finished(tmp_path, monkeypatch, capsys):
    voice = make_checkpoint(tmp_path / "voice.pt")
    (tmp_path / "phrases.txt").write_text("Hm?\n" * 3)
    words = ["-i", tmp_path / "phrases.txt", "--fastpitch", voice, "--griffin-lim-iters", "1", "-o"]
    assert ended(inference.main, *words, voice / "out") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {voice}/out: cannot be written (Not a directory)")
    add = OutputFolder.add

    def add_on_a_full_disk(self, result):
        with full_disk(4000 if result.item.phrase.output.name == "audio_0002.wav" else resource.RLIM_INFINITY):
            return add(self, result)

    monkeypatch.setattr(OutputFolder, "add", add_on_a_full_disk)
    assert ended(inference.main, *words, tmp_path / "out") == 1
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert line.startswith(f"error: {tmp_path}/out/audio_0002.wav: cannot be written (File too large)")
    assert f"1 of 3 phrases are in {tmp_path}/out" in out
    assert files(tmp_path / "out") == ["audio_0001.wav", "nvlog_infer.json"]


def test_extraction_on_a_full_disk_says_how_to_go_on(tmp_path, capsys):
    make_corpus(tmp_path, 2)
    words = ["-d", tmp_path, "--wav-text-filelist", tmp_path / "train.txt", "--extract-mels", "--num-workers", "1"]
    with full_disk(4000):
        assert ended(extract_mels.main, *words) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert (
        line.startswith(f"error: {tmp_path}/mels/c000.pt: cannot be written (File too large); ") and "--resume" in line
    )
    assert not list((tmp_path / "mels").glob("*.pt")) and not list(tmp_path.rglob("*.tmp"))
