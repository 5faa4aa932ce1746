"""Options of ``serve.py`` besides those of the models: address, key and limits."""

import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from common.errors import OptionError, shown
from common.options import group, option

KEY_VARIABLE = "SPEECH_API_KEY"


@dataclass(frozen=True)
class Limits:
    """Limits on requests."""

    max_queue: int = option(256, "requests waiting or in progress; further ones are refused (503)", least=1)
    max_characters: int = option(4096, "characters in a text with its markup, or symbols in a prosody table", least=1)
    max_body: int = option(10 * 2**20, "bytes in a request", least=1)
    deadline: float = option(
        120.0, "seconds from the start of a request until its answer must be complete; then it's cut off", above=0
    )
    max_audio_seconds: float = option(60.0, "seconds of a recording to transcribe", above=0)
    batch_size: int = option(16, "texts or recordings in a batch", least=1)


class Address(NamedTuple):
    """Where Wyoming's clients connect."""

    host: str
    port: int


def read_wyoming(uri: str) -> Address:
    """Parse a URI; raises OptionError unless it is ``tcp://HOST:PORT``."""
    found = re.fullmatch(r"tcp://(?:\[([0-9a-f:.]+)\]|([^][:/\s]+)):([0-9]{1,5})/?", uri.lower())
    if found is None or int(found[3]) > 65535:
        raise OptionError(f"{shown(uri)}: expected tcp://HOST:PORT, such as tcp://0.0.0.0:10200")
    return Address(found[1] or found[2], int(found[3]))


def read_origin(text: str) -> str:
    """Parse an origin as browsers write it, or ``*`` for any; raises OptionError if it's neither."""
    found = re.fullmatch(r"\*|null|([a-z][a-z0-9+.-]*://[^/\s?#@]+)/?", text.lower())
    if found is None:
        raise OptionError(f"{shown(text)}: expected an origin such as http://localhost:3000, or *")
    return found[1] or found[0]


def read_alias(text: str) -> tuple[str, str]:
    """Parse ``NAME=MEANT``: a name that clients use, and what it stands for; raises OptionError if it's malformed."""
    name, _, meant = text.partition("=")
    if not name or not meant:
        raise OptionError(f"{shown(text)}: expected NAME=VOICE, such as af_heart=heart")
    return name, meant


@dataclass(frozen=True)
class ServerOptions:
    """Where a server listens, and who may use it."""

    host: str = option("127.0.0.1", "address to listen on; 0.0.0.0: all addresses of this machine")
    port: int = option(8080, "port to listen on; 0: any free port", least=0, most=65535)
    allow_origin: tuple[str, ...] = option(
        (), "origins whose pages may use the server (CORS); *: any", metavar="ORIGIN", read=read_origin, adds_up=True
    )
    alias: tuple[tuple[str, str], ...] = option(
        (), "additional names for voices, speakers and models", metavar="NAME=VOICE", read=read_alias, adds_up=True
    )
    wyoming: Address | None = option(
        None, "address for Home Assistant, such as tcp://0.0.0.0:10200", metavar="URI", read=read_wyoming
    )
    log_format: str = option("text", "text: a line per request on stderr; off: only warnings", choices=("text", "off"))
    limits: Limits = group(Limits, "limits")

    @staticmethod
    def api_key() -> str | None:
        """The key that clients must send, from the environment variable `KEY_VARIABLE`; OptionError if it's empty."""
        key = os.environ.get(KEY_VARIABLE)
        if key is not None and not key.strip():
            raise OptionError(f"{KEY_VARIABLE}: the environment variable is empty; set it to a key, or unset it")
        return key and key.strip()
