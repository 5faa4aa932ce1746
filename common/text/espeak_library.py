"""eSpeak NG's library: samples with the events of their phones, and phones of a text.

The library and its data come with the PyPI package ``espeakng-loader``. It works in a process of its own
(`espeak_process.py`), since there are texts at which it crashes. Samples depend on the text and the settings alone: the
voice's flutter and roughness, whose phases continue from one utterance to the next, are off.
"""

import atexit
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import InputError, shown

_PROGRAM = Path(__file__).with_name("espeak_process.py")
Settings = tuple[str, int, int, int]  # a voice's language tag, words a minute, pitch and its range, 0 to 99


@dataclass(frozen=True)
class Event:
    """An event of eSpeak: a word begins, or a phone (an empty name is a pause)."""

    sample: int
    name: str | None = None  # None: a word
    position: int = 0  # of a word's first character in the text, from 0


@dataclass(frozen=True)
class Clause:
    """What eSpeak reads in one breath: its text, and each word's phones by their names, stress and length included.

    A phone without a name is a pause or a link to the next one.
    """

    text: str
    words: tuple[tuple[str, ...], ...]


class Library:
    """The library, for one thread at a time; `library` has one for each task of a process."""

    def __init__(self) -> None:
        try:
            import espeakng_loader
        except ImportError as error:
            message = "the embedded speaker needs the package espeakng-loader: pip install espeakng-loader"
            raise InputError(message) from error
        self._path = espeakng_loader.get_library_path()
        self._data = Path(espeakng_loader.get_data_path())
        self._lock = threading.Lock()
        self._settings: Settings | None = None
        self._process: subprocess.Popen[bytes] | None = None
        with self._lock:
            self.sampling_rate: int = self._start()

    def _start(self) -> int:
        """Start the library's process; its sampling rate in Hz."""
        command = [sys.executable, "-I", str(_PROGRAM), str(self._path), str(self._data)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._settings = None
        started = self._process.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
        if not started.rstrip().isdigit():
            raise InputError(f"eSpeak NG's library cannot be used ({self._path}); reinstall espeakng-loader")
        return int(started)

    def stop(self) -> None:
        """End the library's process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:  # closes its pipes and waits; it may have left a request unread
                pass

    def say(self, text: str, settings: Settings) -> tuple[np.ndarray, list[Event]]:
        """Samples (T,) int16 and events of ``text``; raises InputError as `read`."""
        answer, samples = self._answer("say", text, settings)
        return np.frombuffer(samples, dtype=np.int16), [Event(*event) for event in answer["events"]]

    def read(self, text: str, *, language: str) -> list[Clause]:
        """The clauses of ``text``.

        Raises InputError where the library crashes or does not end, and for a language that it lacks.
        """
        answer, _ = self._answer("read", text, (language, 150, 50, 50))
        return [Clause(clause, tuple(map(tuple, words))) for clause, words in answer["clauses"]]

    def _answer(self, function: str, text: str, settings: Settings) -> tuple[dict[str, Any], bytes]:
        """The answer about a text by a voice of these settings, and the samples with it, for one thread at a time."""
        with self._lock:
            if self._process is None:
                self._start()
            if settings != self._settings:
                self._settings = None
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "steady"
                    path.write_text(self._voice_file(settings[0]) + "\nflutter 0\nroughness 0\n", encoding="utf-8")
                    self._ask("set", str(path), *settings[1:])
                self._settings = settings
            return self._ask(function, text)

    def _ask(self, function: str, *arguments: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to a request, and the samples with it; raises InputError where there is none, or a refusal."""
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        requests, answers = self._process.stdin, self._process.stdout
        try:
            requests.write(json.dumps([function, *arguments]).encode() + b"\n")
            requests.flush()
            answer = json.loads(answers.readline())
            samples = answers.read(answer["n_bytes"])
        except BaseException as error:  # an interrupt too leaves an answer unread
            self.stop()
            if isinstance(error, BrokenPipeError | ValueError):  # no answer, or part of one
                text = shown(arguments[0])
                raise InputError(f"{text}: eSpeak NG crashes at this text; write it otherwise") from error
            raise
        if answer.get("status", 0) != 0:
            raise InputError(f"eSpeak NG cannot {function} {shown(arguments[0])} (status {answer['status']})")
        return answer, samples

    def _voice_file(self, voice: str) -> str:
        """The definition of the voice whose language tag is ``voice``."""
        definitions: dict[str, str] = {}
        for path in sorted(path for path in (self._data / "lang").rglob("*") if path.is_file()):
            definition = path.read_text(encoding="utf-8")
            for tag in (path.name, *re.findall(r"^language\s+(\S+)", definition, flags=re.MULTILINE)):
                definitions.setdefault(tag.lower(), definition)
        if voice.lower() not in definitions:
            near = [tag for tag in sorted(definitions) if tag.split("-")[0] == voice.lower().split("-")[0]]
            raise InputError(f"eSpeak NG has no voice {voice!r}; it has {', '.join(near or sorted(definitions))}")
        return definitions[voice.lower()]


_loading = threading.Lock()
_loaded: dict[tuple[int, str], Library] = {}  # by process, as what has forked starts its own, and by task


def library(task: str) -> Library:
    """The library to "say" or to "read" texts, as after some that are read another is not said as it is else.

    It is loaded at the first call of any thread; raises InputError if it is missing or cannot be loaded.
    """
    with _loading:
        key = (os.getpid(), task)
        if key not in _loaded:
            _loaded[key] = own = Library()
            atexit.register(lambda: own.stop() if os.getpid() == key[0] else None)
        return _loaded[key]
