"""Convert pasted text to spans, pauses and sentences: Markdown, HTML, formulas and wrapped lines."""

import html
import re
from collections.abc import Iterator
from itertools import pairwise

from common.errors import InputError
from common.text.normalization.english.characters import script_of
from common.text.normalization.english.formulas import read_formulas
from common.text.normalization.rules import rules
from common.text.ssml import Boundary, Item, Pause, Span, has_markup, is_ssml, read_markup
from common.text.symbols import ARPABET
from common.text.tables import compiled, word_set

_LONGEST_PAUSE = 10.0  # s
_FULL = 0.8  # of the widest line: if the next word would have fit within it, the line break is intended

_PAUSE = re.compile(r"(?i)\[(?:pause|silence|break)(?:\s*[:=]?\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|sec|seconds?)?)?\]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
_MOST_ESCAPED = 3  # times that text may be escaped
_BRACES = re.compile(r"([$#%]?\{[^{}]*\})")
_HYPHEN = re.compile(r"([^\W\d_]{2,})[-\u00ad\u2010][ \t]*\n[ \t]*([^\W\d_])")
_HYPHENATED = word_set("hyphenated")

_FENCE = re.compile(r"\s*(?:```+|~~~+)[^`]*")
_QUOTE = re.compile(r"^(?:\s{0,3}>(?=[\s>\"'“*\w-])(?!\s?[0-9]))+\s?")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)[\s#]*")
_ITEM = re.compile(
    r"\s*(?:(?:[-*+–—](?!\s+[0-9])|[•◦▪‣●→➜➤▶►✓✔✗✘☐☑☒]|\[[ xX]\]|-(?=\s+[0-9].*[^\W\d_])|\(?([0-9]{1,3})[.)])\s+"
    r"|(?=\(?[A-Za-z]\)\s|(?:[a-h]|[ivx]+)\.\s))(?:\[[ xX]\]\s+)?(?=\S)"
)
_NUMBERED = re.compile(r"\s*(?:[\w(]|-\s+[0-9])")  # alone, such an item is a sentence: "(3) as above", "- 5 degrees"
_RULE = re.compile(r"\s*(?:[-*_=~]\s*){3,}|(?=.*--|\s*\|)[|:\s-]*")
_REFERENCE = re.compile(r"\s{0,3}\[[^\]^]+\]:\s+\S+(?:\s+[\"'(].*)?")
_ROW = re.compile(r"\s*\|(.*?)\|\s*|(?=.*\s\|\s)(.*)")
_TITLE = compiled(r"[^a-z]*[A-Z]{2}[^a-z]*|(?i:(?:<chapters>)\s+(?:[0-9]+|[ivxlc]+|<chapter_numbers>))")
_OPEN_END = re.compile(r"[\w)\]%°\"'”’»*_`]\s*\Z")
_UNFINISHED = compiled(r"(?i)\b(?:<unfinished>)\Z")
_LABELED = re.compile(r"[^\W\d][\w-]*:(?:\s|\Z)")

_read_inline, _read_tags = rules("markdown"), rules("html")


def read_text(text: str, *, where: str = "", language: str = "en", markdown: bool = True) -> list[Item]:
    """Return a text's items in order: SSML as `read_markup` reads it, other text without HTML and Markdown signs.

    ``[pause:1s]`` is silence, and LaTeX formulas are read in English. Raises InputError like `read_markup`.
    """
    if has_markup(text):
        try:
            return read_markup(text, where=where, language=language)
        except InputError:
            if is_ssml(text):
                raise
    written = text
    if language.startswith("en"):
        text = read_formulas(text)
    text = _HYPHEN.sub(_unwrapped, _read_braces(_read_html(text)).replace("\r\n", "\n"))
    items = list(_blocks(text)) if markdown else [Span(text)]
    items = [part for item in items for part in (_with_pauses(item) if isinstance(item, Span) else [item])]
    spans = [item for item in items if isinstance(item, Span)]
    if len(spans) == 1 and spans[0].text.split() == written.split() and not any(isinstance(i, Pause) for i in items):
        return [Span(written)]
    return items


def plain_text(text: str) -> str:
    """Return the words that a text says, as written."""
    return " ".join(item.source or item.text for item in read_text(text) if isinstance(item, Span))


def _read_html(text: str) -> str:
    """Remove HTML tags, and decode entities."""
    for _ in range(_MOST_ESCAPED):
        before, text = text, _ENTITY.sub(lambda match: html.unescape(match[0]), _read_tags(text))
        if text == before:
            break
    return text


def _read_braces(text: str) -> str:
    """Keep curly braces only around phones."""
    if "{" not in text and "}" not in text:
        return text
    parts = _BRACES.split(text)  # odd ones are in braces
    for index, part in enumerate(parts):
        if index % 2 and _are_phones(part[1:-1].split()):
            continue
        inner = re.sub("[{}]", "", part)
        parts[index] = inner.lstrip("$#%").replace("_", " ") if index % 2 else inner
    return "".join(parts)


def _are_phones(words: list[str]) -> bool:
    """Whether words in braces can only be phones: ARPAbet, or IPA with a letter that spelling lacks."""
    text = "".join(words)
    if words and all(word in ARPABET for word in words):
        return len(words) > 1 or text[-1].isdigit()
    phonetic = any(one in "ˈˌːθβχ" or script_of(one) == "IPA" for one in text)
    return phonetic or (not text.isascii() and max(map(len, words)) <= 2 and len(words) > 1)


def _unwrapped(match: re.Match) -> str:
    """Join a word that is divided at the end of a line."""
    hyphen = "" if match[2].islower() and match[1].lower() not in _HYPHENATED else "-"
    return match[1] + hyphen + match[2]


def _blocks(text: str) -> Iterator[Item]:
    """Yield headings, items, rows and paragraphs, each followed by its boundary."""
    lines: list[str] = []  # of the current block
    is_item = is_code = False
    is_lone = "\n" not in text.strip()

    def end(boundary: str, *, closed: bool = False) -> Iterator[Item]:
        if said := _joined([line for line in lines if line.strip()]):
            yield Span(said + "." if (closed or is_item) and _OPEN_END.search(said) else said)
            yield Boundary(boundary)
        lines.clear()

    for line in text.split("\n"):
        if _FENCE.fullmatch(line):
            yield from end("paragraph")
            is_code, is_item = not is_code, False
            continue
        line = line if is_code else _QUOTE.sub("", line)
        if is_code:
            lines += [line.strip().removeprefix("$ ") + "  "] if line.strip() else []
        elif not line.strip() or _RULE.fullmatch(line) or _REFERENCE.fullmatch(line):
            yield from end("paragraph", closed=bool(line.strip()))
            is_item = False
        elif found := _HEADING.fullmatch(line) or _ROW.fullmatch(line):
            yield from end("sentence")
            is_item = False
            cells = _read_inline(found[found.lastindex or 0]).split("|")
            lines.append(", ".join(filter(None, map(str.strip, cells))))
            yield from end("sentence", closed=True)
        elif (found := _ITEM.match(line)) and not (is_lone and _NUMBERED.match(line)):
            yield from end("sentence", closed=True)
            is_item = True
            number = f"{found[1]}. " if found[1] else ""
            lines.append(number + _read_inline(line[found.end() :]))
        else:
            line = _read_inline(line)
            if len(lines) == 1 and not is_item and _TITLE.fullmatch(lines[0].strip()) and not _TITLE.fullmatch(line):
                yield from end("sentence", closed=True)
            lines.append(line)
    yield from end("paragraph")


def _joined(lines: list[str]) -> str:
    """Join the lines of a block, with a comma where a line ends on purpose."""
    widest = max(map(len, lines), default=0)
    said = "".join(lines[:1]).strip().lstrip(", ")
    for before, line in pairwise(lines):
        fits = len(before) + 1 + len(line.split(maxsplit=1)[0]) <= _FULL * widest
        fits = (fits or _LABELED.match(line) is not None) and not _UNFINISHED.search(before)
        ends = (before.endswith("  ") or fits) and _OPEN_END.search(before)
        said += (", " if ends else " ") + line.strip()
    return said


def _with_pauses(span: Span) -> Iterator[Item]:
    done = 0
    for match in _PAUSE.finditer(span.text):
        yield Span(span.text[done : match.start()].strip())
        seconds = float(match[1] or 0.5) / (1000 if match[2] == "ms" else 1)
        yield Pause(min(seconds, _LONGEST_PAUSE))
        done = match.end()
    yield Span(span.text[done:].lstrip() if done else span.text)
