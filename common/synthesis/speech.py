"""The result of speaking a text: sound, mel, timed words and prosody, and subtitles."""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from common.audio.mel import SILENT_MEL
from common.audio.wav import save_wav
from common.config import AudioConfig, from_plain, to_plain
from common.errors import InputError
from common.files import write_text
from common.synthesis.options import MAX_FRAMES
from common.synthesis.utterances import SynthesisResult, silences

LONGEST_LINE = 42  # characters, as broadcasters recommend
LONGEST_CUE = 6.0  # s


@dataclass(frozen=True)
class SpokenWord:
    """A word as written, and when it's spoken."""

    text: str
    start: float  # s
    end: float  # s


@dataclass(frozen=True)
class SpokenUtterance:
    """A part of a text that was synthesized at once, and when it's spoken."""

    text: str
    start: float  # s
    end: float  # s, without the pause after it
    words: tuple[SpokenWord, ...]


@dataclass(frozen=True)
class Speech:
    """A spoken text: one or several utterances with pauses between them."""

    parts: tuple[SynthesisResult, ...]
    audio: AudioConfig
    speakers: Sequence[str] = ()  # by id
    symbol_set: str = ""
    shapes_prosody: bool = False  # whether the voice can speak with a given prosody

    @property
    def sampling_rate(self) -> int:
        """In Hz."""
        return self.audio.sampling_rate

    @cached_property
    def wave(self) -> Tensor:
        """The sound (T,) float32, scaled down if it would exceed full scale, so that nothing clips."""
        wave = torch.cat([part.wave for part in self.parts if part.wave is not None])
        return wave / max(1.0, float(wave.abs().max()))

    @cached_property
    def mel(self) -> Tensor:
        """The log-mel-spectrogram (n_mels, F), where F * hop_length = T."""
        padded = [F.pad(part.mel, silences(part.item, self.audio), value=SILENT_MEL) for part in self.parts]
        return torch.cat(padded, dim=1)

    @property
    def duration(self) -> float:
        """In seconds, including pauses."""
        return self.mel.size(1) * self.audio.hop_length / self.audio.sampling_rate

    @cached_property
    def utterances(self) -> tuple[SpokenUtterance, ...]:
        """The parts with their times and words."""
        spoken, start, second = [], 0, self.audio.sampling_rate / self.audio.hop_length
        for part in self.parts:
            lead, pause = silences(part.item, self.audio)
            start, frames = start + lead, part.frames_of_symbols()
            ends = [] if frames is None else [0, *frames.cumsum(0).tolist()]
            times = [(start + end) / second for end in ends]
            words = [SpokenWord(one.text, times[one.start], times[one.end]) for one in part.item.words() if times]
            end = start + part.mel.size(1)
            spoken.append(SpokenUtterance(part.item.text, start / second, end / second, tuple(words)))
            start = end + pause
        return tuple(spoken)

    @property
    def words(self) -> tuple[SpokenWord, ...]:
        """All words in order; none if mels were given."""
        return tuple(word for utterance in self.utterances for word in utterance.words)

    def save(self, path: str | Path) -> None:
        """Write the sound in the format of the suffix: .wav, .flac, .ogg, .mp3, .opus or .m4a.

        Raises InputError for other suffixes.
        """
        save_wav(Path(path), self.wave, sampling_rate=self.sampling_rate)

    @cached_property
    def table(self) -> Prosody:
        """The prosody of each symbol, also for voices that can't speak with a given prosody."""
        utterances = tuple(prosody_of(part, self.speakers) for part in self.parts)
        rate, hop = self.sampling_rate, self.audio.hop_length
        return Prosody(sampling_rate=rate, hop_length=hop, symbol_set=self.symbol_set, utterances=utterances)

    @property
    def prosody(self) -> Prosody | None:
        """The table for `Voice.speak` to repeat this speech; None if the voice can't, and for silence."""
        return self.table if self.shapes_prosody and self.parts[0].item.symbols else None


def subtitles(speech: Speech, kind: str) -> str:
    """Return subtitles of ``kind``, "srt" or "vtt", with the text's own spelling and punctuation.

    A cue contains words of one utterance, on up to two lines.
    """
    return subtitles_of([cue for utterance in speech.utterances for cue in cues_of(utterance)], kind)


def subtitles_of(cues: Sequence[list[SpokenWord]], kind: str) -> str:
    """Return subtitles of ``kind`` for cues of words that are shown together."""

    def clock(seconds: float) -> str:
        minutes, milliseconds = divmod(round(1000 * seconds), 60_000)
        text = f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds / 1000:06.3f}"
        return text.replace(".", ",") if kind == "srt" else text

    blocks = [
        f"{number}\n{clock(cue[0].start)} --> {clock(cue[-1].end)}\n{_lines(cue)}\n"
        for number, cue in enumerate(cues, 1)
    ]
    return ("" if kind == "srt" else "WEBVTT\n\n") + "\n".join(blocks)


def _as_written(utterance: SpokenUtterance) -> Sequence[SpokenWord]:
    """Return the words with the punctuation around them, or without it if the text doesn't contain them in order."""
    text, ends, cuts = utterance.text, [0], []
    for word in utterance.words:
        found = re.compile(r"[\W_]*\s[\W_]*".join(map(re.escape, word.text.split()))).search(text, ends[-1])
        if found is None:
            return utterance.words
        cuts.append(max(text.rfind(" ", ends[-1], found.start()), ends[-1] - 1) + 1)
        ends.append(found.end())
    pieces = [text[start:end] for start, end in itertools.pairwise([0, *cuts[1:], len(text)])]
    return [replace(word, text=piece.strip()) for word, piece in zip(utterance.words, pieces)]


def cues_of(utterance: SpokenUtterance) -> Iterator[list[SpokenWord]]:
    """Yield an utterance's words in groups that can be read at once, or all of it if words have no times."""
    cue: list[SpokenWord] = []
    for word in _as_written(utterance) or (SpokenWord(utterance.text, utterance.start, utterance.end),):
        if cue and (len(_lines([*cue, word])) > 2 * LONGEST_LINE or word.end - cue[0].start > LONGEST_CUE):
            yield cue
            cue = []
        cue.append(word)
    yield cue


def _lines(words: list[SpokenWord]) -> str:
    """Return the words on one line, or on two lines of similar length."""
    text = " ".join(word.text for word in words)
    if len(text) <= LONGEST_LINE:
        return text
    widths = range(len(text) // 2, len(text))
    halves = (textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) for width in widths)
    return "\n".join(next(lines for lines in halves if len(lines) <= 2))


_Seconds = Annotated[float, Field(ge=0, le=600)]


@dataclass(frozen=True)
class SymbolProsody:
    """How one symbol is spoken."""

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
    """A part of a text that is synthesized at once."""

    text: str
    speaker: str = "0"  # number or name
    lead: _Seconds = 0.0  # s of silence before it
    pause: _Seconds = 0.0  # s of silence after it
    words: tuple[WordProsody, ...]

    @property
    def symbols(self) -> tuple[SymbolProsody, ...]:
        """The symbols of all words, in order."""
        return tuple(symbol for word in self.words for symbol in word.symbols)


@dataclass(frozen=True, kw_only=True)
class Prosody:
    """The prosody of a text; a frame is ``hop_length`` samples."""

    format: Literal["speech-toolkit prosody 1"] = "speech-toolkit prosody 1"
    sampling_rate: int  # Hz
    hop_length: int  # samples
    symbol_set: str
    utterances: Annotated[tuple[UtteranceProsody, ...], Field(min_length=1)]

    def save(self, path: Path) -> None:
        """Write it as JSON, a line for each symbol."""
        text = json.dumps(to_plain(self), indent=1, ensure_ascii=False)
        write_text(path, re.sub(r"\{[^{}]*\}", lambda symbol: re.sub(r"\n *", " ", symbol[0]), text) + "\n")


def parse_prosody(content: Any, *, where: str) -> Prosody:
    """Validate JSON that `Prosody.save` wrote; ``where`` names its source in errors.

    Raises an InputError that names the value if the content isn't of this form.
    """
    found: Prosody = from_plain(Prosody, content, where=f"{where}: not a prosody table")
    for number, utterance in enumerate(found.utterances, 1):
        for name in ("pitch", "energy"):
            if len({getattr(one, name) is None for one in utterance.symbols}) != 1:
                raise InputError(f"{where}: utterance {number}: expected symbols, with {name} for all or none of them")
    return found


def prosody_of(part: SynthesisResult, speakers: Sequence[str]) -> UtteranceProsody:
    """Return the prosody of a spoken utterance; words with the text "" hold the symbols between words."""
    item, frames = part.item, part.frames_of_symbols()
    pitch = part.of_symbols("pitch_hz")
    columns = {
        "frames": frames,
        "pitch": pitch if pitch is not None and pitch.any() else None,
        "energy": part.of_symbols("decoded_energy"),
        "volume": item.volume,
    }
    given = {name: values.tolist() for name, values in columns.items() if values is not None}
    symbols = item.symbols if frames is not None else ()  # silence has none
    rows = [
        SymbolProsody(symbol, **{name: values[place] for name, values in given.items()})
        for place, symbol in enumerate(symbols)
    ]
    words, end = [], 0
    for word in item.words():
        words += [WordProsody("", tuple(rows[end : word.start]))] * (word.start > end)
        words.append(WordProsody(word.text, tuple(rows[word.start : word.end])))
        end = word.end
    words += [WordProsody("", tuple(rows[end:]))] * (end < len(rows))
    speaker = speakers[item.speaker] if item.speaker < len(speakers) else str(item.speaker)
    return UtteranceProsody(text=item.text, speaker=speaker, lead=item.lead, pause=item.pause, words=tuple(words))
