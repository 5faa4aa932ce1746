"""Split the text of a long reading into sentences, and read the text of subtitles (SRT and WebVTT)."""

import html
import re
from operator import itemgetter
from pathlib import Path

from common.errors import InputError, shown
from common.files import read_text
from common.text.sentences import split_utterances
from common.text.ssml import Span

SUBTITLES = (".srt", ".vtt")  # suffixes
_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,9})"
_TIMES = re.compile(rf"(?<![\d:]){_TIME}\s*-->\s*\d")
_MARKUP = re.compile(r"<[^<>]*>|\{\\[^{}]*\}|[♪♫]")
_SPEAKER = re.compile(r"^\s*([-–—]\s|>>+)?\s*([A-Z][A-Z .']+:\s)?")  # at a line's start: "- ", ">> ", "JOHN: "
_DESCRIPTION = re.compile(r"\[[^\[\]]*\]|\(([A-Z ]+)\)")  # of non-speech sounds: [music], (LAUGHS)
_SOUNDS = frozenset(Path(__file__).with_name("sounds.txt").read_text(encoding="utf-8").split())  # in (DOG BARKS)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, without those that have no words."""
    sentences = ("".join(span.text for span in one.spans) for one in split_utterances([Span(text)]))
    return [sentence for sentence in sentences if re.search(r"\w", sentence)]


def read_subtitles(path: Path) -> str:
    """Return the text of an ``.srt`` or ``.vtt`` file in the order of its times; raises InputError."""
    text = read_text(path, kind="subtitles")
    cues = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        found = next(((place, times) for place, line in enumerate(lines) if (times := _TIMES.search(line))), None)
        if found is None:
            if bad := next((line for line in lines if "-->" in line), None):
                raise InputError(f"{path}: {shown(bad)}, expected times like 00:01:02,500 --> 00:01:04,000")
            continue
        place, times = found
        hours, minutes, seconds, fraction = times.groups()
        words = " ".join(_SPEAKER.sub("", _MARKUP.sub("", line)) for line in lines[place + 1 :])
        sentence = " ".join(html.unescape(_DESCRIPTION.sub(_spoken_part, words)).split())
        cues.append((int(hours or 0) * 3600 + int(minutes) * 60 + float(f"{seconds}.{fraction}"), sentence))
    return " ".join(sentence for _, sentence in sorted(cues, key=itemgetter(0)))


def _spoken_part(description: re.Match[str]) -> str:
    """Replace a description with a space, but keep a name in capitals, such as ``(NASA)``, which is spoken."""
    words, before = (description[1] or "").split(), description.string[: description.start()].rstrip()
    is_sound = any(word in _SOUNDS or word.endswith("ING") for word in words)
    is_apart = len(words) > 1 and not before[-1:].isalnum()  # (IN GERMAN) at the start of a sentence
    return " " if is_sound or is_apart or not words else description[0]
