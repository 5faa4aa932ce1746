"""The page of the interface at ``/docs``: a table of each path's fields, from the OpenAPI description, without scripts
or anything else from another host.
"""

from typing import Any

from common.pages import Row, Section, render_page, render_table
from common.serving.schema import SpeechRequest
from common.serving.transcribing import FORMATS


def speech_body() -> dict[str, Any]:
    """What OpenAPI says of the body of a request to speak."""
    return _body("application/json", SpeechRequest.model_json_schema())


def transcription_body() -> dict[str, Any]:
    """The same of a recording to transcribe."""
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
    sections = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            title = f"{method.upper()} {path}"
            anchor = f"{method}{path.replace('/', '-')}"
            sections.append(Section(anchor, title, _operation(operation)))
    return render_page(
        kind="HTTP interface",
        title=description["info"]["title"],
        headline=f"Version {description['info']['version']}; the same for programs: /openapi.json",
        sections=sections,
    )


def _operation(operation: dict[str, Any]) -> str:
    html = f"<p>{operation.get('description', '')}</p>"
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        fields = content["schema"]["properties"]
        rows = [Row((name, _kind(field), field.get("description", ""))) for name, field in fields.items()]
        html += f"<p>{kind}</p>" + render_table(("field", "values", "meaning"), rows, words=(2,))
    return html


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
