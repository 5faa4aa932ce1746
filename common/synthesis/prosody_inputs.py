"""From a prosody table to what is synthesized: the symbols with the prosody that it gives them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from common.errors import InputError
from common.synthesis.phrases import Phrase
from common.synthesis.utterances import SynthesisInput
from common.text import Style, Word

if TYPE_CHECKING:
    from common.synthesis.prosody_table import Prosody, SymbolProsody, UtteranceProsody
    from common.synthesis.voice import Voice


def inputs_of_prosody(table: "Prosody", voice: "Voice", *, style: Style, phrase: Phrase) -> list[SynthesisInput]:
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


def _input(utterance: "UtteranceProsody", voice: "Voice", *, style: Style, phrase: Phrase) -> SynthesisInput:
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


def _column(symbols: "Sequence[SymbolProsody]", name: str, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor([getattr(one, name) for one in symbols], dtype=dtype)
