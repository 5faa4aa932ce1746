"""Errors in OpenAI's format: a status and a JSON object with a one-line message."""

import logging
import re
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from common.errors import InputError, shown

logger = logging.getLogger("serve")
_OPTION = re.compile(r"--([a-z][a-z0-9-]*)")


class ApiError(HTTPException):
    """An error to answer a request with; its message is one line."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """If a field is wrong, ``message`` starts with its name, as in ``speed: ...``."""
        super().__init__(status, " ".join(message.split()), headers)
        name, colon, _ = message.partition(":")
        self.param = name if colon and " " not in name else None
        self.code = code

    @property
    def body(self) -> dict[str, Any]:
        """The error as JSON."""
        kind = "server_error" if self.status_code >= 500 else "invalid_request_error"
        return {"error": {"message": self.detail, "type": kind, "param": self.param, "code": self.code}}

    @property
    def response(self) -> JSONResponse:
        """The answer to the request."""
        return JSONResponse(self.body, status_code=self.status_code, headers=self.headers)


def api_error(error: Exception) -> ApiError:
    """Convert any error to one for clients, and log unexpected errors with their traceback."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, RequestValidationError | ValidationError):
        return _describe_invalid(error)
    if isinstance(error, InputError):
        return ApiError(400, without_options(str(error)))
    if isinstance(error, ModuleNotFoundError):  # av, for some formats
        return ApiError(501, f"this needs the package {error.name}, which the server lacks")
    logger.error("error: %s", error, exc_info=error)
    return ApiError(500, "internal error; see the server's log")


def without_options(message: str) -> str:
    """Rewrite a command's message for clients, which set fields instead of options.

    Advice that names an option is dropped; elsewhere, an option's name becomes the field's name.
    """
    what, *advice = message.split("; ")
    kept = [what, *(clause for clause in advice if not _OPTION.search(clause))]
    return _OPTION.sub(lambda found: found[1].replace("-", "_"), "; ".join(kept))


def _describe_invalid(error: RequestValidationError | ValidationError) -> ApiError:
    """Describe the first error that pydantic found in a body."""
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"])).removeprefix("body").removeprefix(".")
    message = fault["msg"].removeprefix("Value error, ")
    if not place and fault["type"] == "value_error":  # one of our own messages
        return ApiError(400, message)
    if not place or fault["type"] == "json_invalid":
        return ApiError(400, "the body must be a JSON object, sent as application/json", code="invalid_json")
    what, code = f"{message[:1].lower()}{message[1:]}, got {shown(fault['input'])}", "invalid_value"
    if fault["type"] == "missing":
        what, code = "missing", "missing_required_parameter"
    elif fault["type"] == "extra_forbidden":
        what, code = "unknown field; /openapi.json lists the fields", "unknown_parameter"
    return ApiError(400, f"{shown(place)[1:-1]}: {what}", code=code)
