"""An embedded speaker: eSpeak NG through ctypes, which says a text and tells where each phone begins and ends.

The library and its data come with the PyPI package ``espeakng-loader``. Speaker's samples depend on the text and
the settings alone: the voice's flutter and roughness, whose phases run on from one utterance to the next, are off.
"""

import ctypes
import itertools
import re
import string
import tempfile
import threading
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from common.errors import InputError
from common.text.symbols import EDGE_SILENCE, PAUSE

# eSpeak's phone names that are not one symbol, or another one, in the toolkit's phone set `ipa`.
_REWRITES = (("tʃ", "t͡ʃ"), ("dʒ", "d͡ʒ"), ("ᵻ", "ɨ"), ("ɚ", "əɹ"), ("ɝ", "ɜɹ"), ("g", "ɡ"))
_STRESS = "ˈˌ"
_LONG = "ː"
_PUNCTUATION = string.punctuation + "“”‘’–—…"
_TIE = "\u0361"

# Constants of eSpeak NG's speak_lib.h.
_SYNCHRONOUS = 2
_PHONEME_EVENTS, _PHONEME_IPA, _DONT_EXIT = 0x1, 0x2, 0x8000
_UTF8, _END_PAUSE = 0x1, 0x1000
_RATE, _PITCH, _RANGE = 1, 3, 4
_EVENT_WORD, _EVENT_PHONEME = 1, 7
_UTF8_TEXT, _NAMES_IPA = 0x1, 0x2  # of espeak_TextToPhonemes
_BETWEEN = "|"  # between the names of phones

_LATE_S = 0.035  # s; a final l's event closer than this to the next phone's came after the sound
_CLOSURE_S = 0.001  # s; shorter runs of zeros are zero crossings, not closures


@dataclass(frozen=True)
class Interval:
    """A labelled stretch of time, in seconds."""

    label: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Speech:
    """An utterance: ``samples`` (T,) int16, and phones that tile it from 0 to T / sampling_rate, and its words."""

    samples: np.ndarray
    sampling_rate: int  # Hz
    phones: tuple[Interval, ...]  # symbols of the set `ipa`; silences at the edges are `sil`, pauses `sp`
    words: tuple[Interval, ...]  # as spelt in the text; no intervals for pauses

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.sampling_rate

    @property
    def wave(self) -> np.ndarray:
        """The samples as float32 in [-1, 1), (T,)."""
        return self.samples.astype(np.float32) / 32768


@dataclass(frozen=True)
class Speaker:
    """A voice of the embedded speaker; the same text always gives the same samples.

    eSpeak NG is one machine per process: speakers take turns (a lock), and set their voice when theirs comes.
    """

    voice: str = "en-us"  # a language tag of eSpeak NG
    words_per_minute: int = 150
    pitch: int = 50  # 0 to 99; 50 is the voice's own
    pitch_range: int = 50  # 0 to 99; 0 is a monotone
    edge_s: float = 0.1  # s of silence before the first and after the last phone

    @property
    def sampling_rate(self) -> int:
        """Hz; the library's own, 22050."""
        return _machine().sampling_rate

    def speak(self, text: str) -> Speech:
        """Say ``text``. Raises InputError if nothing in it can be said, or the library is missing."""
        machine = _machine()
        with machine.lock:
            machine.use(self)
            samples, events = machine.say(text)
        spans = _absorb_links(_spans(events, len(samples)), samples)
        spans = _split_late_phones(spans, sampling_rate=machine.sampling_rate)
        if not any(span.symbols for span in spans):
            raise InputError(f"eSpeak NG finds nothing to say in {text!r}")
        spans = _claim_closures(spans, samples, sampling_rate=machine.sampling_rate)
        return self._trimmed(text, samples, [span for span in spans if span.symbols], machine.sampling_rate)

    def phones(self, text: str) -> list[str]:
        """The symbols that ``speak(text)`` says, `sil` and `sp` included: what a voice trained on it reads."""
        return [phone.label for phone in self.speak(text).phones]

    def _trimmed(self, text: str, samples: np.ndarray, spans: list["_Span"], rate: int) -> Speech:
        """The utterance with exactly ``edge_s`` of silence at both ends, and its intervals in seconds."""
        edge = round(self.edge_s * rate)
        first, last = spans[0].start, spans[-1].end
        silence = np.zeros(edge, dtype=np.int16)
        trimmed = np.concatenate([silence, samples[first:last], silence])
        moved = [span.moved(edge - first) for span in spans]
        intervals = [Interval(EDGE_SILENCE, 0.0, edge / rate)] if edge else []
        end = edge
        for span in moved:
            if span.start > end:
                intervals.append(Interval(PAUSE, end / rate, span.start / rate))
            intervals += span.intervals(rate)
            end = span.end
        if edge:
            intervals.append(Interval(EDGE_SILENCE, end / rate, len(trimmed) / rate))
        return Speech(trimmed, rate, tuple(intervals), tuple(_words(text, moved, rate)))


@dataclass(frozen=True)
class Clause:
    """What eSpeak reads in one breath: its text, and each word's phones by their names, stress and length included.

    A phone without a name is a pause or a link to the next one.
    """

    text: str
    words: tuple[tuple[str, ...], ...]


def transcribe(text: str, *, language: str) -> list[Clause]:
    """How ``text`` is said in a language (a tag such as "de"), without saying it.

    Raises:
        InputError: eSpeak NG has no such language, or its library is missing.
    """
    machine = _machine()
    with machine.lock:
        machine.use(Speaker(voice=language))
        return list(machine.read(text))


def check_language(language: str) -> None:
    """Raises InputError when eSpeak NG has no such language, naming those that come near, or cannot be loaded."""
    machine = _machine()
    with machine.lock:
        machine.use(Speaker(voice=language))


def unlinked(name: str) -> str:
    """eSpeak's name of a phone in characters of the symbol set `ipa`, marks of stress and length kept."""
    for old, new in _REWRITES:
        name = name.replace(old, new)
    return name


def symbols_of(name: str) -> tuple[tuple[str, int], ...]:
    """eSpeak's name of a phone as symbols of the set `ipa`, each with its share of the phone's duration.

    Stress is dropped; diphthongs, r-coloured vowels and syllabic consonants come apart; a long vowel keeps one
    symbol and counts twice: ``ˈɑːɹ`` -> (("ɑ", 2), ("ɹ", 1)).
    """
    name = unlinked(name)
    symbols: list[tuple[str, int]] = []
    for letter in name:
        if letter == _LONG and symbols:
            symbols[-1] = (symbols[-1][0], 2)
        elif symbols and (letter == _TIE or symbols[-1][0].endswith(_TIE)):
            symbols[-1] = (symbols[-1][0] + letter, 1)
        elif letter not in _STRESS and unicodedata.category(letter) in ("Ll", "Lo"):
            symbols.append((letter, 1))
    return tuple(symbols)


@dataclass(frozen=True)
class _Event:
    """One of eSpeak's events: a word begins, or a phone (an empty name is a pause)."""

    sample: int
    name: str | None = None  # None: a word
    position: int = 0  # of a word's first character in the text, from 0


@dataclass(frozen=True)
class _Span:
    """Samples [start, end) in which the symbols of one of eSpeak's phones sound; no symbols: a pause."""

    symbols: tuple[tuple[str, int], ...]
    start: int
    end: int
    word: int  # position in the text of the word it belongs to

    def moved(self, by: int) -> "_Span":
        return _Span(self.symbols, self.start + by, self.end + by, self.word)

    def intervals(self, rate: int) -> list[Interval]:
        """One interval a symbol, in proportion to their shares."""
        total = sum(share for _, share in self.symbols)
        bounds, passed = [self.start], 0
        for _, share in self.symbols:
            passed += share
            bounds.append(self.start + (self.end - self.start) * passed // total)
        return [Interval(symbol, bounds[i] / rate, bounds[i + 1] / rate) for i, (symbol, _) in enumerate(self.symbols)]


def _spans(events: Iterable[_Event], n_samples: int) -> list[_Span]:
    """Each phone and pause from its event to the next one's; pauses in a row are one."""
    spans: list[_Span] = []
    word = 0
    begun: tuple[tuple[tuple[str, int], ...], int, int] | None = None
    for event in [*events, _Event(n_samples, "")]:
        if event.name is None:
            word = event.position
            continue
        symbols = symbols_of(event.name)
        if begun is not None and (symbols or begun[0]):
            spans.append(_Span(begun[0], begun[1], event.sample, begun[2]))
            begun = None
        if begun is None:
            begun = (symbols, event.sample, word)
    return spans


def _words(text: str, spans: list[_Span], rate: int) -> Iterable[Interval]:
    """The text's words without punctuation; those that the library runs together ("of the") share an interval."""
    tokens = list(re.finditer(r"\S+", text))
    firsts: list[int] = []  # of each span: the token it begins
    for span in spans:
        token = max((i for i, match in enumerate(tokens) if match.start() <= span.word), default=0)
        firsts.append(max([token, *firsts[-1:]]))
    for token, group in itertools.groupby(range(len(spans)), key=firsts.__getitem__):
        members = list(group)
        after = members[-1] + 1
        until = firsts[after] if after < len(spans) else len(tokens)
        label = " ".join(match.group().strip(_PUNCTUATION) for match in tokens[token:until])
        yield Interval(" ".join(label.split()), spans[members[0]].start / rate, spans[members[-1]].end / rate)


def _absorb_links(spans: list[_Span], samples: np.ndarray) -> list[_Span]:
    """Give a glide between two vowels ("the end"), which has no name and so looks like a pause, to the first one."""
    kept: list[_Span] = []
    for span in spans:
        sounds = not span.symbols and np.count_nonzero(samples[span.start : span.end]) > (span.end - span.start) / 2
        if sounds and kept and kept[-1].symbols:
            vowel = kept.pop()
            span = _Span(vowel.symbols, vowel.start, span.end, vowel.word)
        kept.append(span)
    return kept


def _split_late_phones(spans: list[_Span], *, sampling_rate: int) -> list[_Span]:
    """Give a final ``l`` its part of the vowel before it.

    The library makes a vowel and the ``l`` that closes its syllable in one go and reports the ``l`` at the end.
    """
    shared: list[_Span] = []
    for span in spans:
        late = span.symbols == (("l", 1),) and span.end - span.start < _LATE_S * sampling_rate
        if late and shared and shared[-1].symbols and shared[-1].word == span.word:
            vowel = shared.pop()
            span = _Span(vowel.symbols + span.symbols, vowel.start, span.end, span.word)
        if span.end > span.start:
            shared.append(span)
    return shared


def _claim_closures(spans: list[_Span], samples: np.ndarray, *, sampling_rate: int) -> list[_Span]:
    """Begin each stop at its closure: the library reports it at the burst, after the zeros it puts before it."""
    claimed = list(spans)
    for i in range(1, len(claimed)):
        before, span = claimed[i - 1], claimed[i]
        if not (before.symbols and span.symbols):
            continue
        sounding = np.flatnonzero(samples[before.start : span.start])
        if not len(sounding):
            continue
        closure = before.start + int(sounding[-1]) + 1
        if span.start - closure >= _CLOSURE_S * sampling_rate:
            claimed[i - 1] = _Span(before.symbols, before.start, closure, before.word)
            claimed[i] = _Span(span.symbols, closure, span.end, span.word)
    return claimed


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


class _Machine:
    """The library, initialised once a process, with the samples and events of the utterance it is making."""

    def __init__(self) -> None:
        try:
            import espeakng_loader
        except ImportError as error:
            raise InputError(
                "the embedded speaker needs the package espeakng-loader: pip install espeakng-loader"
            ) from error
        try:
            self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        except OSError as error:
            raise InputError(f"eSpeak NG's library cannot be loaded on this machine: {error}") from error
        self._data = Path(espeakng_loader.get_data_path())
        flags = _PHONEME_EVENTS | _PHONEME_IPA | _DONT_EXIT
        self.sampling_rate: int = self._library.espeak_Initialize(_SYNCHRONOUS, 0, str(self._data).encode(), flags)
        if self.sampling_rate <= 0:
            raise InputError(f"eSpeak NG cannot read its data in {self._data}; reinstall espeakng-loader")
        self.lock = threading.Lock()
        self._speaker: Speaker | None = None
        self._chunks: list[np.ndarray] = []
        self._events: list[_Event] = []
        self._callback = _SynthCallback(self._collect)  # the library keeps only a pointer to it
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p

    def use(self, speaker: Speaker) -> None:
        """Speak as ``speaker`` from now on."""
        if speaker == self._speaker:
            return
        self._speaker = None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "steady"
            path.write_text(self._voice_file(speaker.voice) + "\nflutter 0\nroughness 0\n", encoding="utf-8")
            status = self._library.espeak_SetVoiceByFile(str(path).encode())
        if status != 0:
            raise InputError(f"eSpeak NG cannot use its voice {speaker.voice!r} (status {status})")
        for parameter, value in (
            (_RATE, speaker.words_per_minute),
            (_PITCH, speaker.pitch),
            (_RANGE, speaker.pitch_range),
        ):
            self._library.espeak_SetParameter(parameter, value, 0)
        self._speaker = speaker

    def say(self, text: str) -> tuple[np.ndarray, list[_Event]]:
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

    def read(self, text: str) -> Iterable[Clause]:
        """The clauses of ``text``; the library moves a pointer to where the next one begins, one letter ahead."""
        encoded = text.replace("\0", " ").encode("utf-8")
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
            yield Clause(
                encoded[done:end].decode("utf-8", errors="ignore"), tuple(tuple(word.split(_BETWEEN)) for word in words)
            )
            done = end

    def _collect(self, wave, n_samples: int, events) -> int:
        if wave and n_samples > 0:
            self._chunks.append(np.ctypeslib.as_array(wave, (n_samples,)).copy())
        i = 0
        while events[i].type != 0:
            event = events[i]
            if event.type == _EVENT_WORD:
                self._events.append(_Event(event.sample, position=event.text_position - 1))
            elif event.type == _EVENT_PHONEME:
                # Eight bytes at most, with no zero at the end when all are used, and a letter may be cut off.
                name = bytes(event.id.string).decode("utf-8", errors="ignore")
                self._events.append(_Event(event.sample, name))
            i += 1
        return 0

    def _voices(self) -> dict[str, str]:
        """The definition of each voice by its language tags."""
        definitions: dict[str, str] = {}
        for path in sorted(path for path in (self._data / "lang").rglob("*") if path.is_file()):
            definition = path.read_text(encoding="utf-8")
            for tag in (path.name, *re.findall(r"^language\s+(\S+)", definition, flags=re.MULTILINE)):
                definitions.setdefault(tag.lower(), definition)
        return definitions

    def _voice_file(self, voice: str) -> str:
        """The definition of the voice whose language tag is ``voice``."""
        definitions = self._voices()
        if voice.lower() not in definitions:
            near = [tag for tag in sorted(definitions) if tag.split("-")[0] == voice.lower().split("-")[0]]
            raise InputError(f"eSpeak NG has no voice {voice!r}; it has {', '.join(near or sorted(definitions))}")
        return definitions[voice.lower()]


@lru_cache(maxsize=1)
def _machine() -> _Machine:
    return _Machine()
