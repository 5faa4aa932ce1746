"""Which pages may use the server from a browser: its own, and those of the origins that an option allows."""

import re
import socket
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from common.errors import shown
from common.serving.errors import ApiError

# Domains in which nobody can register a name that leads elsewhere: those of one machine, of LANs and of containers.
_PRIVATE = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".corp", ".test", ".svc")
_NETLOC = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+?)\.?)(?::[0-9]+)?")
_IPV4 = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")


class Sites:
    """Tells requests of the server's own pages, and of programs, from those of pages of other sites.

    A page of another site can reach the server in two ways: by its address, with an ``Origin`` that differs, and by a
    domain of that site's owner which leads here (DNS rebinding), with a ``Host`` that is no name of this server.
    """

    def __init__(self, allowed: Collection[str] = (), *, host: str = "") -> None:
        """``allowed`` are origins as `read_origin` gives them, and their hosts are names of this server, as is ``host``
        that it listens on."""
        self.allowed = frozenset(allowed)
        hosts = (_hostname(one.partition("://")[2]) for one in allowed)
        self._names = {host.lower(), socket.gethostname().lower(), *hosts}

    def check(self, headers: Headers) -> None:
        """Raise ApiError for a request that a page of another site made."""
        host, origin, site = (headers.get(name, "") for name in ("host", "origin", "sec-fetch-site"))
        if origin and not self.allowed.isdisjoint((origin, "*")):
            return
        if host and not self._is_own(_hostname(host)):  # HTTP/1.0, which browsers don't send, has none
            what = f"Host {shown(host)} is no name of this server; start it with --allow-origin http(s)://NAME or a key"
            raise ApiError(403, what, code="wrong_host")
        is_own = site == "same-origin" or origin.partition("://")[2] == host.lower() if origin else site != "cross-site"
        if not is_own:
            what = f"pages of other sites may not use this server; start it with --allow-origin {origin or 'ORIGIN'}"
            raise ApiError(403, what, code="cross_site")

    def _is_own(self, name: str) -> bool:
        """Whether a host is a name of this server, or one that no site of others can have: an address, or no domain."""
        is_address = "." not in name or ":" in name or _IPV4.fullmatch(name)  # or a name without a domain
        return bool(is_address) or "*" in self.allowed or name in self._names or name.endswith(_PRIVATE)

    def share(self, app: ASGIApp) -> ASGIApp:
        """The application, whose answers pages of the allowed origins can read (CORS)."""
        if not self.allowed:
            return app
        return CORSMiddleware(
            app,
            allow_origins=self.allowed,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("*",),
            allow_private_network=True,
            expose_headers=("X-Sampling-Rate", "Retry-After"),
        )


def _hostname(netloc: str) -> str:
    """The host of ``host:port``, without the dot that may end it; "?.?" where it is none."""
    found = _NETLOC.fullmatch(netloc.lower())
    return (found[1] or found[2]) if found else "?.?"
