"""What was spoken: sound and mel of a whole text, with its words, marks and prosody in time, and subtitles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio import SILENT_MEL, save_wav
from common.config import AudioConfig
from common.synthesis.prosody import Prosody, prosody_of
from common.synthesis.utterances import SynthesisResult, silences

LONGEST_LINE = 42  # characters, as broadcasters recommend
LONGEST_CUE = 6.0  # s


@dataclass(frozen=True)
class SpokenWord:
    """A word as it was written, or a symbol, and when it is said."""

    text: str
    start: float  # s
    end: float  # s


@dataclass(frozen=True)
class SpokenUtterance:
    """A part of a text that was spoken at once, and when."""

    text: str
    start: float  # s
    end: float  # s; the pause after it is not in it
    words: tuple[SpokenWord, ...]
    times: tuple[float, ...] = ()  # s, (L + 1,) where its L symbols start and the last ends; () if unknown


@dataclass(frozen=True)
class Speech:
    """A text that was spoken, of one or several utterances with pauses between them."""

    parts: tuple[SynthesisResult, ...]
    audio: AudioConfig
    speakers: Sequence[str] = ()  # by their ids
    symbol_set: str = ""
    shapes_prosody: bool = False  # whether the voice can speak with a given prosody

    @property
    def sampling_rate(self) -> int:
        """In Hz."""
        return self.audio.sampling_rate

    @property
    def has_sound(self) -> bool:
        """Whether there was a vocoder to make it."""
        return self.parts[0].wave is not None

    @cached_property
    def wave(self) -> Tensor:
        """The sound (T,) float32, scaled down where it would go beyond full scale, so that nothing clips."""
        wave = torch.cat([part.wave for part in self.parts if part.wave is not None])
        return wave / max(1.0, float(wave.abs().max()))

    @cached_property
    def mel(self) -> Tensor:
        """The log-mel-spectrogram (n_mels, F), whose frames are F * hop_length = T samples."""
        padded = [F.pad(part.mel, silences(part.item, self.audio), value=SILENT_MEL) for part in self.parts]
        return torch.cat(padded, dim=1)

    @property
    def duration(self) -> float:
        """In seconds, with pauses."""
        return self._seconds(self.mel.size(1))

    def _seconds(self, n_frames: int) -> float:
        return n_frames * self.audio.hop_length / self.audio.sampling_rate

    @cached_property
    def utterances(self) -> tuple[SpokenUtterance, ...]:
        """The parts in time, with their words."""
        spoken, n_frames = [], 0
        for part in self.parts:
            lead, pause = silences(part.item, self.audio)
            start, frames = self._seconds(n_frames + lead), part.frames_of_symbols()
            ends = () if frames is None else (0, *frames.cumsum(0).tolist())
            times = tuple(start + self._seconds(end) for end in ends)
            words = tuple(
                SpokenWord(word.text, times[word.start], times[word.end]) for word in part.item.words if times
            )
            end = start + self._seconds(part.mel.size(1))
            spoken.append(SpokenUtterance(part.item.text, start, end, words, times))
            n_frames += lead + part.mel.size(1) + pause
        return tuple(spoken)

    @property
    def words(self) -> tuple[SpokenWord, ...]:
        """All words in order; none of a mel that was given."""
        return tuple(word for utterance in self.utterances for word in utterance.words)

    @cached_property
    def marks(self) -> tuple[tuple[str, float], ...]:
        """Names of SSML's marks and their seconds."""
        return tuple(
            (mark.name, (spoken.times[mark.symbol] if spoken.times else spoken.start) + mark.offset)
            for part, spoken in zip(self.parts, self.utterances)
            for mark in part.item.marks
        )

    def save(self, path: str | Path) -> None:
        """Write the sound; the suffix, .wav, .flac, .ogg or .mp3, is the format.

        Raises:
            InputError: the suffix is another.
        """
        save_wav(Path(path), self.wave, sampling_rate=self.sampling_rate)

    @cached_property
    def table(self) -> Prosody:
        """What each symbol was said with, for timings, also of voices that cannot speak with a given prosody."""
        return Prosody(
            sampling_rate=self.sampling_rate,
            hop_length=self.audio.hop_length,
            symbol_set=self.symbol_set,
            utterances=tuple(prosody_of(part, self.speakers) for part in self.parts),
        )

    @property
    def prosody(self) -> Prosody | None:
        """The table that `Voice.speak` says the same by; None of a voice that cannot."""
        return self.table if self.shapes_prosody else None

    def timings(self) -> dict[str, Any]:
        """Utterances, words and symbols with ``start`` and ``end`` in s, symbols with ``pitch`` in Hz, for JSON."""
        utterances = []
        for spoken, row in zip(self.utterances, self.table.utterances):
            times, words, index = spoken.times, [], 0
            for word in (one for one in row.words if one.symbols):
                symbols = []
                for one in word.symbols:
                    pitch = None if one.pitch is None else round(one.pitch, 2)
                    symbols.append({"symbol": one.symbol, **_span(times[index], times[index + 1]), "pitch": pitch})
                    index += 1
                ends = {"start": symbols[0]["start"], "end": symbols[-1]["end"]}
                words.append({"text": word.text, **ends, "symbols": symbols})
            utterances.append({"text": spoken.text, **_span(spoken.start, spoken.end), "words": words})
        marks = [{"name": name, "time": round(time, 4)} for name, time in self.marks]
        return {"duration": round(self.duration, 4), "marks": marks, "utterances": utterances}


def _span(start: float, end: float) -> dict[str, Any]:
    return {"start": round(start, 4), "end": round(end, 4)}


def subtitles(speech: Speech, kind: str) -> str:
    """The content of a file of ``kind``, "srt" or "vtt"; a cue holds words of one utterance in up to two lines."""
    cues = [cue for utterance in speech.utterances for cue in _cues(utterance)]
    comma = "," if kind == "srt" else "."
    blocks = [
        f"{number}\n{_clock(cue[0].start, comma)} --> {_clock(cue[-1].end, comma)}\n{_lines(cue)}\n"
        for number, cue in enumerate(cues, 1)
    ]
    return ("" if kind == "srt" else "WEBVTT\n\n") + "\n".join(blocks)


def _cues(utterance: SpokenUtterance) -> Iterator[list[SpokenWord]]:
    """The words of an utterance, as many at once as can be read together; all of it where words have no times."""
    cue: list[SpokenWord] = []
    for word in utterance.words or (SpokenWord(utterance.text, utterance.start, utterance.end),):
        if cue and (len(_lines([*cue, word])) > 2 * LONGEST_LINE or word.end - cue[0].start > LONGEST_CUE):
            yield cue
            cue = []
        cue.append(word)
    yield cue


def _lines(words: list[SpokenWord]) -> str:
    """The words in one line, or in two of similar length."""
    text = " ".join(word.text for word in words)
    if len(text) <= LONGEST_LINE:
        return text
    spaces = [place for place, one in enumerate(text) if one == " "]
    if not spaces:
        return text
    middle = min(spaces, key=lambda place: abs(place - len(text) / 2))
    return f"{text[:middle]}\n{text[middle + 1 :]}"


def _clock(seconds: float, comma: str) -> str:
    """Hours, minutes, seconds and milliseconds."""
    milliseconds = round(1000 * seconds)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{milliseconds // 1000:02d}{comma}{milliseconds % 1000:03d}"
