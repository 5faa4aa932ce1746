"""The page of the interface at ``/docs``: a table of each path's fields, from the OpenAPI description, without scripts
or anything else from another host.
"""

from html import escape
from string import Template
from typing import Any

from common.pages import Row, render_table
from common.pages.shell import stylesheet
from common.serving.schema import SpeechRequest
from common.serving.transcribing import FORMATS

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<header>
<h1>$title</h1>
<p class="headline">Errors are {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}. For programs:
<a href="openapi.json">openapi.json</a>. To speak by hand: <a href=".">the studio</a>.</p>
</header>
<main>
$sections
</main>
</body>
</html>
"""


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
    info = description["info"]
    operations = [
        f"<section><h2>{method.upper()} {escape(path)}</h2>\n{_operation(operation)}</section>"
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    return Template(_PAGE).substitute(
        title=escape(f"{info['title']} {info['version']}"), style=stylesheet(), sections="\n".join(operations)
    )


def _operation(operation: dict[str, Any]) -> str:
    html = f"<p>{escape(operation.get('description', ''))}</p>"
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
