"""The texts that come with the toolkit have the form, number and length that their names promise."""

from pathlib import Path

import pytest

from common.synthesis.phrases import read_phrases
from common.text.espeak import Speaker
from scripts.datasets.embedded_corpus import SENTENCES, read_sentences

PHRASES = Path(__file__).resolve().parents[1] / "phrases"
LISTS = sorted(PHRASES.glob("*.tsv"))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name)
def test_a_list_is_read_without_complaint_and_says_no_text_twice(path):
    texts = [phrase.text for phrase in read_phrases(path)]
    assert None not in texts
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("n", [8, 16])
def test_a_benchmark_set_holds_as_many_texts_of_128_characters_as_its_name_says(n):
    phrases = read_phrases(PHRASES / f"benchmark_{n}_128.tsv")
    assert [len(phrase.text) for phrase in phrases] == [128] * n


def test_the_devset_has_ten_sentences_that_the_corpus_does_not_have():
    devset = {phrase.text for phrase in read_phrases(PHRASES / "devset10.tsv")}
    assert len(devset) == 10
    assert not devset & set(read_sentences(SENTENCES))


def test_the_corpus_has_every_phone_of_the_devset_many_times():
    speaker = Speaker()
    counts: dict[str, int] = {}
    for sentence in read_sentences(SENTENCES):
        for phone in speaker.phones(sentence):
            counts[phone] = counts.get(phone, 0) + 1
    for phrase in read_phrases(PHRASES / "devset10.tsv"):
        for phone in speaker.phones(phrase.text):
            assert counts.get(phone, 0) >= 10, (phone, phrase.text)
