"""Serves a voice, and a recognizer, over HTTP, in the form of OpenAI's clients, with the studio at /."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from functools import partial

from common.cli import run
from common.serving import Server, Service, address_of, bind, is_loopback
from common.serving.arguments import KEY_VARIABLE, api_key_from_args, limits_from_args, load_models, parse_args


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal asks to stop; every mistake in options and checkpoints shows before the first request."""
    args = parse_args(argv)
    limits, key = limits_from_args(args), api_key_from_args(args)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    bound = bind(args.host, args.port)  # before the models are loaded, which may take long
    with bound:
        if key is None and not is_loopback(bound):
            name = args.api_key_env or KEY_VARIABLE
            print(
                f"warning: everybody who reaches {args.host} can use this server; set {name} to a key that clients "
                "must send",
                file=sys.stderr,
            )
        service = Service(load_models(argv), limits=limits, api_key=key)
        service.warm_up()
        line = f"the studio is at {address_of(bound)}/ (stop: Ctrl-C)"
        server = Server(service, deadline=limits.deadline, on_start=partial(print, line, flush=True))
        asyncio.run(server.serve_until_asked(bound))
    return 0


if __name__ == "__main__":
    run(main)
