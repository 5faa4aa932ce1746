"""The prosody of what was spoken, as a table to edit: of each symbol its frames, pitch, energy and volume, in JSON."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, Strict, ValidationError, model_validator

from common.errors import InputError, shown
from common.files import read_json, write_text
from common.synthesis.options import MAX_FRAMES

MAX_BYTES = 32 * 2**20  # of a table that is read: some five hours of speech
MAX_SYMBOLS = 2000  # of an utterance
_MOST_KEYS = 100  # of an object that is looked at: each unknown one would be an error of its own

_Item = TypeVar("_Item")
_Factor = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
_Positive = Annotated[int, Field(ge=1, le=10**9)]
# A list of JSON. Strict is said here, as the pydantic of 2.14 forgets FailFast beside other constraints.
_Rows = Annotated[tuple[_Item, ...], Strict(False), FailFast()]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, values: Any) -> Any:
        if isinstance(values, dict) and len(values) > _MOST_KEYS:
            raise ValueError(f"{len(values)} keys, expected {', '.join(cls.model_fields)}")
        return values


class SymbolProsody(_Row):
    """How one symbol is said."""

    symbol: str
    frames: Annotated[int, Field(ge=0, le=MAX_FRAMES)]
    # Hz, 0: unvoiced; None: as predicted
    pitch: Annotated[float, Field(ge=-10000, le=10000, allow_inf_nan=False)] | None = None
    energy: Annotated[float, Field(allow_inf_nan=False, ge=-1000, le=1000)] | None = None  # None: as predicted
    volume: _Factor = 1.0  # factor of the amplitude


class WordProsody(_Row):
    """A word with its symbols; the spaces, punctuation and pauses between words have the text ""."""

    text: str
    symbols: _Rows[SymbolProsody]


class UtteranceProsody(_Row):
    """A part of a text that is spoken at once."""

    text: str
    speaker: str = "0"  # number or name
    lead: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 0.0  # s of silence before it
    pause: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 0.0  # s of silence after it
    words: _Rows[WordProsody]

    @property
    def symbols(self) -> Iterator[SymbolProsody]:
        """Those of all words, in order."""
        return (symbol for word in self.words for symbol in word.symbols)


class Prosody(_Row):
    """The prosody of a text; frames are of ``hop_length`` samples."""

    format: Literal["speech-toolkit prosody 1"] = "speech-toolkit prosody 1"
    sampling_rate: _Positive  # Hz
    hop_length: _Positive  # samples
    symbol_set: str
    utterances: _Rows[UtteranceProsody]

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
    """A table that `Prosody.save` wrote, with what was changed in it.

    Raises:
        InputError: the file is missing, or not of this form; names the value.
    """
    return parse_prosody(read_json(path, largest=MAX_BYTES, kind="prosody table"), where=str(path))


def parse_prosody(content: Any, *, where: str) -> Prosody:
    """A table of the values that JSON was read as; ``where`` names its source in errors.

    Raises:
        InputError: it is not of this form; names the value.
    """
    try:
        found = Prosody.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{where}: no prosody table: {_reason(error)}") from error
    if not found.utterances:
        raise InputError(f"{where}: no prosody table: utterances: expected at least 1")
    for number, utterance in enumerate(found.utterances, 1):
        _check(utterance, where=f"{where}: utterance {number}")
    return found


def symbols_said(rows: Iterable[dict[str, Any]], *, where: str) -> list[SymbolProsody]:
    """Rows of what a voice has said; ``where`` names the text in errors.

    Raises:
        InputError: a value is beyond what a table may have, as voices with absurd weights or options make them.
    """
    try:
        return [SymbolProsody(**row) for row in rows]
    except ValidationError as error:
        raise InputError(f"{where}: it was said with what no prosody table has: {_reason(error)}") from error


def _check(utterance: UtteranceProsody, *, where: str) -> None:
    symbols = list(utterance.symbols)
    if not 0 < len(symbols) <= MAX_SYMBOLS:
        raise InputError(f"{where} has {len(symbols)} symbols, expected 1 to {MAX_SYMBOLS}")
    for name in ("pitch", "energy"):
        if len({getattr(one, name) is None for one in symbols}) > 1:
            raise InputError(f"{where}: {name} is given for some symbols, expected one for all of them or for none")
    if not any(one.frames for one in symbols):
        raise InputError(f"{where}: no symbol has a frame")


def _reason(error: ValidationError) -> str:
    """The first mistake in one line: where in the table it is, and what was expected."""
    first = error.errors(include_url=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    got = "" if first["type"] in ("missing", "value_error") else f", got {shown(first['input'], longest=60)}"
    return f"{place + ': ' if place else ''}{first['msg'].removeprefix('Value error, ')}{got}"
