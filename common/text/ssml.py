"""Convert SSML to spans, each with its speaking style, pauses and boundaries."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from xml.parsers import expat

from common.errors import InputError
from common.text.normalization.english.pronunciation import spell
from common.text.normalization.numbers import digits
from common.text.prosody import NEUTRAL, Style, emphasized, pause_seconds, with_prosody
from common.text.tables import word_table

ATOM = "\ue000"  # placeholder for text that is never cut: phones in curly braces, the alias of a <sub>


@dataclass(frozen=True)
class Span:
    """Text in one style, with the spaces before the next span."""

    text: str  # for a <sub>, its alias
    style: Style = NEUTRAL
    source: str | None = None  # what was written, if it differs from the text
    alphabet: str | None = None  # "ipa" or "arpabet": the text is phones in it

    @property
    def is_plain(self) -> bool:
        """Whether the text is what was written, and may be cut into sentences."""
        return self.source is None and self.alphabet is None

    @property
    def masked(self) -> str:
        """The text; if it must not be cut, with `ATOM` in place of every character except spaces at its ends."""
        text = self.text.strip()
        return self.text if self.is_plain or not text else self.text.replace(text, ATOM * len(text))


@dataclass(frozen=True)
class Pause:
    """Silence from a <break>."""

    seconds: float


@dataclass(frozen=True)
class Boundary:
    """The end of an utterance: "sentence" or "paragraph"."""

    kind: str


Item = Span | Pause | Boundary

MAX_SILENCE = 600.0  # s of all breaks together

_ATTRIBUTES = {name: tuple(words.strip("-").split()) for name, words in word_table("ssml_attributes").items()}
_REQUIRED = ("lang", "voice", "mark", "sub", "say-as", "phoneme")  # must have the first of their attributes
_STYLES: dict[str, Callable[[Style, dict[str, str]], Style]] = {  # from the style around them and their attributes
    "emphasis": emphasized,
    "prosody": with_prosody,
    "voice": lambda style, attributes: replace(style, speaker=attributes["name"].strip()),
}
_REPLACED = ("sub", "say-as", "phoneme")  # their content isn't spoken as it is written
_NAMES = "|".join(sorted((name for name in _ATTRIBUTES if len(name) > 1), key=len, reverse=True))
# A one-letter name must be followed by ">" or an attribute: "x <p and q> y" is text.
_TAG = re.compile(rf"</?(?:{_NAMES})(?=[\s/>]|\Z)|</?[ps](?:\s*/?>|\s+[\w:.-]+\s*=)")
_OWN_TAG = re.compile(rf"</?(?!(?:sub|mark)\b)(?:{_NAMES})(?=[\s/>]|\Z)")
_DECLARATION = re.compile(r"\ufeff?\s*(?:<\?xml\s[^<>?]*\?>)?")
_SPACES = re.compile(r"\s+")
_PARAGRAPH = "\n\n"
_SAME_LANGUAGE = {"zh": "cmn", "no": "nb"}  # SSML's codes and eSpeak NG's
_ALPHABETS = {"ipa": "ipa", "arpabet": "arpabet", "x-arpabet": "arpabet"}


def has_markup(text: str) -> bool:
    """Whether the text contains the tag of an SSML element; "a < b", "AT&T" and HTML tags don't count."""
    return "<" in text and _TAG.search(text) is not None


def is_ssml(text: str) -> bool:
    """Whether the text contains a tag that SSML has and HTML lacks."""
    return _OWN_TAG.search(text) is not None


def read_markup(text: str, *, where: str = "", language: str = "en") -> list[Item]:
    """Return the items of a text in SSML 1.1, in order; a text without SSML tags is one span.

    Raises InputError, with ``where``, line and column, for wrong or unsupported markup.
    """
    return _Reader(language).read(text, where=where) if has_markup(text) else [Span(text)]


@dataclass
class _Element:
    """An element whose end has not been read yet."""

    name: str
    attributes: dict[str, str]
    style: Style
    place: tuple[int, int]  # line (the root is on the first) and column from 0
    text: str = ""  # in an element of _REPLACED


class _Reader:
    """Reads one text with expat's handlers; the root element around the text turns document types into errors."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._parser = expat.ParserCreate("utf-8")
        self._current = _Element("_", {}, NEUTRAL, (1, 0))  # its tag is being read
        self._stack = [self._current]
        self._data: list[str] = []  # characters since the last tag
        self._items: list[Item] = []
        self._space = ""  # between the last span and what follows
        self._silence = 0.0  # s

    def read(self, text: str, *, where: str) -> list[Item]:
        parser = self._parser
        text = _DECLARATION.sub(lambda match: " " * len(match[0]), text, count=1)
        try:
            parser.Parse("<_>\n")
            parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
            parser.CharacterDataHandler = self._data.append
            parser.Parse(text.encode("utf-8", "replace"))
            parser.Parse("</_>", True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            if what == expat.errors.XML_ERROR_TAG_MISMATCH and len(self._stack) > 1:
                element = self._stack[-1]
                message, line, column = f"<{element.name}> has no end; add </{element.name}>", *element.place
            else:
                advice = "write &amp; for & and &lt; for <, values in quotes, and end every tag"
                message, line, column = f"broken markup ({what}); {advice}", error.lineno, error.offset
        except ValueError as error:
            message, line, column = str(error), *self._current.place
        else:
            self._trim()
            return self._items
        raise InputError(f"{where}{': ' if where else ''}line {line - 1}, column {column + 1}: {message}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._flush()
        outer = self._stack[-1]
        here = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber
        element = self._current = _Element(name, attributes, outer.style, here)
        self._stack.append(element)
        self._check(element, outer)
        if name in _STYLES:
            element.style = _STYLES[name](outer.style, attributes)
        if name == "break":
            self._pause(pause_seconds(attributes))
        elif name in ("p", "s"):
            self._boundary(name)

    def _end(self, name: str) -> None:
        self._flush()
        element = self._current = self._stack.pop()
        if name in _REPLACED:
            self._put(self._replaced(element))
        elif name in ("p", "s"):
            self._boundary(name)

    def _check(self, element: _Element, outer: _Element) -> None:
        """Raise ValueError for an element or attribute that isn't supported or isn't allowed here."""
        name, attributes = element.name, element.attributes
        if name not in _ATTRIBUTES:
            raise ValueError(f"<{name}>: expected an element of SSML ({', '.join(_ATTRIBUTES)})")
        if outer.name in _REPLACED:
            raise ValueError(f"<{name}> is not allowed in <{outer.name}>, which holds text")
        for attribute, value in attributes.items():
            tag = f"<{name} {attribute}={value!r}>"
            if attribute not in _ATTRIBUTES[name] and not attribute.startswith(("xml", "xsi")):
                raise ValueError(f"{tag}: expected {' or '.join(_ATTRIBUTES[name]) or 'xml:lang'}, got {attribute}")
            if not value.strip():
                raise ValueError(f"{tag}: expected a value")
            if attribute == "xml:lang" and _language(value) != _language(self._language):
                raise ValueError(f"{tag}: the voice speaks {self._language}; leave it out, or use another voice")
        if name in _REQUIRED and _ATTRIBUTES[name][0] not in attributes:
            raise ValueError(f"<{name}>: expected {_ATTRIBUTES[name][0]}='...'")

    def _pause(self, seconds: float) -> None:
        self._silence += seconds
        if self._silence > MAX_SILENCE:
            raise ValueError(f"<break>: expected at most {MAX_SILENCE:g}s of breaks together; split the text")
        if seconds > 0:
            self._trim()
            self._items.append(Pause(seconds))

    def _boundary(self, name: str) -> None:
        self._trim()
        boundary = Boundary("paragraph" if name == "p" else "sentence")
        if self._items and self._items[-1] != boundary:
            self._items.append(boundary)

    def _replaced(self, element: _Element) -> Span:
        """Return the span of a <sub>, <say-as> or <phoneme>; raises ValueError."""
        name, attributes = element.name, element.attributes
        written, value = " ".join(element.text.split()), " ".join(attributes[_ATTRIBUTES[name][0]].split())
        if name == "phoneme":
            alphabet = attributes.get("alphabet", "ipa").strip()
            if alphabet not in _ALPHABETS:
                raise ValueError(f"<phoneme alphabet={alphabet!r}>: expected one of {', '.join(_ALPHABETS)}")
            return Span(value, element.style, source=written or None, alphabet=_ALPHABETS[alphabet])
        if not written:
            raise ValueError(f"<{name}>: expected text in it")
        if name == "sub":
            return Span(value, element.style, source=written)
        if value in ("characters", "spell-out", "digits"):
            is_english, pieces = _language(self._language) == "en", re.findall(r"[A-Za-z]+|[^A-Za-z\s]", written)
            words = [spell(one) if one.isalpha() else (is_english and digits(one)) or one for one in pieces]
            return Span(" ".join(words), element.style, source=written)
        return Span(written, element.style)  # other kinds of <say-as> are read as text

    def _flush(self) -> None:
        """Put the characters since the last tag where they belong."""
        data = "".join(self._data)
        self._data.clear()
        element = self._stack[-1]
        if element.name in _REPLACED:
            element.text += data
        elif not data.strip():
            self._space = max(self._space, _SPACES.sub(_space, data), key=len)
        else:
            self._put(Span(_SPACES.sub(_space, data), element.style))

    def _last_span(self) -> Span | None:
        """Return the span before the current place; None after silence or a boundary."""
        return self._items[-1] if self._items and isinstance(self._items[-1], Span) else None

    def _trim(self) -> None:
        """Remove the spaces before a pause, a boundary or the end."""
        self._space = ""
        if last := self._last_span():
            self._items[-1] = replace(last, text=last.text.rstrip())

    def _put(self, span: Span) -> None:
        """Add a span; the spaces written between it and the previous one are collapsed."""
        text = span.text.lstrip()
        gap = max(self._space, span.text[: len(span.text) - len(text)], key=len)
        self._space = ""
        if (last := self._last_span()) is None:
            self._items.append(replace(span, text=text))
            return
        before = last.text.rstrip()
        tail = last.text[len(before) :]
        gap = max(tail, gap, key=len)
        one_word = last.is_plain and span.is_plain
        if not gap and not one_word and before[-1:].isalnum() and text[:1].isalnum():
            gap = " "  # "5<sub alias='kilometers'>km</sub>"
        if tail or not span.is_plain:
            self._items[-1], gap = replace(last, text=before + gap), ""
        self._items.append(replace(span, text=gap + text))


def _space(match: re.Match) -> str:
    """Collapse white space to one space or, at the end of a paragraph, a blank line."""
    return _PARAGRAPH if match[0].count("\n") > 1 else " "


def _language(tag: str) -> str:
    """Return the language of a tag such as "en-US"."""
    code = re.split("[-_]", tag.strip().lower())[0]
    return _SAME_LANGUAGE.get(code, code)
