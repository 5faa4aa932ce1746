"""Numbers in words: cardinals, ordinals, years, decades, decimals and single digits."""

from functools import lru_cache

from common.text.normalization.tables import word_table

_BELOW_20 = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS_WORDS = ["", "", *"twenty thirty forty fifty sixty seventy eighty ninety".split()]
_SCALES = ("", "thousand", "million", "billion", "trillion", "quadrillion")
_IRREGULAR_ORDINALS = word_table("irregular_ordinals")
LARGEST = 10 ** (3 * len(_SCALES)) - 1  # the largest number that has a name here; others are read digit by digit

# A number as it is written: 7, 1,234, 10.05 (a part of a pattern, without borders).
NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?"


def _below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{_BELOW_20[hundreds]} hundred"] if hundreds else []
    if rest:
        tens, units = divmod(rest, 10)
        small = _BELOW_20[rest] if rest < 20 else _TENS_WORDS[tens] + (f" {_BELOW_20[units]}" if units else "")
        words.append(small)
    return " and ".join(words)


@lru_cache(maxsize=65536)
def cardinal(number: int) -> str:
    """104 -> "one hundred and four"; digit by digit above ``LARGEST``."""
    if number < 20:
        return _BELOW_20[number]
    if number > LARGEST:
        return digits(str(number))
    groups = []
    rest, scale = number, 0
    while rest:
        rest, group = divmod(rest, 1000)
        if group:
            groups.append(f"{_below_thousand(group)} {_SCALES[scale]}".strip())
        scale += 1
    last_is_small = 0 < number % 1000 < 100
    if last_is_small and len(groups) > 1:
        groups[0] = "and " + groups[0]
    return " ".join(reversed(groups))


def ordinal(number: int) -> str:
    """22 -> "twenty second"."""
    head, _, last = cardinal(number).rpartition(" ")
    if last in _IRREGULAR_ORDINALS:
        last = _IRREGULAR_ORDINALS[last]
    else:
        last = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return f"{head} {last}".strip()


def year(number: int) -> str:
    """A year of up to four digits: 1905 "nineteen oh five", 1900 "nineteen hundred", 2007 "two thousand seven"."""
    if number < 1000 or number > 9999 or number % 1000 == 0:
        return cardinal(number)
    if number % 1000 < 10:
        return f"{cardinal(number // 1000)} thousand {cardinal(number % 10)}"
    first, last = divmod(number, 100)
    if last == 0:
        return f"{cardinal(first)} hundred"
    return f"{cardinal(first)} {'oh ' if last < 10 else ''}{cardinal(last)}"


def digits(text: str) -> str:
    """Every digit of ``text`` by itself: "0958" -> "zero nine five eight"; other characters are skipped."""
    return " ".join(_BELOW_20[int(character)] for character in text if character in "0123456789")


def identifier(text: str) -> str:
    """The number of a room, a road or an aircraft: 747 "seven forty seven", 101 "one oh one", 66 "sixty six"."""
    if text.startswith("0") or len(text) > 4:
        return digits(text)
    number = int(text)
    if len(text) == 3 and number % 100:
        return f"{cardinal(number // 100)} {'oh ' if number % 100 < 10 else ''}{cardinal(number % 100)}"
    return year(number)


def number_words(text: str) -> str:
    """A written number: "1,234.50" -> "one thousand two hundred and thirty four point five zero"."""
    whole, point, fraction = text.replace(",", "").partition(".")
    if len(whole) > len(str(LARGEST)) or (len(whole) > 1 and whole[0] == "0"):  # 007, and numbers without a name
        words = digits(whole)
    else:
        words = cardinal(int(whole)) if whole else ""
    return f"{words} point {digits(fraction)}".strip() if point else words


def plural(words: str) -> str:
    """Several of a number: "sixty" -> "sixties", "six" -> "sixes", "nineteen hundred" -> "nineteen hundreds"."""
    if words.endswith("y"):
        return words[:-1] + "ies"
    return words + ("es" if words.endswith("x") else "s")
