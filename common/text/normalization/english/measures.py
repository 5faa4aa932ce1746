"""Quantities with a unit: "5 km", "64 MB", "20°C", "5'11\\"", "3 x 5", "50%", "60 mph"."""

import re

from common.text.normalization.english.numbers import NUMBER, cardinal, number_words, year
from common.text.tables import word_table

_UNITS = word_table("units")
_UNITS |= {f"sq{dot} ft": "square foot" for dot in ("", ".")}
_UNITS |= {"sq km": "square kilometer", "sq m": "square meter", "sq mi": "square mile"}
# Letters that follow a number for other reasons too (5 m is a length, but "2 g", "6 s", "12 V"): only without a space
# or before a mark, never before a word that would make them a name.
_LOOSE = frozenset({"s", "V", "W", "L", "us", "sec", "cal", "kn", "Pa"})
_PER = word_table("per_units")
_POWERS = {"2": "square ", "3": "cubic ", "^2": "square ", "^3": "cubic "}

_UNIT_NAMES = "|".join(sorted((re.escape(unit) for unit in _UNITS), key=len, reverse=True))
_QUANTITY = rf"((?:(?<=[\s(])|(?<=^))[-+])?({NUMBER}|\.[0-9]+)(?:\s?(?:-|to)\s?({NUMBER}))?"
_WITH_UNIT = re.compile(
    rf"(?<![\w.,:/$£€])(?<![A-Za-z]-){_QUANTITY}(\s?|-)({_UNIT_NAMES})(\^?[23])?(?:/({'|'.join(_PER)})(\^?2)?)?"
    rf"(?![\w'^])(\.(?=\s*$|\s+[A-Z])|\.(?=\s[a-z]|,))?"
)
_INCHES = re.compile(
    rf"(?<![\w.,:/$£€]){_QUANTITY}(\s?|-)(?:inch\b|in\.|in\b(?=[,.;:)]|$|\s(?:x|by|wide|long|tall|thick|deep|high)\b))"
)
_ATTACHED_INCHES = re.compile(rf"(?<![\w.,:/$£€]){_QUANTITY}in\b")
_HEIGHT = re.compile(
    r"(?<![\w.,'])([0-9]{1,2})\s?(?:'|ft\.?|feet)\s?([0-9]{1,2}(?:\.[0-9])?)\s?(?:\"|''|in\b\.?|inches\b)"
)
_FEET_INCHES = re.compile(r"(?<![\w.,'])([1-9])'([0-9]|1[01])\b(?!')")
_FEET = re.compile(rf"(?<![\w.,'])({NUMBER})'(?![\w'])(?=\s(?:tall|high|long|wide|deep|x|by)\b)")
_INCH_SIGN = re.compile(rf"(?<![\w.,'\"])({NUMBER})\"(?=[\s,.;:)]|$)")
_DEGREES = re.compile(rf"(?<![\w.,]){_QUANTITY}(?:\s?°(?:\s?([CFKcf]|[NSEW](?!\.))(?![A-Za-z]))?|\s?deg\s?([CF])\b)")
_LETTER_DEGREES = re.compile(rf"(?<![\w.,-]){_QUANTITY}\s?([CF])(?=\s(?:outside|inside|today|tonight|degrees|heat)\b)")
_SCALES = word_table("degree_scales")
_PERCENT = re.compile(rf"(?<![\w.,]){_QUANTITY}\s?%(?:-age)?")
_SIDE = rf"{NUMBER}(?:\s?(?:mm|cm|m|km|in|ft|feet|inches))?"
_DIMENSIONS = re.compile(rf"(?<![\w.,])({_SIDE})((?:\s*[xX*]\s*{_SIDE})+)(?![\w]|\s*=)", re.IGNORECASE)
_PRODUCT = re.compile(r"(?<=[0-9])\s*[xX*]\s*(?=[0-9])")
_TIMES = re.compile(rf"(?<![\w.,])({NUMBER})x(?=\s(?!\+|-|=)[a-z]|[,.;:!?)]|$)")
_LEADING_NUMBER = re.compile("^" + NUMBER)
_BY = re.compile(r"\s*[xX*]\s*")
_BARE_UNIT = re.compile(r"(?<![\w.])(km/h|m/s|mph|kph|km|kg|cm|mm|[kMGT]Hz|[kMGmu]ohm|kWh|dB)(?![\w']|/|\.\w)")
_SINGULAR_AFTER = re.compile(
    r"\s(?!(?:of|and|or|to|in|on|at|from|for|per|by|with|away|that|which|is|are|was|were|as|before|after|between)\b)[a-z]"
)
_ARTICLE_BEFORE = re.compile(r"\b(?:an?|the|this|that|each|every|another)\s$", re.IGNORECASE)


def _several(unit: str) -> str:
    """ "mile per hour" -> "miles per hour"."""
    head, per, rest = unit.partition(" per ")
    if head.endswith("foot"):
        return head.removesuffix("foot") + "feet"
    return head + ("" if head.endswith(("hertz", "horsepower")) else "s") + per + rest


def quantity_words(sign: str | None, quantity: str, last: str | None) -> str:
    """ "5", "-5" or "5-10" in words."""
    words = {"-": "minus ", "+": "plus "}.get(sign or "", "") + number_words(quantity)
    return f"{words} to {number_words(last)}" if last else words


def _is_one(match: re.Match, quantity: str, last: str | None, gap: str) -> bool:
    """Whether the unit is singular: one of it, or before a noun ("a 5 km run", "a 10-kg bag")."""
    before_noun = _ARTICLE_BEFORE.search(match.string[: match.start()]) and _SINGULAR_AFTER.match(
        match.string[match.end() :]
    )
    return (quantity == "1" and not last) or gap == "-" or bool(before_noun)


def _full_stop(match: re.Match, dotted: bool) -> str:
    """The full stop of an abbreviated unit that also ends the sentence."""
    return "." if dotted and re.match(r"\s*$|\s+[A-Z]", match.string[match.end() :]) else ""


def _read_unit(match: re.Match) -> str:
    sign, quantity, last, gap, name, power, per, per_power, stop = match.groups()
    if name in _LOOSE and gap != "" and (gap == "-" or re.match(r"\s[A-Za-z]", match.string[match.end() :])):
        return match[0]
    if name == "s" and gap == "" and not per and "." not in quantity:  # "10s" is several tens; "0.5s" is a time
        return match[0]
    one = _UNITS[name]
    unit = _POWERS.get(power or "", "") + (one if _is_one(match, quantity, last, gap) else _several(one))
    if per:
        unit += f" per {_PER[per]}" + (" squared" if per_power else "")
    return f"{quantity_words(sign, quantity, last)} {unit}{_full_stop(match, bool(stop))}"


def _read_inches(match: re.Match) -> str:
    sign, quantity, last = match.group(1, 2, 3)
    gap = match[4] if match.re is _INCHES else ""
    unit = "inch" if _is_one(match, quantity, last, gap) else "inches"
    return f"{quantity_words(sign, quantity, last)} {unit}{_full_stop(match, match[0].endswith('.'))}"


def _read_degrees(match: re.Match) -> str:
    scale = _SCALES.get((match[4] or match[5] or "").lower(), "")
    words = quantity_words(*match.group(1, 2, 3))
    if scale == "kelvin":
        return f"{words} kelvin"
    one = (match[2], match[3]) == ("1", None) or (not scale and _is_one(match, match[2], match[3], ""))
    return f"{words} degree{'' if one else 's'} {scale}".rstrip()


def _side(text: str) -> str:
    """One side of "1920x1080": four digits are read in pairs, as years are."""
    number = _LEADING_NUMBER.findall(text)[0]
    words = year(int(number)) if re.fullmatch(r"[1-9][0-9]{3}", number) else number_words(number)
    unit = text[len(number) :].strip().lower()
    if unit == "in":
        return words + " inch"
    return f"{words} {_several(_UNITS[unit])}" if unit in _UNITS else f"{words} {unit}".strip()


def _read_dimensions(match: re.Match) -> str:
    if "*" in match[0]:
        return " times ".join(_side(side.strip()) for side in re.split(r"[*]|[xX]", match[0]))
    return " by ".join(_side(side.strip()) for side in _BY.split(match[0]))


def _read_height(match: re.Match) -> str:
    """Feet with inches: 5'11" "five foot eleven", "5 ft 11 in" "five feet eleven inches"."""
    feet, inches = cardinal(int(match[1])), number_words(match[2])
    return f"{feet} foot {inches}" if "'" in match[0] else f"{feet} feet {inches} inches"


def _read_inch_sign(match: re.Match) -> str:
    if match.string.count('"', 0, match.start()) % 2:  # the sign closes a quotation
        return match[0]
    return f"{number_words(match[1])} {'inch' if match[1] == '1' else 'inches'}"


def _heights(text: str) -> str:
    text = _FEET_INCHES.sub(_read_height, _HEIGHT.sub(_read_height, text))
    text = _FEET.sub(lambda match: f"{number_words(match[1])} {'foot' if match[1] == '1' else 'feet'}", text)
    return _INCH_SIGN.sub(_read_inch_sign, text)


def read_measures(text: str) -> str:
    """Write out heights, degrees, percent, dimensions and numbers with units."""
    if "'" in text or '"' in text or "ft" in text or "feet" in text:
        text = _heights(text)
    text = _DEGREES.sub(_read_degrees, text)
    text = _LETTER_DEGREES.sub(lambda m: f"{quantity_words(*m.group(1, 2, 3))} degrees {_SCALES[m[4].lower()]}", text)
    text = _PERCENT.sub(lambda match: f"{quantity_words(*match.group(1, 2, 3))} percent", text)
    text = _DIMENSIONS.sub(_read_dimensions, text)
    text = _PRODUCT.sub(" times ", text)
    text = _TIMES.sub(lambda match: f"{number_words(match[1])} times", text)
    text = _WITH_UNIT.sub(_read_unit, text)
    text = _INCHES.sub(_read_inches, text)
    return _ATTACHED_INCHES.sub(_read_inches, text)


def read_bare_units(text: str) -> str:
    """Units without a number: "a few km away" -> "a few kilometers away"."""
    per = {"km/h": "kilometer per hour", "m/s": "meter per second"}
    return _BARE_UNIT.sub(lambda match: _several(per.get(match[1]) or _UNITS[match[1]]), text)
