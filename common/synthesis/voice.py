"""A voice: text in, speech out, through one text-to-mel network and one vocoder."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from common.audio import SILENT_MEL
from common.data.filelist import SPEAKER_NUMBER
from common.errors import InputError, check_choice, shown
from common.registry import GeneratorSpec, ModelSpec
from common.synthesis.options import VOCODER_PITCHES
from common.synthesis.speech import Prosody, Speech, inputs_of_prosody
from common.synthesis.synthesizer import SHORTEST_SPEECH, Synthesizer, changes_prosody
from common.synthesis.utterances import Phrase, SymbolMark, SynthesisInput, SynthesisResult, dropped_symbols, load_row
from common.text import (
    LIMITS,
    NEUTRAL,
    EmptyTextError,
    RandomNumbers,
    Span,
    Style,
    TextFrontEnd,
    TextUtterance,
    combined,
    cut_early,
    read_text,
    split_utterances,
    utterance_draws,
)
from common.text.sentences import SENTENCE

SHORTEST_PART = 40  # characters of a part of a sentence that is too long
_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # of the characters that the symbols are expected of, until all parts fit
LONGEST_PHRASE = 400  # characters of a list's phrase that is spoken at once; longer ones are, sentence by sentence


@dataclass(frozen=True, eq=False, kw_only=True)
class Voice(Synthesizer):
    """A text-to-mel network with its text front end and what makes sound of its mels; `load_voice` makes one."""

    spec: ModelSpec
    front_end: TextFrontEnd
    n_speakers: int
    speaker: str | None = None  # name or number, where a text or table says none; None: the first
    phones_seed: int | None = None  # words become phones at random, by this seed; None: all do that can
    plain: bool = False  # whether signs of Markdown in a text are said
    longest: int | None = None  # symbols of a sentence, of which longer ones are spoken in parts; None: whole

    def __post_init__(self) -> None:
        if self.speaker is not None:
            self.speaker_id(self.speaker, "--speaker")
        check_choice("vocoder_pitch", self.vocoder_pitch, VOCODER_PITCHES)
        if self.vocoder_pitch == "voice" and self.vocoder is not None and not self.can_tell_pitch:
            why = f"{self.vocoder.name} takes no" if self.shapes_prosody else f"{self.spec.name} predicts no"
            raise InputError(f"vocoder_pitch: {why} pitch, so it cannot be the voice's")

    @property
    def sampling_rate(self) -> int:
        """The sampling rate of its sound, in Hz."""
        return self.audio.sampling_rate

    @property
    def speakers(self) -> tuple[str, ...]:
        """Names of its speakers by their ids, or their numbers."""
        return self.front_end.config.speakers or tuple(map(str, range(self.n_speakers)))

    @property
    def phrase_columns(self) -> tuple[str, ...]:
        """Columns of a list of phrases that it reads besides the text."""
        assert isinstance(self.spec.inference, GeneratorSpec)
        return self.spec.inference.phrase_columns

    @property
    def shapes_prosody(self) -> bool:
        """Whether pace, pitch and energy of single symbols can be set."""
        return {"pitch", "duration"} <= set(self.phrase_columns)

    @property
    def can_tell_pitch(self) -> bool:
        """Whether its vocoder can be told the pitch of its symbols."""
        return self.shapes_prosody and self.vocoder is not None and self.vocoder.takes_pitch

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

        ``pace`` 2.0 is twice as fast, ``pitch`` a factor of the frequency in Hz, ``volume`` one of the amplitude; they
        multiply what the text's SSML says. ``speaker`` is a name or number of `speakers`.

        Raises:
            InputError: the text, a value or the speaker cannot be spoken; says why.
        """
        return self.speak_inputs(self._planned(text, pace=pace, pitch=pitch, volume=volume, speaker=speaker))

    def _planned(
        self, text: str | Prosody, *, pace: float = 1.0, speaker: str | int | None = None, **factors: float
    ) -> list[SynthesisInput]:
        """The utterances of a text by the arguments of `speak`, and one warning for dropped symbols."""
        items = self.plan(text, style=Style(rate=pace, speaker=None if speaker is None else str(speaker), **factors))
        self.front_end.warn_dropped(dropped_symbols(items))
        return items

    def stream(self, text: str | Prosody, **controls: Any) -> Iterator[Tensor]:
        """Speak a text in pieces (T_i,) float32 on the CPU, each as soon as it is made; ``controls`` are `speak`'s.

        Joined, they equal the wave of `speak` to 1e-5, unless `speak` scales its wave down to stay within full scale.
        """
        return self.stream_inputs(self._planned(text, **controls))

    def join(self, parts: Sequence[SynthesisResult]) -> Speech:
        """The speech of the utterances of a text, in order, with what `prosody` needs."""
        return Speech(tuple(parts), self.audio, self.speakers, self.front_end.symbol_set, self.shapes_prosody)

    def plan(
        self,
        text: str | Prosody,
        *,
        style: Style = NEUTRAL,
        phrase: Phrase | None = None,
        longest: int = 0,
        index: int = 0,
        whole: bool = False,
        most: int = sys.maxsize,
    ) -> list[SynthesisInput]:
        """The utterances of a text, ready to be synthesized: quick, as no network runs.

        ``style`` multiplies what the text says; sentences stand together up to ``longest`` characters, each alone at 0.
        A sentence of more symbols than the voice was trained on is spoken in parts, unless it is to be ``whole`` or has
        markup. A text of which nothing is said, emoji or dots, is a short silence; one of more than ``most`` symbols is
        refused. Errors name the ``phrase``; its ``index`` in its list and ``phones_seed`` choose the words that become
        phones.

        Raises:
            InputError: the text cannot be spoken; says why.
        """
        if phrase is None:
            where, words = ("text", text) if isinstance(text, str) else ("prosody", None)
            phrase = Phrase(where, PurePosixPath("speech.wav"), words)
        for word, name in (("pace", "rate"), ("pitch", "pitch"), ("volume", "volume")):
            (low, high), value = LIMITS[name], getattr(style, name)
            if not low <= value <= high:
                raise InputError(f"{phrase.where}: {word} {value}: expected a factor from {low:g} to {high:g}")
        if not isinstance(text, str):
            items = inputs_of_prosody(text, self, style=style, phrase=phrase)
        else:
            utterances, dropped = self._utterances(text, longest=longest, where=phrase.where), Counter[str]()
            seed = self.phones_seed
            draw = None if seed is None else utterance_draws(seed=seed, epoch=0, index=index)
            make = partial(self._input, style=style, phrase=phrase, draw=draw)
            try:
                items = _with_silence(utterances, partial(self._parts, make=make, whole=whole), most=most)
            except EmptyTextError as error:
                dropped = error.dropped
                if any(map(str.isalnum, "".join(span.text for one in utterances for span in one.spans))):
                    raise
                items = []
            if not items and (not utterances or not text.strip()):
                raise InputError(f"{phrase.where}: empty text, nothing to speak is in it")
            items = items or [replace(self._silent_input(utterances, phrase=phrase), dropped=dropped)]
        return [replace(item, part=part, n_parts=len(items)) for part, item in enumerate(items)]

    def encode(self, phrases: Sequence[Phrase], *, dataset_path: Path) -> list[SynthesisInput]:
        """What to synthesize, with pitch and durations where the list gives them, and one warning for dropped symbols.

        A phrase of more than `LONGEST_PHRASE` characters, or with SSML's breaks, is several utterances.

        Raises:
            InputError: the first phrase that cannot be synthesized, by file and line.
        """
        inputs = []
        for index, phrase in enumerate(phrases):
            where = phrase.where
            if phrase.text is None:
                raise InputError(f"{where}: no text column, which a text-to-mel model needs")
            columns = {"pitch": phrase.pitch, "durations": phrase.duration} if self.shapes_prosody else {}
            given = [(name, dataset_path / path) for name, path in columns.items() if path is not None]
            longest = sys.maxsize if given else LONGEST_PHRASE
            style = Style(speaker=phrase.speaker)
            items = self.plan(phrase.text, style=style, phrase=phrase, longest=longest, index=index, whole=bool(given))
            if given and len(items) > 1:
                raise InputError(f"{where}: breaks in the text, and pitch or durations; give one of them")
            for item in items:
                rows: Any = {name: load_row(path, item.length, each="symbol", where=where) for name, path in given}
                inputs.append(replace(item, **rows))
        self.front_end.warn_dropped(dropped_symbols(inputs))
        return inputs

    def speaker_id(self, name: str, where: str) -> int:
        """Id of a speaker's name or number; ``where`` says where it was written."""
        names = self.front_end.config.speakers
        if name in names:
            return names.index(name)
        if SPEAKER_NUMBER.fullmatch(name) and int(name) < self.n_speakers:
            return int(name)
        or_names = f" or one of {', '.join(names)}" if names else ""
        wanted = f"expected a number from 0 to {self.n_speakers - 1}{or_names}"
        raise InputError(f"{where}: speaker {shown(name)}, {wanted}")

    def _utterances(self, text: str, *, longest: int, where: str) -> list[TextUtterance]:
        """The utterances of a text; phones that stand for themselves are one."""
        config = self.front_end.config
        if not self._reads_text:
            return [TextUtterance((Span(text),), pause=0.0)]
        language = config.g2p_language if config.g2p is not None else "en"
        items = read_text(text, where=where, language=language, markdown=not self.plain)
        return split_utterances(items, longest=longest)

    def _parts(
        self, utterance: TextUtterance, *, make: Callable[[TextUtterance], SynthesisInput], whole: bool
    ) -> list[SynthesisInput]:
        """What ``make`` makes of an utterance, or of parts of it where that has more symbols than `longest`."""
        items, most = [make(utterance)], self.longest
        may_split = self._reads_text and utterance.is_plain and not whole
        if most is None or items[0].length <= most or not may_split:
            return items
        characters_a_symbol = len(utterance.spans[0].text) / items[0].length
        *early, rest = cut_early(utterance)
        for share in _SHARES:
            n_characters = max(SHORTEST_PART, int(share * most * characters_a_symbol))
            parts = early + split_utterances(rest.spans, longest=n_characters, most=n_characters)
            parts[-1] = replace(parts[-1], pause=utterance.pause)
            items = _with_silence(parts, lambda part: [make(part)])
            if max(item.length for item in items) <= most or n_characters == SHORTEST_PART:
                break
        if len(items) > 1:
            self._note_parts  # noqa: B018  # said once
        return items

    def _input(
        self, utterance: TextUtterance, *, style: Style, phrase: Phrase, draw: RandomNumbers | None
    ) -> SynthesisInput:
        encoded = self.front_end.encode_words(utterance.spans, where=phrase.where, draw=draw)
        of_spans = [combined(style, span.style) for span in utterance.spans]
        of_symbols = [of_spans[0]] * len(encoded.ids)
        words = encoded.words if len(of_spans) > 1 or utterance.marks else ()
        for word in words:  # spaces and punctuation have the style of the word before them
            of_symbols[word.start :] = [of_spans[word.span]] * (len(encoded.ids) - word.start)
        is_changed = any(map(changes_prosody, of_spans)) and not self._leaves_out_styles
        volume, names = torch.tensor([one.volume for one in of_symbols]), self.front_end.symbols
        if self._reads_text and not any(character.isalnum() for index in encoded.ids for character in names[index]):
            raise EmptyTextError(f"{phrase.where}: punctuation alone", encoded.dropped)
        starts = {word.span: word.start for word in reversed(words)}  # of each span's first word
        marks = []
        for index, name in utterance.marks:  # before the first word of their span or a later one
            later = [start for span, start in starts.items() if span >= index]
            marks.append(SymbolMark(name, min(later, default=len(encoded.ids))))
        return SynthesisInput(
            phrase,
            tokens=self.front_end.inputs(encoded.ids),
            symbols=tuple(names[index] for index in encoded.ids),
            styles=tuple(of_symbols) if is_changed else None,
            volume=volume if bool((volume != 1).any()) else None,
            speaker=self.speaker_id(of_spans[0].speaker or self.speaker or "0", phrase.where),
            text=" ".join("".join(span.source or span.text for span in utterance.spans).split()),
            reading=encoded.reading,
            find_words=lambda: encoded.words,
            dropped=encoded.dropped,
            marks=tuple(marks),
            pause=utterance.pause,
        )

    def _silent_input(self, utterances: Sequence[TextUtterance], *, phrase: Phrase) -> SynthesisInput:
        """What a text is of which nothing is said: its breaks, or the pause of a sentence."""
        return SynthesisInput(
            phrase,
            mel=torch.full((self.audio.n_mels, SHORTEST_SPEECH), SILENT_MEL),
            volume=torch.zeros(1),
            text=" ".join("".join(span.text for one in utterances for span in one.spans).split()),
            marks=tuple(SymbolMark(name, 0) for one in utterances for _, name in one.marks),
            pause=sum(one.pause for one in utterances) or SENTENCE,
        )

    @property
    def _reads_text(self) -> bool:
        """Whether what it reads is text, not phones that stand for themselves."""
        return self.front_end.config.input_type == "char" or self.front_end.config.g2p is not None

    @cached_property
    def _note_parts(self) -> None:
        """Say that sentences are spoken in parts, the first time."""
        trained = f"sentences of more than {self.longest} symbols, the longest that this voice was trained on"
        print(f"note: {trained}, are spoken in parts; --no-split-sentences speaks them whole", file=sys.stderr)

    @cached_property
    def _leaves_out_styles(self) -> bool:
        """Whether the network cannot change pace and pitch; when it is first asked, a warning says so."""
        if not self.shapes_prosody:
            print(f"warning: {self.spec.name} cannot change pace and pitch; they are left out", file=sys.stderr)
        return not self.shapes_prosody


def _with_silence(
    utterances: Sequence[TextUtterance],
    make: Callable[[TextUtterance], list[SynthesisInput]],
    *,
    most: int = sys.maxsize,
) -> list[SynthesisInput]:
    """What ``make`` makes of utterances; silence alone is added to the one before it, or at the beginning to the next.

    An utterance of which no symbol is left is silence; an error if all are, and where there are more than ``most``.
    """
    items: list[SynthesisInput] = []
    lead, early = 0.0, list[tuple[str, float]]()
    empty: EmptyTextError | None = None
    dropped: Counter[str] = Counter()  # of utterances that are silence
    for one in utterances:
        made: list[SynthesisInput] = []
        try:
            made = make(one) if one.spans else []
        except EmptyTextError as error:
            empty = empty or error
            dropped.update(error.dropped)
        if made:
            marks = tuple(SymbolMark(name, 0, offset - lead) for name, offset in early)
            items += [replace(made[0], lead=lead, marks=marks + made[0].marks), *made[1:]]
            if (n_symbols := sum(item.length for item in items)) > most:
                where = items[0].phrase.where
                raise InputError(f"{where}: {n_symbols} symbols or more when it is written out; the limit is {most}")
            lead, early = 0.0, []
        elif items:
            last = items[-1]
            marks = tuple(SymbolMark(name, last.length, last.pause) for _, name in one.marks)
            items[-1] = replace(last, pause=last.pause + one.pause, marks=last.marks + marks)
        else:
            early += [(name, lead) for _, name in one.marks]
            lead += one.pause
    if empty is not None and not items:
        raise EmptyTextError(str(empty), dropped)
    return [replace(item, dropped=item.dropped + dropped) for item in items[:1]] + items[1:]
