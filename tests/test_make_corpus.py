"""A corpus that a server reads: what is asked, checked, left out, resumed, and said of it."""

import io
import json
import os
import signal
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import soundfile
from kills import Forked, finish
from limits import HANG_LIMIT, wait_until
from tiny_served import make_checkpoints, served_models, serving

from common.errors import InputError, OptionError
from common.serving.app import Service
from common.serving.options import Limits
from scripts.datasets import speech_server
from scripts.datasets.make_corpus import main
from scripts.datasets.make_filelists import read_metadata

KEY = "sk-secret"
TEXTS = {f"t{number}": f"This is the sentence of number {number}." for number in range(12)}


def speech(text: str, *, seconds: float = 0.0, fade: float = 0.3, level: float = 0.3) -> bytes:
    """A WAV of a tone, as long as the text takes."""
    times = np.arange(round((seconds or 0.07 * len(text)) * 24000)) / 24000
    wave = level * np.sin(700 * times) * np.minimum(1, (times[-1] - times) / fade if fade else 1)
    soundfile.write(file := io.BytesIO(), wave, 24000, format="WAV", subtype="PCM_16")
    return file.getvalue()


@contextmanager
def server(answer):
    """The address of a server that answers with what ``answer`` makes of a request, and the requests."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))) | {"path": self.path})
            asked[-1]["key"] = self.headers.get("Authorization")
            status, sound, *length = answer(asked[-1])
            self.send_response(status)
            self.send_header("Content-Length", str(*length or [len(sound)]))
            self.end_headers()
            self.wfile.write(sound)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}", asked
        http.shutdown()


@pytest.fixture
def words(tmp_path, monkeypatch) -> list[str]:
    monkeypatch.setattr(speech_server, "_FIRST_PAUSE", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "texts.txt").write_text("".join(f"{name}|{text}\n" for name, text in TEXTS.items()), "utf-8")
    return [str(tmp_path / "texts.txt"), "-o", str(tmp_path / "corpus"), "--voice", "ann", "--from-server"]


def test_our_own_server_reads_a_corpus_of_two_voices(tmp_path, words):
    make_checkpoints(tmp_path)
    with serving(Service(served_models(tmp_path), limits=Limits())) as address:
        main([*words, address, "--voice", "ann", "bob", "--license", "CC0-1.0", "--sampling-rate", "16000"])
    folder = tmp_path / "corpus"
    card = json.loads((folder / "corpus.json").read_text("utf-8"))
    assert card.items() >= {"model": "tts-1", "voices": ["ann", "bob"], "license": "CC0-1.0"}.items()
    assert card["server"] == f"{address}/v1" and KEY not in str(card)
    assert (folder / "speakers.txt").read_text("utf-8") == "ann\nbob\n"
    clips = read_metadata(folder / "metadata.csv")
    assert clips.keys() | card["left_out"].keys() == {f"{voice}/{one}" for voice in ("ann", "bob") for one in TEXTS}
    assert card["clips"] == len(clips)
    for clip, text in clips.items():
        assert text == TEXTS[clip[4:]] and soundfile.info(folder / f"wavs/{clip}.wav").samplerate == 16000


def test_requests_that_fail_are_made_again(words, tmp_path):
    failures = [(429, b"{}"), (503, b"busy"), (200, speech("cut")[:999], 99999)]

    def answer(request):
        return failures.pop() if failures else (200, speech(request["input"]))

    with server(answer) as (address, asked):
        assert main([*words, f"{address}/v1/", "--model", "one"]) == 0
    assert read_metadata(tmp_path / "corpus/metadata.csv") == TEXTS
    assert len(asked) == len(TEXTS) + 3
    expected = {"model": "one", "voice": "ann", "response_format": "wav", "path": "/v1/audio/speech"}
    assert all(one.items() >= (expected | {"key": f"Bearer {KEY}"}).items() for one in asked)


BAD = {
    "t1": ("not a sound file", (200, b"")),
    "t2": ("silent", (200, speech("", seconds=2, level=0))),
    "t3": ("cut off", (200, speech("", seconds=2, fade=0))),
    "t4": ("fast", (200, speech("", seconds=0.7))),
    "t5": ("slow", (200, speech("", seconds=9))),
    "t6": ("no such word", (422, b'{"error": {"message": "no such word"}}')),
    "t7": ("500", (500, b"<html>")),
    "t8": ("sound", (200, b'{"audio": "?"}')),
}


def test_what_is_no_reading_of_its_text_is_named_and_left_out(words, tmp_path, capsys):
    with server(lambda one: BAD.get("t" + one["input"].split()[-1][:-1], ("", (200, speech(one["input"]))))[1]) as it:
        assert main([*words, it[0], "--retries", "1"]) == 0
        good = [name for name in TEXTS if name not in BAD]
        assert list(read_metadata(tmp_path / "corpus/metadata.csv")) == good
        left_out, out = (
            json.loads((tmp_path / "corpus/corpus.json").read_text("utf-8"))["left_out"],
            capsys.readouterr(),
        )
        for name, (reason, _) in BAD.items():
            assert reason in left_out[name] and name in out.out
        it[1].clear()
        main([*words, it[0], "--retries", "0"])
        assert {f"t{one['input'].split()[-1][:-1]}" for one in it[1]} == set(BAD)  # kept clips are not asked for


@pytest.mark.parametrize(("status", "said"), [(401, f"bad key {KEY}"), (404, "no model"), (400, "no voice"), (302, "")])
def test_a_server_that_refuses_everything_is_asked_once(words, capsys, status, said):
    with (
        server(lambda _: (status, json.dumps({"error": {"message": said}}).encode())) as (address, asked),
        pytest.raises(InputError, match=str(status)) as raised,
    ):
        main([*words, address])
    assert len(asked) == 1 and KEY not in str(raised.value) + capsys.readouterr().err


@pytest.mark.parametrize("address", ["ftp://host", "host:80", "http://me:word@host", "https://host/v1?key=word"])
def test_an_address_that_is_none_or_holds_secrets_is_refused_unseen(words, capsys, address):
    with pytest.raises(SystemExit, match="2"):
        main([*words, address])
    assert "word@" not in capsys.readouterr().err and "=word" not in capsys.readouterr().err


def test_a_killed_run_is_resumed_and_another_reader_refused(words, tmp_path):
    killed = threading.Event()

    def answer(request):
        if len(asked) > 4:
            killed.wait(HANG_LIMIT)
        return 200, speech(request["input"])

    with server(answer) as (address, asked):
        table = tmp_path / "corpus/metadata.csv"
        process = Forked("scripts.datasets.make_corpus", *words, address, "--requests", "1")
        wait_until(lambda: table.is_file() and table.read_text().count("\n") >= 3)
        os.kill(process.pid, signal.SIGKILL)
        finish(process)
        killed.set()
        with table.open("a") as file:
            file.write("t11|This is")  # as a kill may leave it
        finished = table.read_text().count("\n")
        asked.clear()
        assert main([*words, address]) == 0 and len(asked) == len(TEXTS) - finished
        assert read_metadata(table) == TEXTS
        with pytest.raises(OptionError, match="corpus"):
            main([*words, address, "--voice", "bob"])
