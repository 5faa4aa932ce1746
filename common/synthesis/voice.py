"""A voice: text in, speech out, through one text-to-mel network and one vocoder."""

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from common.audio.mel import SILENT_MEL
from common.config import AudioConfig
from common.data.features import load_fractions
from common.data.filelist import SPEAKER_NUMBER
from common.errors import InputError, shown
from common.registry import ModelSpec
from common.synthesis.speech import Prosody, Speech, SymbolProsody, UtteranceProsody
from common.synthesis.synthesizer import Synthesizer, warn_of_cuts
from common.synthesis.utterances import Phrase, SynthesisInput, SynthesisResult, dropped_symbols, join_silence
from common.text.arpabet import RandomNumbers, utterance_draws
from common.text.front_end import EmptyTextError, TextFrontEnd
from common.text.markdown import read_text
from common.text.prosody import LIMITS, NEUTRAL, Style, combined
from common.text.sentences import SENTENCE, TextUtterance, cut_early, split_utterances
from common.text.ssml import Span
from common.text.symbols import BOUNDARY, CODE_POINTS, EDGE_SILENCE
from common.text.words import Word

_SILENT_FRAMES = 3  # for a text with nothing to speak
SHORTEST_PART = 40  # characters; the smallest limit for parts of a long sentence
_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # of the expected characters; tried in order until all parts fit
_LIMITS = [LIMITS[name] for name in ("rate", "pitch", "volume")]  # as in SSML
LONGEST_PHRASE = 400  # characters; longer phrases of a list are spoken sentence by sentence


@dataclass(frozen=True, eq=False, kw_only=True)
class Voice:
    """A text front end and the networks that speak its symbols; `load_voice` builds one."""

    spec: ModelSpec
    synthesizer: Synthesizer
    front_end: TextFrontEnd
    n_speakers: int = 1
    speaker: str | None = None  # name or number, if a text or table doesn't name one; None: the first
    phones_seed: int | None = None  # seed that chooses the words to read as phones; None: all possible words
    plain: bool = False  # whether Markdown characters in a text are spoken
    longest: int | None = None  # symbols; longer sentences are spoken in parts; None: no limit

    def __post_init__(self) -> None:
        if self.speaker is not None:
            self.speaker_id(self.speaker, "--speaker")

    @property
    def audio(self) -> AudioConfig:
        """The description of its mel-spectrograms."""
        return self.synthesizer.audio

    @property
    def sampling_rate(self) -> int:
        """The sampling rate of its sound, in Hz."""
        return self.audio.sampling_rate

    @cached_property
    def speakers(self) -> tuple[str, ...]:
        """Its speakers' names by id, or their numbers."""
        return self.front_end.config.speakers or tuple(map(str, range(self.n_speakers)))

    @cached_property
    def shapes_prosody(self) -> bool:
        """Whether pace, pitch and energy of single symbols can be set."""
        return {"pitch", "duration"} <= set(self.spec.phrase_columns)

    @cached_property
    def _reads_text(self) -> bool:
        """Whether it reads text, not phones as such."""
        return self.front_end.config.input_type == "char" or self.front_end.config.g2p is not None

    def speak(
        self,
        text: str | Prosody,
        *,
        pace: float = 1.0,
        pitch: float = 1.0,
        volume: float = 1.0,
        speaker: str | int | None = None,
    ) -> Speech:
        """Speak a text of any length, plain or with SSML, or a prosody table.

        ``pace`` 2.0 is twice as fast; ``pitch`` multiplies the frequency and ``volume`` the amplitude. They combine
        with the text's SSML by multiplication. ``speaker`` is a name or number from `speakers`. Raises an InputError
        that says why the text, a value or the speaker can't be spoken.
        """
        items = self.plan(text, pace=pace, pitch=pitch, volume=volume, speaker=speaker)
        self.warn_of_losses(items)
        parts: list[SynthesisResult] = []
        for item in items:
            parts += self.synthesizer.synthesize([item])
        warn_of_cuts(parts)
        return self.join(parts)

    def stream(self, text: str | Prosody, **controls: Any) -> Iterator[Tensor]:
        """Speak a text in pieces (T_i,) float32 on the CPU, each as soon as it's ready; ``controls`` are `speak`'s.

        Joined, they equal `speak`'s wave to within 1e-5, unless `speak` scales its wave down to fit full scale.
        """
        items = self.plan(text, **controls)
        self.warn_of_losses(items)
        return self.synthesizer.stream(items)

    def join(self, parts: Sequence[SynthesisResult]) -> Speech:
        """Return the speech of a text's utterances, in order, with what `prosody` needs."""
        return Speech(tuple(parts), self.audio, self.speakers, self.front_end.symbol_set, self.shapes_prosody)

    def plan(
        self,
        text: str | Prosody,
        *,
        pace: float = 1.0,
        pitch: float = 1.0,
        volume: float = 1.0,
        speaker: str | int | None = None,
        phrase: Phrase | None = None,
        longest: int = 0,
        index: int = 0,
    ) -> list[SynthesisInput]:
        """Split a text into utterances that are ready for synthesis; fast, because no network runs.

        The first arguments are `speak`'s. Sentences are joined up to ``longest`` characters; 0 keeps them apart. A
        sentence with more symbols than the voice was trained on is split, unless it has markup or ``longest`` is
        `sys.maxsize`. A text with nothing to speak (emoji or dots) is a short silence. Errors name the ``phrase``; its
        ``index`` in its list and ``phones_seed`` choose the words to read as phones. Raises an InputError that says
        why the text can't be spoken.
        """
        where = "text" if isinstance(text, str) else "prosody"
        phrase = phrase or Phrase(where, PurePosixPath("speech.wav"))
        for name, value, (low, high) in zip(("pace", "pitch", "volume"), (pace, pitch, volume), _LIMITS):
            if not low <= value <= high:
                raise InputError(f"{phrase.where}: {name} {value}: expected a factor from {low:g} to {high:g}")
        style = Style(rate=pace, pitch=pitch, volume=volume, speaker=None if speaker is None else str(speaker))
        if not isinstance(text, str):
            items = self._prosody_inputs(text, style=style, phrase=phrase)
        elif not text.strip():
            raise InputError(f"{phrase.where}: empty text, nothing to speak")
        else:
            draw = None if self.phones_seed is None else utterance_draws(seed=self.phones_seed, epoch=0, index=index)
            encode = partial(self._encode, style=style, phrase=phrase, draw=draw)
            utterances = [TextUtterance((Span(text),), pause=0.0)]  # if it reads phones as such
            if self._reads_text:
                config = self.front_end.config
                language = config.g2p_language if config.g2p is not None else "en"
                spans = read_text(text, where=phrase.where, language=language, markdown=not self.plain)
                utterances = split_utterances(spans, longest=longest)
            most = None if longest == sys.maxsize else self.longest
            made = [part for one in utterances for part in self._parts(one, encode=encode, most=most)]
            items = join_silence(made) or [self._silence(made, phrase=phrase)]
        return [replace(item, part=part, n_parts=len(items)) for part, item in enumerate(items)]

    def phones_of(self, item: SynthesisInput) -> str:
        """Return an utterance's phones as people write them; "" if the voice only reads letters."""
        if self.front_end.config.input_type == "char" and not self.front_end.config.p_arpabet:
            return ""
        symbols = [one.removeprefix("@") for one in item.symbols if one != EDGE_SILENCE]
        gap = "" if self.front_end.symbol_set == CODE_POINTS else " "
        return gap.join(symbols).replace(BOUNDARY, " ")

    def encode(self, phrases: Sequence[Phrase], *, dataset_path: Path) -> list[SynthesisInput]:
        """Encode a list's phrases, with their pitch and durations if given; print one warning for dropped symbols.

        A phrase with more than `LONGEST_PHRASE` characters, or with SSML breaks, becomes several utterances. Raises an
        InputError with file and line for the first phrase that can't be synthesized.
        """
        inputs: list[SynthesisInput] = []
        for index, phrase in enumerate(phrases):
            where = phrase.where
            if phrase.text is None:
                raise InputError(f"{where}: no text column, which a text-to-mel model needs")
            columns = {"pitch": phrase.pitch, "durations": phrase.duration} if self.shapes_prosody else {}
            given = [(name, dataset_path / path) for name, path in columns.items() if path is not None]
            longest = sys.maxsize if given else LONGEST_PHRASE
            items = self.plan(phrase.text, phrase=phrase, speaker=phrase.speaker, longest=longest, index=index)
            if given and len(items) > 1:
                raise InputError(f"{where}: both breaks in the text and pitch or durations; give one of them")
            rows: dict[str, Any] = {}
            for name, path in given:
                values = rows[name] = load_fractions(path, where=where)
                if values.shape != (items[0].length,):
                    wanted = f"expected ({items[0].length},), one value per symbol"
                    raise InputError(f"{path}: shape {tuple(values.shape)}, {wanted} ({where})")
            inputs += [replace(item, **rows) for item in items]
        self.warn_of_losses(inputs)
        return inputs

    def speaker_id(self, name: str, where: str) -> int:
        """Return a speaker's id by name or number; errors name ``where``."""
        names = self.front_end.config.speakers
        if name in names:
            return names.index(name)
        if SPEAKER_NUMBER.fullmatch(name) and int(name) < self.n_speakers:
            return int(name)
        or_names = f" or one of {', '.join(names)}" if names else ""
        wanted = f"expected a number from 0 to {self.n_speakers - 1}{or_names}"
        raise InputError(f"{where}: speaker {shown(name)}, {wanted}")

    def warn_of_losses(self, items: Sequence[SynthesisInput]) -> None:
        """Print a warning about symbols that the voice lacks, and one if it can't change pace and pitch as asked."""
        if dropped := dropped_symbols(items):
            self.front_end.warn_dropped(dropped)
        if any(item.lacks_style for item in items):
            print(f"warning: {self.spec.name} cannot change pace and pitch; they are ignored", file=sys.stderr)

    def _parts(
        self, utterance: TextUtterance, *, encode: Callable[[TextUtterance], SynthesisInput], most: int | None
    ) -> list[SynthesisInput]:
        """Encode an utterance, or parts of it if it has more than ``most`` symbols."""
        items = [encode(utterance)]
        if most is None or len(items[0].symbols) <= most or not (self._reads_text and utterance.is_plain):
            return items
        characters_a_symbol = len(utterance.spans[0].text) / items[0].length
        *early, rest = cut_early(utterance)
        for share in _SHARES:
            n_characters = max(SHORTEST_PART, int(share * most * characters_a_symbol))
            parts = early + split_utterances(rest.spans, longest=n_characters, most=n_characters)
            parts[-1] = replace(parts[-1], pause=utterance.pause)
            items = [encode(part) for part in parts]
            if max(len(item.symbols) for item in items) <= most or n_characters == SHORTEST_PART:
                break
        return items

    def _encode(
        self, utterance: TextUtterance, *, style: Style, phrase: Phrase, draw: RandomNumbers | None
    ) -> SynthesisInput:
        """Encode an utterance; return silence if it has nothing to speak."""
        text = " ".join("".join(span.source or span.text for span in utterance.spans).split())
        silence = SynthesisInput(phrase, text=text, pause=utterance.pause)
        if not utterance.spans:
            return silence
        try:
            encoded = self.front_end.encode_words(utterance.spans, where=phrase.where, draw=draw)
        except EmptyTextError as error:
            return replace(silence, dropped=error.dropped)
        symbols = tuple(self.front_end.symbols[index] for index in encoded.ids)
        if self._reads_text and not any(character.isalnum() for symbol in symbols for character in symbol):
            return replace(silence, dropped=encoded.dropped)
        of_spans = [combined(style, span.style) for span in utterance.spans]
        of_symbols = [of_spans[0]] * len(symbols)
        for word in encoded.words if len(of_spans) > 1 else ():  # symbols between words keep the previous style
            of_symbols[word.start :] = [of_spans[word.span]] * (len(symbols) - word.start)
        is_changed = any(replace(one, volume=1.0, speaker=None) != NEUTRAL for one in of_spans)
        has_volume = any(one.volume != 1 for one in of_spans)
        return replace(
            silence,
            tokens=self.front_end.inputs(encoded.ids),
            symbols=symbols,
            styles=tuple(of_symbols) if is_changed and self.shapes_prosody else None,
            lacks_style=is_changed and not self.shapes_prosody,
            volume=torch.tensor([one.volume for one in of_symbols]) if has_volume else None,
            speaker=self.speaker_id(of_spans[0].speaker or self.speaker or "0", phrase.where),
            reading=encoded.reading,
            words=lambda: encoded.words,
            dropped=encoded.dropped,
        )

    def _silence(self, items: Sequence[SynthesisInput], *, phrase: Phrase) -> SynthesisInput:
        """Return silence for a text with nothing to speak: as long as its breaks, or as a sentence's pause.

        Raises InputError if the text has letters or digits.
        """
        text = " ".join(item.text for item in items)
        if any(map(str.isalnum, text)):
            left = "after cleaning, nothing is left that this voice has symbols for"
            raise InputError(f"{phrase.where}: text {shown(text)}: {left}")
        return SynthesisInput(
            phrase,
            mel=torch.full((self.audio.n_mels, _SILENT_FRAMES), SILENT_MEL),
            volume=torch.zeros(1),
            text=text,
            dropped=dropped_symbols(items),
            pause=sum(item.pause for item in items) or SENTENCE,
        )

    def _prosody_inputs(self, table: Prosody, *, style: Style, phrase: Phrase) -> list[SynthesisInput]:
        """Return a table's utterances, with values multiplied by ``style``.

        Raises InputError if the voice can't speak with a given prosody, or the table is from another voice.
        """
        if not self.shapes_prosody:
            raise InputError(f"{phrase.where}: {self.spec.name} cannot speak with a given prosody; give it text")
        symbol_set = self.front_end.symbol_set
        own = {"sampling_rate": self.sampling_rate, "hop_length": self.audio.hop_length, "symbol_set": symbol_set}
        for name, value in own.items():
            if getattr(table, name) != value:
                raise InputError(f"{phrase.where}: {name} {getattr(table, name)}, expected the voice's, {value}")
        return [self._prosody_input(one, style=style, phrase=phrase) for one in table.utterances]

    def _prosody_input(self, utterance: UtteranceProsody, *, style: Style, phrase: Phrase) -> SynthesisInput:
        symbols, ids = utterance.symbols, {name: index for index, name in enumerate(self.front_end.symbols)}
        if unknown := [one.symbol for one in symbols if one.symbol not in ids]:
            raise InputError(f"{phrase.where}: symbol {unknown[0]!r} is not in symbol set {self.front_end.symbol_set}")
        ends = [0, *itertools.accumulate(len(word.symbols) for word in utterance.words)]
        words = tuple(
            Word(one.text, *place, span=0) for one, place in zip(utterance.words, itertools.pairwise(ends)) if one.text
        )
        return SynthesisInput(
            phrase,
            tokens=self.front_end.inputs([ids[one.symbol] for one in symbols]),
            symbols=tuple(one.symbol for one in symbols),
            durations=_column(symbols, "frames") / style.rate,
            pitch_hz=None if symbols[0].pitch is None else _column(symbols, "pitch", torch.float64) * style.pitch,
            energy=None if symbols[0].energy is None else _column(symbols, "energy"),
            volume=_column(symbols, "volume") * style.volume,
            speaker=self.speaker_id(style.speaker or utterance.speaker, phrase.where),
            text=utterance.text,
            words=lambda: words,
            lead=utterance.lead,
            pause=utterance.pause,
        )


def _column(symbols: Sequence[SymbolProsody], name: str, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor([getattr(one, name) for one in symbols], dtype=dtype)
