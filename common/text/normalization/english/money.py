"""Amounts of money: "£3.50", "$3.5 million", "£2bn", "€5-10", "99p", "USD 20"."""

import re
from typing import NamedTuple

from common.text.normalization.english.numbers import NUMBER, cardinal, number_words
from common.text.tables import word_table


class _Currency(NamedTuple):
    one: str
    several: str
    hundredth: str = ""  # "" for a currency without a smaller unit
    hundredths: str = ""

    def of(self, country: str) -> "_Currency":
        """The currency as a country's own: "australian dollar"."""
        return self._replace(one=f"{country} {self.one}", several=f"{country} {self.several}")


_SIGNS = {sign: _Currency(*names.split()) for sign, names in word_table("currencies").items()}
_COUNTRIES = word_table("dollar_countries")
_CODES = {code: _SIGNS[sign] for code, sign in (("EUR", "€"), ("GBP", "£"), ("JPY", "¥"), ("INR", "₹"))}
_CODES |= {f"{code}D": _SIGNS["$"].of(_COUNTRIES[code]) for code in ("US", "CA", "AU")}
_CODES["CHF"] = _Currency("swiss franc", "swiss francs", "centime", "centimes")
_MAGNITUDES = word_table("magnitudes")
_SIGN = "[$£€¥₩₹]"
_LONGEST_FIRST = "|".join(sorted(_MAGNITUDES, key=len, reverse=True))
# A lone letter has no space before it.
_MAGNITUDE = rf"(?:(?:[\s-](?=[A-Za-z]{{2}}))?({_LONGEST_FIRST})(?![A-Za-z0-9]))?"
_AMOUNT = rf"({NUMBER}|\.[0-9]+)"
_SIGNED = re.compile(
    rf"(?<![0-9A-Za-z])(-\s?)?(US|AU?|CA?|NZ|HK)?({_SIGN})\s?{_AMOUNT}(?:\s?-\s?({_SIGN})?{_AMOUNT})?{_MAGNITUDE}"
    r"(?![0-9])(/(?=[A-Za-z]))?",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"(?<![\w.,]){_AMOUNT}{_MAGNITUDE}\s?([$£€¥₩₹])(?![0-9])", re.IGNORECASE)
_CODE_BEFORE = re.compile(rf"\b({'|'.join(_CODES)})\s?{_AMOUNT}{_MAGNITUDE}", re.IGNORECASE)
_CODE_AFTER = re.compile(rf"(?<![\w.,]){_AMOUNT}{_MAGNITUDE}\s?({'|'.join(_CODES)})\b")
_CENTS = re.compile(r"(?<![\w.,$£€])([0-9]{1,2})(?:\s?¢|c(?=\s(?:each|per|a)\b))")
_PENCE = re.compile(r"(?<![\w.,$£€-])([0-9]{1,2})p\b(?!\.m)")
_BARE_MAGNITUDE = re.compile(rf"(?<![\w.,$£€])({NUMBER})\s?(bn|mn|tn|trn|mln)\b")
_DECIMAL_COMMA = re.compile(r"(?<=€)(\s?[0-9]+),([0-9]{2})(?!,?[0-9])|(?<![\w.,])([0-9]+),([0-9]{2})(?=\s?€)")
_ARTICLE_BEFORE = re.compile(r"\b(?:[Aa]n?)\s$")
_NOUN_AFTER = re.compile(r"\s[A-Za-z]|-[A-Za-z]")


def _amount(quantity: str, magnitude: str | None, currency: _Currency, *, singular: bool = False) -> str:
    """Words of one amount; ``singular`` before a noun, "a five dollar bill"."""
    several = currency.one if singular else currency.several
    if magnitude:
        return f"{number_words(quantity)} {_MAGNITUDES[magnitude.lower()]} {several}"
    whole, _, fraction = quantity.replace(",", "").partition(".")
    whole = whole or "0"
    units = f"{number_words(whole)} {currency.one if whole.lstrip('0') == '1' else several}"
    if not fraction.strip("0"):
        return units
    if len(fraction) != 2 or not currency.hundredth:
        return f"{number_words(quantity)} {several}"
    small = int(fraction)
    change = f"{cardinal(small)} {currency.hundredth if small == 1 else currency.hundredths}"
    return f"{units} {change}" if whole.strip("0") else change


def _read_signed(match: re.Match) -> str:
    minus, country, sign, quantity, sign_2, quantity_2, magnitude, per = match.groups()
    currency = _SIGNS[sign]
    if country:
        currency = currency.of(_COUNTRIES.get(country.upper(), country) if sign == "$" else country)
    after = match.string[match.end() :]
    singular = bool(_ARTICLE_BEFORE.search(match.string[: match.start()]) and _NOUN_AFTER.match(after))
    if quantity_2 is None:
        words = _amount(quantity, magnitude, currency, singular=singular)
    elif sign_2 is None:  # "$5-10 million": the unit and the magnitude are the range's
        last = _amount(quantity_2, magnitude, currency, singular=singular)
        words = f"{number_words(quantity)} to {last}"
    else:
        words = f"{_amount(quantity, None, currency)} to {_amount(quantity_2, magnitude, _SIGNS[sign_2])}"
    return ("minus " if minus else "") + words + (" per " if per else "")


def read_money(text: str) -> str:
    """Write out amounts of money, naming the smaller unit: "£3.50" -> "three pounds fifty pence"."""
    text = _DECIMAL_COMMA.sub(lambda match: f"{match[1] or match[3]}.{match[2] or match[4]}", text)
    text = _SIGNED.sub(_read_signed, text)
    text = _AFTER.sub(lambda match: _amount(match[1], match[2], _SIGNS[match[3]]), text)
    text = _CODE_BEFORE.sub(lambda match: _amount(match[2], match[3], _CODES[match[1].upper()]), text)
    text = _CODE_AFTER.sub(lambda match: _amount(match[1], match[2], _CODES[match[3]]), text)
    text = _CENTS.sub(lambda match: _amount("0." + match[1].zfill(2), None, _SIGNS["$"]), text)
    text = _PENCE.sub(lambda match: _amount("0." + match[1].zfill(2), None, _SIGNS["£"]), text)
    return _BARE_MAGNITUDE.sub(lambda match: f"{number_words(match[1])} {_MAGNITUDES[match[2]]}", text)
