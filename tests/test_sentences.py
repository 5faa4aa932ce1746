"""Long texts become utterances: nothing is lost, pauses are those of the punctuation, and time is linear."""

import random
from pathlib import Path

import pytest

from common.text import sentences
from common.text.sentences import MAX_CHARACTERS, TextUtterance, split_utterances
from common.text.ssml import NEUTRAL, Boundary, Item, Mark, Pause, Span, Style, read_markup

FAST, SLOW = Style(rate=2.0), Style(rate=0.5)


def texts(text: str, **options: int) -> list[str]:
    """The text of each utterance."""
    return [said(one) for one in split_utterances(read_markup(text), **options)]


def said(utterance: TextUtterance) -> str:
    return "".join(span.text for span in utterance.spans)


def bare(text: str) -> str:
    return "".join(text.split())


FOLDER = Path(__file__).parent / "text_cases"
CASES = (FOLDER / "sentences.txt").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("marked", [case.replace("\\n", "\n") for case in CASES])
def test_sentences_are_found_where_a_reader_finds_them(marked: str):
    assert texts(marked.replace("|", "")) == [part.strip() for part in marked.split("|")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello. ... There", ["Hello. ...", "There"]),
        ("One.\n\n* * *\n\nTwo.", ["One.\n\n* * *", "Two."]),
        ("Hello <break/>.", ["Hello."]),
        ("<voice name='a'>Hi</voice>. <voice name='b'>You</voice>!", ["Hi.", "You!"]),
        ('"<voice name="a">Hi</voice>" he said', ['"Hi', '" he said']),
        ("...", ["..."]),
        ("", []),
    ],
)
def test_what_has_nothing_to_say_stays_with_its_neighbor(text: str, expected: list[str]):
    assert texts(text) == expected


@pytest.mark.parametrize("line", (FOLDER / "pauses.tsv").read_text().splitlines()[1:])
def test_pauses_are_those_of_punctuation_and_breaks(line: str):
    text, _, pauses = line.replace("\\n", "\n").partition("\t")
    expected = [getattr(sentences, pause) if pause.isalpha() else float(pause) for pause in pauses.split()]
    assert [one.pause for one in split_utterances(read_markup(text))] == pytest.approx(expected)


def test_a_break_at_the_beginning_is_an_utterance_of_silence_alone():
    spoken = TextUtterance((Span("Hi"),), 0.0)
    assert split_utterances([Pause(1.0), Pause(0.5), Span("Hi")]) == [TextUtterance((), 1.5), spoken]


def test_marks_keep_their_place():
    text = "<mark name='a'/>One <mark name='b'/>two.<mark name='c'/> Three <mark name='d'/> four. <mark name='e'/>Five"
    text += "<mark name='f'/>"
    places = [(said(one), one.marks) for one in split_utterances(read_markup(text))]
    assert places == [
        ("One two.", ((0, "a"), (1, "b"), (2, "c"))),
        ("Three four.", ((1, "d"),)),
        ("Five", ((0, "e"), (1, "f"))),
    ]
    paused = split_utterances([Span("A"), Pause(1.0), Mark("m"), Pause(2.0), Mark("n"), Span("B")])
    found = [(said(one), one.pause, one.marks) for one in paused]
    assert found == [("A", 1.0, ()), ("", 2.0, ((0, "m"),)), ("B", 0.0, ((0, "n"),))]
    assert split_utterances([Mark("m")]) == [TextUtterance((), 0.0, ((0, "m"),))]
    assert split_utterances([Span("A"), Boundary("sentence"), Mark("m")])[0].marks == ((1, "m"),)


def test_spans_keep_their_styles_where_a_sentence_ends_in_them():
    spans = [Span("One. Two", FAST), Span(" and three. Four", SLOW), Span("WWW", source="w")]
    first, second, third = (one.spans for one in split_utterances(spans))
    assert first == (Span("One.", FAST),)
    assert second == (Span("Two", FAST), Span(" and three.", SLOW))
    assert third == (Span("Four", SLOW), Span("WWW", source="w"))


def test_what_is_said_in_place_of_a_text_is_not_cut():
    long, phones = Span("a. b. C. D! " * 90 + "e", source="x"), Span("p. Q? R", alphabet="ipa")
    found = [one.spans for one in split_utterances([long, Span(". Then "), phones, Span(" it.")])]
    assert found == [(long, Span(".")), (Span("Then "), phones, Span(" it."))]


def test_sentences_stay_together_up_to_a_length():
    text = "One two. " * 10
    assert [len(one) for one in texts(text, longest=30)] == [26, 26, 26, 8]
    assert texts("A b. C d.\n\nE f. <break/>G h.", longest=100) == ["A b. C d.", "E f.", "G h."]
    assert texts("A b. C d.", longest=3) == ["A b.", "C d."]


def test_a_long_sentence_is_cut_at_clauses_then_at_spaces_then_anywhere():
    clauses = "word " * 60 + "end; " + "word " * 30 + "more, " + "word " * 50
    first, *_ = split_utterances([Span(clauses)])
    assert (said(first)[-5:], first.pause) == (" end;", sentences.SEMICOLON)
    first, *_ = split_utterances([Span(clauses.replace(";", ","))])
    assert (said(first)[-5:], first.pause) == (" end,", sentences.COMMA)
    words = split_utterances([Span("word " * 200)])
    assert [(len(said(one)), one.pause) for one in words[:-1]] == [(334, sentences.SPACE), (334, sentences.SPACE)]
    assert [len(one) for one in texts("x" * 1000)] == [334, 333, 333]
    assert [len(one) for one in texts("你好，" * 200)] == [300, 300]
    braces = "{" + "A " * 150 + "}"
    assert texts("x" * 100 + braces + "y" * 50) == ["x" * 100, braces + "y" * 50]
    assert texts("{" + "A " * 500 + "}x")[0] == "{" + "A " * 500 + "}"


LINES = {"letters and dots": "a.b." * 5000, "braces": "{" * 20000, "clauses": "你，" * 10000}


@pytest.mark.parametrize("name", LINES)
def test_any_long_line_is_split_into_utterances_that_a_model_can_take(name: str):
    utterances = split_utterances([Span(LINES[name])])
    assert max(len(said(one)) for one in utterances) <= MAX_CHARACTERS
    assert bare("".join(map(said, utterances))) == bare(LINES[name])


WORDS = [
    *"Mr. Dr. J. K. U.S. e.g. etc. No. 5 3.14 p.m. Hello world I said You then".split(),
    *", ; : . ... ? ?! ! … \" ' ( ) [ ] “ ” — -".split(),
    *"{HH AH0} 。 ！ 你好 ， https://a.b/c?d 1. * & \n \n\n Jan. The".split(" "),
    *("x" * 300, "word " * 100, "...", "! ", '." ', "\n\n"),
]


def random_items(draw: random.Random) -> list[Item]:
    items: list[Item] = []
    for number in range(draw.randrange(1, 12)):
        separator = draw.choice(["", " ", " "])
        text = separator.join(draw.choice(WORDS) for _ in range(draw.randrange(1, 12)))
        style = draw.choice([NEUTRAL, NEUTRAL, FAST, Style(speaker="a")])
        items.append(Span(text, style, source=draw.choice([None, None, None, "source"])))
        if draw.random() < 0.2:
            items.append(draw.choice([Pause(0.5), Pause(0.0), Boundary("sentence"), Boundary("paragraph")]))
        if draw.random() < 0.2:
            items.append(Mark(f"m{number}"))
    return items


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_lost_and_splitting_again_changes_nothing(seed: int):
    items = random_items(random.Random(seed))
    longest = seed % 3 * 100
    utterances = split_utterances(items, longest=longest)
    spans = [item for item in items if isinstance(item, Span)]
    assert bare("".join(map(said, utterances))) == bare("".join(span.text for span in spans))
    assert [name for one in utterances for _, name in one.marks] == [one.name for one in items if isinstance(one, Mark)]
    for one in utterances:
        assert all(0 <= index <= len(one.spans) for index, _ in one.marks) and said(one) == said(one).strip()
        assert len({span.style.speaker for span in one.spans}) <= 1
        again = split_utterances(one.spans, longest=longest)
        assert [part.spans for part in again] == ([one.spans] if one.spans else [])
    # Each character that is said keeps its style, but for the speaker of what has nothing to say.
    before = [(letter, span.style, span.source) for span in spans for letter in span.text if letter.isalnum()]
    after = [(c, span.style, span.source) for one in utterances for span in one.spans for c in span.text if c.isalnum()]
    assert after == before
