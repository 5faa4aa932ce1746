"""Lists of phrases: their forms, what is wrong with one by file and line, and those that come with the toolkit."""

from pathlib import Path

import pytest

from common.errors import InputError
from common.synthesis.phrases import read_phrases
from common.synthesis.utterances import Phrase

PHRASES = Path(__file__).resolve().parents[1] / "phrases"
LISTS = sorted(PHRASES.glob("*.tsv"))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name)
def test_a_list_is_read_without_complaint_and_says_no_text_twice(path):
    texts = [phrase.text for phrase in read_phrases(path)]
    assert None not in texts
    assert len(set(texts)) == len(texts)


def write(tmp_path: Path, content: str, name: str = "phrases.tsv") -> Path:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def spoken(phrases: list[Phrase]) -> list[tuple[str, str | None]]:
    return [(str(phrase.output), phrase.text) for phrase in phrases]


def test_a_header_names_the_columns_in_any_order(tmp_path):
    path = write(tmp_path, "text\tspeaker\toutput\nOne two.\t3\ta.wav\n\nThree.\t0\tsub/b\n")
    first, second = read_phrases(path)
    assert spoken([first, second]) == [("a.wav", "One two."), ("sub/b.wav", "Three.")]
    assert (first.speaker, second.speaker) == ("3", "0")
    assert (first.where, second.where) == (f"{path}:2", f"{path}:4")
    (phrase,) = read_phrases(write(tmp_path, "mel\toutput\nmels/a.pt\ta.wav\n"))
    assert (phrase.mel, phrase.text, phrase.wav) == ("mels/a.pt", None, None)
    first, second = read_phrases(write(tmp_path, "wav\nwavs/a.wav\nwavs/b.flac\n"))
    assert (first.wav, second.wav, str(second.output)) == ("wavs/a.wav", "wavs/b.flac", "audio_0002.wav")


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        ("output|text\na.wav|One.\n", "a.tsv", [("a.wav", "One.")]),
        ("a.wav|One, two.\nb.wav|Three.\n", "a.tsv", [("a.wav", "One, two."), ("b.wav", "Three.")]),
        ("One.\n\nTwo.\n", "a.txt", [("audio_0001.wav", "One."), ("audio_0002.wav", "Two.")]),
    ],
)
def test_lines_are_named_by_themselves_or_their_place(tmp_path, content, name, expected):
    assert spoken(read_phrases(write(tmp_path, content, name))) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("output\ttext\n", "{path}: a header but no phrases"),
        ("One two three.\n", "{path}:1: expected a header with the column text, mel or wav, got 'One two three.'"),
        ("output\ttext\na.wav\tOne.\tmore\n", "{path}:2: 3 columns, expected 2: output and text"),
        ("ouput\ttext\na.wav\tOne.\n", "{path}:1: column 'ouput', expected any of output, text, mel"),
        ("output\ttext\na.wav\tOne.\nb.wav\t \n", "{path}:3: empty text"),
        ("../a.wav|One.\n", "{path}:1: output '../a.wav': expected a file name inside the output folder"),
        ("a.wav|One.\nb.aac|Two.\n", "{path}:2: output 'b.aac': expected a name that ends in .wav, .flac, .ogg,"),
        ("a.wav|One.\nb.wav|Two.\n./a|Three.\n", "{path}:3: output a.wav, suffix aside, is also that of {path}:1"),
    ],
)
def test_a_bad_list_is_refused_by_file_and_line(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_phrases(path)
    assert message.format(path=path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("This | that.\nOne.\n", ["This | that.", "One."]),
        ("Either|or\nthis |that\n", ["Either|or", "this |that"]),
        ("a.wav|This | that|those.\nb|One.|0\n", ["This | that|those.", "One.|0"]),
        ("a|One.\nb|Two | three.\n", ["One.", "Two | three."]),
        ("output\ttext\na.wav\tThis | that.\n", ["This | that."]),
        ("text\toutput\nThis | that.\ta.wav\n", ["This | that."]),
    ],
)
def test_a_bar_that_does_not_end_a_name_is_text(tmp_path, content, expected):
    assert [phrase.text for phrase in read_phrases(write(tmp_path, content, "phrases.txt"))] == expected


def test_ljspeechs_own_list_speaks_its_normalized_transcripts_and_says_so(tmp_path, capsys):
    lines = 'LJ001-0007|in "1455"|in "fourteen fifty-five"\nLJ001-0015|No. 2.|Number two.\n'
    path = write(tmp_path, lines, "metadata.csv")
    expected = [("LJ001-0007.wav", 'in "fourteen fifty-five"'), ("LJ001-0015.wav", "Number two.")]
    assert spoken(read_phrases(path)) == expected
    assert "the normalized transcripts are spoken" in capsys.readouterr().out
