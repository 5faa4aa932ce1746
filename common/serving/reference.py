"""The page of the interface at ``/docs``: a table of each path's fields, from the OpenAPI description."""

from typing import Any

from common.pages import render_page
from common.serving.schema import SpeechRequest
from common.serving.transcribing import FORMATS


def speech_body() -> dict[str, Any]:
    """What OpenAPI says of the body of a request to speak."""
    return _body("application/json", SpeechRequest.model_json_schema())


def transcription_body() -> dict[str, Any]:
    """What OpenAPI says of the body of a request to transcribe a recording."""
    fields = {
        "file": {"type": "string", "format": "binary", "description": "a WAV, FLAC, Ogg or MP3 file, mono or stereo"},
        "model": {"type": "string", "description": "a name from /v1/models; OpenAI's names stand for the model here"},
        "response_format": {"type": "string", "enum": list(FORMATS), "description": "json if not given"},
    }
    return _body("multipart/form-data", {"type": "object", "required": ["file"], "properties": fields})


def _body(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema}}}}


def reference_page(description: dict[str, Any]) -> str:
    """The page of an OpenAPI description."""
    info = description["info"]
    operations = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            bodies = operation.get("requestBody", {}).get("content", {})
            tables = {kind: _rows(content["schema"]["properties"]) for kind, content in bodies.items()}
            operations.append((f"{method.upper()} {path}", operation.get("description", ""), tables))
    return render_page("serving/reference.html", title=f"{info['title']} {info['version']}", operations=operations)


def _rows(fields: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(name, _kind(field), field.get("description", "")) for name, field in fields.items()]


def _kind(schema: dict[str, Any]) -> str:
    """The values of a field, in words."""
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    found = []
    for one in options:
        text = ", ".join(map(str, one["enum"])) if "enum" in one else one.get("type", "any")
        if "minimum" in one and "maximum" in one:
            text += f" from {one['minimum']:g} to {one['maximum']:g}"
        found.append(text)
    return " or ".join(found)
