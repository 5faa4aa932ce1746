"""Measures serve.py: throughput and latency under load, and that no answer is lost.

    bash scripts/benchmark.sh serving [--clients 200] [--rounds 2] [options of serve.py]

All clients ask at once for sentences of the list as WAV, each again as soon as it has its answer.
"""

import http.client
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.synthesis.phrases import read_phrases
from scripts.benchmarks.table import Row, machine, markdown
from scripts.launch import ROOT

PERCENTILES = (50, 95, 99)
_WAV_HEADER = 44  # bytes
_PATIENCE = 600.0  # s for an answer


@dataclass(frozen=True)
class Answer:
    """What a text was answered with, and how long it took."""

    text: str
    status: int
    body: bytes  # 16-bit samples
    spoken: float  # s
    seconds: float
    first_byte: float  # s


def speak(host: str, text: str) -> Answer:
    """Ask the server at ``host`` for a text as WAV, whose samples are the voice's, and none are resampled."""
    start = time.perf_counter()
    with closing(http.client.HTTPConnection(host, timeout=_PATIENCE)) as connection:
        body = json.dumps({"input": text, "response_format": "wav"})
        connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        first = response.read(1)
        first_byte = time.perf_counter() - start
        sound = (first + response.read())[_WAV_HEADER:]
        spoken = len(sound) / 2 / int(response.getheader("X-Sampling-Rate", "0")) if response.status == 200 else 0.0
        return Answer(text, response.status, sound, spoken, time.perf_counter() - start, first_byte)


def ask_in_rounds(host: str, texts: Sequence[str], *, clients: int, rounds: int) -> tuple[list[Answer], float]:
    """The answers, and the seconds of all."""

    def ask(client: int) -> list[Answer]:
        return [speak(host, texts[(client + number) % len(texts)]) for number in range(rounds)]

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        answers = [answer for found in pool.map(ask, range(clients)) for answer in found]
    return answers, time.perf_counter() - start


def row_of(answers: Sequence[Answer], *, clients: int, seconds: float) -> Row:
    """The figures of answers that took ``seconds`` together."""
    spoken = sum(one.spoken for one in answers)
    row = {"clients": clients, "requests": len(answers), "requests/s": f"{len(answers) / seconds:.1f}"}
    row["x real time"] = f"{spoken / seconds:.1f}"
    times = {"latency": [one.seconds for one in answers], "first byte": [one.first_byte for one in answers]}
    for what, values in times.items():
        row |= {f"{what} p{share} (s)": f"{np.percentile(values, share):.2f}" for share in PERCENTILES}
    return {name: str(value) for name, value in row.items()} | {"lost": str(sum(one.status != 200 for one in answers))}


@contextmanager
def server_with(options: Sequence[str], *, clients: int) -> Iterator[str]:
    """Host and port of a server of its own with such options; raises InputError where it does not start."""
    words = [sys.executable, str(ROOT / "serve.py"), "--port", "0", "--max-queue", str(2 * clients), *options]
    words += ["--deadline", str(_PATIENCE), "--log-format", "off"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            lines = iter(server.stdout.readline, "")
            found = next((line for line in lines if line.startswith("the studio is at ")), None)
            if found is None:
                raise InputError(f"the server did not start: {shlex.join(words)}")
            yield found.split()[4].removeprefix("http://").rstrip("/")
        finally:
            server.terminate()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 1 where an answer was lost."""
    about = f"{(__doc__ or '').splitlines()[0]} Other options go to serve.py."
    parser = ArgumentParser(prog="serving", description=about)
    parser.add_argument("--clients", type=int, default=200, help="that ask at once")
    parser.add_argument("--rounds", type=int, default=2, help="requests of each client, one after the other")
    parser.add_argument("--phrases", type=Path, default=ROOT / "phrases/devset10.tsv", help="list to speak")
    args, options = parser.parse_known_args(argv)
    texts = [phrase.text for phrase in read_phrases(args.phrases) if phrase.text]
    with server_with(options, clients=args.clients) as host:
        answers, seconds = ask_in_rounds(host, texts, clients=args.clients, rounds=args.rounds)
    print(f"{machine(cuda='--cuda' in options)}: {shlex.join(options)}")
    print(*markdown([row_of(answers, clients=args.clients, seconds=seconds)]), sep="\n")
    return 1 if any(answer.status != 200 for answer in answers) else 0


if __name__ == "__main__":
    run(main)
