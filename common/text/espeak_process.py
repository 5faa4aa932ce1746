"""eSpeak NG's library in a process of its own: there are texts at which it crashes, and that shall end no command.

    python -I espeak_process.py LIBRARY DATA

It is run by its path and needs no other file. The first line on standard output is the sampling rate. Then every line
on standard input is a request in JSON, a function's name and its arguments, and is answered by a line of JSON; samples
follow theirs as bytes. It ends when standard input does.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any

# Constants of eSpeak NG's speak_lib.h.
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _PHONEME_IPA, _DONT_EXIT = 0x1, 0x2, 0x8000
_UTF8, _END_PAUSE = 0x1, 0x1000
_RATE, _PITCH, _RANGE = 1, 3, 4
_EVENT_WORD, _EVENT_PHONEME = 1, 7
_UTF8_TEXT, _NAMES_IPA = 0x1, 0x2  # of espeak_TextToPhonemes
_BETWEEN = "|"  # between the names of phones

_LONGEST = 60  # s of the processor for a request; a text takes milliseconds


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
        ("name", ctypes.c_char * 8),  # of a phone; no zero at the end when all are used, and a letter may be cut off
    )


_SynthCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_CEvent))


class _Espeak:
    """The library, with the samples and events of the utterance that it is making."""

    def __init__(self, library: str, data: str) -> None:
        self._library = ctypes.CDLL(library)
        flags = _PHONEME_EVENTS | _PHONEME_IPA | _DONT_EXIT
        self.sampling_rate: int = self._library.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), flags)
        self._callback = _SynthCallback(self._collect)  # the library keeps only a pointer to it
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p

    def set(self, path: str, words_per_minute: int, pitch: int, pitch_range: int) -> dict[str, Any]:
        """Take the voice of a file, and how it speaks; the library's status, 0 if it can."""
        status = self._library.espeak_SetVoiceByFile(path.encode())
        for parameter, value in ((_RATE, words_per_minute), (_PITCH, pitch), (_RANGE, pitch_range)):
            self._library.espeak_SetParameter(parameter, value, 0)
        return {"status": status}

    def say(self, text: str) -> dict[str, Any]:
        """The status, samples (T,) int16 and events of a text: sample, name of a phone or None, a word's position."""
        encoded = _encoded(text)
        self._samples: list[bytes] = []
        self._events: list[tuple[int, str | None, int]] = []
        status = self._library.espeak_Synth(
            encoded, ctypes.c_size_t(len(encoded) + 1), 0, 1, 0, _UTF8 | _END_PAUSE, None, None
        )
        self._library.espeak_Synchronize()
        return {"status": status, "events": self._events, "samples": b"".join(self._samples)}

    def read(self, text: str) -> dict[str, Any]:
        """The clauses of a text with each word's phones; the library moves a pointer to where the next one begins."""
        # Without the space, "Wait.." leaves a "dot" that the library says at the beginning of the next text.
        encoded = _encoded(text + " ")
        buffer = ctypes.create_string_buffer(encoded)
        start = ctypes.addressof(buffer)
        pointer = ctypes.c_void_p(start)
        clauses = []
        done = 0
        while pointer.value:
            names = self._library.espeak_TextToPhonemes(
                ctypes.byref(pointer), _UTF8_TEXT, _NAMES_IPA | ord(_BETWEEN) << 8
            )
            end = pointer.value - start if pointer.value else len(encoded)
            words = (names or b"").decode("utf-8", errors="ignore").split()
            clauses.append(
                (encoded[done:end].decode("utf-8", errors="ignore"), [word.split(_BETWEEN) for word in words])
            )
            done = end
        return {"clauses": clauses}

    def _collect(self, wave: Any, n_samples: int, events: Any) -> int:
        if wave and n_samples > 0:
            self._samples.append(ctypes.string_at(wave, n_samples * ctypes.sizeof(ctypes.c_short)))
        i = 0
        while (event := events[i]).type != 0:
            if event.type == _EVENT_WORD:
                self._events.append((event.sample, None, event.text_position - 1))
            elif event.type == _EVENT_PHONEME:
                self._events.append((event.sample, event.name.decode("utf-8", errors="ignore"), 0))
            i += 1
        return 0


def _encoded(text: str) -> bytes:
    """UTF-8 for the library, for which a text ends at a zero; half characters become question marks."""
    return text.replace("\0", " ").encode("utf-8", errors="replace")


def main(library: str, data: str) -> None:
    """Answer requests until there are no more."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # of the group; the command decides when it ends
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # for what the library prints
    espeak = _Espeak(library, data)
    answers.write(f"{espeak.sampling_rate}\n".encode())
    answers.flush()
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST)  # whose signal ends the process
        function, *arguments = json.loads(line)
        answer = getattr(espeak, function)(*arguments)
        samples = answer.pop("samples", b"")
        answers.write(json.dumps(answer | {"n_bytes": len(samples)}).encode() + b"\n" + samples)
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
