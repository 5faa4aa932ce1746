"""The ASCII of FastPitch 1.1's published text front end, which derives from an MIT-licensed transliteration table."""

import json
import unicodedata
from pathlib import Path

_WRITTEN = json.loads((Path(__file__).parent / "ascii.json").read_text(encoding="utf-8"))  # ASCII: characters
_TABLE = {one: written for written, characters in _WRITTEN.items() for one in characters}


def to_ascii(text: str) -> str:
    """The text by the table; what the table lacks is left out: dashes, "…", "œ", "½", scripts of Asia, emoji."""
    return text if text.isascii() else "".join(one if one.isascii() else _TABLE.get(one, "") for one in text)


def left_out(text: str) -> list[str]:
    """The letters, numbers and signs of ``text`` that ``to_ascii`` leaves out; punctuation is not said."""
    lost = [one for one in text if not one.isascii() and one not in _TABLE]
    return [one for one in lost if unicodedata.category(one)[0] in "LNS"]
