"""A client of servers with OpenAI's speech API: it asks again where an answer fails, and says why none came."""

import json
import random
import threading
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from common.errors import InputError, OptionError, shown

_TIMEOUT = 300.0  # s without a byte
_MOST_BYTES = 1 << 28  # of an answer
_LONGEST_PAUSE = 60.0  # s
_FIRST_PAUSE = 0.5  # s, doubled with each retry
_AGAIN = (408, 409, 425, 429)  # statuses after which the same request may succeed, and those from 500 on
_OF_THE_TEXT = (400, 413, 422)  # statuses of a request that another text may not get


class ServerError(InputError):
    """The server cannot be reached, or refuses whatever it is asked."""


class _NoRedirects(HTTPRedirectHandler):
    """The key and the texts go to no address but the given one."""

    def redirect_request(self, *_: Any) -> None:
        return None


def read_address(text: str) -> str:
    """The address of a server's API, which ends with /v1; raises OptionError, which never shows what may be secret."""
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
        is_good = is_good and not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        is_good = False
    if not is_good or not text.isprintable():
        raise OptionError("expected http://host:port or https://host/v1, without a name, a password and a query")
    return text.rstrip("/").removesuffix("/audio/speech").removesuffix("/v1") + "/v1"


@dataclass(frozen=True)
class SpeechServer:
    """A server and the model of it that speaks. The key is part of requests alone."""

    address: str
    model: str
    key: str = field(default="", repr=False)
    retries: int = 6
    stopped: threading.Event = field(default_factory=threading.Event)  # set, it ends pauses and tries

    def __post_init__(self) -> None:
        if not (self.key.isascii() and self.key.isprintable()):
            raise OptionError("OPENAI_API_KEY: holds characters that no key has")

    def speak(self, text: str, voice: str) -> bytes:
        """The file, WAV as servers make it, of a text read by a voice.

        Raises ServerError as it says, and InputError where the server refuses the text or fails at it.
        """
        wanted = {"model": self.model, "voice": voice, "input": text, "response_format": "wav"}
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = Request(f"{self.address}/audio/speech", json.dumps(wanted).encode(), headers)
        for retry in range(self.retries + 1):
            pause = min(_FIRST_PAUSE * 2**retry, _LONGEST_PAUSE) * random.uniform(0.5, 1)  # not all at the same time
            try:
                with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT) as answer:
                    sound = answer.read(_MOST_BYTES)
                    if answer.length:
                        raise IncompleteRead(sound, answer.length)
                    return sound
            except HTTPError as error:
                problem: InputError = self._refusal(error)
                if error.code not in _AGAIN and error.code < 500:
                    raise problem from error
                asked = error.headers.get("Retry-After", "")
                pause = max(pause, min(float(asked), _LONGEST_PAUSE)) if asked.isdecimal() else pause
            except (OSError, HTTPException) as error:
                reason = getattr(error, "reason", error)
                said = self._safe(str(reason) or type(reason).__name__)
                problem = ServerError(f"{self.address}: no answer ({said}); is it running? The same command resumes")
            if retry < self.retries and self.stopped.wait(pause):
                break
        raise problem

    def _refusal(self, error: HTTPError) -> InputError:
        """What an answer of status 300 or more says."""
        said = error.read(4096).decode("utf-8", "replace")
        try:
            said = json.loads(said)["error"]["message"]
        except (ValueError, LookupError, TypeError):
            said = said if "<" not in said else ""  # a page
        kind = InputError if error.code in _OF_THE_TEXT or error.code >= 500 else ServerError
        return kind(f"{self.address}: status {error.code} {self._safe(str(said) or error.reason)}")

    def _safe(self, text: str) -> str:
        """What a server says, shortened, without the key, which some repeat."""
        return shown(text.replace(self.key, "...") if self.key else text)
