"""Texts of long readings: sentences of a plain text, or of subtitles (SRT and WebVTT), whose times say about where."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import InputError, shown
from common.files import read_text
from common.text.sentences import split_utterances
from common.text.ssml import Span

TEXT_SUFFIXES = (".srt", ".vtt", ".txt")  # those with times first
_TOLERANCE = 1.0  # s, of a subtitle's times
_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,9})"
_TIMES = re.compile(rf"(?<![\d:]){_TIME}\s*-->\s*{_TIME}(?!\d)")
_MARKUP = re.compile(r"<[^<>]*>|\{\\[^{}]*\}|[♪♫]")
_SPEAKER = re.compile(r"^\s*([-–—]\s|>>+)?\s*([A-Z][A-Z .']+:\s)?")  # of a line: "- ", ">> ", "JOHN: "
_DESCRIPTION = re.compile(r"\[[^\[\]]*\]|\(([A-Z ]+)\)")  # of sounds that are not speech: [music], (LAUGHS)
_SOUNDS = frozenset(Path(__file__).with_name("sounds.txt").read_text(encoding="utf-8").split())  # in (DOG BARKS)


@dataclass(frozen=True)
class ReadingText:
    """The sentences of a reading, and the times between which each is read, where subtitles say them."""

    sentences: tuple[str, ...]
    windows_s: np.ndarray | None = None  # (sentences, 2)


def read_reading_text(path: Path) -> ReadingText:
    """The sentences of a text, or the subtitles of a file ``.srt`` or ``.vtt``; InputError where there are no words."""
    text = read_text(path, kind="text of the reading")
    if path.suffix.lower() in (".srt", ".vtt"):
        return _read_subtitles(text, path)
    return ReadingText(_spoken(split_sentences(text), path))


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, whose paragraphs are separated by empty lines."""
    utterances = split_utterances([Span(re.sub(r"(?<!\n)\n(?!\s*\n)", " ", text))])
    sentences = ("".join(span.text for span in one.spans) for one in utterances)
    return [" ".join(sentence.split()) for sentence in sentences]


def _read_subtitles(text: str, path: Path) -> ReadingText:
    """Each cue is a sentence."""
    sentences, windows = [], []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        found = next(((place, times) for place, line in enumerate(lines) if (times := _TIMES.search(line))), None)
        if found is None:
            if bad := next((line for line in lines if "-->" in line), None):
                raise InputError(f"{path}: {shown(bad)}, expected times as 00:01:02,500 --> 00:01:04,000")
            continue  # a heading, a note or a style
        place, times = found
        start, end = (_seconds(times.groups("0")[first : first + 4]) for first in (0, 4))
        if end <= start:
            raise InputError(f"{path}: {lines[place].strip()}: a subtitle that ends before it begins")
        words = " ".join(_SPEAKER.sub("", _MARKUP.sub("", line)) for line in lines[place + 1 :])
        sentence = " ".join(html.unescape(_DESCRIPTION.sub(_spoken_part, words)).split())
        if re.search(r"\w", sentence):
            sentences.append(sentence)
            windows.append((start - _TOLERANCE, end + _TOLERANCE))
    order = sorted(range(len(windows)), key=windows.__getitem__)
    sentences = [sentences[place] for place in order]
    return ReadingText(_spoken(sentences, path), np.array([windows[place] for place in order]))


def _spoken_part(description: re.Match[str]) -> str:
    """What is spoken of a description: nothing, but a name in capitals, ``(NASA)``, stays."""
    words, before = (description[1] or "").split(), description.string[: description.start()].rstrip()
    is_sound = any(word in _SOUNDS or word.endswith("ING") for word in words)
    is_apart = len(words) > 1 and not before[-1:].isalnum()  # (IN GERMAN), where a sentence begins
    return " " if is_sound or is_apart or not words else description[0]


def _seconds(fields: tuple[str, ...]) -> float:
    """Hours, minutes, seconds and their fraction."""
    hours, minutes, seconds, fraction = fields
    return int(hours) * 3600 + int(minutes) * 60 + float(f"{seconds}.{fraction}")


def _spoken(sentences: list[str], path: Path) -> tuple[str, ...]:
    spoken = tuple(sentence for sentence in sentences if re.search(r"\w", sentence))
    if not spoken:
        kind = "subtitles" if path.suffix.lower() in (".srt", ".vtt") else "text"
        raise InputError(f"{path}: no {kind} in it")
    return spoken
