"""Long runs of the same are read in one pass: each of these inputs would take minutes, or all memory, otherwise."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from common.config import TextConfig
from common.data import read_filelist
from common.errors import InputError
from common.serving.schema import SpeechRequest
from common.synthesis.phrases import read_phrases
from common.text import TextFrontEnd
from common.text.arpabet import Pronouncer, dictionary_of_file, read_dictionary
from common.text.lexicon import read_lexicon


def test_of_a_request_with_thousands_of_unknown_fields_none_is_looked_at():
    with pytest.raises(ValidationError, match="5000 fields; expected some of model, input") as caught:
        SpeechRequest.model_validate_json(json.dumps(dict.fromkeys(map(str, range(5000)))))
    assert caught.value.error_count() == 1


def test_a_word_of_a_dictionary_has_no_more_pronunciations_than_any_has(tmp_path: Path):
    (tmp_path / "a.txt").write_text("A AH0\n" * 400_000 + "B\n")
    with pytest.raises(InputError, match=r"a\.txt:101: 'A' has more than 100 pronunciations"):
        dictionary_of_file(tmp_path / "a.txt")
    assert read_dictionary("A AH0\nA(1) EY1\n", where="a") == {"a": ("AH0", "EY1")}


def test_a_word_of_thousands_of_plural_endings_stays_letters():
    held = TextConfig(p_arpabet=1.0, cmudict="Q  K Y UW1\nA  AH0\n", heteronyms="qsss\n")
    pronouncer = Pronouncer(held)
    assert [pronouncer.phones_of(f"q{'s' * count}") for count in (1, 2, 3, 4, 3000)] == [
        "K Y UW1 Z",
        "K Y UW1 Z Z",
        None,
        None,
        None,
    ]
    assert [pronouncer.phones_of(word) for word in ("a's", "a's's", "a'", "ss", "a" + "s" * 100_000)] == [
        "AH0 Z",
        "AH0 Z Z",
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("phones", "found"),
    [
        (f"EH0{' ' * 300_000}x", None),
        (f"EH0{' ' * 300_000}# x # y", ("EH0",)),
        (f"EH0\tarpabet{chr(9) * 300_000}# x", ("EH0",)),
        ("EH0 #", ("EH0",)),
        ("EH0 # a\tb", ("EH0",)),
        ("EH0#", None),
    ],
)
def test_a_lexicon_is_read_in_one_pass(tmp_path: Path, phones: str, found: tuple[str, ...] | None):
    (tmp_path / "a.txt").write_text(f"NVIDIA\t{phones}\n")
    if found:
        assert read_lexicon(tmp_path / "a.txt", TextConfig()).entries["NVIDIA"] == found
        return
    with pytest.raises(InputError, match=r"a\.txt:1") as caught:
        read_lexicon(tmp_path / "a.txt", TextConfig())
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("read", [read_phrases, lambda path: read_filelist(path, columns=("wav", "text"))])
def test_a_list_of_more_lines_than_any_has_is_refused_before_it_is_read(tmp_path: Path, read: Callable[[Path], object]):
    (tmp_path / "a.txt").write_text("a|b\n" * 1_000_001 + "a|b|c|d|e\n")
    with pytest.raises(InputError, match=r"a\.txt: 1000002 lines, expected at most (1000000|500000); split"):
        read(tmp_path / "a.txt")


@pytest.mark.parametrize("run", ["{", "{a", "1", "1.", "x ", "- "])
def test_a_transcript_is_no_longer_than_any_utterance(run: str):
    front_end = TextFrontEnd(TextConfig(cleaners=("english_cleaners_v3",)))
    with pytest.raises(InputError, match=r"\.\.\.': 1000000 characters, expected at most 20000 .*\(list\.txt:7\)"):
        front_end.encode((run * 1_000_000)[:1_000_000], where="list.txt:7")
