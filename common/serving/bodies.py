"""What clients send: bodies of bounded size, read as JSON or as a form, in memory alone."""

import sys
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from common.serving.errors import ApiError, field_of, shown
from common.serving.gate import on_end

_MAX_FIELDS = 32  # of a form
_FIELD_BYTES = 1 << 16
_DISCARDED = 8  # bodies' worth of bytes that are read after the limit: a client that still sends misses the answer
_BODIES = 16  # of the largest size, that are held at once
_ERRORS_SHOWN = 3
_OURS = "Value error, "  # what pydantic puts before a message of ours
Schema = TypeVar("Schema", bound=BaseModel)


class BodyReader:
    """Reads bodies, each of a bounded size, and all that are held at once together."""

    def __init__(self, *, max_body: int) -> None:
        """``max_body`` is in bytes."""
        self._max_body = max_body
        self._held = 0  # bytes of requests that have not ended

    async def read_json(self, request: Request, schema: type[Schema]) -> Schema:
        """The body as ``schema`` has it, which refuses unknown fields.

        Raises:
            ApiError: it is too large, not JSON, or not such.
        """
        _check_kind(request, "application/json")  # which no page of another site can send without asking first
        body = b"".join([chunk async for chunk in self._chunks(request)])
        try:
            return schema.model_validate_json(body)
        except ValidationError as error:
            raise _as_api_error(error, schema) from None

    async def read_form(self, request: Request) -> FormData:
        """The fields and files of a multipart body, which never touch the disk.

        Raises:
            ApiError: it is too large or no such form.
        """
        _check_kind(request, "multipart/form-data")
        chunks = self._chunks(request)
        parser = _MemoryParser(request.headers, chunks, max_files=1, max_fields=_MAX_FIELDS, max_part_size=_FIELD_BYTES)
        try:
            return await parser.parse()
        except (MultiPartException, UnicodeDecodeError) as error:
            raise ApiError(400, f"the form cannot be read: {error}", code="invalid_form") from error

    async def _chunks(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The body's pieces; ApiError if it is too large, or all bodies together are."""
        most, size = self._max_body, 0
        async for chunk in request.stream():
            size += len(chunk)
            if size <= most:
                self._hold(request, len(chunk))
                yield chunk
            elif size > (1 + _DISCARDED) * most:
                break
        if size > most:
            raise ApiError(413, f"the body has more than {most} bytes, this server's limit", code="body_too_large")

    def _hold(self, request: Request, size: int) -> None:
        """Count bytes as held until the request ends."""
        if self._held + size > _BODIES * self._max_body:
            raise ApiError(
                503, "too many large bodies at once; try again later", code="busy", headers={"Retry-After": "2"}
            )
        self._held += size
        on_end(request.scope).callback(self._release, size)

    def _release(self, size: int) -> None:
        self._held -= size


def _check_kind(request: Request, expected: str) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != expected:
        raise ApiError(415, f"Content-Type {shown(kind)}: expected {expected}", code="content_type")


def file_bytes(upload: UploadFile) -> bytes:
    """The content of a form's file."""
    return upload.file.read()


class _MemoryParser(MultiPartParser):
    spool_max_size = sys.maxsize  # files stay in memory; `_chunks` bounds them


def _as_api_error(error: ValidationError, schema: type[BaseModel]) -> ApiError:
    """What is wrong, the first few faults in one line."""
    problems = error.errors(include_url=False, include_context=False)
    lines = [_describe(one, schema) for one in problems[:_ERRORS_SHOWN]]
    if len(problems) > _ERRORS_SHOWN:
        lines.append(f"and {len(problems) - _ERRORS_SHOWN} more")
    first = problems[0]
    param = ".".join(map(str, first["loc"])) or field_of(first["msg"].removeprefix(_OURS))
    code = "invalid_json" if first["type"] == "json_invalid" else None
    return ApiError(400, "; ".join(lines), param=param, code=code)


def _describe(problem: Any, schema: type[BaseModel]) -> str:
    place = ".".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix(_OURS)
    if problem["type"] == "json_invalid":
        return f"the body is not JSON: {message.removeprefix('Invalid JSON: ')}"
    if problem["type"] == "extra_forbidden":
        return f"{shown(place)[1:-1]}: unknown field; expected {', '.join(schema.model_fields)}"
    if not place:
        return message
    return f"{place}: {message[:1].lower()}{message[1:]}, got {shown(problem['input'])}"
