"""Serves a voice, and optionally a recognizer, over HTTP with OpenAI's API, and the studio at /."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec

from common.cli import run
from common.errors import OptionError
from common.options import read_options
from common.serving.arguments import build_parser as build_parser, load_models, parse_args
from common.serving.options import KEY_VARIABLE, ServerOptions


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal asks to stop; mistakes in options and checkpoints are reported before the first request."""
    options: ServerOptions = read_options(parse_args(argv), ServerOptions)
    key = options.api_key()
    from common.serving.app import Service
    from common.serving.gate import Sites
    from common.serving.log import start_logging
    from common.serving.server import Server, address_of, bind, is_loopback

    start_logging(options.log_format)
    address = options.wyoming
    with ExitStack() as stack:  # before the models are loaded, which can take long
        bound, wyoming = stack.enter_context(bind(options.host, options.port)), None
        if key is None and not is_loopback(bound):
            who = f"anyone who can reach {options.host} can use this server"
            print(f"warning: {who}; set {KEY_VARIABLE} to a key that clients must send", file=sys.stderr)
        if address is not None:
            if find_spec("wyoming") is None:
                raise OptionError("--wyoming needs the package wyoming: pip install wyoming")
            named = f"--wyoming tcp://{address.host}:{address.port}"
            wyoming = stack.enter_context(bind(address.host, address.port, options=named))
            if not is_loopback(wyoming):
                who = f"anyone who can reach {address.host} port {address.port} can use it"
                print(f"warning: --wyoming: the protocol has no keys, so {who}", file=sys.stderr)
        sites = Sites(options.allow_origin, host=options.host)
        service = Service(load_models(argv), limits=options.limits, api_key=key, sites=sites, wyoming=wyoming)
        service.warm_up()
        line = f"the studio is at {address_of(bound)}/ (stop: Ctrl-C)"
        if wyoming is not None:
            line += f"; Wyoming at {address_of(wyoming, scheme='tcp')}"
        server = Server(service, deadline=options.limits.deadline, on_start=partial(print, line, flush=True))
        server.run(sockets=[bound])
    return 0


if __name__ == "__main__":
    run(main)
