"""Measures serve.py under load: throughput, latency and memory, and that no answer is wrong or lost.

    bash scripts/benchmark.sh serving [--clients 200] [--rounds 2] [options of serve.py]

starts ``serve.py`` on a free port of this machine. All clients ask at once for sentences of the list as PCM, each again
as soon as it has its answer; every answer is compared with what the same voice speaks without a server. Then as many
requests as the server takes are left waiting, and one more, a text and a body beyond the limits have to be refused.
"""

import argparse
import http.client
import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.audio import pcm16
from common.cli import ArgumentParser, positive_int, run
from common.errors import InputError
from common.serving import Limits
from common.serving.arguments import load_models
from common.synthesis import read_phrases
from scripts.benchmarks.machine import machine
from scripts.benchmarks.table import Row, markdown

ROOT = Path(__file__).resolve().parents[2]
PERCENTILES = (50, 95, 99)
_TOLERANCE = 1  # of 32768: pieces equal the whole to 1e-5
_RETRY = 0.1  # s until a request is sent again that met a full queue
_PATIENCE = 600.0  # s for an answer


@dataclass(frozen=True)
class Answer:
    """What came back, and how long it took."""

    status: int
    body: bytes
    seconds: float
    first_byte: float  # s


@dataclass(frozen=True)
class Load:
    """How much is asked for."""

    clients: int
    rounds: int
    texts: Sequence[str]


class Target:
    """The server, as its clients see it."""

    def __init__(self, address: str) -> None:
        """``address`` is its URL."""
        self._host = address.removeprefix("http://").rstrip("/")

    def speak(self, text: str) -> Answer:
        """Ask for a text as PCM."""
        start = time.perf_counter()
        connection = http.client.HTTPConnection(self._host, timeout=_PATIENCE)
        try:
            body = json.dumps({"input": text, "response_format": "pcm"})
            connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            first = response.read(1)
            first_byte = time.perf_counter() - start
            return Answer(response.status, first + response.read(), time.perf_counter() - start, first_byte)
        finally:
            connection.close()

    def figure(self, name: str) -> float:
        """One of the server's figures."""
        connection = http.client.HTTPConnection(self._host, timeout=_PATIENCE)
        try:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        finally:
            connection.close()
        return next((float(line.split()[1]) for line in lines if line.startswith(name + " ")), float("nan"))


def ask_in_rounds(target: Target, load: Load) -> tuple[list[tuple[str, Answer]], float, int]:
    """Each text that was asked for with its answer, the seconds of all, and how often a client met a full queue."""
    refused: list[int] = []
    together = threading.Barrier(load.clients + 1)

    def ask(client: int) -> list[tuple[str, Answer]]:
        together.wait()
        answers = []
        for number in range(load.rounds):
            text = load.texts[(client + number) % len(load.texts)]
            while (answer := target.speak(text)).status == http.client.SERVICE_UNAVAILABLE:
                refused.append(client)
                time.sleep(_RETRY)
            answers.append((text, answer))
        return answers

    with ThreadPoolExecutor(load.clients) as pool:
        clients = [pool.submit(ask, client) for client in range(load.clients)]
        together.wait()
        start = time.perf_counter()
        answers = [answer for client in clients for answer in client.result()]
        return answers, time.perf_counter() - start, len(refused)


def refusals(target: Target, load: Load) -> dict[str, bool | None]:
    """Whether what goes beyond each limit is refused as it should be; None: the queue was never full."""
    limits = Limits()
    found: dict[str, bool | None] = {
        "a text beyond the limit": target.speak("a" * (limits.max_characters + 1)).status == 400,
        "a body beyond the limit": target.speak("a" * (limits.max_body + 1)).status == 413,
        "one request more than the queue takes": None,
    }
    text = " ".join(load.texts)[: limits.max_characters]
    with ThreadPoolExecutor(load.clients) as pool:
        waiting = [pool.submit(target.speak, text) for _ in range(load.clients)]
        while not any(one.done() for one in waiting):
            if target.figure("speech_queue_length") == load.clients:
                is_refused = target.speak(text).status == 503
                # One that has been answered meanwhile may have made room.
                if is_refused or not any(one.done() for one in waiting):
                    found["one request more than the queue takes"] = is_refused
                break
        found["the requests before it are answered"] = all(one.result().status == 200 for one in waiting)
    return found


def check_answers(answers: Sequence[tuple[str, Answer]], expected: Callable[[str], bytes]) -> int:
    """How many answers are unlike what the voice speaks without a server."""
    wanted = {text: np.frombuffer(expected(text), "<i2").astype(int) for text, _ in answers}
    wrong = 0
    for text, answer in answers:
        got = np.frombuffer(answer.body[: len(answer.body) // 2 * 2], "<i2").astype(int)
        alike = got.shape == wanted[text].shape and np.abs(got - wanted[text]).max() <= _TOLERANCE
        wrong += answer.status != 200 or not alike
    return wrong


def row_of(answers: Sequence[Answer], load: Load, *, seconds: float, rate: int, memory: tuple[float, float]) -> Row:
    """The figures; ``memory`` is in bytes, before and after."""
    spoken = sum(len(one.body) // 2 for one in answers) / rate
    row = {"clients": str(load.clients), "requests": str(len(answers))}
    row |= {"requests/s": f"{len(answers) / seconds:.1f}", "x real time": f"{spoken / seconds:.1f}"}
    for what, values in (
        ("latency", [one.seconds for one in answers]),
        ("first byte", [one.first_byte for one in answers]),
    ):
        row |= {f"{what} p{share} (s)": f"{np.percentile(values, share):.2f}" for share in PERCENTILES}
    before, after = (f"{one / 1e6:.0f}" for one in memory)
    return row | {"memory before (MB)": before, "after (MB)": after}


def measure(load: Load, options: Sequence[str]) -> tuple[Row, list[str]]:
    """The figures and the faults of one server with such options."""
    words = [sys.executable, str(ROOT / "serve.py"), "--port", "0", "--max-queue", str(load.clients), *options]
    words += ["--deadline", str(_PATIENCE)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            lines = iter(server.stdout.readline, "")
            found = next((line for line in lines if line.startswith("the studio is at ")), None)
            if found is None:
                raise InputError(f"the server did not start: {shlex.join(words)}")
            target = Target(found.split()[4])
            before = target.figure("process_resident_memory_bytes")
            answers, seconds, retried = ask_in_rounds(target, load)
            after = target.figure("process_resident_memory_bytes")
            refused = refusals(target, load)
        finally:
            server.terminate()
            status = server.wait()
    voice = load_models(options).voice
    wrong = check_answers(answers, lambda text: pcm16(voice.speak(text).wave))
    faults = [f"not so: {name}" for name, is_so in refused.items() if is_so is False]
    faults += [f"{wrong} of {len(answers)} answers are unlike the voice without a server"] * (wrong > 0)
    faults += [f"the server ended with status {status}"] * (status != 0)
    for name, is_so in refused.items():
        print(f"{name}: {'so' if is_so else 'not so' if is_so is False else 'not tried, the queue was never full'}")
    print(f"answers as without a server: {len(answers) - wrong} of {len(answers)}; met a full queue: {retried}")
    rate, memory = voice.sampling_rate, (before, after)
    return row_of([one for _, one in answers], load, seconds=seconds, rate=rate, memory=memory), faults


def parse_args(argv: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and those that are for serve.py."""
    parser = ArgumentParser(
        prog="serving", description=f"{(__doc__ or '').splitlines()[0]} Other options go to serve.py."
    )
    parser.add_argument("--clients", type=positive_int, default=200, help="that ask at once, and places in the queue")
    parser.add_argument("--rounds", type=positive_int, default=2, help="requests of each client, one after the other")
    parser.add_argument("--phrases", type=Path, default=ROOT / "phrases/devset10.tsv", help="list to speak")
    return parser.parse_known_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 1 where an answer was wrong or lost, or a limit did not hold."""
    args, options = parse_args(argv)
    texts = [phrase.text for phrase in read_phrases(args.phrases) if phrase.text]
    if not texts:
        raise InputError(f"{args.phrases}: no text to speak")
    row, faults = measure(Load(args.clients, args.rounds, texts), options)
    given: list[Any] = [args.clients, "--rounds", args.rounds, *options]
    print(f"{machine(cuda='--cuda' in options)}: python -m scripts.benchmarks.serving --clients", *given)
    print(*markdown([row]), sep="\n")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    run(main)
