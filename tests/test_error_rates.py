"""Word and character error rates are jiwer's and the published ones."""

import json
from pathlib import Path

import pytest

from common.recognition.recognizer import ErrorCounts, error_counts


@pytest.fixture
def published(goldens: Path) -> dict:
    return json.loads((goldens / "jasper" / "wer_cer.json").read_text())


def test_every_pair_has_the_published_errors(published: dict):
    assert published["pairs"]
    for pair in published["pairs"]:
        counts = error_counts([pair["reference"]], [pair["hypothesis"]])
        assert counts == ErrorCounts(
            pair["word_errors"], pair["reference_words"], pair["char_errors"], pair["reference_chars"]
        )
        if pair["reference_words"]:
            assert (counts.wer, counts.cer) == (pair["wer"], pair["cer"])


def test_the_rates_of_a_corpus_are_those_of_its_sums(published: dict):
    references = [pair["reference"] for pair in published["pairs"]]
    hypotheses = [pair["hypothesis"] for pair in published["pairs"]]
    whole = error_counts(references, hypotheses)
    assert (whole.wer, whole.cer) == (published["corpus"]["wer"], published["corpus"]["cer"])


def test_an_empty_reference_has_finite_rates():
    assert error_counts([""], ["the cat"]).wer == 2.0
    assert error_counts([""], [""]).wer == 0.0
    assert error_counts([], []) == ErrorCounts()
