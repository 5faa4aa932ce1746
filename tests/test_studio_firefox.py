"""The studio in Firefox, driven through Marionette: it speaks, and what is changed with the keyboard is heard."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from limits import HANG_LIMIT
from singing_voice import singing_voice
from tiny_served import KEEP_ANSWERS, serving

from common.serving.app import Service
from common.serving.models import ServedModels
from common.serving.options import Limits

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
UP = "\ue013"  # WebDriver's codes of keys
SPEAK = "return document.querySelector('#status').textContent.startsWith('Spoken') && answers.length === arguments[0]"
KEEP_ERRORS = """
window.errors = [];
addEventListener('error', (event) => errors.push(event.message));
addEventListener('unhandledrejection', (event) => errors.push(String(event.reason)));"""


class Firefox:
    """A session of Marionette, Firefox's own protocol: lines of JSON, preceded by their length in bytes."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=HANG_LIMIT)
        self._file, self._number = self._socket.makefile("rb"), 0
        self._read()  # a greeting
        self.send("NewSession")

    def _read(self) -> Any:
        n_bytes = b"".join(iter(lambda: self._file.read(1), b":"))
        return json.loads(self._file.read(int(n_bytes)))

    def send(self, command: str, **parameters: Any) -> Any:
        """Return the answer to a command of WebDriver."""
        self._number += 1
        message = json.dumps([0, self._number, f"WebDriver:{command}", parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, answer = self._read()
        assert error is None, error
        return answer.get("value") if isinstance(answer, dict) else answer

    def run(self, script: str, *values: Any) -> Any:
        """Return what a script returns."""
        return self.send("ExecuteScript", script=script, args=values, sandbox=None)

    def wait_for(self, script: str, *values: Any) -> None:
        """Wait until a script returns true."""
        end = time.monotonic() + HANG_LIMIT
        while not self.run(script, *values):
            assert time.monotonic() < end, self.run("return document.body.innerText")
            time.sleep(0.05)

    def element(self, selector: str) -> str:
        """Return the identifier of the first element."""
        (identifier,) = self.send("FindElement", using="css selector", value=selector).values()
        return identifier


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    if FIREFOX is None:
        pytest.skip("Firefox is not installed (on Debian: apt-get install firefox-esr)")
    (tmp_path / "user.js").write_text('user_pref("marionette.port", 0);')
    command = [FIREFOX, "--headless", "--no-remote", "--marionette", "--profile", tmp_path]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env={"HOME": str(tmp_path)}) as process:
        chosen, end = tmp_path / "MarionetteActivePort", time.monotonic() + HANG_LIMIT
        while not (chosen.is_file() and chosen.read_text()):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        yield Firefox(int(chosen.read_text()))
        process.terminate()


def _first_part(events: str) -> dict[str, Any]:
    """What an answer says of its first utterance."""
    return json.loads(events.partition("\n")[0].removeprefix("data: "))


def test_a_text_is_spoken_in_firefox_and_a_changed_pitch_is_heard(firefox: Firefox):
    with serving(Service(ServedModels(singing_voice(), "singer"), limits=Limits(deadline=HANG_LIMIT))) as address:
        firefox.send("Navigate", url=address)
        firefox.wait_for("return document.querySelectorAll('#voice option').length === 1")
        firefox.run(KEEP_ERRORS + KEEP_ANSWERS)
        text = firefox.element("#text")
        firefox.send("ElementClear", id=text)
        firefox.send("ElementSendKeys", id=text, text="Hello there.")
        firefox.send("ElementClick", id=firefox.element("#speak"))
        firefox.wait_for(SPEAK, 1)
        words = firefox.run("return [...document.querySelectorAll('.word')].map((one) => one.innerText)")
        assert words == ["Hello", "there"]
        firefox.send("ElementSendKeys", id=firefox.element("[aria-label='pitch of HH in Hello']"), text=UP)
        firefox.wait_for("return document.querySelector('#play').innerText === 'Listen again'")
        firefox.send("ElementClick", id=firefox.element("#play"))
        firefox.wait_for(SPEAK, 2)
        first, second = (
            [one["pitch"] for word in prosody["utterances"][0]["words"] for one in word["symbols"]]
            for prosody in (_first_part(answer)["prosody"] for answer in firefox.run("return Promise.all(answers)"))
        )
        assert second[0] == pytest.approx(first[0] * 2 ** (1 / 12), abs=0.01) and second[1:] == first[1:]
        assert firefox.run("return document.querySelector('#play').innerText") in ("Pause", "Play")
        assert firefox.run("return errors") == []
