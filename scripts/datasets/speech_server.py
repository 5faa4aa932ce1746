"""A client for servers with OpenAI's speech API, with retries."""

import json
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from common.errors import InputError, OptionError, shown

_TIMEOUT = 300.0  # s without a byte
_LONGEST_PAUSE = 60.0  # s
_FIRST_PAUSE = 0.5  # s, doubled with each retry
_AGAIN = (408, 409, 425, 429)  # statuses after which a retry may succeed; those from 500 on, too
_OF_THE_TEXT = (400, 413, 422)  # statuses that may be due to the text


class ServerError(InputError):
    """The server can't be reached, or would refuse any text."""


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, so that the key and the texts only go to the given address."""

    def redirect_request(self, *_: Any) -> None:
        return None


def read_address(text: str) -> str:
    """Return the address of a server's API, which ends in /v1; raise OptionError without showing secrets."""
    if re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", text) is None:
        raise OptionError("expected http://host:port or https://host/v1, without a name, a password and a query")
    return text.rstrip("/").removesuffix("/audio/speech").removesuffix("/v1") + "/v1"


@dataclass(frozen=True)
class SpeechServer:
    """A server and one of its models. The key is only sent in requests."""

    address: str
    model: str
    key: str = field(default="", repr=False)
    retries: int = 6
    stopped: threading.Event = field(default_factory=threading.Event)  # if set, ends pauses and retries

    def speak(self, text: str, **fields: str) -> bytes:
        """Return the WAV file of a text; ``fields`` of the request are the voice and others.

        Raises ServerError, and InputError if the server refuses or fails to read this text.
        """
        wanted = {"model": self.model, "input": text, "response_format": "wav", **fields}
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = Request(f"{self.address}/audio/speech", json.dumps(wanted).encode(), headers)
        for retry in range(self.retries + 1):
            try:
                with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT) as answer:
                    return answer.read()
            except HTTPError as error:
                problem: InputError = self._refusal(error)
                if error.code not in _AGAIN and error.code < 500:
                    raise problem from error
            except (OSError, HTTPException) as error:
                problem = ServerError(f"{self.address}: no answer ({error}); is it running? The same command resumes")
            if retry < self.retries and self.stopped.wait(min(_FIRST_PAUSE * 2**retry, _LONGEST_PAUSE)):
                break
        raise problem

    def _refusal(self, error: HTTPError) -> InputError:
        """Return the error of an answer with status 300 or more, without the key, which some servers repeat."""
        said = error.read(4096).decode("utf-8", "replace")
        with suppress(ValueError, LookupError, TypeError):
            said = str(json.loads(said)["error"]["message"])
        said = error.reason if not said or "<" in said else said  # an HTML page
        kind = InputError if error.code in _OF_THE_TEXT or error.code >= 500 else ServerError
        return kind(f"{self.address}: status {error.code} {shown(said.replace(self.key, '...') if self.key else said)}")
