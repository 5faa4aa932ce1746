"""All other numbers: telephone numbers, codes, fractions, scores, ranges, versions, ordinals, letters with digits."""

import re

from common.text.normalization.english.numbers import (
    NUMBER,
    cardinal,
    digits,
    identifier,
    number_words,
    ordinal,
    plural,
)
from common.text.normalization.english.pronunciation import is_spelled
from common.text.tables import word_pattern

_END = r"(?![\w]|[.,][0-9])"
_START = r"(?<![\w.,$£€])"
_GROUPED = re.compile(
    r"(?<![\w.,-])(?:[0-9]{1,3}(?:\.[0-9]{3}){2,}(?![\w]|[.,][0-9])"
    r"|[1-9][0-9]{0,2}(?: [0-9]{3}){2,}(?![\w]|[.,-]?[0-9]| [0-9]))"
)

_INTERNATIONAL = re.compile(r"(?<![\w.])\+[0-9]{1,3}(?:[ .-]?\(?[0-9]{1,5}\)?){1,6}(?![\w])")
_TELEPHONE = re.compile(
    r"(?<![\w.,/-])(?:"
    r"(?:1[ .-])?(?:\([0-9]{3}\)\s?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}"  # (212) 555-0199, 1-800-555-0199
    r"|[0-9]{3}-[0-9]{4}"  # 555-0123
    r"|\(0[0-9]{2,4}\)\s?[0-9]{3,4}[ -]?[0-9]{3,4}"  # (020) 7946 0958
    r"|0[0-9]{2,4}[ -][0-9]{3,4}(?:[ -]?[0-9]{3,4})?"  # 020 7946 0958
    r"|[0-9]+(?:-[0-9]+){2,}(?:-[0-9X])?"  # 0-306-40615-2
    r")(?![\w]|[.,-][0-9])"
)
_DIALLED = re.compile(
    r"(\b(?:[Cc]all|[Dd]ial|[Rr]ing|[Tt]ext|[Pp]hone|[Tt]elephone|[Tt]el:?|[Ff]ax:?|[Ee]xtension|[Cc]alled|[Dd]ialled|"
    r"[Dd]ialed|PIN|ZIP|[Zz]ip|[Pp]ostcode|[Pp]asscode|[Pp]assword|[Cc]ode)(?:\s(?:number|code|is|was|on|of|or|at))*:?\s)"
    r"([0-9]{3,}(?:[ -][0-9]{3,})*)(?![\w]|[.,][0-9])"
)
_EMERGENCY = re.compile(
    r"(\b(?:[Cc]all|[Dd]ial|[Rr]ing|[Cc]alled|[Dd]ialled|[Dd]ialed)\s[a-z ]+\s(?:or|and)\s)([0-9]{3})\b(?![.,][0-9])"
)
_NAMED = word_pattern("identified")
_IDENTIFIER = re.compile(
    rf"(\b(?:{_NAMED}|{_NAMED.lower()})s?\s(?:number\s)?)([0-9]{{2,4}})(?![\w]|[.,:/][0-9]|-[0-9])"
)
_JET = re.compile(r"(\b(?:[Aa]|[Aa]n|[Tt]he)\s)(7[0-8]7)(?:-([0-9]{3}))?\b(?![.,][0-9]|\s[a-z]+s\b)")
_ADDRESS = re.compile(
    rf"{_START}([0-9]{{3}})(?=\s(?:[A-Z][a-z]+\s|[0-9]+(?:st|nd|rd|th)\s){{1,3}}"
    r"(?:Street|St\b|Avenue|Ave\b|Road|Rd\b|Drive|Lane|Boulevard|Blvd\b|Way|Court|Place))"
)
_IDIOM = re.compile(r"(?<![\w.,/])(24/7|9/11|7/7|([0-9]{1,3})/\2)(?![\w/]|[.,][0-9])")
_MIXED_FRACTION = re.compile(r"(?<![\w.,/])([0-9]+)(?:\s+|-)([1-9][0-9]?)/([1-9][0-9]{0,2})(?![\w/]|[.,][0-9])")
_FRACTION = re.compile(rf"(?<![\w.,/])({NUMBER})/({NUMBER})(?![\w/]|[.,][0-9])")
_ORDINAL = re.compile(r"(?<![\w.])([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:st|nd|rd|th)(s?)\b", re.IGNORECASE)
_VERSION = re.compile(r"\b(?:[Vv]er\.?\s?|[Vv]\.?\s?)(?=[0-9]+(?:\.[0-9]+)*\b)(?<![\w.][Vv])")
_DOTTED = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+){2,})(?![\w]|\.[0-9])")
_IP_ADDRESS = re.compile(r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w]|\.[0-9])")
_SCIENTIFIC = re.compile(rf"(?<![\w.,])(-)?({NUMBER})[eE]([+-])?([0-9]{{1,4}})\b(?![.,][0-9])")
_POWER = re.compile(r"\^\(?(-)?([0-9]{1,6})\)?")
_NUMBER_POWER = re.compile(rf"(?<![\w.,])({NUMBER})(\^\(?-?[0-9]+\)?)")
_EQUATION = re.compile(rf"({NUMBER})\s+-\s+(?={NUMBER}\s*=)|(?<=[a-z])\s-\s({NUMBER})(?=\s*=)")
_RANGE = re.compile(rf"(?<![\w.,/-])({NUMBER})\s?-\s?({NUMBER})(?![\w/]|-[0-9]|[.,][0-9])")
_NEGATIVE_RANGE = re.compile(rf"(?:(?<=[\s(])|^)-({NUMBER})-({NUMBER})(?![\w/]|-[0-9]|[.,][0-9])")
_SIGNED = re.compile(rf"(?<![\w.,)'])(-|\+|~)\s?(?={NUMBER}|\.[0-9])")
_DECIMAL_POINT = re.compile(r"(?<![\w.])\.([0-9]+)(?![\w]|\.[0-9])")
_MIXED = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z]+-?(?=[0-9])|[0-9]+(?=[A-Za-z]))[A-Za-z0-9]*")
_MIXED_DECIMAL = re.compile(r"\b([A-Za-z]+-?[0-9]+)\.([0-9]+)(?![\w]|\.[0-9])")
_PIECES = re.compile(r"[0-9]+|[A-Za-z]+")
_NUMBER = re.compile(NUMBER)

_HALVES = {2: "half", 3: "third", 4: "quarter"}
_FRACTION_DENOMINATORS = frozenset([*range(2, 11), 12, 16, 32, 64])  # others only under one: "one twentieth"
_SIGN_WORDS = {"-": "minus ", "+": "plus ", "~": "about "}


def _telephone(match: re.Match) -> str:
    text = match[0]
    if re.fullmatch(r"[0-9]{2}0-[0-9]{2}00", text):  # 200-1000, a range of round numbers
        return text
    return ("plus " if text[0] == "+" else "") + digits(text)


def _denominator(number: int, several: bool) -> str:
    word = _HALVES.get(number) or ordinal(number).removeprefix("one ")
    if not several:
        return word
    return "halves" if number == 2 else word + "s"


def _read_mixed_fraction(match: re.Match) -> str:
    """ "2 1/2" -> "two and a half", "5 3/8" -> "five and three eighths"."""
    above, below = int(match[2]), int(match[3])
    if below < 2 or above >= below:
        return match[0]
    count = ("an" if below in (8, 11, 18) else "a") if above == 1 else cardinal(above)
    return f"{number_words(match[1])} and {count} {_denominator(below, above > 1)}"


def _read_fraction(match: re.Match) -> str:
    """ "3/4" -> "three quarters", "9.5/10" -> "nine point five out of ten", "15/7" -> "fifteen over seven"."""
    above, below = match[1], match[2]
    if above.isdigit() and below.isdigit() and len(above) < 5 and len(below) < 5:
        if 0 < int(above) < int(below) and (int(above) == 1 or int(below) in _FRACTION_DENOMINATORS):
            return f"{cardinal(int(above))} {_denominator(int(below), int(above) > 1)}"
        if int(above) < int(below):
            return f"{number_words(above)} out of {number_words(below)}"
    joint = "out of" if below in ("5", "10", "20", "100") else "over"
    return f"{number_words(above)} {joint} {number_words(below)}"


def _read_power(match: re.Match) -> str:
    sign, exponent = match[1], match[2]
    if not sign and exponent in ("2", "3"):
        return " squared" if exponent == "2" else " cubed"
    return f" to the power of {'minus ' if sign else ''}{cardinal(int(exponent))}"


def _read_scientific(match: re.Match) -> str:
    sign = "minus " if match[1] else ""
    power = ("minus " if match[3] == "-" else "") + cardinal(int(match[4]))
    return f"{sign}{number_words(match[2])} times ten to the power of {power}"


def _read_piece(piece: str) -> str:
    if piece.isdigit():
        return identifier(piece)
    if piece.isupper() and len(piece) > 1 and (len(piece) < 4 or is_spelled(piece)):
        return ".".join(piece.lower()) + "."
    return piece.lower()


def _read_mixed(match: re.Match) -> str:
    """Letters with digits: "B2B" -> "b two b", "MP3" -> "m.p. three", "12B" -> "twelve b", "iPhone12"."""
    text = match[0]
    if text[-1] == "s" and text[:-1].isdigit():  # "7s": several sevens
        return plural(number_words(text[:-1]))
    possessive = bool(re.match(r"s\b", text[-1])) and text[-2].isdigit() and not text[0].isdigit()
    pieces = _PIECES.findall(text[:-1] if possessive else text)
    return " ".join(_read_piece(piece) for piece in pieces) + ("s" if possessive else "")


def _read_plain(match: re.Match) -> str:
    """A number's words, with spaces where they would touch letters: "100-meter" keeps its hyphen."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    left, right = " " if before.isalnum() else "", " " if after.isalnum() or after == "(" else ""
    return f"{left}{number_words(match[0])}{right}"


def read_labelled_numbers(text: str) -> str:
    """Numbers that are read digit by digit or in pairs: telephones, codes, rooms, roads, aircraft, houses."""
    text = _GROUPED.sub(lambda match: re.sub(r"[. ]", ",", match[0]), text)  # 1 000 000 and 1.000.000
    text = _NUMBER_POWER.sub(lambda match: number_words(match[1]) + _POWER.sub(_read_power, match[2]), text)
    text = _INTERNATIONAL.sub(lambda m: _telephone(m) if sum(map(str.isdigit, m[0])) > 6 else m[0], text)
    text = _TELEPHONE.sub(_telephone, text)
    text = _DIALLED.sub(lambda match: match[1] + digits(match[2]), text)
    text = _EMERGENCY.sub(lambda match: match[1] + digits(match[2]), text)
    text = _IDENTIFIER.sub(lambda match: match[1] + identifier(match[2]), text)
    text = _JET.sub(lambda m: m[1] + identifier(m[2]) + (" " + identifier(m[3]) if m[3] else ""), text)
    return _ADDRESS.sub(lambda match: identifier(match[1]), text)


def read_fractions(text: str) -> str:
    """Write out fractions, mixed numbers and set phrases such as "24/7"."""
    if "/" not in text:
        return text
    text = _IDIOM.sub(lambda match: " ".join(cardinal(int(part)) for part in match[1].split("/")), text)
    text = _MIXED_FRACTION.sub(_read_mixed_fraction, text)
    return _FRACTION.sub(_read_fraction, text)


def read_counts(text: str) -> str:
    """Write out every number that is left."""
    text = _ORDINAL.sub(lambda match: ordinal(int(match[1].replace(",", ""))) + match[2], text)
    text = _VERSION.sub("version ", text)
    text = _IP_ADDRESS.sub(lambda match: " dot ".join(digits(part) for part in match[0].split(".")), text)
    text = _DOTTED.sub(lambda match: " point ".join(number_words(part) for part in match[1].split(".")), text)
    text = _SCIENTIFIC.sub(_read_scientific, text)
    text = _POWER.sub(_read_power, text)
    text = _EQUATION.sub(lambda match: f"{match[1] or ''} minus {match[2] or ''}", text)
    text = _NEGATIVE_RANGE.sub(lambda match: f"minus {number_words(match[1])} to {number_words(match[2])}", text)
    text = _RANGE.sub(lambda match: f"{number_words(match[1])} to {number_words(match[2])}", text)
    text = _MIXED_DECIMAL.sub(lambda match: f"{match[1]} point {digits(match[2])}", text)  # "USB3.0"
    text = _MIXED.sub(_read_mixed, text)
    text = _SIGNED.sub(lambda match: _SIGN_WORDS[match[1]], text)
    text = _DECIMAL_POINT.sub(lambda match: "point " + digits(match[1]), text)
    return _NUMBER.sub(_read_plain, text)
