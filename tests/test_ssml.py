"""SSML becomes spans with styles, pauses, marks and boundaries; what is wrong is one line with its place."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import InputError
from common.text import prosody, say_as, sentences, ssml
from common.text.prosody import EMPHASES, LIMITS, PROSODY
from common.text.say_as import read_as
from common.text.ssml import NEUTRAL, Boundary, Mark, Pause, Span, Style, has_markup, read_markup

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "SSML.md").read_text(encoding="utf-8")
MODERATE = EMPHASES["moderate"]


def style_of(text: str) -> Style:
    (span,) = read_markup(text)
    assert isinstance(span, Span)
    return span.style


def error_of(text: str, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        read_markup(text, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


PLAIN = (
    *("Hello there.", "", "a < b", "x<3", "x <3 and y> 2", "AT&T", "R&D", "a<b and c>d", "x<p and q>3", "<speaker>"),
    *("a &amp; b", "<b>bold</b>", "<br/>", "p < s > w", "{HH AH0}", "\x00", "\ud800", "s<s", "<Break/>", "&nbsp;"),
)


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_elements_stays_as_it_is(text: str):
    assert not has_markup(text)
    assert read_markup(text) == [Span(text)]


@pytest.mark.parametrize("text", ["<break/>", "a<break\n/>b", "<p>a</p>", "</s>", "<s xml:lang='en'>", "<speak"])
def test_a_tag_of_an_element_is_markup(text: str):
    assert has_markup(text)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('Hello <break time="300ms"/> there.', [Span("Hello"), Pause(0.3), Span("there.")]),
        ("Hello<break/>there", [Span("Hello"), Pause(0.4), Span("there")]),
        ("<speak>\n  Hello\n  there.\n</speak>\n", [Span("Hello there.")]),
        ("<speak>One.\n\nTwo.</speak>", [Span("One.\n\nTwo.")]),
        ("a <emphasis>b</emphasis> c", [Span("a "), Span("b", MODERATE), Span(" c")]),
        ("a <emphasis> b </emphasis> c", [Span("a "), Span("b ", MODERATE), Span("c")]),
        ("un<emphasis>believ</emphasis>able!", [Span("un"), Span("believ", MODERATE), Span("able!")]),
        ('5<sub alias="grams">g</sub>, so', [Span("5 "), Span("grams", source="g"), Span(", so")]),
        ('<sub alias="M P">MP</sub>\'s', [Span("M P", source="MP"), Span("'s")]),
        ('<sub alias="a">x</sub> <sub alias=" b\n c ">y</sub>', [Span("a ", source="x"), Span("b c", source="y")]),
        ('Hi<mark name="m"/>there', [Span("Hi"), Mark("m"), Span(" there")]),
        ('Hi <mark name="m"/> there', [Span("Hi "), Mark("m"), Span("there")]),
        ('Hi. <break strength="none"/> You', [Span("Hi. "), Pause(0), Span("You")]),
        (
            "<p>One <s>two</s></p> three",
            [
                Span("One"),
                Boundary("sentence"),
                Span("two"),
                Boundary("sentence"),
                Boundary("paragraph"),
                Span("three"),
            ],
        ),
        ('<voice name="Anna">Hi</voice>', [Span("Hi", Style(speaker="Anna"))]),
        (
            '<phoneme alphabet="x-arpabet" ph="hh ah0  l ow1">hello</phoneme>',
            [Span("hh ah0 l ow1", source="hello", alphabet="arpabet")],
        ),
        ('<phoneme ph="/həˈloʊ/"/>', [Span("/həˈloʊ/", alphabet="ipa")]),
        ('<say-as interpret-as="cardinal">12</say-as>', [Span("twelve", source="12")]),
        (
            "<p>a &amp; b &lt; c &#233;&#x41; <![CDATA[<d> & e]]></p>",
            [Span("a & b < c éA <d> & e"), Boundary("paragraph")],
        ),
        ("<!-- no --><p>a<!-- no -->b</p>", [Span("ab"), Boundary("paragraph")]),
        ('\ufeff<?xml version="1.0" encoding="utf-16"?>\n<speak>a</speak>', [Span("a")]),
        ('<speak version="1.1" xmlns="http://www.w3.org/2001/10/synthesis" xml:lang="en-GB">a</speak>', [Span("a")]),
        ("<speak/>", []),
    ],
)
def test_elements_become_items(text: str, items: list):
    assert read_markup(text) == items


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('rate="0.9"', Style(rate=0.9)),
        ('rate="+10%"', Style(rate=1.1)),
        ('rate=" x-fast "', Style(rate=1.75)),
        ('rate="default"', NEUTRAL),
        ('pitch="+2st"', Style(pitch=2 ** (1 / 6))),
        ('pitch="+20Hz"', Style(pitch_shift=20)),
        ('pitch="-20.5 hz"', Style(pitch_shift=-20.5)),
        ('pitch="200Hz"', Style(pitch_hz=200)),
        ('pitch="x-low"', Style(pitch=0.75)),
        ('range="50%"', Style(pitch_range=0.5)),
        ('volume="+6dB"', Style(volume=10**0.3)),
        ('volume="silent"', Style(volume=0)),
        ('rate="2" pitch="high" range="high" volume="soft"', Style(rate=2, pitch=1.15, pitch_range=1.5, volume=0.5)),
    ],
)
def test_prosody_becomes_a_style(attributes: str, expected: Style):
    found = style_of(f"<prosody {attributes}>x</prosody>")
    assert vars(found) == pytest.approx(vars(expected))


def test_elements_within_each_other_multiply_and_add_and_absolute_values_replace():
    def nested(*attributes: str) -> Style:
        return style_of("".join(f"<prosody {one}>" for one in attributes) + "x" + "</prosody>" * len(attributes))

    assert nested('rate="90%"', 'rate="slow"').rate == pytest.approx(0.675)
    assert nested('volume="soft"', 'volume="+50%"').volume == pytest.approx(0.75)
    assert nested('pitch="+10Hz"', 'pitch="+20Hz"', 'pitch="-5Hz"').pitch_shift == 25
    assert nested('pitch="+10%"', 'pitch="+5Hz"', 'pitch="200Hz"') == Style(pitch_hz=200)
    assert nested('pitch="200Hz"', 'pitch="+10%"', 'pitch="-5Hz"') == Style(pitch_hz=200, pitch=1.1, pitch_shift=-5)
    assert nested('pitch="200Hz" rate="2"', 'pitch="default"') == Style(rate=2)
    assert style_of("<voice name='a'><emphasis level='strong'>x</emphasis></voice>") == replace(
        EMPHASES["strong"], speaker="a"
    )


BROKEN = {  # text: (line, column, part of the message)
    "Hello there, <prosody pitch='loud'>x</prosody>": (1, 14, "<prosody pitch='loud'>: expected a percentage"),
    "line\nsécond <prosody rate='0'>x</prosody>": (2, 8, "a factor of rate from 0.1 to 10, got 0"),
    "<prosody rate='1e9'>x</prosody>": (1, 1, "got '1e9'"),
    "<prosody pitch='1.2'>x</prosody>": (1, 1, "expected a percentage (90%, +10%), semitones"),
    "<prosody pitch='+999999999st'>x</prosody>": (1, 1, "a factor of pitch from 0.25 to 4"),
    "<prosody rate=''>x</prosody>": (1, 1, "expected a value"),
    "<prosody>x</prosody>": (1, 1, "got no attribute"),
    "<prosody contour='(0%,+20Hz)'>x</prosody>": (1, 1, "expected rate or pitch or range or volume, got contour"),
    "<prosody rate='4'><prosody rate='4'>x</prosody></prosody>": (1, 19, "got 16"),
    "<emphasis level='huge'>x</emphasis>": (1, 1, "expected one of strong, moderate, none, reduced, got 'huge'"),
    "<break strength='loud'/>": (1, 1, "expected one of none, x-weak"),
    "<say-as interpret-as='expletive'>x</say-as>": (1, 1, "expected interpret-as one of characters"),
    "a <break time='11s'/>": (1, 3, "expected at most 10s, got '11s'"),
    "<break time='3'/>": (1, 1, "expected seconds (1.5s) or milliseconds (300ms), got '3'"),
    "<break time='10s'/>" * 61: (1, 19 * 60 + 1, "expected at most 600s of breaks"),
    "<p>x</p><b>y</b>": (1, 9, "<b>: expected an element of SSML"),
    "<p>x</p><audio src='x'/>": (1, 9, "<audio>: expected an element of SSML"),
    "<p class='x'>y</p>": (1, 1, "<p class='x'>: expected xml:lang, got class"),
    "<voice>x</voice>": (1, 1, "<voice>: expected name='...'"),
    "a <sub alias='x'></sub>": (1, 3, "<sub>: expected text in it"),
    "<sub alias='x'><s>y</s></sub>": (1, 16, "<s> cannot stand in <sub>"),
    "<say-as interpret-as='date'>soon</say-as>": (1, 1, "<say-as interpret-as='date'>: expected a date"),
    "<say-as interpret-as='date' format='abc'>1/2</say-as>": (1, 1, "expected format one of mdy"),
    "<phoneme ph='x' alphabet='sampa'>x</phoneme>": (1, 1, "expected one of ipa, arpabet, x-arpabet"),
    "<speak xml:lang='fr-FR'>x</speak>": (1, 1, "the voice speaks en"),
    "a <p>b": (1, 3, "<p> has no end; add </p>"),
    "<p>\na <s>b</p>": (2, 3, "<s> has no end; add </s>"),
    "é <p>AT&T</p>": (1, 10, "broken markup (not well-formed"),
    "<break time='1s' time='2s'/>": (1, 18, "duplicate attribute"),
    "<p>a&nbsp;b</p>": (1, 5, "(undefined entity)"),
    "<!DOCTYPE speak [<!ENTITY a 'b'>]><speak>&a;</speak>": (1, 3, "broken markup"),
}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:40])
def test_what_is_wrong_is_one_line_with_its_place(text: str):
    line, column, message = BROKEN[text]
    found = error_of(text, where="list.txt:7")
    assert found.startswith(f"list.txt:7: line {line}, column {column}: ")
    assert message in found
    assert error_of(text).startswith(f"line {line}, column {column}: ")


def test_a_voice_of_another_language_takes_its_own_and_refuses_english_words():
    assert read_markup("<speak xml:lang='de-AT'>Hallo</speak>", language="de") == [Span("Hallo")]
    assert read_markup("<lang xml:lang='zh'>x</lang>", language="cmn") == [Span("x")]
    message = error_of("<say-as interpret-as='cardinal'>1</say-as>", language="de")
    assert "gives English words, and the voice speaks de" in message


SAID = [
    ("characters", None, "FBI", "f.b.i."),
    ("spell-out", None, "R2-D2 é@", "r. two dash d. two e. at"),
    ("number", None, ".5", "point five"),
    ("ordinal", None, "103rd", "one hundred and third"),
    ("digits", None, "12 34-5", "one two three four five"),
    ("fraction", None, "2½", "two and a half"),
    ("unit", None, "10s", "ten seconds"),
    ("time", None, "14:30:10", "fourteen thirty and ten seconds"),
    (
        "telephone",
        None,
        "+1 (212) 555-0199 ext. 5",
        "plus one, two one two, five five five, zero one nine nine, extension five",
    ),
    ("date", None, "3/4/2021", "march fourth twenty twenty one"),
    ("date", None, "25/12/2020", "the twenty fifth of december twenty twenty"),
    ("date", None, "the 4th of March", "the fourth of march"),
    ("date", "ymd", "20210304", "march fourth twenty twenty one"),
    ("date", "dmy", "29-2-04", "the twenty ninth of february oh four"),
    ("date", "my", "Sept 1999", "september nineteen ninety nine"),
    ("date", "y", "1905", "nineteen oh five"),
]


@pytest.mark.parametrize(("kind", "form", "text", "words"), SAID)
def test_say_as_gives_words(kind: str, form: str | None, text: str, words: str):
    assert read_as(text, kind=kind, form=form) == words


@pytest.mark.parametrize(
    ("kind", "form", "text"),
    [
        *(("characters", None, "你"), ("cardinal", None, "seven"), ("ordinal", None, "1.5"), ("digits", None, "1a")),
        *(("fraction", None, "3/0"), ("fraction", None, "2 5/3"), ("unit", None, "5"), ("time", None, "25:00")),
        *(("time", "hms12", "14:30"), ("time", "hms24", "2 pm"), ("time", None, "5"), ("telephone", None, "1-800-ABC")),
        *(("date", "mdy", "2/29/2021"), ("date", None, "31/4/2020"), ("date", "d", "0"), ("date", "md", "2021")),
    ],
)
def test_say_as_refuses_what_is_no_such_thing(kind: str, form: str | None, text: str):
    with pytest.raises(ValueError, match=r"expected (an?|letters|digits)"):
        read_as(text, kind=kind, form=form)


def examples() -> list[str]:
    """Everything on the page that is written as SSML: blocks, and inline code with a whole element."""
    blocks = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
    inline = [code for code in re.findall(r"`([^`\n]+)`", PAGE) if re.fullmatch(r"<.*(?:/>|</[\w-]+>)", code)]
    return blocks + inline


def test_the_page_names_every_element_and_value():
    assert len(examples()) > 25
    assert all(has_markup(example) and read_markup(example) for example in examples())
    named = "".join(examples())
    for element in ssml._ATTRIBUTES:
        assert f"<{element}" in named
    rows = {row.split('="')[0].split()[-1]: row for row in PAGE.splitlines() if row.startswith("| `<prosody ")}
    for name, attribute in PROSODY.items():
        low, high = LIMITS[attribute.field]
        assert f"{low:g} to {high:g} in all" in rows[name]
        for keyword, value in attribute.keywords.items():
            assert f"`{keyword}` {value:g}" in rows[name]
    (pauses,) = (row for row in PAGE.splitlines() if row.startswith("| `<break "))
    for strength, seconds in prosody.PAUSES.items():
        assert f"`{strength}` {seconds:g}" in pauses
    for level, style in EMPHASES.items():
        assert f"| `{level}` | {style.rate:g} | {style.pitch:g} | {style.pitch_range:g} | {style.volume:g} |" in PAGE
    for kind in (*say_as.KINDS, *say_as.DATE_FORMATS, *say_as.TIME_FORMATS):
        assert f"`{kind}`" in PAGE


def test_the_page_s_words_and_pauses_are_the_code_s():
    rows = re.findall(r"^\| `(<say-as [^`]+)` \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 11
    for example, words in rows:
        (span,) = read_markup(example)
        assert span.text == words
    names = "SENTENCE QUESTION ELLIPSIS PARAGRAPH SEMICOLON COMMA SPACE".split()
    table = PAGE.split("| after | seconds |")[1]
    assert re.findall(r"\| ([0-9.]+) \|", table) == [f"{getattr(sentences, name):g}" for name in names]
