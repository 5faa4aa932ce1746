"""Errors as OpenAI's clients read them: a status, and a JSON object that says in one line what is wrong."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from common import errors

_LONGEST_SHOWN = 80  # characters of what a client sent


class ApiError(Exception):
    """A request that is answered by an error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param  # the field that is wrong
        self.code = code
        self.headers = headers


def error_body(error: ApiError) -> dict[str, Any]:
    """The error as JSON; its message is one line."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    message = " ".join(error.message.split())
    return {"error": {"message": message, "type": kind, "param": error.param, "code": error.code}}


def error_response(error: ApiError) -> JSONResponse:
    """The answer to a request that failed."""
    return JSONResponse(error_body(error), status_code=error.status, headers=dict(error.headers or {}))


def shown(value: Any) -> str:
    """What a client sent, as messages show it: cut where it is long."""
    return errors.shown(value, longest=_LONGEST_SHOWN)


def field_of(message: str) -> str | None:
    """The field that a message of ours begins with, as in ``speed: ...``."""
    name, colon, _ = message.partition(":")
    return name if colon and name.isidentifier() else None
