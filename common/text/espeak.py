"""The embedded speaker, eSpeak NG: synthesizes text with the times of phones and words, or returns its phones.

The library comes with the package ``espeakng-loader`` and runs in a separate process, because some texts crash it.
"""

import base64
import itertools
import json
import os
import re
import string
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common.errors import InputError, shown
from common.text.espeak_process import voice_definitions
from common.text.symbols import BOUNDARY, EDGE_SILENCE, PAUSE, canonical_phone

_PROGRAM = Path(__file__).with_name("espeak_process.py")

# eSpeak's phone names that are several symbols, or a different one, in the toolkit's phone set `ipa`.
_REWRITES = (("tʃ", "t͡ʃ"), ("dʒ", "d͡ʒ"), ("ᵻ", "ɨ"), ("ɚ", "əɹ"), ("ɝ", "ɜɹ"), ("g", "ɡ"))
_SOFT_SIGN = "ɪ^", "ʲ"  # Russian, at the end of a word ("дверь"); eSpeak's tables have no IPA for it
_STRESS = "ˈˌ"
_LONG = "ː"
_PUNCTUATION = string.punctuation + "“”‘’–—…"
_TIE = "\u0361"

_MARK = re.compile(r"[,.;:!?]")  # in the set `espeak`
_LETTER = 4  # a letter's share of a phone's time; stress, diacritics and boundaries have 1
GIVEN = "\ue000", "\ue001"  # around phones in eSpeak NG's own notation, in a text to transcribe

_LATE_S = 0.035  # s; a final l's event that is closer than this to the next phone's came too late
_CLOSURE_S = 0.001  # s; shorter runs of zeros are zero crossings, not closures


@dataclass(frozen=True)
class Interval:
    """A labeled span of time, in seconds."""

    label: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class EspeakSpeech:
    """An utterance: ``samples`` (T,) int16, phones that tile it from 0 to T / sampling_rate, and words."""

    samples: np.ndarray
    sampling_rate: int  # Hz
    phones: tuple[Interval, ...]  # symbols of the set `ipa`; silences at the edges are `sil`, pauses `sp`
    words: tuple[Interval, ...]  # as spelled in the text; no intervals for pauses

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.sampling_rate

    @property
    def wave(self) -> np.ndarray:
        """The samples as float32 in [-1, 1), (T,)."""
        return self.samples.astype(np.float32) / 32768


class Clause(NamedTuple):
    """A clause of a text, and the names of each word's phones; an empty name is a pause or a link."""

    text: str
    words: list[list[str]]


class Library:
    """eSpeak NG's library in a separate process, for one thread at a time."""

    def __init__(self) -> None:
        import espeakng_loader

        paths = str(espeakng_loader.get_library_path()), str(espeakng_loader.get_data_path())
        self._command = [sys.executable, "-I", str(_PROGRAM), *paths]
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        rate = self._process.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
        if not rate.rstrip().isdigit():
            raise InputError(f"eSpeak NG's library cannot be used ({self._command[-2]}); reinstall espeakng-loader")
        self.sampling_rate = int(rate)  # Hz; 22050

    def ask(self, function: str, text: str, speaker: "Speaker") -> dict[str, Any]:
        """Return the answer of `espeak_process` about a text; raises InputError if it crashes or lacks the language."""
        settings = (speaker.voice, speaker.words_per_minute, speaker.pitch)
        with self._lock:
            if self._process.poll() is not None:
                self._start()
            requests, answers = self._process.stdin, self._process.stdout
            assert requests is not None and answers is not None
            try:
                print(json.dumps([function, text, *settings]), file=requests, flush=True)
                answer: dict[str, Any] = json.loads(answers.readline())
            except BaseException as error:  # an interrupt also leaves an answer unread
                with suppress(BrokenPipeError), self._process:  # closes its pipes, and waits
                    self._process.kill()
                if isinstance(error, BrokenPipeError | ValueError):  # no answer, or part of one
                    raise InputError(f"{shown(text)}: eSpeak NG crashes on this text; rewrite it") from error
                raise
        if "error" in answer:
            raise InputError(answer["error"])
        return answer


_loading = threading.Lock()
_load = cache(lambda process, task: Library())  # a forked process starts its own


def library(task: str) -> Library:
    """Return the library of a task, "say" or "read"; reading a text can change how the next is said."""
    with _loading:
        return _load(os.getpid(), task)


@dataclass(frozen=True)
class Speaker:
    """A voice of the embedded speaker; the same text always gives the same samples."""

    voice: str = "en-us"  # a language tag of eSpeak NG
    words_per_minute: int = 150
    pitch: int = 50  # 0 to 99; 50 is the voice's own
    edge_s: float = 0.1  # s of silence before the first and after the last phone
    marked: bool = False  # use symbols of the set `espeak`, with stress, boundaries and marks, not of `ipa`

    def speak(self, text: str) -> EspeakSpeech:
        """Say ``text``. Raises InputError if nothing in it can be said, or the library is missing."""
        espeak = library("say")
        answer, rate = espeak.ask("say", text, self), espeak.sampling_rate
        samples = np.frombuffer(base64.b64decode(answer["samples"]), dtype=np.int16)
        spans = _absorb_links(_spans(answer["phones"], len(samples)), samples)
        spans = _split_late_phones(spans, sampling_rate=rate)
        if not any(span.symbols for span in spans):
            raise InputError(f"eSpeak NG finds nothing to say in {text!r}")
        spans = _begin_at_closures(spans, samples, sampling_rate=rate)
        spans = [span for span in spans if span.symbols]
        return self._trimmed(text, samples, _marked(spans, text) if self.marked else spans, rate)

    def phones(self, text: str) -> list[str]:
        """Return the symbols that ``speak(text)`` says, including `sil` and `sp`: the input of voices trained on it."""
        return [phone.label for phone in self.speak(text).phones]

    def _trimmed(self, text: str, samples: np.ndarray, spans: list["_Span"], rate: int) -> EspeakSpeech:
        """Return the utterance with exactly ``edge_s`` of silence at both ends, and its intervals in seconds."""
        edge = round(self.edge_s * rate)
        first, last = spans[0].start, spans[-1].end
        silence = np.zeros(edge, dtype=np.int16)
        trimmed = np.concatenate([silence, samples[first:last], silence])
        moved = [replace(span, start=span.start + edge - first, end=span.end + edge - first) for span in spans]
        intervals: list[Interval] = []
        for end, span in zip([0, *(span.end for span in moved)], moved):
            if span.start > end:
                intervals.append(Interval(PAUSE if end else EDGE_SILENCE, end / rate, span.start / rate))
            intervals += span.intervals(rate)
        if edge:
            intervals.append(Interval(EDGE_SILENCE, moved[-1].end / rate, len(trimmed) / rate))
        return EspeakSpeech(trimmed, rate, tuple(intervals), tuple(_words(text, moved, rate)))


def transcribe(text: str, *, language: str) -> list[Clause]:
    """Transcribe ``text`` in a language (a tag such as "de"); phones between `GIVEN` are kept. Raises InputError."""
    begin, end = GIVEN
    text = text.replace("[[", "[ [").replace(begin, "[[").replace(end, "]]")
    clauses = library("read").ask("read", text, Speaker(language))["clauses"]
    return [Clause(text, [[name.replace(*_SOFT_SIGN) for name in word] for word in words]) for text, words in clauses]


def espeak_voice(language: str) -> tuple[str, str]:
    """Return the name by which every program finds a language tag's voice, and the voice's English name."""
    import espeakng_loader

    wanted, found = language.lower(), {}
    for name, tags, definition in voice_definitions(Path(str(espeakng_loader.get_data_path()))):
        if wanted in tags:
            named = re.search(r"^name\s+(.+)", definition, flags=re.MULTILINE)
            found[name] = named[1].strip() if named else language
    voice = wanted if wanted in found else next(iter(found))
    return voice, found[voice]


def unlinked(name: str) -> str:
    """Rewrite eSpeak's name of a phone in characters of the symbol set `ipa`, keeping stress and length marks."""
    for old, new in _REWRITES:
        name = name.replace(old, new)
    return name


def symbols_of(name: str) -> tuple[tuple[str, int], ...]:
    """Split eSpeak's name of a phone into symbols of the set `ipa`, each with its share of the duration.

    Stress is dropped, diphthongs are split, and a long vowel counts twice: ``ˈɑːɹ`` -> (("ɑ", 2), ("ɹ", 1)).
    """
    symbols: list[tuple[str, int]] = []
    for letter in unlinked(name):
        if letter == _LONG and symbols:
            symbols[-1] = (symbols[-1][0], 2)
        elif symbols and (letter == _TIE or symbols[-1][0].endswith(_TIE)):
            symbols[-1] = (symbols[-1][0] + letter, 1)
        elif letter not in _STRESS and unicodedata.category(letter) in ("Ll", "Lo"):
            symbols.append((letter, 1))
    return tuple(symbols)


@dataclass(frozen=True)
class _Span:
    """Samples [start, end) of one of eSpeak's phones, with its symbols; without symbols, it's a pause."""

    symbols: tuple[tuple[str, int], ...]
    start: int
    end: int
    word: int  # position in the text of the word that it belongs to
    name: str = ""  # eSpeak's name, or several names

    def intervals(self, rate: int) -> list[Interval]:
        """Return one interval per symbol, in proportion to the symbols' shares."""
        passed = list(itertools.accumulate((share for _, share in self.symbols), initial=0))
        bounds = [(self.start + (self.end - self.start) * shares // passed[-1]) / rate for shares in passed]
        return [Interval(symbol, *span) for (symbol, _), span in zip(self.symbols, itertools.pairwise(bounds))]


def _spans(phones: Iterable[tuple[int, str, int]], n_samples: int) -> list[_Span]:
    """Extend each phone and pause (sample, name, word) to the next one, and merge consecutive pauses."""
    begun: list[_Span] = []
    for sample, name, word in [*phones, (n_samples, "", 0)]:
        if (symbols := symbols_of(name)) or not begun or begun[-1].symbols:
            begun.append(_Span(symbols, sample, sample, word, name))
    return [replace(span, end=after.start) for span, after in itertools.pairwise(begun)]


def _words(text: str, spans: list[_Span], rate: int) -> Iterable[Interval]:
    """Yield the text's words without punctuation; words that the library runs together ("of the") share an interval."""
    tokens = list(re.finditer(r"\S+", text))
    firsts: list[int] = []  # the token that each span begins
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
    """Merge a glide between two vowels ("the end") into the first; it has no name, so it looks like a pause."""
    kept: list[_Span] = []
    for span in spans:
        sounds = not span.symbols and np.count_nonzero(samples[span.start : span.end]) > (span.end - span.start) / 2
        if sounds and kept and kept[-1].symbols:
            span = replace(kept.pop(), end=span.end)
        kept.append(span)
    return kept


def _split_late_phones(spans: list[_Span], *, sampling_rate: int) -> list[_Span]:
    """Give a final ``l``, which the library reports too late, its share of the preceding vowel."""
    shared: list[_Span] = []
    for span in spans:
        late = span.symbols == (("l", 1),) and span.end - span.start < _LATE_S * sampling_rate
        if late and shared and shared[-1].symbols and shared[-1].word == span.word:
            vowel = shared.pop()
            span = replace(vowel, symbols=vowel.symbols + span.symbols, end=span.end, name=vowel.name + span.name)
        if span.end > span.start:
            shared.append(span)
    return shared


def _begin_at_closures(spans: list[_Span], samples: np.ndarray, *, sampling_rate: int) -> list[_Span]:
    """Begin each stop consonant at its closure: the library reports it at the burst, after the closure's zeros."""
    moved = list(spans)
    for i in range(1, len(moved)):
        before, span = moved[i - 1], moved[i]
        sounding = np.flatnonzero(samples[before.start : span.start])
        if not (before.symbols and span.symbols and len(sounding)):
            continue
        closure = before.start + int(sounding[-1]) + 1
        if span.start - closure >= _CLOSURE_S * sampling_rate:
            moved[i - 1], moved[i] = replace(before, end=closure), replace(span, start=closure)
    return moved


def _marked(spans: list[_Span], text: str) -> list[_Span]:
    """Convert spans to code points of eSpeak's phones, with boundaries and marks between them, in pauses if any."""
    marked: list[_Span] = []
    for span, after in itertools.zip_longest(spans, spans[1:]):
        letters = canonical_phone(span.name.replace(*_SOFT_SIGN))
        symbols = tuple((one, _LETTER if one.isalpha() and one not in _STRESS else 1) for one in letters)
        found = _MARK.search(text, span.word, len(text) if after is None else after.word)
        between: tuple[tuple[str, int], ...] = ((found[0], 1),) if found else ()
        if after is not None and after.word != span.word:
            between += ((BOUNDARY, 1),)
        if after is not None and between and after.start > span.end:
            marked += [replace(span, symbols=symbols), _Span(between, span.end, after.start, span.word)]
        else:
            marked.append(replace(span, symbols=symbols + between))
    return marked
