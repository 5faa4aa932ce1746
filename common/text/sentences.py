"""Split long texts into utterances, in linear time, and choose the silence for their punctuation."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from common.text.ssml import ATOM, Boundary, Item, Pause, Span
from common.text.tables import compiled, word_set, word_table

MAX_CHARACTERS = 400  # of an utterance; a longer sentence is cut

# Seconds of silence after an utterance, by what ends it; an explicit <break> replaces them.
SENTENCE = 0.35
QUESTION = 0.4  # and exclamations
ELLIPSIS = 0.5
PARAGRAPH = 0.7
SEMICOLON = 0.25  # and colons and dashes, where a long sentence is cut
COMMA = 0.15  # the same
SPACE = 0.05  # where a long sentence without punctuation is cut
_PAUSES = (SPACE, SPACE, COMMA, SEMICOLON)  # by the strength of a cut, starting from 1
_AT_CONJUNCTION = 2  # strength
EARLY = (25, 60)  # fewest and most characters of a first clause; 60 take 3 s to speak
_BOUNDARIES = {"sentence": SENTENCE, "paragraph": PARAGRAPH}

_BRACES = re.compile(r"\{[^{}]*\}")
_SPOKEN = re.compile(rf"[^\W_]|[{ATOM}&%@$£€¥+°]")
_FULL_WIDTH = "。！？｡"  # not followed by a space
_STOPS = f".!?…{_FULL_WIDTH}।॥؟۔"
_STOP_OR_SPACES = re.compile(rf"([{_STOPS}]+)|\s{{2,}}")
_CLOSERS = re.compile(r"[\"'”’»)\]」』）]*")
_ENDING = re.compile(rf"([{_STOPS}]+)[\"'”’»)\]」』）]*\Z")
_ASKING = frozenset("!?！？؟")
_QUOTES = "\"'”’»"
_OPENERS = re.compile(r"\s*(?:[\"'“‘«(\[¿¡—–-]+\s*)?")
_NUMBERING = re.compile(r"[\"'“‘(\[]*(?:[0-9]{1,3}|[A-Za-z])")  # "1. First", "(a. first)"

_GERMAN_ORDINAL = compiled("<GERMAN_ORDINAL>")  # before a word that English lacks, or after an article: "am 1. April"
_STARTER = compiled(r"(?:<sentence_starters>)\b(?!\.)")
_WORD = re.compile(r"(?<![\w.@/])(?:(?:[A-Za-z]{1,2}\.)+[A-Za-z]{1,2}|[A-Za-z]+)\Z")
_LONGEST_WORD = 12  # characters of an abbreviation
_TITLES = {*word_table("titles"), *word_table("dotted_titles"), *word_table("lower_titles")}
_LABELS = frozenset(word_table("labels"))
_NUMERAL = re.compile(r"[IVXLC]+\b")
_YEAR = re.compile(r"(?:c\. )?[12][0-9]{3}\b")
_CALENDAR = {day.capitalize() for day in (*word_table("months"), *word_table("days"))} - {"Sat", "Sun"}  # also words
_ABBREVIATIONS = {*word_table("abbreviations"), "al", "ft", "st"}
_CONJUNCTIONS = word_set("conjunctions")
_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)")
_NEVER_LAST = word_set("never_last")
_DIGITS = frozenset("#0123456789")


@dataclass(frozen=True)
class TextUtterance:
    """Text that is spoken at once; without spans, it is only silence, from a <break> at the beginning of a text."""

    spans: tuple[Span, ...]
    pause: float  # s of silence after it; after the last one, only an explicit <break>

    @property
    def is_plain(self) -> bool:
        """Whether it is text without markup."""
        return [replace(span, text="") for span in self.spans] == [Span("")]


def split_utterances(items: Sequence[Item], *, longest: int = 0, most: int = MAX_CHARACTERS) -> list[TextUtterance]:
    """Return sentences, or groups of sentences up to ``longest`` characters; only white space is lost.

    A pause, a boundary, a blank line and a change of speaker end an utterance. A sentence of more than ``most``
    characters is cut at clauses, else before conjunctions, else at spaces.
    """
    splitter = _Splitter(longest, most)
    for item in items:
        splitter.add(item)
    return splitter.finish()


def cut_early(utterance: TextUtterance) -> list[TextUtterance]:
    """Split off a plain utterance's first clause of ``EARLY`` characters, if any, so that playback begins sooner."""
    span, text = utterance.spans[0], utterance.spans[0].text
    cuts = [(_strength(text, place), -place) for place in range(EARLY[0], min(EARLY[1], len(text) - 1) + 1)]
    strength, place = max(cuts, default=(0, 0))
    first, rest = text[:-place], text[-place:].strip()
    if strength < _AT_CONJUNCTION or "{" in first or not (_SPOKEN.search(first) and _SPOKEN.search(rest)):
        return [utterance]
    head = TextUtterance((replace(span, text=first),), pause=_PAUSES[strength - 1])
    return [head, replace(utterance, spans=(replace(span, text=rest),))]


@dataclass
class _Draft:
    """An utterance whose pause may still change."""

    spans: list[Span]
    pause: float
    explicit: bool = False  # whether a <break> sets the pause


class _Splitter:
    """Collects the spans of a block, which only punctuation separates, and splits the block at its end."""

    def __init__(self, longest: int, most: int) -> None:
        self._longest, self._most = longest, most
        self._drafts: list[_Draft] = []
        self._before: _Draft | None = None  # the last one with spans
        self._spans: list[Span] = []  # of the block
        self._spoken = False  # whether any of them is

    def add(self, item: Item) -> None:
        if isinstance(item, Span):
            self._add_span(item)
        elif isinstance(item, Boundary):
            self._end_block()
            if self._drafts and not self._drafts[-1].explicit:
                self._drafts[-1].pause = max(self._drafts[-1].pause, _BOUNDARIES[item.kind])
        else:
            self._end_block()
            self._rest(item)

    def finish(self) -> list[TextUtterance]:
        self._end_block(last=True)
        if self._drafts:
            self._drafts[-1].pause *= self._drafts[-1].explicit
        return [TextUtterance(tuple(draft.spans), draft.pause) for draft in self._drafts]

    def _add_span(self, span: Span) -> None:
        if not span.text:
            return
        spoken = _SPOKEN.search(span.masked) is not None
        if self._spans and span.style.speaker != self._spans[-1].style.speaker:
            if not spoken:  # the full stop after a </voice>
                span = _said_by(self._spans[-1], span)
            elif self._spoken:
                self._end_block()
            else:  # a quotation mark before a <voice>
                self._spans = [_said_by(span, one) for one in self._spans]
        self._spans.append(span)
        self._spoken = self._spoken or spoken

    def _rest(self, pause: Pause) -> None:
        """Add silence after the last utterance, or before the first."""
        if not self._drafts:
            self._drafts.append(_Draft([], 0.0, explicit=True))
        last = self._drafts[-1]
        last.pause = last.pause * last.explicit + pause.seconds
        last.explicit = True

    def _end_block(self, *, last: bool = False) -> None:
        """Split the block; one with nothing to say joins the previous utterance or, without one, waits for the next."""
        before = self._before
        if self._spoken or (last and before is None and any(span.text.strip() for span in self._spans)):
            self._split()
        elif before is not None:
            stripped = [replace(span, text=span.text.rstrip()) for span in self._spans if span.text.strip()]
            before.spans += [_said_by(before.spans[-1], span) for span in stripped]
        else:
            return
        self._spans, self._spoken = [], False

    def _split(self) -> None:
        masked = _BRACES.sub(lambda match: ATOM * len(match[0]), "".join(span.masked for span in self._spans))
        pieces = _together(_pieces(masked, self._most), self._longest)
        starts = [0, *accumulate(len(span.text) for span in self._spans)]
        self._drafts += [_Draft(_part(self._spans, starts, piece), piece.pause) for piece in pieces]
        self._before = self._drafts[-1]


def _said_by(speaker: Span, span: Span) -> Span:
    return replace(span, style=replace(span.style, speaker=speaker.style.speaker))


@dataclass(frozen=True)
class _Piece:
    """Characters [start, end) of a block, without white space at both ends."""

    start: int
    end: int
    pause: float  # s
    ends_paragraph: bool = False


def _part(spans: Sequence[Span], starts: Sequence[int], piece: _Piece) -> list[Span]:
    """Return the spans of a piece, cut at its start and end."""
    part = []
    for index in range(bisect_right(starts, piece.start) - 1, bisect_left(starts, piece.end)):
        span, start = spans[index], starts[index]
        text = span.text[max(piece.start - start, 0) : piece.end - start]
        part.append(span if len(text) == len(span.text) else replace(span, text=text))
    return part


def _together(pieces: Iterator[_Piece], longest: int) -> Iterator[_Piece]:
    """Join consecutive pieces of a paragraph, up to ``longest`` characters."""
    held: _Piece | None = None
    for piece in pieces:
        if held and not held.ends_paragraph and piece.end - held.start <= longest:
            piece = replace(piece, start=held.start)
        elif held:
            yield held
        held = piece
    if held:
        yield held


def _pieces(text: str, most: int) -> Iterator[_Piece]:
    """Yield sentences; those with nothing to say join the previous one or, at the beginning, the next one."""
    held: _Piece | None = None
    held_says = False
    for piece in _sentences(text):
        says = _SPOKEN.search(text, piece.start, piece.end) is not None
        if held and not (held_says and says):
            piece = replace(piece, start=held.start, pause=max(held.pause, piece.pause))
            says = says or held_says
        elif held:
            yield from _cut(text, held, most)
        held, held_says = piece, says
    if held:
        yield from _cut(text, held, most)


def _sentences(text: str) -> Iterator[_Piece]:
    start = _skip_spaces(text, 0)
    for match in _STOP_OR_SPACES.finditer(text):
        if match.start() < start:
            continue
        if match[1] is None:
            if match[0].count("\n") > 1 and match.end() < len(text):
                yield _Piece(start, match.start(), PARAGRAPH, ends_paragraph=True)
                start = match.end()
            continue
        end = _CLOSERS.match(text, match.end()).end()  # type: ignore[union-attr]  # always matches
        following = _skip_spaces(text, end)
        if following == len(text):
            break
        if not _ends_sentence(text, match, start=start, end=end, following=following):
            continue
        if text[end:following].count("\n") > 1:
            yield _Piece(start, end, PARAGRAPH, ends_paragraph=True)
        else:
            yield _Piece(start, end, _pause(match[0]))
        start = following
    end = len(text.rstrip())
    if end > start:
        ending = _ENDING.search(text, max(end - 10, start), end)
        yield _Piece(start, end, _pause(ending[1] if ending else ""))


def _skip_spaces(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _pause(stop: str) -> float:
    if not _ASKING.isdisjoint(stop):
        return QUESTION
    return ELLIPSIS if "…" in stop or "..." in stop else SENTENCE


def _ends_sentence(text: str, match: re.Match, *, start: int, end: int, following: int) -> bool:
    """Whether a sentence from ``start`` ends with a stop and quotes up to ``end``; ``following`` is the next word."""
    stop = match[1]
    if following == end:  # no space
        return stop[-1] in _FULL_WIDTH
    following = _OPENERS.match(text, following).end()  # type: ignore[union-attr]  # always matches
    if following == len(text) or text[following] in _STOPS or (stop == "!" and text[following] in "=*/+"):
        return False  # the last of several stops ends it: ". . ."; "5! = 120"
    if text[following].islower() and (end > match.end() or set(stop) <= {".", "…"}):
        return False  # '"Stop!" he said', "approx. five"
    if stop != ".":
        return True
    near = _GERMAN_ORDINAL.finditer(text, max(start, end - 8), following + 12)
    if any(one.start() < match.start() < one.end() for one in near):
        return False
    line = max(start, text.rfind("\n", start, match.start()) + 1)
    return not (_NUMBERING.fullmatch(text, line, match.start()) or _is_abbreviation(text, match.start(), following))


def _is_abbreviation(text: str, stop: int, following: int) -> bool:
    """Whether the word before a full stop is an abbreviation that doesn't also end the sentence."""
    found = _WORD.search(text[max(stop - _LONGEST_WORD, 0) : stop])
    if not found:
        return False
    word, lower = found[0], found[0].lower()
    if word in _TITLES or lower in _NEVER_LAST:
        return True
    if lower in _LABELS and (text[following] in _DIGITS or (lower != "no" and _NUMERAL.match(text, following))):
        return True  # "No. 5", "Vol. II", but not "No. I will not."
    if word in ("b", "d") and _YEAR.match(text, following):
        return True
    # "21 C." ends a sentence, "12 N. Elm St." doesn't.
    initial = len(word) == 1 and word.isupper() and (word in "NSEW" or not (stop > 2 and text[stop - 3].isdigit()))
    known = initial or "." in word or word in _CALENDAR or lower in _ABBREVIATIONS
    return known and not _STARTER.match(text, following)


def _cut(text: str, piece: _Piece, most: int) -> Iterator[_Piece]:
    """Cut a piece that is too long into parts of similar length, if possible without any that has nothing to say."""
    start, last = piece.start, piece.end - 1
    while last > start and not _SPOKEN.match(text, last):
        last -= 1
    while (left := piece.end - start) > most:
        limit = start + most
        end, pause = _best_cut(text, start, min(limit, last) if last > start else limit, left=left, most=most)
        if end > last > start:
            break
        yield _Piece(start, len(text[start:end].rstrip()) + start, pause)
        start = _skip_spaces(text, end)
    yield replace(piece, start=start)


def _best_cut(text: str, start: int, limit: int, *, left: int, most: int) -> tuple[int, float]:
    """Return where to cut after ``start`` (at the strongest mark near 1/2, 1/3, ... of what is left) and the pause."""
    length = -(-left // -(-left // most))
    best = (0, 0, 0)
    for place in range(start + 1, limit + 1):
        strength = _strength(text, place)
        if strength > 1 and place - start < length / 2:
            strength = 1
        best = max(best, (strength, -abs(place - start - length), place))
    if best[0]:
        return best[2], _PAUSES[best[0] - 1]
    end = start + length
    if text[end - 1] == text[end] == ATOM:  # atoms aren't cut: cut before it, or after it if it begins here
        inside = length - len(text[start:end].rstrip(ATOM))
        end = end - inside if inside < length else end + len(text[end:]) - len(text[end:].lstrip(ATOM))
    return end, 0.0


def _strength(text: str, place: int) -> int:
    """Rate a cut before a character: 4 after a semicolon, 3 after a comma, 2 before a conjunction, 1 at a space, 0."""
    if not text[place].isspace():
        return 3 * (text[place - 1] in "，、；：")
    last = text[place - 1]
    if last in _QUOTES and text[place - 2] in ",;:":
        last = text[place - 2]
    if last == "." and _is_abbreviation(text, place - 1, _skip_spaces(text, place)):
        return 1
    if last in ".!?…;:—–,)":
        return 3 if last in ",)" else 4
    following = _NEXT_WORD.match(text, place)
    return 2 if following is not None and following[1].lower() in _CONJUNCTIONS else 1
