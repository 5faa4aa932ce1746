"""Transcripts are normalised, encoded and decoded as published."""

from pathlib import Path

import pytest
import torch
from golden_files import read_case, read_golden

from jasper.config import LABELS
from jasper.model import greedy_decode
from jasper.text import Labels, normalize_transcript, spelled

FOLDER = "jasper"


def test_sentences_are_normalised_and_encoded_as_published(folder: Path):
    published = read_golden(folder / "text.json")
    assert published["labels"] == list(LABELS) and published["sentences"]
    labels = Labels(LABELS)
    for sentence in published["sentences"]:
        text = normalize_transcript(sentence["text"], LABELS)
        assert (text, labels.encode(text)) == (sentence["normalized"], sentence["ids"])
    for sentence in published["without_normalization"]:
        assert labels.encode(sentence["text"]) == sentence["ids_without_normalization"]


def test_numbers_too_long_to_name_are_read_digit_by_digit():
    assert normalize_transcript("1" * 40, LABELS) == " ".join(["one"] * 40)
    assert normalize_transcript("$1.2.3", LABELS) == "one point two three dollars"


@pytest.mark.parametrize(
    ("letters", "text", "wanted"),
    [
        ("abcdefghijklmnopqrstuvwxyzäöüß'", "Die Gro\u0308ße – Café, geht’s?", "die größe cafe geht's"),
        ("абвгдежзийклмнопрстуфхцчшщъыьэюяё-", "Дверь: Ёжик-то!", "дверь ёжик-то"),
        ("ABCDEFGHIÄÖÜ", "ägid", "ÄGID"),
        ("abcçdefgğhıijklmnoöprsştuüvyz", "IŞIK İyi", "ışık iyi"),
        ("äab", "3 & д", "3 & д"),
    ],
)
def test_other_alphabets_are_spelled_in_their_own_letters(letters: str, text: str, wanted: str):
    labels = (" ", *letters)
    assert spelled(text, labels) == normalize_transcript(text, labels) == wanted


def test_greedy_decoding_equals_the_published_one(folder: Path):
    expected, tensors = read_case(folder, "greedy_decode")
    log_probs, lengths = tensors["input.log_probs"], tensors["input.lens"]
    for name, given in (("with_lens", lengths), ("without_lens", torch.full_like(lengths, log_probs.size(1)))):
        ids = greedy_decode(log_probs, given, blank=expected["blank"])
        assert [Labels(LABELS).decode(row) for row in ids] == expected[f"text_{name}"]
