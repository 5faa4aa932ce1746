"""JSON of a file that anyone may have written (RFC 8259), with bounds on how deep and large it is."""

import json
import re
from collections import Counter
from typing import Any

from common.errors import InputError, shown

_DEEPEST = 50
# Of marks in the text, which are counted before the values are made: LibriSpeech's 960 hours with copies at two more
# speeds have 1.4 million objects and lists, and 9 million commas.
_MOST_OBJECTS = 2_000_000
_MOST_COMMAS = 12_000_000
_TOO_DEEP = f"nested too deeply, expected at most {_DEEPEST} levels"
_NEWLINE = "\n"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d{309,}(?![\d.eE])|NaN|-?Infinity)|\d+')  # [1]: what is refused
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape of half a character


def parse_json(text: str, *, where: str) -> Any:
    """The values of a text that ``where`` names; InputError where it is not JSON (RFC 8259, each key once), too deep
    or too large."""
    for marks, most in (("{[", _MOST_OBJECTS), (",", _MOST_COMMAS)):
        if (count := sum(map(text.count, marks))) > most:
            raise InputError(f"{where}: {count} times {' or '.join(marks)}, expected at most {most}")
    try:
        value = json.loads(text, parse_int=_whole, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}:{error.lineno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        raise InputError(f"{where}: {_TOO_DEEP}") from error
    except InputError as error:
        raise InputError(f"{where}: not JSON ({error})") from error
    except (ValueError, OverflowError) as error:
        found = next((found for found in _TOKEN.finditer(text) if found[1]), None)
        line = f":{text.count(_NEWLINE, 0, found.start()) + 1}" if found else ""
        reason = f"a number of {len(found[1].lstrip('-'))} digits" if found and found[1][-1].isdigit() else error
        raise InputError(f"{where}{line}: not JSON ({reason})") from error
    level = [value]
    for _ in range(_DEEPEST):
        rows = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [item for row in rows for item in row if isinstance(item, dict | list)]
    if level:
        raise InputError(f"{where}: {_TOO_DEEP}")
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = shown(error.object[error.start])
            raise InputError(f"{where}: not JSON ({half} is half a character, expected both halves)") from error
    return value


def _whole(digits: str) -> int:
    value = int(digits)
    float(value)  # none that is larger can be compared or computed with
    return value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number in JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        most_frequent = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"key {shown(most_frequent)} twice in one object")
    return values
