"""Write out numbers, dates, money and signs as they are read aloud, in languages other than English.

Rules and tables are in the folder languages; numbers come from num2words, which lacks only Mandarin.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from common.text.normalization.numbers import named, roman
from common.text.normalization.rules import rules, rules_of
from common.text.tables import word_table

LANGUAGES = ("de", "fr", "es", "it", "pt", "pl", "cmn")
_DIGITS, _PLACES, _GROUPS = "零一二三四五六七八九", ("", "十", "百", "千"), ("", "万", "亿", "万亿")
_LONGEST = 15  # digits of a number with a name; longer ones are read digit by digit
_FEW = re.compile(r"(?:.*[^1])?[234]")  # Polish: two to four, but not twelve to fourteen


@cache
def number_reader(tag: str) -> Callable[[str], str] | None:
    """Return the function that writes out text in the language of eSpeak NG's ``tag``, or None."""
    language = tag.lower().partition("-")[0]
    return _Language(language, tag.lower()).read if language in LANGUAGES else None


class _Language:
    """The functions that the rules of a language call."""

    def __init__(self, name: str, tag: str) -> None:
        self._name, self._tag = name, "pt_BR" if tag == "pt-br" else name
        self._gap = "" if name == "cmn" else " "  # between words
        self._words = word_table(f"{name}_words")
        self._units = word_table(f"{name}_units") | word_table(f"{name}_currencies")
        self._magnitudes = word_table(f"{name}_magnitudes")
        self._genders = {gender: rules(f"{name}_{gender}") for gender in self._words["genders"]}
        readers = "cardinal number digits count measure".split()
        functions: dict[str, Callable[[Any], Any]] = {one: getattr(self, one) for one in readers}
        # The ordinal is masculine and nominative; rules inflect it.
        functions["ordinal"] = lambda number: self.cardinal(number, to="ordinal" if int(number) else "cardinal")
        functions["year"] = partial(self.cardinal, to="year")
        functions["minutes"] = lambda text: self.cardinal(int(text))  # "05"
        functions["roman"], functions["plain"] = roman, lambda text: str(int(text))
        functions["spoken_digits"] = lambda match: f"{self._words['plus']} " * ("+" in match[0]) + self.digits(match[0])
        functions |= {key: partial(_constant, words) for key, words in self._words.items()}
        shared = ["european"] if name != "cmn" else []
        last = [f"{name}_last", *(["pt_BR_last"] if self._tag == "pt_BR" else [])]
        self._apply = rules_of([f"{name}_first", *shared, *last], functions, language=name)

    def read(self, text: str) -> str:
        """Write out everything in a text that isn't words."""
        words = re.sub(r"(?<=\S)  +", " ", self._apply(text))
        return words + "." * (text.endswith(".") and words[-1:].isalnum())  # "usw." ends a sentence

    def cardinal(self, number: int | str, *, to: str = "cardinal") -> str:
        """ "1.234" or 1234 -> "mil doscientos treinta y cuatro"."""
        text = re.sub(r"\D", "", str(number))
        if len(text) > _LONGEST or (text[0] == "0" and len(text) > 1):
            return self.digits(text)
        if self._name == "cmn":
            return _chinese(int(text))
        return named(int(text), language=self._tag, to=to).replace(",", "")

    def digits(self, text: str) -> str:
        return self._gap.join(self.cardinal(one) for one in text if one in "0123456789")

    def number(self, text: str) -> str:
        """Read a written number: "1.234,5" -> "mil doscientos treinta y cuatro coma cinco"."""
        whole, _, fraction = text.partition("." if self._name == "cmn" else ",")
        if not fraction:
            return self.cardinal(whole)
        by_digit = self._name in ("de", "cmn") or fraction[0] == "0" or len(fraction) > 2
        said = self.digits(fraction) if by_digit else self.cardinal(fraction)
        return self._gap.join([self.cardinal(whole), self._words["comma"], said])

    def count(self, match: re.Match) -> str:
        """Read a number, with spaces where it touches letters: "A4" -> "A vier"."""
        before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
        return self._gap * before.isalpha() + self.number(match[0]) + self._gap * after.isalpha()

    def measure(self, match: re.Match) -> str:
        """Read a number with a unit or currency on either side and a magnitude: "2,50 €", "$5", "3 Mio. €", "20 km"."""
        names, magnitude, gap = self._units[match["unit"]], match["magnitude"], self._gap
        unit, _, part = names.partition(";")
        number = re.sub(r"[\s.']" if gap else ",", "", match["number"])
        if magnitude:
            return self._with_magnitude(number, magnitude, unit.rpartition(":")[2].split("/"))
        whole, _, cents = number.partition("," if gap else ".")
        if not part or len(cents) != 2 or (part == "-" and not whole.strip("0")):
            return self._counted(number if gap else re.sub(r"(\.\d*?)0+$", r"\1", number).rstrip("."), unit)
        if not cents.strip("0"):
            return self._counted(whole, unit)
        if not whole.strip("0"):
            return self._counted(str(int(cents)), part)
        is_named = self._words["cents"] == "named" and part != "-"
        small = self._counted(str(int(cents)), part) if is_named else self.cardinal(int(cents))
        joint = f" {self._words['and']} " if "and" in self._words else " "
        return f"{self._counted(whole, unit)}{joint}{small}"

    def _with_magnitude(self, number: str, magnitude: str, forms: list[str]) -> str:
        """ "2 millions d'euros", "3 miliony złotych"."""
        several = forms[2] if len(forms) > 2 else forms[-1]
        if self._name == "cmn":
            return self.number(number) + self._magnitudes[magnitude] + several
        if magnitude in self._units:
            return f"{self._counted(number, self._units[magnitude])} {several}"
        of = f"{self._words['of']} " if "of" in self._words else ""
        of = "d'" if self._name == "fr" and several[0] in "aeiou" else of
        return f"{self.number(number)} {self._magnitudes[magnitude]} {of}{several}"

    def _counted(self, number: str, names: str) -> str:
        """Read a count of a unit, "f:Minute/Minuten": gender, singular, plural; in Polish few, many and fractions."""
        gender, _, forms = names.rpartition(":")
        one, *others = forms.split("/")
        words = self._genders.get(gender, str)(self.number(number))
        is_one = number == "1" or (self._name == "fr" and re.fullmatch(r"[01](?:,.*)?", number))
        if is_one or not others:
            name = one
        elif len(others) > 1:
            name = others[-1] if "," in number else others[0] if _FEW.fullmatch(number) else others[1]
        else:
            name = others[0]
        return f"{words}{self._gap}{name}"


def _constant(words: str, _: re.Match) -> str:
    return words


def _chinese(number: int) -> str:
    """Read a number in Mandarin: 1205 -> "一千二百零五", 12 -> "十二"."""
    if number == 0:
        return _DIGITS[0]
    words, pending = "", False  # whether to say a zero before the next digit
    for place in reversed(range(len(str(number)))):
        digit = number // 10**place % 10
        if digit:
            words += _DIGITS[0] * pending + _DIGITS[digit] + _PLACES[place % 4]
        pending = bool(words) and (not digit) if place % 4 or digit == 0 else False
        if place % 4 == 0 and number // 10**place % 10000:
            words += _GROUPS[place // 4]
    return words.removeprefix("一") if words.startswith("一十") else words
