"""Texts for a corpus: in an order that covers phones, their pairs, questions and exclamations early."""

from collections import Counter
from math import fsum

import pytest

from common.errors import InputError
from scripts.datasets.choose_texts import choose_texts, find_phones, find_units, read_texts
from scripts.datasets.embedded_corpus import SENTENCES


@pytest.fixture(scope="module")
def phones() -> dict[str, list[str]]:
    texts = read_texts(SENTENCES)
    few = dict(list(texts.items())[:150]) | {"one": "Look out, the bridge is gone!"}
    return find_phones(few, language="en-us")


def test_the_order_is_that_of_trying_all_texts_each_time(phones):
    left, order, chosen = list(phones), [], Counter()
    while left:
        worths = []
        for name in left:
            units = find_units(phones[name])
            values = [1 / (1 + chosen[unit]) ** 2 for unit in units]
            values += [3 / (1 + chosen[mark]) ** 0.5 for mark in ("?", "!") if mark in units]
            worths.append(fsum(values) / len(phones[name]))
        order.append(left.pop(worths.index(max(worths))))
        chosen.update(find_units(phones[order[-1]]))
    assert [name for name, _ in zip(choose_texts(phones), range(40))] == order[:40]


def test_lists_of_both_kinds_are_read(tmp_path, capsys):
    (tmp_path / "own.txt").write_text("one|raw|Is it you?\ntwo|Stop!\nthree|***\n\n# no text\n", "utf-8")
    texts = read_texts(tmp_path / "own.txt")
    assert texts == {"one": "Is it you?", "two": "Stop!", "three": "***"}
    assert [*find_phones(texts, language="en-us")] == ["one", "two"]
    assert "three" in capsys.readouterr().err
    (tmp_path / "plain.txt").write_text("A plain line.\n", "utf-8")
    assert read_texts(tmp_path / "plain.txt") == {"plain-00001": "A plain line."}


@pytest.mark.parametrize("line", ["../a|Text.", "a|", "|Text.", "first|Twice.", "a b|Text."])
def test_a_line_that_is_no_text_is_named(tmp_path, line):
    (tmp_path / "list.txt").write_text(f"first|Text.\n{line}\n", "utf-8")
    with pytest.raises(InputError, match=r"list\.txt:2: "):
        read_texts(tmp_path / "list.txt")
