"""The English words of a <say-as>: a text read as the kind that it names."""

import datetime
import re
from collections.abc import Callable

from common.text.normalization.english.characters import plain_characters, unread_characters
from common.text.normalization.english.counts import read_fractions
from common.text.normalization.english.dates import MONTHS, read_times
from common.text.normalization.english.english import read_english
from common.text.normalization.english.pronunciation import spell
from common.text.normalization.numbers import digits, number_words, ordinal, two_digits, year
from common.text.tables import compiled, word_table

DATE_FORMATS = ("mdy", "dmy", "ymd", "md", "dm", "my", "ym", "d", "m", "y")
TIME_FORMATS = ("hms12", "hms24")

_SIGNS = word_table("address_signs") | word_table("spelled_signs") | {",": "comma"}
_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|\S")
_CARDINAL = compiled(r"([+-]?)\s?(<NUMBER>|\.[0-9]+)")
_ORDINAL = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:st|nd|rd|th)?", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9](?:[ .,/-]?[0-9])*")
_FRACTION = re.compile(r"-?(?:[0-9]+[ -])?[0-9]+/[1-9][0-9]*")
_UNIT = compiled(r"[+-]?(?:<NUMBER>|\.[0-9]+)\s?\S.*")
_TIME = re.compile(
    r"(?P<hour>[01]?[0-9]|2[0-4])(?::[0-5][0-9](?::[0-5][0-9])?)?(?P<half>\s?[ap]\.?\s?m\.?)?", re.IGNORECASE
)
_TELEPHONE = re.compile(r"(\+?)([0-9() ./-]+)(?:\s*(?:x|ext\.?|extension)\s*([0-9]+))?", re.IGNORECASE)
_DATE_PARTS = re.compile(r"[\s./,-]+")
_MONTH_NAMES = {name[:n]: number for number, name in enumerate(MONTHS, 1) for n in (3, len(name))} | {"sept": 9}


def read_as(text: str, *, kind: str, form: str | None = None) -> str:
    """The words of ``text`` as a ``kind`` of ``KINDS``; ``form`` is the format of a date or time.

    Raises ValueError, whose text says what was expected, for a text that is no such thing and for an unknown kind or
    format.
    """
    if kind not in KINDS:
        raise ValueError(f"expected interpret-as one of {', '.join(KINDS)}, got {kind!r}")
    formats = {"date": DATE_FORMATS, "time": TIME_FORMATS}.get(kind, ())
    if form is not None and form not in formats:
        what = f"one of {', '.join(formats)}" if formats else f"none for interpret-as={kind!r}"
        raise ValueError(f"expected format {what}, got {form!r}")
    read, example = KINDS[kind]
    plain = " ".join(plain_characters(text).split())
    words = None if unread_characters(text) else read(plain, form)
    if words is None:
        as_format = f" of format {form}" if form else ""
        raise ValueError(f"expected {example}{as_format}, got {text!r}")
    return words


def _characters(text: str, _: str | None) -> str | None:
    pieces = _PIECE.findall(text)
    if not pieces or not all((piece.isascii() and piece.isalnum()) or piece in _SIGNS for piece in pieces):
        return None
    return " ".join(_SIGNS.get(one) or (digits(one) if one.isdigit() else spell(one)) for one in pieces)


def _cardinal(text: str, _: str | None) -> str | None:
    match = _CARDINAL.fullmatch(text)
    return match and {"-": "minus ", "+": "plus ", "": ""}[match[1]] + number_words(match[2])


def _ordinal(text: str, _: str | None) -> str | None:
    match = _ORDINAL.fullmatch(text)
    return match and ordinal(int(match[1].replace(",", "")))


def _digits(text: str, _: str | None) -> str | None:
    return digits(text) if _DIGITS.fullmatch(text) else None


def _fraction(text: str, _: str | None) -> str | None:
    if not _FRACTION.fullmatch(text):
        return None
    words = read_fractions(text.removeprefix("-"))
    return None if re.search("[0-9]", words) else "minus " * text.startswith("-") + words


def _unit(text: str, _: str | None) -> str | None:
    if not _UNIT.fullmatch(text) or _CARDINAL.fullmatch(text):
        return None
    return read_english(re.sub(r"(?<=[0-9])(?=[A-Za-z])", " ", text))  # "10s" alone would be several tens


def _time(text: str, form: str | None) -> str | None:
    match = _TIME.fullmatch(text)
    if not match or (":" not in text and not match["half"]):
        return None
    hour = int(match["hour"])
    if ((match["half"] or form == "hms12") and not 1 <= hour <= 12) or (form == "hms24" and match["half"]):
        return None
    words = read_times(text)
    return None if re.search("[0-9]", words) else words


def _telephone(text: str, _: str | None) -> str | None:
    """Every digit, with a comma between groups: "+1 555-0199"."""
    match = _TELEPHONE.fullmatch(text)
    if not match or not re.search("[0-9]", match[2]):
        return None
    groups = [digits(group) for group in re.findall("[0-9]+", match[2])]
    extension = [f"extension {digits(match[3])}"] if match[3] else []
    return "plus " * bool(match[1]) + ", ".join([*groups, *extension])


def _date(text: str, form: str | None) -> str | None:
    parts = [part for part in _DATE_PARTS.split(text) if part.lower() not in ("", "the", "of")]
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
    if len(parts) != len(form):
        return None
    named = dict(zip(form, parts, strict=True))
    month = _month(named["m"]) if "m" in named else None
    day = _small(re.sub("(?:st|nd|rd|th)$", "", named["d"])) if "d" in named else None
    written = named.get("y")
    if ("m" in named and month is None) or ("d" in named and day is None) or not _exists(day, month, written):
        return None
    months, days = MONTHS[month - 1] if month else "", ordinal(day) if day else ""
    order = [f"the {days}", f"of {months}"] if form in ("dmy", "dm") else [months, days]
    return " ".join(filter(None, [*order, _year(written) if written else ""]))


def _month(text: str) -> int | None:
    return _small(text) if text.isdigit() else _MONTH_NAMES.get(text.lower())


def _small(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,2}", text) else None


def _exists(day: int | None, month: int | None, written: str | None) -> bool:
    """Whether there is such a day; of a year of two digits, or none, in a leap year."""
    if written is not None and (not re.fullmatch("[0-9]{1,4}", written) or (len(written) == 4 and int(written) == 0)):
        return False
    try:
        datetime.date(int(written) if written and len(written) == 4 else 2000, 1 if month is None else month, day or 1)
    except ValueError:
        return False
    return day != 0


def _year(written: str) -> str:
    if len(written) == 2:
        return two_digits(int(written)) if int(written) else "two thousand"
    return year(int(written))


Read = Callable[[str, str | None], str | None]  # None: the text is no such thing
_SPELLED: tuple[Read, str] = (_characters, "letters, digits and signs")
_NUMBER: tuple[Read, str] = (_cardinal, "a number such as 1,234.5")
KINDS: dict[str, tuple[Read, str]] = {
    "characters": _SPELLED,
    "spell-out": _SPELLED,
    "cardinal": _NUMBER,
    "number": _NUMBER,
    "ordinal": (_ordinal, "a whole number such as 3 or 3rd"),
    "digits": (_digits, "digits such as 12345"),
    "date": (_date, "a date such as 2021-03-04 or, with format='dmy', 4.3.2021"),
    "time": (_time, "a time such as 14:30, 14:30:15 or 2:30 pm"),
    "telephone": (_telephone, "a telephone number such as +1 (212) 555-0199"),
    "fraction": (_fraction, "a fraction such as 3/4 or 2 1/2"),
    "unit": (_unit, "a number with its unit such as 5 km"),
}
