"""Run eSpeak NG's library in a separate process: ``python -I espeak_process.py LIBRARY DATA``; it needs no other file.

The first line on standard output is the sampling rate. Then each line on standard input is a JSON request,
``[function, text, voice, words_per_minute, pitch]``, which is answered by a line of JSON. Samples depend only on
these: the voice's flutter and roughness, whose phases continue from one utterance to the next, are off.
"""

import base64
import ctypes
import json
import os
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Constants of eSpeak NG's speak_lib.h.
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _PHONEME_IPA, _DONT_EXIT = 0x1, 0x2, 0x8000
_UTF8, _PHONEMES, _END_PAUSE = 0x1, 0x100, 0x1000
_RATE, _PITCH = 1, 3
_EVENT_WORD, _EVENT_PHONEME = 1, 7
_UTF8_TEXT, _NAMES_IPA = 0x1, 0x2  # of espeak_TextToPhonemes
_BETWEEN = "|"  # between the names of phones

_CPU_LIMIT = 60  # s of CPU time per request; a text takes milliseconds


def voice_definitions(data: Path) -> Iterator[tuple[str, list[str], str]]:
    """Yield the name of each voice's file, its language tags, and its contents; names and tags are lowercase."""
    for path in sorted(path for path in (data / "lang").rglob("*") if path.is_file()):
        definition = path.read_text(encoding="utf-8")
        tags = [path.name, *re.findall(r"^language\s+(\S+)", definition, flags=re.MULTILINE)]
        yield path.name.lower(), list(map(str.lower, tags)), definition


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
        ("name", ctypes.c_char * 8),  # of a phone; has no final zero if all bytes are used, and a letter may be cut
    )


_SynthCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_CEvent))


class _Espeak:
    """The library, with the samples and phones of the current utterance."""

    def __init__(self, library: str, data: str) -> None:
        self._library = ctypes.CDLL(library)
        flags = _PHONEME_EVENTS | _PHONEME_IPA | _DONT_EXIT
        self._data = Path(data).absolute()
        # The library truncates long paths, and lowercases voice paths and cuts them at a "+", so it gets only names.
        os.chdir(self._data.parent)
        name = os.fsencode(self._data.name)
        self.sampling_rate: int = self._library.espeak_Initialize(_SYNCHRONOUS, 0, name, flags)
        self._callback = _SynthCallback(self._collect)  # the library keeps only a pointer to it
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._settings: tuple[Any, ...] | None = None
        self._samples: list[bytes] = []
        self._phones: list[tuple[int, str, int]] = []
        self._word = 0  # characters before it
        self._reads_phones = False

    def set(self, *settings: Any) -> None:
        """Set the voice (a language tag), words per minute and pitch; raises ValueError for an unknown voice."""
        if settings == self._settings:
            return
        voice, *parameters = settings
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "steady"
            path.write_text(self._definition(voice) + "\nflutter 0\nroughness 0\n", encoding="utf-8")
            path.with_name(self._data.name).symlink_to(self._data)  # with the language's dictionary
            os.chdir(folder)
            status = self._library.espeak_SetVoiceByFile(path.name.encode())
            os.chdir(self._data.parent)
            if status != 0:
                raise ValueError(f"eSpeak NG cannot use its voice {voice!r}; reinstall espeakng-loader")
        for parameter, value in zip((_RATE, _PITCH), parameters):
            self._library.espeak_SetParameter(parameter, value, 0)
        self._settings = settings

    def _definition(self, voice: str) -> str:
        """Return the contents of the file that defines a voice, by its language tag."""
        definitions: dict[str, str] = {}
        for _, tags, definition in voice_definitions(self._data):
            definitions = dict.fromkeys(tags, definition) | definitions
        if voice.lower() not in definitions:
            near = [tag for tag in sorted(definitions) if tag[:2] == voice.lower()[:2]]
            known = ", ".join(near or ["en-us", "de", "fr-fr", "..."])
            raise ValueError(f"eSpeak NG has no voice {voice[:20]!r}; it has {known}")
        return definitions[voice.lower()]

    def say(self, text: str) -> dict[str, Any]:
        """Synthesize a text: samples (T,) int16 in Base64, and phones with sample, name and position of the word."""
        encoded = _encoded(text)
        self._samples, self._phones, self._word = [], [], 0
        length = ctypes.c_size_t(len(encoded) + 1)
        self._library.espeak_Synth(encoded, length, 0, 1, 0, _UTF8 | _END_PAUSE, None, None)
        self._library.espeak_Synchronize()
        return {"phones": self._phones, "samples": base64.b64encode(b"".join(self._samples)).decode()}

    def read(self, text: str) -> dict[str, Any]:
        """Return a text's clauses with each word's phones; phones in the text are in double brackets."""
        if "[[" in text and not self._reads_phones:  # only speaking sets this switch
            self._library.espeak_Synth(b" ", ctypes.c_size_t(2), 0, 1, 0, _UTF8 | _PHONEMES, None, None)
            self._reads_phones = True
        # Without the space, "Wait.." leaves a "dot" that the library says at the beginning of the next text.
        encoded = _encoded(text + " ")
        buffer = ctypes.create_string_buffer(encoded)
        start = ctypes.addressof(buffer)
        pointer = ctypes.c_void_p(start)
        mode = _NAMES_IPA | ord(_BETWEEN) << 8
        clauses = []
        done = 0
        while pointer.value:
            names = self._library.espeak_TextToPhonemes(ctypes.byref(pointer), _UTF8_TEXT, mode)
            end = pointer.value - start if pointer.value else len(encoded)
            words = (names or b"").decode("utf-8", errors="ignore").split()
            clause = encoded[done:end].decode("utf-8", errors="ignore")
            clauses.append((clause, [word.split(_BETWEEN) for word in words]))
            done = end
        return {"clauses": clauses}

    def _collect(self, wave: Any, n_samples: int, events: Any) -> int:
        if wave and n_samples > 0:
            self._samples.append(ctypes.string_at(wave, n_samples * ctypes.sizeof(ctypes.c_short)))
        i = 0
        while (event := events[i]).type != 0:
            if event.type == _EVENT_WORD:
                self._word = event.text_position - 1
            elif event.type == _EVENT_PHONEME:
                self._phones.append((event.sample, event.name.decode("utf-8", errors="ignore"), self._word))
            i += 1
        return 0


def _encoded(text: str) -> bytes:
    """Encode text as UTF-8 without zeros, which would end it; lone surrogates become question marks."""
    return text.replace("\0", " ").encode("utf-8", errors="replace")


def main(library: str, data: str) -> None:
    """Answer requests until there are no more."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # sent to the process group; the command ends us
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for what the library prints
    espeak = _Espeak(library, data)
    print(espeak.sampling_rate, file=answers, flush=True)
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_LIMIT)  # its signal ends the process
        function, text, *settings = json.loads(line)
        try:
            espeak.set(*settings)
            answer = getattr(espeak, function)(text)
        except ValueError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
