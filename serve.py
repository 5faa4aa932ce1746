"""Serves a voice, and a recognizer, over HTTP, in the form of OpenAI's clients, with the studio at /."""

import logging
import sys
from collections.abc import Sequence
from functools import partial

from common.cli import run
from common.options import read_options
from common.serving.arguments import load_models, parse_args
from common.serving.options import KEY_VARIABLE, ServerOptions


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal asks to stop; every mistake in options and checkpoints shows before the first request."""
    options: ServerOptions = read_options(parse_args(argv), ServerOptions)
    key = options.api_key()
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    from common.serving import Server, Service, address_of, bind, is_loopback  # --help needs no PyTorch

    bound = bind(options.host, options.port)  # before the models are loaded, which may take long
    with bound:
        if key is None and not is_loopback(bound):
            name = options.api_key_env or KEY_VARIABLE
            print(
                f"warning: everybody who reaches {options.host} can use this server; set {name} to a key that clients "
                "must send",
                file=sys.stderr,
            )
        service = Service(load_models(argv), limits=options.limits, api_key=key)
        service.warm_up()
        line = f"the studio is at {address_of(bound)}/ (stop: Ctrl-C)"
        server = Server(service, deadline=options.limits.deadline, on_start=partial(print, line, flush=True))
        server.run(sockets=[bound])
    return 0


if __name__ == "__main__":
    run(main)
