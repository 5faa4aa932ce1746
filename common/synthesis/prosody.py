"""The prosody of what was spoken, as a table to edit: of each symbol its frames, pitch, energy and volume, in JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from common.config import from_plain
from common.errors import InputError
from common.files import read_json, write_text
from common.synthesis.options import MAX_FRAMES
from common.synthesis.phrases import Phrase
from common.synthesis.utterances import SynthesisInput, SynthesisResult
from common.text import Style, Word

if TYPE_CHECKING:
    from common.synthesis.voice import Voice

_MAX_SYMBOLS = 2000  # of an utterance

_Seconds = Annotated[float, Field(ge=0, le=600)]


@dataclass(frozen=True)
class SymbolProsody:
    """How one symbol is said."""

    symbol: str
    frames: Annotated[int, Field(ge=0, le=MAX_FRAMES)]
    pitch: Annotated[float, Field(ge=-10000, le=10000)] | None = None  # Hz, 0: unvoiced; None: as predicted
    energy: Annotated[float, Field(ge=-1000, le=1000)] | None = None  # None: as predicted
    volume: Annotated[float, Field(ge=0, le=1000)] = 1.0  # factor of the amplitude


@dataclass(frozen=True)
class WordProsody:
    """A word with its symbols; the spaces, punctuation and pauses between words have the text ""."""

    text: str
    symbols: tuple[SymbolProsody, ...]


@dataclass(frozen=True, kw_only=True)
class UtteranceProsody:
    """A part of a text that is spoken at once."""

    text: str
    speaker: str = "0"  # number or name
    lead: _Seconds = 0.0  # s of silence before it
    pause: _Seconds = 0.0  # s of silence after it
    words: tuple[WordProsody, ...]

    @property
    def symbols(self) -> Iterator[SymbolProsody]:
        """The symbols of all words, in order."""
        return (symbol for word in self.words for symbol in word.symbols)


@dataclass(frozen=True, kw_only=True)
class Prosody:
    """The prosody of a text; frames are of ``hop_length`` samples."""

    format: Literal["speech-toolkit prosody 1"] = "speech-toolkit prosody 1"
    sampling_rate: int  # Hz
    hop_length: int  # samples
    symbol_set: str
    utterances: Annotated[tuple[UtteranceProsody, ...], Field(min_length=1)]

    def save(self, path: Path) -> None:
        """Write it as JSON, a line for each symbol."""
        lines = []
        for utterance in self.utterances:
            words = []
            for word in utterance.words:
                rows = ",\n".join(f"     {_json(row)}}}" for row in word.symbols)
                words.append(f'   {_json(word)}, "symbols": [\n{rows}]}}')
            lines.append(f'  {_json(utterance)}, "words": [\n' + ",\n".join(words) + "]}")
        write_text(path, f'{_json(self)}, "utterances": [\n' + ",\n".join(lines) + "]}\n")


def _json(row: Any) -> str:
    """A JSON object of the fields of ``row`` that hold no further rows, without its closing brace."""
    values = {name: value for name, value in vars(row).items() if not isinstance(value, tuple)}
    return json.dumps(values, ensure_ascii=False)[:-1]


def load_prosody(path: Path) -> Prosody:
    """A table that `Prosody.save` wrote, with what was changed in it; raises InputError as `parse_prosody`."""
    return parse_prosody(read_json(path, kind="prosody table"), where=str(path))


def parse_prosody(content: Any, *, where: str) -> Prosody:
    """A table of the values that JSON was read as; ``where`` names its source in errors.

    Raises:
        InputError: it is not of this form; names the value.
    """
    found: Prosody = from_plain(Prosody, content, where=f"{where}: no prosody table")
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


def prosody_of(part: SynthesisResult, speakers: Sequence[str]) -> UtteranceProsody:
    """What an utterance was said with; words with the text "" hold the symbols between words.

    Raises:
        InputError: its mel was given, not made of symbols.
    """
    item, frames = part.item, part.frames_of_symbols()
    if item.tokens is None or frames is None:
        raise InputError(f"{item.phrase.where}: its mel was given, so there are no symbols in time")
    pitch, energy = part.of_symbols("pitch_hz"), part.of_symbols("decoded_energy")
    if pitch is not None and not pitch.any():
        pitch = None
    rows = [
        SymbolProsody(
            symbol=name,
            frames=int(frames[place]),
            pitch=None if pitch is None else float(pitch[place]),
            energy=None if energy is None else float(energy[place]),
            volume=1.0 if item.volume is None else float(item.volume[place]),
        )
        for place, name in enumerate(item.symbols)
    ]
    words, end = [], 0
    for word in item.words:
        if word.start > end:
            words.append(WordProsody("", tuple(rows[end : word.start])))
        words.append(WordProsody(word.text, tuple(rows[word.start : word.end])))
        end = word.end
    if end < len(rows):
        words.append(WordProsody("", tuple(rows[end:])))
    speaker = speakers[item.speaker] if item.speaker < len(speakers) else str(item.speaker)
    return UtteranceProsody(text=item.text, speaker=speaker, lead=item.lead, pause=item.pause, words=tuple(words))


def inputs_of_prosody(table: Prosody, voice: "Voice", *, style: Style, phrase: Phrase) -> list[SynthesisInput]:
    """The utterances of a table, whose values ``style`` multiplies.

    Raises:
        InputError: the voice cannot speak with a given prosody, or the table is of another voice; names the value.
    """
    if not voice.shapes_prosody:
        raise InputError(f"{phrase.where}: {voice.spec.name} cannot speak with a given prosody; give it text")
    symbol_set = voice.front_end.symbol_set
    own = {"sampling_rate": voice.sampling_rate, "hop_length": voice.audio.hop_length, "symbol_set": symbol_set}
    for name, value in own.items():
        if getattr(table, name) != value:
            raise InputError(f"{phrase.where}: {name} {getattr(table, name)}, expected the voice's, {value}")
    return [_input(one, voice, style=style, phrase=phrase) for one in table.utterances]


def _input(utterance: UtteranceProsody, voice: "Voice", *, style: Style, phrase: Phrase) -> SynthesisInput:
    symbols, ids = list(utterance.symbols), {name: index for index, name in enumerate(voice.front_end.symbols)}
    if unknown := [one.symbol for one in symbols if one.symbol not in ids]:
        raise InputError(f"{phrase.where}: symbol {unknown[0]!r} is not in symbol set {voice.front_end.symbol_set}")
    words, start = [], 0
    for word in utterance.words:
        if word.text:
            words.append(Word(word.text, start, start + len(word.symbols), span=0))
        start += len(word.symbols)
    frames, volume = _column(symbols, "frames"), _column(symbols, "volume") * style.volume
    return SynthesisInput(
        phrase,
        tokens=voice.front_end.inputs([ids[one.symbol] for one in symbols]),
        symbols=tuple(one.symbol for one in symbols),
        durations=frames / style.rate if style.rate != 1 else frames,
        pitch_hz=None if symbols[0].pitch is None else _column(symbols, "pitch", torch.float64) * style.pitch,
        energy=None if symbols[0].energy is None else _column(symbols, "energy"),
        volume=None if bool((volume == 1).all()) else volume,
        speaker=voice.speaker_id(style.speaker or utterance.speaker, phrase.where),
        text=utterance.text,
        words=tuple(words),
        lead=utterance.lead,
        pause=utterance.pause,
    )


def _column(symbols: Sequence[SymbolProsody], name: str, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor([getattr(one, name) for one in symbols], dtype=dtype)
