"""Write numbers in words, from an int or digits ("1,905"): cardinals, ordinals, years, decades, decimals and digits."""

from functools import lru_cache

_DIGITS = "zero one two three four five six seven eight nine".split()
LARGEST = 10**18 - 1  # longer numbers are read digit by digit


@lru_cache(maxsize=65536)
def named(number: int, *, language: str = "en", to: str = "cardinal") -> str:
    """Return num2words' words for a number: 1234 -> "one thousand, two hundred and thirty-four"."""
    from num2words import num2words  # here, because texts without numbers don't need it

    return str(num2words(number, lang=language, to=to))


def _whole(number: int | str) -> int:
    return int(number.replace(",", "")) if isinstance(number, str) else number


def cardinal(number: int | str, *, to: str = "cardinal") -> str:
    """104 -> "one hundred and four"; digit by digit above ``LARGEST``."""
    number = _whole(number)
    return digits(str(number)) if number > LARGEST else named(number, to=to).replace("-", " ").replace(",", "")


def ordinal(number: int | str) -> str:
    """22 -> "twenty second"."""
    return cardinal(number, to="ordinal")


def year(number: int | str) -> str:
    """Read a year of up to four digits: 1905 "nineteen oh five", 1900 "nineteen hundred", 2007 "two thousand seven"."""
    number = _whole(number)
    if number < 1000 or number > 9999 or number % 1000 == 0:
        return cardinal(number)
    if number % 1000 < 10:
        return f"{cardinal(number // 1000)} thousand {cardinal(number % 10)}"
    first, last = divmod(number, 100)
    return f"{cardinal(first)} {two_digits(last)}"


def two_digits(number: int | str) -> str:
    """Read the last two digits of a year: 5 "oh five", 99 "ninety nine", 0 "hundred"."""
    number = _whole(number)
    return f"{'oh ' if number < 10 else ''}{cardinal(number)}" if number else "hundred"


def written_year(text: str) -> str:
    """Read a year of four or two digits: "05" -> "oh five"."""
    return year(text) if len(text) == 4 else two_digits(text)


def digits(text: str) -> str:
    """Read every digit of ``text`` by itself: "0958" -> "zero nine five eight"; other characters are skipped."""
    return " ".join(_DIGITS[int(character)] for character in text if character in "0123456789")


def identifier(text: str) -> str:
    """Read the number of a room, road or aircraft: 747 "seven forty seven", 101 "one oh one", 66 "sixty six"."""
    if text.startswith("0") or len(text) > 4:
        return digits(text)
    if len(text) == 3 and text[1:] != "00":
        return f"{cardinal(text[0])} {two_digits(text[1:])}"
    return year(text)


def number_words(text: str) -> str:
    """Read a written number: "1,234.50" -> "one thousand two hundred and thirty four point five zero"."""
    whole, point, fraction = text.replace(",", "").partition(".")
    if len(whole) > len(str(LARGEST)) or (len(whole) > 1 and whole[0] == "0"):  # 007, and numbers without a name
        words = digits(whole)
    else:
        words = cardinal(int(whole)) if whole else ""
    return f"{words} point {digits(fraction)}".strip() if point else words


def plural(words: str) -> str:
    """Make a number plural: "sixty" -> "sixties", "six" -> "sixes", "nineteen hundred" -> "nineteen hundreds"."""
    if words.endswith("y"):
        return words[:-1] + "ies"
    return words + ("es" if words.endswith("x") else "s")


_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def roman(numeral: str) -> int:
    """Return the value of a Roman numeral: "XIV" -> 14."""
    values = [_ROMAN_DIGITS[letter] for letter in numeral.upper()]
    return sum(one if one >= after else -one for one, after in zip(values, [*values[1:], 0]))
