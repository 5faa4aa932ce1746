"""The prosody of what was spoken, as a table to edit: of each symbol its frames, pitch, energy and volume, in JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError

from common.errors import InputError, shown
from common.files import read_json, write_text
from common.synthesis.options import MAX_FRAMES

MAX_BYTES = 32 * 2**20  # of a table that is read: some five hours of speech
_MAX_SYMBOLS = 2000  # of an utterance

_Item = TypeVar("_Item")
_Seconds = Annotated[float, Field(ge=0, le=600)]
_Rows = Annotated[tuple[_Item, ...], Strict(False)]  # a list of JSON


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SymbolProsody(_Row):
    """How one symbol is said."""

    symbol: str
    frames: Annotated[int, Field(ge=0, le=MAX_FRAMES)]
    pitch: Annotated[float, Field(ge=-10000, le=10000)] | None = None  # Hz, 0: unvoiced; None: as predicted
    energy: Annotated[float, Field(ge=-1000, le=1000)] | None = None  # None: as predicted
    volume: Annotated[float, Field(ge=0, le=1000)] = 1.0  # factor of the amplitude


class WordProsody(_Row):
    """A word with its symbols; the spaces, punctuation and pauses between words have the text ""."""

    text: str
    symbols: _Rows[SymbolProsody]


class UtteranceProsody(_Row):
    """A part of a text that is spoken at once."""

    text: str
    speaker: str = "0"  # number or name
    lead: _Seconds = 0.0  # s of silence before it
    pause: _Seconds = 0.0  # s of silence after it
    words: _Rows[WordProsody]

    @property
    def symbols(self) -> Iterator[SymbolProsody]:
        """The symbols of all words, in order."""
        return (symbol for word in self.words for symbol in word.symbols)


class Prosody(_Row):
    """The prosody of a text; frames are of ``hop_length`` samples."""

    format: Literal["speech-toolkit prosody 1"] = "speech-toolkit prosody 1"
    sampling_rate: int  # Hz
    hop_length: int  # samples
    symbol_set: str
    utterances: Annotated[_Rows[UtteranceProsody], Field(min_length=1)]

    def save(self, path: Path) -> None:
        """Write it as JSON, a line for each symbol."""
        write_text(path, self.to_text())

    def to_text(self) -> str:
        """JSON, a line for each symbol."""
        lines = []
        for utterance in self.utterances:
            words = []
            for word in utterance.words:
                rows = ",\n".join("     " + _json(row.model_dump()) for row in word.symbols)
                words.append(f'   {{"text": {_json(word.text)}, "symbols": [\n{rows}]}}')
            head = _json(utterance.model_dump(exclude={"words"}))
            lines.append(f'  {head[:-1]}, "words": [\n' + ",\n".join(words) + "]}")
        return f'{_json(self.model_dump(exclude={"utterances"}))[:-1]}, "utterances": [\n' + ",\n".join(lines) + "]}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def load_prosody(path: Path) -> Prosody:
    """A table that `Prosody.save` wrote, with what was changed in it; raises InputError as `parse_prosody`."""
    return parse_prosody(read_json(path, largest=MAX_BYTES, kind="prosody table"), where=str(path))


def parse_prosody(content: Any, *, where: str) -> Prosody:
    """A table of the values that JSON was read as; ``where`` names its source in errors.

    Raises:
        InputError: it is not of this form; names the value.
    """
    try:
        found = Prosody.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        got = "" if first["type"] == "missing" else f", got {shown(first['input'], longest=60)}"
        raise InputError(f"{where}: no prosody table: {place + ': ' if place else ''}{first['msg']}{got}") from error
    for number, utterance in enumerate(found.utterances, 1):
        symbols = list(utterance.symbols)
        if not 0 < len(symbols) <= _MAX_SYMBOLS:
            expected = f"expected 1 to {_MAX_SYMBOLS}"
            raise InputError(f"{where}: utterance {number} has {len(symbols)} symbols, {expected}")
        for name in ("pitch", "energy"):
            if len({getattr(one, name) is None for one in symbols}) > 1:
                expected = "expected one for all of them or for none"
                raise InputError(f"{where}: utterance {number}: {name} is given for some symbols, {expected}")
    return found
