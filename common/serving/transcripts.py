"""Transcripts in the formats of OpenAI's API, with the times of words."""

from collections.abc import Iterator
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from common.recognition.recognizer import Transcription
from common.serving.sound import SUBTITLES
from common.synthesis.speech import SpokenUtterance, SpokenWord, cues_of, subtitles_of

_PAUSE = 0.6  # s without a word, after which a new cue begins


def transcript_answer(found: Transcription, form: str) -> Response:
    """Return the answer in a ``form`` of `TranscriptionRequest`."""
    if form == "text":
        return PlainTextResponse(found.text + "\n")
    if form == "json":
        return JSONResponse({"text": found.text})
    cues = [cue for part in _parts(found) for cue in cues_of(part)]
    if form in SUBTITLES:
        return PlainTextResponse(subtitles_of(cues, form), media_type=SUBTITLES[form])
    segments = [
        {"id": index, "start": cue[0].start, "end": cue[-1].end, "text": " ".join(word.text for word in cue)}
        for index, cue in enumerate(cues)
    ]
    words = [{"word": text, "start": start, "end": end} for text, start, end in found.words]
    # A recognizer doesn't know which language it was trained on.
    body: dict[str, Any] = {"task": "transcribe", "language": "unknown", "duration": found.duration}
    return JSONResponse(body | {"text": found.text, "segments": segments, "words": words})


def _parts(found: Transcription) -> Iterator[SpokenUtterance]:
    """Split at pauses; one part if the words have no times."""
    words = [SpokenWord(*word) for word in found.words]
    if not words and found.text:
        yield SpokenUtterance(found.text, 0.0, found.duration, ())
    while words:
        n = next((i for i in range(1, len(words)) if words[i].start - words[i - 1].end > _PAUSE), len(words))
        own, words = words[:n], words[n:]
        yield SpokenUtterance(" ".join(word.text for word in own), own[0].start, own[-1].end, tuple(own))
