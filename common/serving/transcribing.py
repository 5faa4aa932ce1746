"""A request to transcribe: the fields of its form, checked, and the transcript as an answer."""

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.responses import JSONResponse, PlainTextResponse, Response

from common.recognition import Transcription
from common.serving.errors import ApiError, shown

FORMATS = ("json", "text", "verbose_json")
# Fields of such clients that have one value here, and why.
_FIXED = {"stream": ("false", "a transcript comes at once"), "temperature": ("0", "nothing is drawn at random")}
_FIELDS = ("file", "model", "response_format", *_FIXED)


@dataclass(frozen=True)
class TranscriptionRequest:
    """What to transcribe, and how to answer."""

    file: UploadFile
    model: str | None
    response_format: str


def parse_form(form: FormData) -> TranscriptionRequest:
    """The request of a form's fields.

    Raises:
        ApiError: a field is missing, unknown, given twice, or has a value that means nothing here.
    """
    values: dict[str, Any] = {}
    for name, value in form.multi_items():
        if name not in _FIELDS:
            raise ApiError(400, f"{shown(name)[1:-1]}: not supported; expected {', '.join(_FIELDS)}", param=name[:80])
        if name in values:
            raise ApiError(400, f"{name}: given twice", param=name)
        if isinstance(value, UploadFile) != (name == "file"):
            raise ApiError(400, f"{name}: expected {'a file' if name == 'file' else 'text'}", param=name)
        values[name] = value
    if "file" not in values:
        raise ApiError(400, "file: missing; send the recording in it", param="file")
    for name, (only, reason) in _FIXED.items():
        if name in values and values[name].lower() not in (only, f"{only}.0"):
            raise ApiError(400, f"{name}: {shown(values[name])}, expected {only}, as {reason}", param=name)
    form_of_answer = values.get("response_format", "json")
    if form_of_answer not in FORMATS:
        message = f"response_format: {shown(form_of_answer)}, expected one of {', '.join(FORMATS)}"
        raise ApiError(400, message, param="response_format")
    return TranscriptionRequest(values["file"], values.get("model"), form_of_answer)


def transcript(found: Transcription, response_format: str) -> Response:
    """The answer."""
    if response_format == "text":
        return PlainTextResponse(found.text + "\n")
    body: dict[str, Any] = {"text": found.text}
    if response_format == "verbose_json":
        segment = {"id": 0, "start": 0.0, "end": found.duration, "text": found.text}
        # A recognizer writes the language that it was trained on, and does not say which that is.
        body |= {"task": "transcribe", "language": "unknown", "duration": found.duration, "segments": [segment]}
    return JSONResponse(body)
