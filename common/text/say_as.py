"""The English words of a <say-as>: a text read as the kind that it names."""

import datetime
import re
from collections.abc import Callable

from common.text.normalization.english.characters import plain_characters, unread_characters
from common.text.normalization.english.counts import MONTHS, read_fractions, read_times
from common.text.normalization.english.english import read_english
from common.text.normalization.english.pronunciation import spell
from common.text.normalization.numbers import digits, number_words, ordinal, two_digits, year
from common.text.tables import compiled, table_text, word_table

DATE_FORMATS = ("mdy", "dmy", "ymd", "md", "dm", "my", "ym", "d", "m", "y")
TIME_FORMATS = ("hms12", "hms24")

_SIGNS = word_table("address_signs") | word_table("spelled_signs") | {",": "comma"}
_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|\S")
_DATE_PART = re.compile(r"[^\s./,-]+")
_MONTH_NAMES = {name[:n]: number for number, name in enumerate(MONTHS, 1) for n in (3, len(name))} | {"sept": 9}


def read_as(text: str, *, kind: str, form: str | None = None) -> str:
    """The words of ``text`` as a ``kind`` of ``KINDS`` with the format ``form``; ValueError says what was expected."""
    if kind not in KINDS:
        raise ValueError(f"expected interpret-as one of {', '.join(KINDS)}, got {kind!r}")
    formats = {"date": DATE_FORMATS, "time": TIME_FORMATS}.get(kind, ())
    if form is not None and form not in formats:
        what = f"one of {', '.join(formats)}" if formats else f"none for interpret-as={kind!r}"
        raise ValueError(f"expected format {what}, got {form!r}")
    pattern, example = _FORMS[kind]
    match = pattern.fullmatch(" ".join(plain_characters(text).split()))
    words = _READERS[kind](match, form) if match and not unread_characters(text) else None
    if words is None:
        as_format = f" of format {form}" if form else ""
        raise ValueError(f"expected {example}{as_format}, got {text!r}")
    return words


def _characters(match: re.Match, _: str | None) -> str | None:
    pieces = _PIECE.findall(match[0])
    if not all((piece.isascii() and piece.isalnum()) or piece in _SIGNS for piece in pieces):
        return None
    return " ".join(_SIGNS.get(one) or (digits(one) if one.isdigit() else spell(one)) for one in pieces)


def _cardinal(match: re.Match, _: str | None) -> str:
    return {"-": "minus ", "+": "plus ", "": ""}[match[1]] + number_words(match[2])


def _fraction(match: re.Match, _: str | None) -> str | None:
    words = read_fractions(match[2])
    return None if re.search("[0-9]", words) else "minus " * bool(match[1]) + words


def _unit(match: re.Match, _: str | None) -> str | None:
    if _FORMS["cardinal"][0].fullmatch(match[0]):
        return None
    return read_english(re.sub(r"(?<=[0-9])(?=[A-Za-z])", " ", match[0]))  # "10s" alone would be several tens


def _time(match: re.Match, form: str | None) -> str | None:
    hour, minutes, half = int(match[1]), match[2], match[3]
    if not (minutes or half):
        return None
    if ((half or form == "hms12") and not 1 <= hour <= 12) or (form == "hms24" and half):
        return None
    words = read_times(match[0])
    return None if re.search("[0-9]", words) else words


def _telephone(match: re.Match, _: str | None) -> str | None:
    """Every digit, with a comma between groups: "+1 555-0199"."""
    groups = [digits(group) for group in re.findall("[0-9]+", match[2])]
    extension = [f"extension {digits(match[3])}"] if match[3] else []
    return "plus " * bool(match[1]) + ", ".join([*groups, *extension]) if groups else None


def _date(match: re.Match, form: str | None) -> str | None:
    text = match[0]
    parts = [part for part in _DATE_PART.findall(text) if part.lower() not in ("the", "of")]
    if form is not None:
        if re.fullmatch("[0-9]{8}", text) and len(form) == 3:  # 20210304
            parts = [text[:4], text[4:6], text[6:]] if form == "ymd" else [text[:2], text[2:4], text[4:]]
        return _date_words(parts, form)
    # Month first, as all of the English reading, unless dots are between: the European order.
    orders: tuple[str, ...] = ("dmy", "mdy", "dm", "md", "my") if "." in text else ("mdy", "dmy", "md", "dm", "my")
    if parts and len(parts[0]) == 4 and parts[0].isdigit():
        orders = ("ymd", "ym", "y")
    return next((words for order in orders if (words := _date_words(parts, order))), None)


def _date_words(parts: list[str], form: str) -> str | None:
    """The words of parts in the order of a format; None where there is no such day, in a leap year if none is named."""
    if len(parts) != len(form):
        return None
    named = dict(zip(form, parts, strict=True))
    try:
        day = _small(re.sub("(?:st|nd|rd|th)$", "", named["d"])) if "d" in named else None
        month = _MONTH_NAMES.get(named["m"].lower()) or _small(named["m"]) if "m" in named else None
        written = named.get("y", "")
        if not re.fullmatch("[0-9]{0,4}", written):
            return None
        datetime.date(
            int(written) if len(written) == 4 else 2000, 1 if month is None else month, 1 if day is None else day
        )
    except ValueError:
        return None
    months, days = MONTHS[month - 1] if month else "", ordinal(day) if day else ""
    order = [f"the {days}", f"of {months}"] if form in ("dmy", "dm") else [months, days]
    return " ".join(filter(None, [*order, _year(written)]))


def _small(text: str) -> int:
    """A day or a month; raises ValueError for other text."""
    if not re.fullmatch("[0-9]{1,2}", text):
        raise ValueError
    return int(text)


def _year(written: str) -> str:
    if len(written) == 2:
        return two_digits(written) if int(written) else "two thousand"
    return year(written) if written else ""


_READERS: dict[str, Callable[[re.Match, str | None], str | None]] = {  # None: the text is no such thing
    "characters": _characters,
    "spell-out": _characters,
    "cardinal": _cardinal,
    "number": _cardinal,
    "ordinal": lambda match, _: ordinal(match[1]),
    "digits": lambda match, _: digits(match[0]),
    "date": _date,
    "time": _time,
    "telephone": _telephone,
    "fraction": _fraction,
    "unit": _unit,
}
KINDS = tuple(_READERS)
_FORMS = {  # what a text of a kind looks like, and an example for messages
    kind: (compiled(pattern), example)
    for kind, pattern, example in re.findall("^([a-z-]+) = (.+) => (.+)$", table_text("say_as"), re.MULTILINE)
}
