"""No command writes a file that it reads, or two results into one; what surrounds a process is checked likewise."""

import io
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from test_failing_writes import ended
from tiny_voice import save_voice

import inference
from common.cli import ArgumentParser
from common.errors import InputError, OptionError
from common.files import check_apart, read_text
from common.torch_file import save_tensor


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_file_to_write_is_no_other_one_by_any_of_its_names(tmp_path: Path):
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "dangling").symlink_to("b")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "folder").mkdir()
    for one, other in (("a", "a"), ("a", "link"), ("b", "dangling"), ("b", "folder/../b"), ("new/c", "new/c")):
        for written, read in (((one,), (other,)), ((other,), (one,)), ((one, other), ())):
            with pytest.raises(OptionError, match=r"the same file; give another one$"):
                check_apart([("-o", tmp_path / name) for name in written], [("-i", tmp_path / name) for name in read])
    check_apart([("-o", tmp_path / "folder"), ("-p", tmp_path / "a")], [("-i", tmp_path / "folder")])


def test_every_option_of_a_file_to_write_is_held_against_all_others(tmp_path: Path, capsys):
    parser = ArgumentParser()
    parser.add_argument("source", type=Path)
    for name in ("--lists", "--output"):
        parser.add_argument(name, type=Path, nargs="+")
    parser.add_argument("--log-file", type=Path)
    names = {name: str(tmp_path / name) for name in "abc"}
    good = [names["a"], "--lists", names["b"], names["b"], "--log-file", names["c"], "--output", "-", "d"]
    assert isinstance(parser.parse_args(good), Namespace)
    for words in ("a --log-file a", "a --lists b c --log-file c", "a --output b b", "a --output a"):
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args([names.get(word, word) for word in words.split()])
        assert capsys.readouterr().err.count(" names the same file; give another one") == 1


SPOKEN = {
    "hand-edited prosody": ("--prosody a.prosody.json --save-prosody --pace 0.5 -o a.wav", "a.prosody.json: --prosody"),
    "given durations": ("-i given.tsv --save-mels -o .", "mels/d.pt: given.tsv:2"),
    "the list": ("-i a.srt --subtitles srt -o .", "a.srt: -i/--input"),
    "two results": ("--text Go. -o new --log-file new/speech.prosody.json --save-prosody", "--log-file"),
    "the log": ("-i given.tsv -o . --log-file mels/d.pt", "--log-file mels/d.pt: given.tsv:2"),
}


@pytest.mark.parametrize(("words", "message"), SPOKEN.values(), ids=SPOKEN)
def test_speaking_replaces_nothing_that_it_reads_or_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, words: str, message: str
):
    monkeypatch.chdir(tmp_path)
    save_voice(tmp_path / "voice.pt")
    for folder in ("mels", "sub"):
        (tmp_path / folder).mkdir()
    text = "Go."
    assert inference.main(["--fastpitch", "voice.pt", "--text", text, "-o", "a.wav", "--save-prosody", "--quiet"]) == 0
    (tmp_path / "link.json").symlink_to("a.prosody.json")
    save_tensor(tmp_path / "mels" / "d.pt", torch.full((len(text),), 3))
    (tmp_path / "given.tsv").write_text(f"output\ttext\tduration\nd.wav\t{text}\tmels/d.pt\n")
    (tmp_path / "a.srt").write_text("a.wav|Go.\n")
    before = contents(tmp_path)
    capsys.readouterr()
    assert ended(inference.main, "--fastpitch", "voice.pt", *words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line and line.endswith("; give another one")
    assert contents(tmp_path) == before


def test_standard_input_is_utf_8(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    with pytest.raises(InputError, match=r"^-:1: byte 1 is not UTF-8"):
        read_text(Path("-"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfGo on")))
    assert read_text(Path("-")) == "Go on"
