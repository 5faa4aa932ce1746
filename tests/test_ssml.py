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
SENTENCE = Boundary("sentence")


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
        ("a <emphasis> b </emphasis> c", [Span("a "), Span("b ", MODERATE), Span("c")]),
        ("un<emphasis>believ</emphasis>able!", [Span("un"), Span("believ", MODERATE), Span("able!")]),
        ('5<sub alias="grams">g</sub>, so', [Span("5 "), Span("grams", source="g"), Span(", so")]),
        ('<sub alias="M P">MP</sub>\'s', [Span("M P", source="MP"), Span("'s")]),
        ('<sub alias="a">x</sub> <sub alias=" b\n c ">y</sub>', [Span("a ", source="x"), Span("b c", source="y")]),
        ('Hi<mark name="m"/>there', [Span("Hi"), Mark("m"), Span(" there")]),
        ('Hi. <break strength="none"/> You', [Span("Hi. "), Pause(0), Span("You")]),
        (
            "<p>One <s>two</s></p> three",
            [Span("One"), SENTENCE, Span("two"), SENTENCE, Boundary("paragraph"), Span("three")],
        ),
        (
            '<phoneme alphabet="x-arpabet" ph="hh ah0  l ow1">hello</phoneme>',
            [Span("hh ah0 l ow1", source="hello", alphabet="arpabet")],
        ),
        ('<phoneme ph="/həˈloʊ/"/>', [Span("/həˈloʊ/", alphabet="ipa")]),
        ('<say-as interpret-as="cardinal">12</say-as>', [Span("twelve", source="12")]),
        ("<s>a &amp; &lt; &#233;&#x41; <![CDATA[<d> & e]]></s>", [Span("a & < éA <d> & e"), SENTENCE]),
        ("<!-- no --><s>a<!-- no -->b</s>", [Span("ab"), SENTENCE]),
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
        ('rate="+10%"', Style(rate=1.1)),
        ('rate="default"', NEUTRAL),
        ('pitch="+2st"', Style(pitch=2 ** (1 / 6))),
        ('pitch="-20.5 hz"', Style(pitch_shift=-20.5)),
        ('pitch="200Hz"', Style(pitch_hz=200)),
        ('range="50%"', Style(pitch_range=0.5)),
        ('volume="+6dB"', Style(volume=10**0.3)),
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
    assert nested('pitch="+10Hz"', 'pitch="+20Hz"', 'pitch="-5Hz"').pitch_shift == 25
    assert nested('pitch="+10%"', 'pitch="+5Hz"', 'pitch="200Hz"') == Style(pitch_hz=200)
    assert nested('pitch="200Hz"', 'pitch="+10%"', 'pitch="-5Hz"') == Style(pitch_hz=200, pitch=1.1, pitch_shift=-5)
    assert nested('pitch="200Hz" rate="2"', 'pitch="default"') == Style(rate=2)
    assert style_of("<voice name='a'><emphasis>x</emphasis></voice>") == replace(MODERATE, speaker="a")


def rows_of(name: str) -> list[list[str]]:
    lines = (Path(__file__).parent / "text_cases" / name).read_text(encoding="utf-8").splitlines()
    return [line.replace("\\n", "\n").split("\t") for line in lines if not line.startswith("# ")]


TOO_MANY_BREAKS = ["<break time='10s'/>" * 61, "1", str(19 * 60 + 1), "expected at most 600s of breaks"]


@pytest.mark.parametrize(("text", "line", "column", "message"), [*rows_of("ssml_errors.tsv"), TOO_MANY_BREAKS])
def test_what_is_wrong_is_one_line_with_its_place(text: str, line: str, column: str, message: str):
    found = error_of(text, where="list.txt:7")
    assert found.startswith(f"list.txt:7: line {line}, column {column}: ")
    assert message in found
    assert error_of(text).startswith(f"line {line}, column {column}: ")


def test_a_voice_of_another_language_takes_its_own_and_refuses_english_words():
    assert read_markup("<speak xml:lang='de-AT'>Hallo</speak>", language="de") == [Span("Hallo")]
    assert read_markup("<lang xml:lang='zh'>x</lang>", language="cmn") == [Span("x")]
    message = error_of("<say-as interpret-as='cardinal'>1</say-as>", language="de")
    assert "gives English words, and the voice speaks de" in message


@pytest.mark.parametrize(("kind", "form", "text", "words"), rows_of("say_as.tsv"))
def test_say_as_gives_words_and_refuses_what_is_no_such_thing(kind: str, form: str, text: str, words: str):
    if words:
        assert read_as(text, kind=kind, form=form or None) == words
    else:
        with pytest.raises(ValueError, match=r"expected (an?|letters|digits)"):
            read_as(text, kind=kind, form=form or None)


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
    for strength, seconds in prosody.PAUSES.items():
        assert f"`{strength}` {seconds:g}" in PAGE
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
