"""eSpeak NG's library through ctypes: samples with the events of their phones, and phones of a text.

The library and its data come with the PyPI package ``espeakng-loader``. Samples depend on the text and the settings
alone: the voice's flutter and roughness, whose phases continue from one utterance to the next, are off.
"""

import ctypes
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import InputError

# Constants of eSpeak NG's speak_lib.h.
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _PHONEME_IPA, _DONT_EXIT = 0x1, 0x2, 0x8000
_UTF8, _END_PAUSE = 0x1, 0x1000
_RATE, _PITCH, _RANGE = 1, 3, 4
_EVENT_WORD, _EVENT_PHONEME = 1, 7
_UTF8_TEXT, _NAMES_IPA = 0x1, 0x2  # of espeak_TextToPhonemes
_BETWEEN = "|"  # between the names of phones


@dataclass(frozen=True)
class Event:
    """One of eSpeak's events: a word begins, or a phone (an empty name is a pause)."""

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


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _CEvent(ctypes.Structure):
    """espeak_EVENT."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # characters, from 1
        ("length", ctypes.c_int),  # characters
        ("audio_position", ctypes.c_int),  # ms
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


_SynthCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_CEvent))


class Library:
    """The library with the samples and events of the utterance it is making.

    It keeps its state in the process, so there is one object a process: `library`.
    """

    def __init__(self) -> None:
        try:
            import espeakng_loader
        except ImportError as error:
            message = "the embedded speaker needs the package espeakng-loader: pip install espeakng-loader"
            raise InputError(message) from error
        try:
            self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        except OSError as error:
            raise InputError(f"eSpeak NG's library cannot be loaded on this machine: {error}") from error
        self._data = Path(espeakng_loader.get_data_path())
        flags = _PHONEME_EVENTS | _PHONEME_IPA | _DONT_EXIT
        self.sampling_rate: int = self._library.espeak_Initialize(_SYNCHRONOUS, 0, str(self._data).encode(), flags)
        if self.sampling_rate <= 0:
            raise InputError(f"eSpeak NG cannot read its data in {self._data}; reinstall espeakng-loader")
        self._lock = threading.Lock()
        self._settings: tuple[str, int, int, int] | None = None
        self._chunks: list[np.ndarray] = []
        self._events: list[Event] = []
        self._callback = _SynthCallback(self._collect)  # the library keeps only a pointer to it
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p

    @contextmanager
    def use(
        self, voice: str, words_per_minute: int = 150, pitch: int = 50, pitch_range: int = 50
    ) -> Iterator["Library"]:
        """The library with these settings, for one thread at a time; ``voice`` is a language tag.

        Raises InputError if there is no such voice, naming similar ones.
        """
        with self._lock:
            settings = (voice, words_per_minute, pitch, pitch_range)
            if settings != self._settings:
                self._settings = None
                self._set(*settings)
                self._settings = settings
            yield self

    def _set(self, voice: str, words_per_minute: int, pitch: int, pitch_range: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "steady"
            path.write_text(self._voice_file(voice) + "\nflutter 0\nroughness 0\n", encoding="utf-8")
            status = self._library.espeak_SetVoiceByFile(str(path).encode())
        if status != 0:
            raise InputError(f"eSpeak NG cannot use its voice {voice!r} (status {status})")
        for parameter, value in ((_RATE, words_per_minute), (_PITCH, pitch), (_RANGE, pitch_range)):
            self._library.espeak_SetParameter(parameter, value, 0)

    def say(self, text: str) -> tuple[np.ndarray, list[Event]]:
        """Samples (T,) int16 and events of ``text``; a text ends where a zero character stands, so none may."""
        encoded = text.replace("\0", " ").encode("utf-8")
        self._chunks, self._events = [], []
        status = self._library.espeak_Synth(
            encoded, ctypes.c_size_t(len(encoded) + 1), 0, 1, 0, _UTF8 | _END_PAUSE, None, None
        )
        self._library.espeak_Synchronize()
        if status != 0:
            raise InputError(f"eSpeak NG cannot speak {text!r} (status {status})")
        return np.concatenate(self._chunks or [np.zeros(0, dtype=np.int16)]), self._events

    def read(self, text: str) -> Iterator[Clause]:
        """The clauses of ``text``; the library moves a pointer to where the next one begins, one letter ahead."""
        # Without the space, "Wait.." leaves a "dot" that the library says at the beginning of the next text.
        encoded = (text.replace("\0", " ") + " ").encode("utf-8")
        buffer = ctypes.create_string_buffer(encoded)
        start = ctypes.addressof(buffer)
        pointer = ctypes.c_void_p(start)
        done = 0
        while pointer.value:
            names = self._library.espeak_TextToPhonemes(
                ctypes.byref(pointer), _UTF8_TEXT, _NAMES_IPA | ord(_BETWEEN) << 8
            )
            end = pointer.value - start if pointer.value else len(encoded)
            words = (names or b"").decode("utf-8", errors="ignore").split()
            clause = encoded[done:end].decode("utf-8", errors="ignore")
            yield Clause(clause, tuple(tuple(word.split(_BETWEEN)) for word in words))
            done = end

    def _collect(self, wave: Any, n_samples: int, events: Any) -> int:
        if wave and n_samples > 0:
            self._chunks.append(np.ctypeslib.as_array(wave, (n_samples,)).copy())
        i = 0
        while (event := events[i]).type != 0:
            if event.type == _EVENT_WORD:
                self._events.append(Event(event.sample, position=event.text_position - 1))
            elif event.type == _EVENT_PHONEME:
                # Eight bytes at most, with no zero at the end when all are used, and a letter may be cut off.
                name = bytes(event.id.string).decode("utf-8", errors="ignore")
                self._events.append(Event(event.sample, name))
            i += 1
        return 0

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
_loaded: list[Library] = []


def library() -> Library:
    """The library, loaded at the first call of any thread; raises InputError if it is missing or cannot be loaded."""
    with _loading:
        if not _loaded:
            _loaded.append(Library())
        return _loaded[0]
