"""Errors as OpenAI's clients read them: a status, and a JSON object that says in one line what is wrong."""

import re
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from common.errors import shown

_OPTION = re.compile(r"--([a-z][a-z0-9-]*)")


class ApiError(HTTPException):
    """A request that is answered by an error."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """The field that is wrong is the one that the message begins with, as ``speed: ...``."""
        super().__init__(status, message, headers)
        name, colon, _ = message.partition(":")
        self.param = name if colon and " " not in name else None
        self.code = code


def without_options(message: str) -> str:
    """A message of the commands for clients of a server, who have fields, not options.

    Advice that names an option is left out; in what is left, a field's name stands for the option of that name.
    """
    what, *advice = message.split("; ")
    kept = [what, *(clause for clause in advice if not _OPTION.search(clause))]
    return _OPTION.sub(lambda found: found[1].replace("-", "_"), "; ".join(kept))


def error_body(error: ApiError) -> dict[str, Any]:
    """The error as JSON; its message is one line."""
    kind = "server_error" if error.status_code >= 500 else "invalid_request_error"
    message = " ".join(error.detail.split())
    return {"error": {"message": message, "type": kind, "param": error.param, "code": error.code}}


def error_response(error: HTTPException) -> JSONResponse:
    """The answer to a request that failed, by us or by FastAPI."""
    if not isinstance(error, ApiError):
        error = ApiError(error.status_code, error.detail, headers=error.headers)
    return JSONResponse(error_body(error), status_code=error.status_code, headers=error.headers)


def describe_invalid(error: RequestValidationError) -> ApiError:
    """The first fault that pydantic found in a body."""
    fault = error.errors()[0]
    place, message = ".".join(map(str, fault["loc"][1:])), fault["msg"].removeprefix("Value error, ")
    if not place and fault["type"] == "value_error":  # a message of ours
        return ApiError(400, message)
    if not place or fault["type"] == "json_invalid":
        return ApiError(400, "the body is not a JSON object that is sent as application/json", code="invalid_json")
    if fault["type"] == "missing":
        return ApiError(400, f"{place}: missing", code="missing_required_parameter")
    if fault["type"] == "extra_forbidden":
        message = f"{shown(place)[1:-1]}: unknown field; /docs has those there are"
        return ApiError(400, message, code="unknown_parameter")
    return ApiError(
        400, f"{place}: {message[:1].lower()}{message[1:]}, got {shown(fault['input'])}", code="invalid_value"
    )
