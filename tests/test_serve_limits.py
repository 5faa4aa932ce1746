"""What bounds a server's work: places, deadline, hang-ups, bodies, the key, stopping; and whose turn it is."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import tiny_served
import torch
from limits import HANG_LIMIT, wait_until
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from shell import ROOT
from starlette.datastructures import Headers
from torch import Tensor

import serve
from common.errors import InputError, OptionError
from common.serving import gate, server
from common.serving.app import Service
from common.serving.errors import ApiError
from common.serving.gate import Sites
from common.serving.options import Limits


class HeldVocoder:
    """Makes each piece of a frame, when it is let to."""

    name, max_batch, path = "held", 1, None

    def __init__(self, audio) -> None:
        self.audio = audio
        self.turns = threading.Semaphore(0)
        self.made = 0

    def let(self, n: int = 1_000_000) -> None:
        for _ in range(min(n, 10_000)):
            self.turns.release()

    def stream(self, mel: Tensor) -> Iterator[Tensor]:
        for _ in range(mel.size(1)):
            assert self.turns.acquire(timeout=HANG_LIMIT)
            self.made += 1
            yield torch.zeros(self.audio.hop_length)


@pytest.fixture(scope="module")
def models_folder(make_once) -> Path:
    return make_once("served_alone", tiny_served.make_checkpoints)


@pytest.fixture(scope="module")
def models(models_folder: Path):
    return tiny_served.served_models(models_folder)


@contextlib.contextmanager
def held(models, *, api_key: str | None = None, sites: Sites | None = None, **limits) -> Iterator[SimpleNamespace]:
    """A server whose vocoder waits to be let, a client, and a pool of threads to ask from."""
    vocoder = HeldVocoder(models.voice.audio)
    synthesizer = replace(models.voice.synthesizer, vocoder=vocoder)
    models = replace(models, voice=replace(models.voice, synthesizer=synthesizer))
    service = Service(models, limits=Limits(**{"deadline": HANG_LIMIT} | limits), api_key=api_key, sites=sites)
    with (
        tiny_served.serving(service) as address,
        httpx.Client(base_url=address, timeout=HANG_LIMIT) as http,
        ThreadPoolExecutor(8) as pool,
    ):
        try:
            yield SimpleNamespace(address=address, http=http, pool=pool, vocoder=vocoder, gate=service.gate)
        finally:
            vocoder.let()


def ask(one: SimpleNamespace, text: str = "go on") -> httpx.Response:
    return one.http.post("/v1/audio/speech", json={"input": text, "response_format": "wav"})


def code_of(response: httpx.Response) -> str:
    return response.json()["error"]["code"]


def statuses(gate) -> dict[str, float]:
    """Requests to speak by their status."""
    families = text_string_to_metric_families(generate_latest(gate.metrics.registry).decode())
    rows = [row for family in families for row in family.samples if row.name == "speech_requests_total"]
    return {row.labels["status"]: row.value for row in rows if row.labels["endpoint"] == "/v1/audio/speech"}


def test_one_request_more_than_the_limit_is_refused_and_none_of_the_others_is_lost(models):
    with held(models, max_queue=3) as one:
        waiting = [one.pool.submit(ask, one) for _ in range(3)]
        wait_until(lambda: one.gate.active == 3)
        more = ask(one)
        assert (more.status_code, code_of(more)) == (503, "queue_full")
        assert int(more.headers["Retry-After"]) > 0
        one.vocoder.let()
        answers = [future.result(HANG_LIMIT) for future in waiting]
        assert [answer.status_code for answer in answers] == [200] * 3
        assert len({answer.content for answer in answers}) == 1
        wait_until(lambda: one.gate.active == 0)
        assert ask(one).status_code == 200
        wait_until(lambda: statuses(one.gate) == {"200": 4, "503": 1})


def test_a_request_out_of_time_is_answered_so_and_its_work_stops(models):
    with held(models, deadline=0.3) as one:
        late = ask(one, "a longer sentence")
        assert (late.status_code, code_of(late)) == (504, "deadline")
        one.gate._limits = Limits(deadline=HANG_LIMIT)
        one.vocoder.let()
        assert ask(one).status_code == 200
        made = one.vocoder.made
        assert ask(one).status_code == 200
        assert made - 1 <= one.vocoder.made - made  # of the late one at most the piece that had begun


def test_pieces_are_made_in_turns_so_that_a_long_text_does_not_hold_up_a_short_one(models):
    with held(models) as one:
        long = one.pool.submit(ask, one, "words, words, " * 20)
        wait_until(lambda: one.gate.active == 1)
        one.vocoder.let(2)
        wait_until(lambda: one.vocoder.made == 2)
        short = one.pool.submit(ask, one)
        wait_until(lambda: one.gate.active == 2)
        while not short.done():
            one.vocoder.let(1)
            wait_until(lambda: short.done() or not one.vocoder.turns._value)
        assert short.result().status_code == 200 and not long.done() and one.vocoder.made < 200


LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d POST /v1/audio/speech 200, 56 characters, \d+\.\d\d s of sound, "
    r"first byte after \d+ ms, \d+ ms"
)
HEAD = b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 55\r\n\r\n"
BODY = b'{"input": "a longer sentence","response_format": "wav"}'


@pytest.mark.parametrize("moment", ["while it sends", "while it waits", "while it hears"])
def test_a_client_that_hangs_up_ends_its_work_and_frees_its_place(models, moment: str):
    with held(models) as one:
        n_heard = 2 if moment == "while it hears" else 0
        one.vocoder.let(n_heard)
        host, port = one.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(HEAD + (BODY[:1] if moment == "while it sends" else BODY))
            wait_until(lambda: moment == "while it sends" or one.gate.active == 1)
            received = b""
            while n_heard and len(received) < 700:  # the head, the header of the WAV and a frame
                received += connection.recv(4096)
            wait_until(lambda: one.vocoder.made == n_heard)
        wait_until(lambda: one.gate.active == 0 and statuses(one.gate) == {"499": 1})
        one.vocoder.let()
        assert ask(one).status_code == 200
        made = one.vocoder.made - n_heard
        assert ask(one).status_code == 200
        # Of the first at most one further piece was made, which had begun.
        assert made - 1 <= one.vocoder.made - n_heard - made


@contextlib.contextmanager
def connections(one: SimpleNamespace, data: bytes, *, n: int = 1) -> Iterator[list[socket.socket]]:
    """Connections over which the same bytes were sent."""
    host, port = one.address.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((host, int(port)), HANG_LIMIT)) for _ in range(n)]
        for connection in opened:
            connection.sendall(data)
        yield opened


def test_clients_that_hold_back_their_bodies_have_no_place_and_do_not_wait_for_ever(models, monkeypatch):
    with held(models, max_queue=3) as one:
        one.vocoder.let()
        with connections(one, HEAD + BODY[:1], n=6):
            assert ask(one).status_code == 200
        wait_until(lambda: statuses(one.gate) == {"200": 1, "499": 6})
        monkeypatch.setattr(gate, "_STALLED", 0.2)
        with connections(one, HEAD + BODY[:1]) as (connection,):
            assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "])
def test_a_connection_without_a_whole_request_is_closed(models, sent: bytes, monkeypatch):
    monkeypatch.setattr(server, "_HEAD", 0.3)
    with held(models) as one:
        whole = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
        for before in (b"", whole):
            with connections(one, before + sent) as (connection,), contextlib.suppress(ConnectionResetError):
                data = b""
                while received := connection.recv(4096):
                    data += received
                assert data.startswith(b"HTTP/1.1 200 OK" if before else b"") and (before or not data)
        one.vocoder.let(1)
        timers, close = [], server._Protocol._close_unless_asked
        monkeypatch.setattr(server._Protocol, "_close_unless_asked", lambda self: timers.append(close(self)))
        with connections(one, HEAD + BODY) as (connection,):  # an answer may take longer
            wait_until(lambda: one.vocoder.made == 1 and timers)
            one.vocoder.let()
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


PAGE = "https://app.example.com"
SITES = {  # headers of a request, what may be allowed, the error's code or ""
    "an address": ({"Host": "192.168.1.5:8080"}, (), ""),
    "an address of IPv6": ({"Host": "[fe80::1]:8080"}, (), ""),
    "a container": ({"Host": "speech_server:8080"}, (), ""),
    "a machine of the LAN": ({"Host": "nas.local"}, (), ""),
    "its host name": ({"Host": f"{socket.gethostname()}:8080"}, (), ""),
    "the host that it listens on": ({"Host": "speech.example.org"}, (), ""),
    "DNS rebinding": ({"Host": "evil.com:8080", "Origin": "http://evil.com:8080"}, (), "wrong_host"),
    "DNS rebinding by an address in a name": ({"Host": "127.0.0.1.nip.io"}, (), "wrong_host"),
    "its own page": ({"Host": "localhost:8080", "Origin": "http://localhost:8080"}, (), ""),
    "its page behind a proxy": ({"Host": "127.0.0.1", "Origin": PAGE, "Sec-Fetch-Site": "same-origin"}, (), ""),
    "a page of another port": ({"Host": "localhost:8080", "Origin": "http://localhost:3000"}, (), "cross_site"),
    "a page of a file": ({"Host": "localhost:8080", "Origin": "null"}, (), "cross_site"),
    "another than the allowed one": ({"Host": "localhost", "Origin": PAGE + ".evil.com"}, (PAGE,), "cross_site"),
    "a proxy's name": ({"Host": "app.example.com", "Origin": PAGE}, (PAGE,), ""),
    "any": ({"Host": "evil.com", "Origin": "http://evil.com"}, ("*",), ""),
}


@pytest.mark.parametrize("case", SITES)
def test_pages_of_other_sites_are_refused_unless_their_origin_is_allowed(case: str):
    headers, allowed, code = SITES[case]
    sites, found = Sites(allowed, host="speech.example.org"), ""
    try:
        sites.check(Headers(headers))
    except ApiError as error:
        assert error.status_code == 403
        found = error.code
    assert found == code


def test_an_allowed_page_may_ask_and_read_answers_and_a_key_lets_in_by_any_name(models):
    with held(models, api_key="k", sites=Sites((PAGE,))) as one:
        key, other = {"Authorization": "Bearer k"}, {"Host": "speech.example.org", "Origin": "http://other.org"}
        assert one.http.get("/v1/models", headers=key | other).status_code == 200
        assert one.http.get("/v1/models", headers=other).status_code == 401
        asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-a"}
        preflight = one.http.options("/v1/audio/speech", headers=asked)
        assert preflight.status_code == 200 and preflight.headers["Access-Control-Allow-Headers"] == "x-a"
        assert one.http.get("/v1/models", headers={"Origin": PAGE}).headers["Access-Control-Allow-Origin"] == PAGE
    with held(models) as one:
        assert one.http.get("/v1/models", headers={"Host": "evil.com"}).status_code == 403


@pytest.mark.parametrize("word", ["--allow-origin https://a.b/c", "--allow-origin a", "--wyoming tcp://a:99999"])
def test_a_wrong_origin_or_address_is_one_line_about_the_option(word: str, capsys):
    with pytest.raises(SystemExit, match="2"):
        serve.main(word.split())
    line = capsys.readouterr().err.splitlines()[-1]
    assert all(part in line for part in (*word.split(), "expected"))


def test_bodies_beyond_the_limit_are_refused_whether_or_not_they_announce_their_size(models):
    with held(models, max_body=1000) as one:
        large = b'{"input": "' + b"a" * 100_000 + b'"}'
        headers = {"Content-Type": "application/json"}
        for body in (large, iter([large[:600], large[600:]])):
            answer = one.http.post("/v1/audio/speech", content=body, headers=headers)
            assert (answer.status_code, code_of(answer)) == (413, "body_too_large")
            assert "1000 bytes" in answer.json()["error"]["message"]
        one.vocoder.let()
        assert ask(one).status_code == 200


def test_the_key_opens_everything_and_only_signs_of_life_and_pages_need_none(models):
    with held(models, api_key="s3cret-ä") as one:
        for path in ("/healthz", "/readyz", "/", "/openapi.json"):
            assert one.http.get(path).status_code == 200, path
        for path in ("/v1/models", "/v1/voices", "/v1/nothing", "/metrics"):
            answer = one.http.get(path)
            assert (answer.status_code, code_of(answer)) == (401, "invalid_api_key"), path
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert ask(one).status_code == 401
        for wrong in ("Bearer s3cret", "Bearer", "Basic s3cret-ä", "s3cret-ä", "Bearer \xff\xfe"):
            headers = {"Authorization": wrong.encode("utf-8" if "ä" in wrong else "latin-1")}
            assert one.http.get("/v1/models", headers=headers).status_code == 401, wrong
        one.http.headers = httpx.Headers([(b"Authorization", "Bearer s3cret-ä".encode())])
        one.vocoder.let()
        assert ask(one).status_code == 200
        assert one.http.get("/metrics").status_code == 200


def test_a_fault_of_ours_is_an_error_without_details_and_the_server_goes_on(models, monkeypatch, caplog):
    with held(models) as one:
        one.vocoder.let()
        with monkeypatch.context() as patch:
            patch.setattr("common.serving.speaking.plan", lambda *_, **__: 1 / 0)
            answer = ask(one)
        assert answer.status_code == 500
        assert "ZeroDivisionError" not in answer.text and "internal" in answer.json()["error"]["message"]
        wait_until(lambda: "ZeroDivisionError" in caplog.text)
        assert ask(one).status_code == 200


def test_sigterm_finishes_what_is_spoken_and_ends_with_status_0(models_folder: Path):
    # Griffin-Lim takes its time for each sentence, so that the signal comes amid them.
    options = ["--griffin-lim-iters", "15", "--port", "0", "--deadline", str(HANG_LIMIT)]
    words = [sys.executable, str(ROOT / "serve.py"), "--fastpitch", str(models_folder / "voice.pt"), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, **pipes, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        assert process.stdout.readline().startswith("no vocoder checkpoint is given")
        line = process.stdout.readline()
        assert line.startswith("the studio is at http://127.0.0.1:"), process.stderr.read()
        address, body = line.split()[4] + "v1/audio/speech", {"input": "go on. " * 8, "response_format": "pcm"}
        whole = httpx.post(address, json=body, timeout=HANG_LIMIT).content
        with httpx.stream("POST", address, json=body, timeout=HANG_LIMIT) as answer:
            pieces = answer.iter_raw()
            sound = next(pieces)
            process.send_signal(signal.SIGTERM)
            assert sound + b"".join(pieces) == whole
        assert process.wait(HANG_LIMIT) == 0
        lines = process.stderr.read().splitlines()
        assert len(lines) == 2 and all(LINE.fullmatch(line) for line in lines), lines
    finally:
        process.kill()
        process.wait()


def test_an_empty_key_ends_before_a_model_is_loaded(monkeypatch):
    monkeypatch.setenv("SPEECH_API_KEY", "")
    with pytest.raises(OptionError, match="SPEECH_API_KEY: the environment variable is empty"):
        serve.main(["--fastpitch", "a", "--port", "0"])


@pytest.mark.parametrize("options", ["--host 127.0.0.1 --port {}", "--port 0 --wyoming tcp://127.0.0.1:{}"])
def test_an_address_that_is_taken_is_named(options: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = options.format(taken.getsockname()[1])
        with pytest.raises(InputError, match=f"{words.removeprefix('--port 0 ')}: Address already in use"):
            serve.main(["--fastpitch", "a", *words.split()])
