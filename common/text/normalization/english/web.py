"""Addresses of the Internet: URLs, domains, e-mail addresses, file names, handles and hashtags."""

import re

from common.text.normalization.english.numbers import cardinal, digits
from common.text.normalization.english.pronunciation import is_spelled_in_lower_case
from common.text.tables import word_pattern, word_set, word_table

_DOMAINS = word_pattern("domains")
_SPELLED_DOMAINS = word_set("spelled_domains")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?"
_PATH = r"(?::[0-9]+)?(?:[/?#](?:[^\s,;!?()\"']*[\w/])?)*"
_EMAIL = re.compile(r"\b[A-Za-z0-9][\w.+-]*@[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]*[A-Za-z0-9])+")
_URL = re.compile(
    rf"\b(?:(?:https?|ftp)://{_NAME}(?:\.{_NAME})*|www(?:\.{_NAME})+|(?:{_NAME}\.)+(?:{_DOMAINS})(?![\w@-])){_PATH}"
)
_FILE = re.compile(rf"(?<![\w.])[\w-]+\.(?:{word_pattern('files')})\b(?!\.\w)")
_SCHEME = re.compile(r"^(?:https?|ftp)://")
_HASHTAG_ITSELF = re.compile(r"(?<![\w&])#(?=hashtag\b)", re.IGNORECASE)
_HASHTAG = re.compile(r"(?<![\w&])#(?=[A-Za-z])")
_HANDLE = re.compile(r"(?<![\w.])@(?=\w)")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]")
_SIGNS = word_table("address_signs")


def _read_part(part: str, *, is_domain: bool) -> str:
    if part in _SIGNS:
        return _SIGNS[part]
    if part.isdigit():
        return cardinal(int(part)) if len(part) <= 2 and part[0] != "0" else digits(part)
    spelled = part.lower() in _SPELLED_DOMAINS if is_domain else is_spelled_in_lower_case(part)
    return " ".join(part.lower()) if spelled or len(part) == 1 else part.lower()


def _read_address(match: re.Match) -> str:
    """Write "john@mail.co.uk" as "john at mail dot co dot u k"."""
    address = _SCHEME.sub("", match[0]).rstrip("/")
    parts = _PART.findall(address)
    return " ".join(
        _read_part(part, is_domain=index > 0 and parts[index - 1] == "." and part.isalpha())
        for index, part in enumerate(parts)
    )


def _read_file(match: re.Match) -> str:
    name, _, kind = match[0].rpartition(".")
    words = [_read_part(part, is_domain=False) for part in [*_PART.findall(name), "."]]
    return " ".join([*words, *(_read_part(part, is_domain=False) for part in _PART.findall(kind))])


def read_addresses(text: str) -> str:
    """Write out addresses: "example.com/path" -> "example dot com slash path", "#fun" -> "hashtag fun"."""
    if "." in text:
        text = _EMAIL.sub(_read_address, text)
        text = _URL.sub(_read_address, text)
        text = _FILE.sub(_read_file, text)
    return _HANDLE.sub(" at ", _HASHTAG.sub(" hashtag ", _HASHTAG_ITSELF.sub(" ", text)))
