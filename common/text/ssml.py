"""SSML: a text with markup becomes spans with the style in which each is said, pauses, marks and boundaries."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from xml.parsers import expat

from common.errors import InputError
from common.text.prosody import NEUTRAL, PROSODY, UNSUPPORTED, Style, emphasized, pause_seconds, with_prosody
from common.text.say_as import read_as, read_phones


@dataclass(frozen=True)
class Span:
    """Text in one style: what the front end reads.

    Spans of an utterance follow each other as they stand: the spaces between words are in their texts.
    """

    text: str  # of a <sub> its alias, of a <say-as> the words
    style: Style = NEUTRAL
    source: str | None = None  # what was written, where that differs from the text
    alphabet: str | None = None  # "ipa" or "arpabet": the text is phones in it

    @property
    def is_plain(self) -> bool:
        """Whether the text is what was written, which may be cut at sentences."""
        return self.source is None and self.alphabet is None


@dataclass(frozen=True)
class Pause:
    """Silence of a <break>; 0 s: the pause that punctuation asks for here is left out."""

    seconds: float


@dataclass(frozen=True)
class Mark:
    """A <mark>: a name for its place in the sound."""

    name: str


@dataclass(frozen=True)
class Boundary:
    """The end of an utterance: "sentence" or "paragraph"."""

    kind: str


Item = Span | Pause | Mark | Boundary

MAX_BYTES = 1_000_000  # of a text with markup, in UTF-8
MAX_DEPTH = 32  # elements within each other
MAX_ELEMENTS = 10_000
MAX_SILENCE = 600.0  # s of all breaks
MAX_REPLACED = 400  # characters of an alias, of phones, and of what is written in their place

_NAMESPACE = "http://www.w3.org/2001/10/synthesis"
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "speak": ("version", "xmlns", "xml:lang", "xmlns:xsi", "xsi:schemaLocation"),
    "p": ("xml:lang",),
    "s": ("xml:lang",),
    "lang": ("xml:lang",),
    "voice": ("name", "xml:lang"),
    "prosody": (*PROSODY, *UNSUPPORTED),
    "emphasis": ("level",),
    "break": ("time", "strength"),
    "mark": ("name",),
    "sub": ("alias",),
    "say-as": ("interpret-as", "format"),
    "phoneme": ("ph", "alphabet"),
}
_REQUIRED = {
    "lang": "xml:lang",
    "voice": "name",
    "mark": "name",
    "sub": "alias",
    "say-as": "interpret-as",
    "phoneme": "ph",
}
_EMPTY = ("break", "mark")
_REPLACED = ("sub", "say-as", "phoneme")  # what is written in them is not what is said
_REFUSED = {
    "audio": "other sounds cannot be inserted; leave it out",
    **dict.fromkeys(("lexicon", "lookup"), "use --lexicon"),
    **dict.fromkeys(("meta", "metadata", "desc"), "it says nothing about the sound; leave it out"),
    **dict.fromkeys(("token", "w"), "write the word without it"),
}
_NAMES = "|".join(sorted((name for name in (*_ATTRIBUTES, *_REFUSED) if len(name) > 1), key=len, reverse=True))
# After a name of one letter stands ">" or an attribute: "x <p and q> y" is text.
_TAG = re.compile(rf"</?(?:{_NAMES})(?=[\s/>]|\Z)|</?[psw](?:\s*/?>|\s+[\w:.-]+\s*=)")
_DECLARATION = re.compile(r"\s*<\?xml\s[^<>?]*\?>")
_SPACES = re.compile(r"\s+")
_PARAGRAPH = "\n\n"
_WRAPPER = "<_>"  # stands around every text, so that it has one root
_SAME_LANGUAGE = {"zh": "cmn", "no": "nb"}  # after SSML's code, eSpeak NG's
_ALPHABETS = {"ipa": "ipa", "arpabet": "arpabet", "x-arpabet": "arpabet"}


def has_markup(text: str) -> bool:
    """Whether a tag of an SSML element stands in the text; "a < b", "AT&T" and tags of HTML are none."""
    return "<" in text and _TAG.search(text) is not None


def read_markup(text: str, *, where: str = "", language: str = "en") -> list[Item]:
    """What a text in SSML 1.1 says, in order; of a text without its tags the text itself.

    ``language`` is the voice's, ``where`` names the text's source in errors.

    Raises InputError, with line and column, for markup that is not well-formed, not supported or out of range.
    """
    return _Reader(text, where=where, language=language).read() if has_markup(text) else [Span(text)]


@dataclass
class _Element:
    """An element whose end has not been read."""

    name: str
    start: int  # byte
    style: Style
    attributes: dict[str, str]
    text: str = ""  # in an element of _REPLACED


def plain_text(text: str) -> str:
    """The words that a text with markup says, as they are written."""
    return "".join(item.source or item.text for item in read_markup(text) if isinstance(item, Span))


class _Reader:
    """Reads one text with expat, which sees no document type here and so no entities but XML's own five."""

    def __init__(self, text: str, *, where: str, language: str) -> None:
        self._text, self._where, self._language = text, where, language
        plain = " " + text[1:] if text.startswith("\ufeff") else text
        if declaration := _DECLARATION.match(plain):
            plain = " " * declaration.end() + plain[declaration.end() :]
        self._data = (_WRAPPER + plain).encode("utf-8", "replace")
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.ProcessingInstructionHandler = self._instruction
        self._stack: list[_Element] = []
        self._characters_read: list[str] = []  # since the last tag
        self._items: list[Item] = []
        self._space = ""  # between the last span and what follows
        self._n_elements = 0
        self._silence = 0.0  # s
        self._speak_end = -1  # byte of </speak>

    def read(self) -> list[Item]:
        """Items of the whole text."""
        if len(self._data) > MAX_BYTES:
            raise self._error(f"expected at most {MAX_BYTES} bytes of markup, got {len(self._data)}", byte=0)
        if wrong := re.search("[\ud800-\udfff]", self._text):
            before = len((_WRAPPER + self._text[: wrong.start()]).encode())
            raise self._error(f"{wrong[0]!r} is no character; leave it out", byte=before)
        try:
            self._parser.Parse(self._data + _WRAPPER.replace("<", "</").encode(), True)
        except expat.ExpatError as error:
            raise self._explain(error) from error
        return self._items

    def _error(self, message: str, *, byte: int | None = None) -> InputError:
        """An error at a byte, or at the tag that is being read."""
        byte = self._parser.CurrentByteIndex if byte is None else byte
        before = self._data[len(_WRAPPER) : max(byte, len(_WRAPPER))].decode("utf-8", "ignore")
        place = f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
        return InputError(f"{self._where}{': ' if self._where else ''}{place}: {message}")

    @contextmanager
    def _placed(self, byte: int | None = None) -> Iterator[None]:
        """Gives a ValueError its line and column."""
        try:
            yield
        except ValueError as error:
            raise self._error(str(error), byte=byte) from error

    def _explain(self, error: expat.ExpatError) -> InputError:
        """What expat found, in words that say what to do."""
        byte = self._parser.ErrorByteIndex
        rest = (self._data + b"</_>")[byte : byte + 40].decode("utf-8", "ignore")
        found = expat.ErrorString(error.code) or "syntax error"
        if found == expat.errors.XML_ERROR_TAG_MISMATCH:
            last, name = self._stack[-1], re.split(r"[\s>]", rest)[0]
            if f"<{name}>" == _WRAPPER:
                return self._error(f"<{last.name}> has no end; add </{last.name}>", byte=last.start)
            expected = f"</{last.name}>" if len(self._stack) > 1 else "no end tag, since nothing is open"
            return self._error(f"</{name}>: expected {expected}", byte=byte - 2)
        if found == expat.errors.XML_ERROR_UNDEFINED_ENTITY:
            expected = "expected &amp; &lt; &gt; &quot; &apos; or a number such as &#233;"
            return self._error(f"{rest.split(';')[0]};: {expected}", byte=byte)
        if self._data[byte - 2 : byte + 7] == b"<!DOCTYPE":
            return self._error("<!DOCTYPE: document types are not supported; leave it out", byte=byte - 2)
        byte = _begin(self._data, byte)
        part = self._data[byte : byte + 40].decode("utf-8", "ignore").split("\n")[0]
        advice = "write &amp; for & and &lt; for <, values in quotes, and end every tag"
        return self._error(f"{part!r} is broken markup ({found}); {advice}", byte=byte)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        start = self._parser.CurrentByteIndex
        if not self._stack:
            self._stack.append(_Element(name, start, NEUTRAL, {}))
            return
        self._flush()
        self._n_elements += 1
        if self._n_elements > MAX_ELEMENTS:
            raise self._error(f"expected at most {MAX_ELEMENTS} elements; split the text")
        if len(self._stack) > MAX_DEPTH:
            raise self._error(f"<{name}>: expected elements at most {MAX_DEPTH} deep")
        self._check_place(name)
        self._check_attributes(name, attributes)
        style = self._stack[-1].style
        with self._placed():
            if name == "emphasis":
                style = emphasized(style, attributes)
            elif name == "prosody":
                style = with_prosody(style, attributes)
            elif name == "voice":
                style = replace(style, speaker=attributes["name"].strip())
            elif name == "break":
                self._pause(pause_seconds(attributes))
        self._stack.append(_Element(name, start, style, attributes))
        if name == "mark":
            self._items.append(Mark(attributes["name"].strip()))
        elif name in ("p", "s"):
            self._boundary(name)

    def _end(self, name: str) -> None:
        self._flush()
        element = self._stack.pop()
        if name in _REPLACED:
            with self._placed(element.start):
                self._put(self._replaced(element))
        elif name in ("p", "s"):
            self._boundary(name)
        elif name == "speak":
            self._speak_end = self._parser.CurrentByteIndex
        if not self._stack:
            if self._parser.CurrentByteIndex < len(self._data):
                raise self._error(f"</{name}>: expected no end tag, since nothing is open")
            self._trim()

    def _characters(self, data: str) -> None:
        self._characters_read.append(data)

    def _instruction(self, target: str, _: str) -> None:
        raise self._error(f"<?{target}?>: processing instructions are not supported; leave it out")

    def _check_place(self, name: str) -> None:
        """Refuse elements that are not supported, and those that cannot stand here."""
        outer, within = self._stack[-1].name, {element.name for element in self._stack}
        if name in _REFUSED:
            raise self._error(f"<{name}> is not supported: {_REFUSED[name]}")
        if name not in _ATTRIBUTES:
            raise self._error(f"<{name}>: expected an element of SSML ({', '.join(_ATTRIBUTES)})")
        if self._speak_end >= 0 or (name == "speak" and (self._items or len(self._stack) > 1)):
            raise self._error(f"<{name}>: expected one <speak> around all of the text")
        if outer in (*_EMPTY, *_REPLACED):
            raise self._error(
                f"<{name}> cannot stand in <{outer}>, which holds {'nothing' if outer in _EMPTY else 'text'}"
            )
        if (name == "p" and within & {"p", "s"}) or (name == "s" and "s" in within):
            raise self._error(f"<{name}> cannot stand in <{'s' if 's' in within else 'p'}>")

    def _check_attributes(self, name: str, attributes: dict[str, str]) -> None:
        for attribute, value in attributes.items():
            tag = f"<{name} {attribute}={value!r}>"
            if attribute not in _ATTRIBUTES[name]:
                raise self._error(f"{tag}: expected {' or '.join(_ATTRIBUTES[name])}, got {attribute}")
            if not value.strip():
                raise self._error(f"{tag}: expected a value")
            if attribute == "version" and value not in ("1.0", "1.1"):
                raise self._error(f"{tag}: expected '1.1'")
            if attribute == "xmlns" and value != _NAMESPACE:
                raise self._error(f"{tag}: expected {_NAMESPACE!r}")
            if attribute == "xml:lang" and _language(value) != _language(self._language):
                raise self._error(f"{tag}: the voice speaks {self._language}; leave it out, or use another voice")
        if (required := _REQUIRED.get(name)) and required not in attributes:
            raise self._error(f"<{name}>: expected {required}='...'")

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
        """The span of a <sub>, <say-as> or <phoneme>; raises ValueError."""
        name, attributes = element.name, element.attributes
        written, value = " ".join(element.text.split()), " ".join(attributes[_REQUIRED[name]].split())
        if not written and name != "phoneme":
            raise ValueError(f"<{name}>: expected text in it")
        if (longest := max(len(written), len(value))) > MAX_REPLACED:
            raise ValueError(f"<{name}>: expected at most {MAX_REPLACED} characters, got {longest}")
        if name == "sub":
            return Span(value, element.style, source=written)
        if name == "phoneme":
            alphabet = attributes.get("alphabet", "ipa").strip()
            if alphabet not in _ALPHABETS:
                raise ValueError(f"<phoneme alphabet={alphabet!r}>: expected one of {', '.join(_ALPHABETS)}")
            phones = read_phones(value, alphabet=_ALPHABETS[alphabet])
            return Span(phones, element.style, source=written or None, alphabet=_ALPHABETS[alphabet])
        tag = f"<say-as interpret-as={value!r}>"
        if _language(self._language) != "en":
            raise ValueError(f"{tag}: gives English words, and the voice speaks {self._language}; write them out")
        try:
            return Span(read_as(written, kind=value, form=attributes.get("format")), element.style, source=written)
        except ValueError as error:
            raise ValueError(f"{tag}: {error}") from error

    def _flush(self) -> None:
        """Put the characters since the last tag where they belong."""
        data = "".join(self._characters_read)
        self._characters_read.clear()
        element = self._stack[-1]
        if element.name in _REPLACED:
            element.text += data
        elif not data.strip():
            self._space = max(self._space, _SPACES.sub(_space, data), key=len)
        elif element.name in _EMPTY:
            raise self._error(f"<{element.name}>: expected nothing in it", byte=element.start)
        elif self._speak_end >= 0:
            raise self._error("expected no text after </speak>", byte=self._speak_end)
        else:
            self._put(Span(_SPACES.sub(_space, data), element.style))

    def _last_span(self) -> tuple[int, Span] | None:
        """The span before the place that is being read, and its index; None after silence or a boundary."""
        for index in range(len(self._items) - 1, -1, -1):
            item = self._items[index]
            if not isinstance(item, Mark) and item != Pause(0.0):
                return (index, item) if isinstance(item, Span) else None
        return None

    def _trim(self) -> None:
        """Take away the spaces before a pause, a boundary or the end."""
        self._space = ""
        if found := self._last_span():
            index, last = found
            self._items[index] = replace(last, text=last.text.rstrip())

    def _put(self, span: Span) -> None:
        """Add a span; between it and the one before are the spaces that were written, as one."""
        text = span.text.lstrip()
        gap = max(self._space, span.text[: len(span.text) - len(text)], key=len)
        self._space = ""
        if (found := self._last_span()) is None:
            self._items.append(replace(span, text=text))
            return
        index, last = found
        before = last.text.rstrip()
        tail = last.text[len(before) :]
        gap = max(tail, gap, key=len)
        one_word = last.is_plain and span.is_plain and index == len(self._items) - 1
        if not gap and not one_word and before[-1:].isalnum() and text[:1].isalnum():
            gap = " "  # "5<sub alias='kilometers'>km</sub>", and where a mark stands
        if tail or not span.is_plain:
            self._items[index], gap = replace(last, text=before + gap), ""
        self._items.append(replace(span, text=gap + text))


def _begin(data: bytes, byte: int) -> int:
    """Where the tag or entity begins in which a byte stands; the byte itself, where it stands in neither."""
    for sign, end in ((b"&", b";"), (b"<", b">")):
        begin = data.rfind(sign, 0, byte + 1)
        if begin >= len(_WRAPPER) and data.find(end, begin, byte) < 0:
            return begin
    return byte


def _space(match: re.Match) -> str:
    """White space is one space, or a blank line, which ends a paragraph."""
    return _PARAGRAPH if match[0].count("\n") > 1 else " "


def _language(tag: str) -> str:
    """The language of "en-US"."""
    code = re.split("[-_]", tag.strip().lower())[0]
    return _SAME_LANGUAGE.get(code, code)
