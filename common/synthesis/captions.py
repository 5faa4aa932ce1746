"""Subtitles of what was spoken: the words in lines, as SubRip (.srt) or WebVTT (.vtt)."""

from collections.abc import Iterator

from common.synthesis.speech import Speech, SpokenUtterance, SpokenWord

LONGEST_LINE = 42  # characters, as broadcasters recommend
LONGEST_CUE = 6.0  # s


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
