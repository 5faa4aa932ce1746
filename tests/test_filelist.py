"""Filelists: every problem is named by file and line."""

from pathlib import Path

import pytest

from common.data.filelist import read_filelist
from common.errors import InputError


def read(path: Path, content: str | bytes, **kwargs):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_filelist(path, **{"columns": ("wav", "text"), "optional": ("speaker",), **kwargs})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_fields_and_lines_are_found_whatever_ends_the_lines(tmp_path: Path, newline: str, encoding: str):
    path = tmp_path / "list.txt"
    text = "wavs/a.wav|Grüße,\t„Welt\u2028“\n\n wavs/b.wav | two words "
    entries = read(path, text.replace("\n", newline).encode(encoding))
    assert [entry.fields for entry in entries] == [
        {"wav": "wavs/a.wav", "text": "Grüße,\t„Welt\u2028“"},
        {"wav": "wavs/b.wav", "text": "two words"},
    ]
    assert [entry.where for entry in entries] == [f"{path}:1", f"{path}:3"]


def test_an_optional_column_is_there_in_all_lines_or_in_none(tmp_path: Path):
    path = tmp_path / "list.txt"
    entries = read(path, "wavs/a.wav|a|0\nwavs/b.wav|b|1\n")
    assert [entry.fields["speaker"] for entry in entries] == ["0", "1"]
    with pytest.raises(InputError, match=r"list\.txt:2: 2 columns, but .*list\.txt:1 has 3"):
        read(path, "wavs/a.wav|a|0\nwavs/b.wav|b\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"list\.txt: the list is empty, expected lines of wav\|text\[\|speaker\]"),
        ("\n\n", r"list\.txt: the list is empty"),
        ("wavs/a.wav|a\nwavs/b.wav\n", r"list\.txt:2: 1 columns, expected wav\|text\[\|speaker\]"),
        ("wavs/a.wav|a|b|c\n", r"list\.txt:1: 4 columns, expected wav\|text"),
        ("wavs/a.wav|a\n|b\n", r"list\.txt:2: the wav column is empty"),
        ("wavs/a.wav| \n", r"list\.txt:1: the text column is empty"),
        ("/data/a.wav|a\n", r"list\.txt:1: /data/a\.wav is outside the dataset"),
        ("wavs/../../a.wav|a\n", r"list\.txt:1: wavs/\.\./\.\./a\.wav is outside the dataset"),
        (b"wavs/a.wav|a\nwavs/b.wav|Gr\xfc\xdfe\n", r"list\.txt:2: byte 14 is not UTF-8"),
    ],
)
def test_a_bad_list_is_one_clear_line(tmp_path: Path, content: str | bytes, message: str):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path / "list.txt", content)
    assert "\n" not in str(caught.value)


def test_what_is_only_read_may_lie_anywhere(tmp_path: Path):
    path = tmp_path / "list.txt"
    path.write_text("/data/a.wav\n../b.wav\n")
    entries = read_filelist(path, columns=("wav",), anywhere=True)
    assert [entry.fields["wav"] for entry in entries] == ["/data/a.wav", "../b.wav"]


def test_lines_of_a_metadata_csv_are_recordings_of_the_corpus_with_their_normalized_transcript(tmp_path: Path):
    path = tmp_path / "metadata.csv"
    entries = read(path, "LJ001-0001|It is No. 1.|It is number one.\nLJ001-0002|plain|\nLJ001-0003|two columns\n")
    texts = ["It is number one.", "plain", "two columns"]
    assert [entry.fields for entry in entries] == [
        {"wav": f"wavs/LJ001-000{number}.wav", "text": text} for number, text in enumerate(texts, 1)
    ]
    with pytest.raises(InputError, match=r"metadata\.csv:1: the text column is empty"):
        read(path, "LJ001-0001||\n")
    mixed = read(path, "LJ001-0001|raw|normalized\nwavs/other.wav|a transcript\n")
    assert [entry.fields["wav"] for entry in mixed] == ["wavs/LJ001-0001.wav", "wavs/other.wav"]


SENTENCES = ["the first one is here", "and a second one too", "third of them", "fourth and last one"]
JAPANESE = ["水をマレーシアから買う", "木曜日の停戦会談は", "上院議員は私がデータを", "私たちは会談をした"]
NAMES = ["anna", "ben", "anna", "ben"]


@pytest.mark.parametrize(
    ("texts", "speakers", "is_right"),
    [
        (SENTENCES, NAMES, True),
        (NAMES, SENTENCES, False),
        ("0101", SENTENCES, False),
        (NAMES, JAPANESE, False),
        (NAMES, SENTENCES[:2] * 2, False),
        (["anna"], SENTENCES[:1], False),
        (["yes", "no"] * 2, ["p1", "p2", "p3", "p4"], True),
        (["yes", "no"] * 2, ["Karen Savage", "John Smith", "Ann Lee", "Bo Li"], True),
        ([""] * 4, NAMES, True),
    ],
)
def test_speakers_that_are_sentences_are_refused(tmp_path: Path, texts, speakers, is_right: bool):
    lines = "".join(f"w/{number}.wav|{text}|{name}\n" for number, (text, name) in enumerate(zip(texts, speakers)))
    if is_right:
        assert len(read(tmp_path / "list.txt", lines, may_be_empty=("text",))) == len(texts)
        return
    with pytest.raises(InputError, match=rf"list\.txt:1: .*{speakers[0]}.*wav\|text\[\|speaker\]"):
        read(tmp_path / "list.txt", lines)
