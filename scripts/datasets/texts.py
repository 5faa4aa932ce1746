"""Reads lists of texts for a corpus, and finds their phones."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from common.errors import InputError, shown
from common.files import read_lines
from common.progress import progress
from common.text.front_end import TextFrontEnd
from common.text.options import TextOptions, text_config

_NAME = re.compile(r"\w[\w.-]*")
SYMBOLS_PER_SECOND = 16  # of the set `espeak`, as LJSpeech's reader says them


def read_texts(path: Path) -> dict[str, str]:
    """Texts by their ids, of lines `id|text`, or of texts alone, which are called `<file>-00001` and so on.

    The last of several columns is read. Empty lines and lines that begin with `#` are skipped.

    Raises InputError for no texts, an id that can't be a file's name or occurs twice, and an empty text.
    """
    texts: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, bar, _ = line.partition("|")
        name = name.strip() if bar else f"{path.stem}-{len(texts) + 1:05d}"
        text = " ".join(line.rpartition("|")[2].split())
        if not _NAME.fullmatch(name) or not text or name in texts:
            wanted = "id|text, or a text; each id once, of letters, digits and ._-"
            raise InputError(f"{path}:{number}: {shown(line)}, expected {wanted}")
        texts[name] = text
    if not texts:
        raise InputError(f"{path}: no texts")
    return texts


def count_symbols(texts: Mapping[str, str], *, language: str) -> dict[str, int]:
    """How many symbols of the set `espeak` each text is read as; texts that can't be read are named on stderr."""
    front_end = TextFrontEnd(text_config(TextOptions(g2p_language=language)), unknown_symbols="drop")
    found: dict[str, int] = {}
    for name, text in progress(texts.items(), desc="phones", unit="line"):
        try:
            found[name] = len(front_end.encode(text, where=name))
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    return found
