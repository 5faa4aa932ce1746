"""The text front end: converts a transcript to symbol ids, as its TextConfig says, and ids back to text."""

import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain

import torch
from torch import Tensor

from common.errors import InputError, at, check_choice
from common.text.arpabet import Pronouncer, RandomNumbers
from common.text.cleaners import ENGLISH_V3, PUBLISHED_CLEANERS, TACOTRON2, collapse_spaces, get_cleaner, unread_by
from common.text.config import TextConfig
from common.text.g2p import BETWEEN, SpokenSymbol, is_named, sounds_of_text
from common.text.heteronyms import with_espeak_phones
from common.text.input_checks import check_kind, check_length, check_markup, describe_unknown, describe_unread, quote
from common.text.lexicon import Lexicon
from common.text.normalization.english.characters import script_of
from common.text.normalization.english.english import with_accents
from common.text.normalization.multilingual import number_reader
from common.text.normalization.published.reading import expand_currency
from common.text.phone_alphabets import ALPHABETS, phones_for_voice
from common.text.phone_features import phone_features
from common.text.ssml import Span
from common.text.symbols import G2P_SETS, SILENCES, canonical_phone, get_symbol_table, name_counts, precomposed
from common.text.words import (
    PUNCTUATION,
    TOKEN,
    EncodedText,
    FindOwners,
    Owner,
    Word,
    composed,
    owners_of_sounds,
    owners_of_tokens,
    words_of_symbols,
    written_words,
)

_BRACES = re.compile(r"\{[^}]*\}")
_BRACES_OR_WORD = re.compile(r"\{[^}]*\}|\S+")
_ARPABET_OR_TEXT = re.compile(r"\{(.+?)\}|[^{]+|\{")


class EmptyTextError(InputError):
    """A text with no symbol left to speak; ``dropped`` counts the symbols that were left out."""

    def __init__(self, message: str, dropped: Counter[str] | None = None) -> None:
        super().__init__(message)
        self.dropped: Counter[str] = Counter() if dropped is None else dropped


class TextFrontEnd:
    """Converts transcripts to ids and back, for one ``TextConfig``.

    Symbols outside the set raise ``InputError`` (``unknown_symbols="error"``) or are dropped and counted (``"drop"``).
    ``clean`` is slow and deterministic; ``encode_cleaned`` is fast and may be random, for each epoch.
    """

    def __init__(self, config: TextConfig, *, unknown_symbols: str = "error", lexicon: Lexicon | None = None) -> None:
        if config.input_type == "pf" and not config.phone_features:
            raise InputError("input type 'pf' reads features, but their table is missing; give --phone-features FILE")
        features = phone_features(config.phone_features) if config.phone_features else None
        table = get_symbol_table(config.symbol_set, config.labels) if features is None else features.table
        self._phones = config.input_type in ("phone", "pf")
        if table.phones != self._phones:
            held = f"symbol set {config.symbol_set!r} holds {'phones' if table.phones else 'characters'}"
            raise InputError(f"{held}, but the input type is {config.input_type!r}")
        self.config = config
        self.symbols = list(table.symbols)  # in order of their ids
        self.symbol_set = table.name
        self.n_symbols = len(table.symbols if features is None else features.names)  # rows of the embedding table
        self.padding_id = table.padding_id  # fills a batch's shorter rows
        self.mixes = 0 < config.p_arpabet < 1  # whether the ids of a text depend on random draws
        self._drop = unknown_symbols == "drop"
        self._table = table
        self._vectors = None if features is None else torch.tensor(features.vectors)
        self._lexicon = Lexicon() if lexicon is None else lexicon
        self._given_phones = self._phones and config.g2p is None  # the text is phones already
        self._tokens: Callable[[str], list[str]] = str.split if self._given_phones else TOKEN.findall
        self._cleaners = [get_cleaner(name) for name in config.cleaners]
        reads_text = config.g2p is not None and not self._cleaners
        self._read_numbers = (number_reader(config.g2p_language) if reads_text else None) or str
        self._cleans = bool(self._cleaners) and not self._given_phones
        self._published = all(name in PUBLISHED_CLEANERS for name in config.cleaners)
        self._per_word = self._published and TACOTRON2 not in config.cleaners
        self._pronouncer = Pronouncer(config)
        self._clean_word = lru_cache(maxsize=100_000)(self._apply_cleaners)
        self._say_alone = lru_cache(maxsize=20_000)(self._say)
        others = SILENCES if self._phones else (*PUNCTUATION, " ")
        self._between = BETWEEN if table.name in G2P_SETS else frozenset(others)  # symbols that belong to no word
        self._phone = table.splitter()

    def __reduce__(self) -> tuple:
        unknown = "drop" if self._drop else "error"
        return partial(TextFrontEnd, unknown_symbols=unknown, lexicon=self._lexicon), (self.config,)  # without caches

    def _apply_cleaners(self, text: str) -> str:
        words = self._read_numbers(text)
        for cleaner in self._cleaners:
            words = cleaner(words)
        keeps_accents = self.config.g2p is not None and ENGLISH_V3 in self.config.cleaners
        return with_accents(words, text) if keeps_accents and not text.isascii() else words

    def clean(self, text: str) -> str:
        """Return the text as it will be encoded: written out by the cleaners, or as phones separated by spaces.

        Published cleaners write out currency first, then clean each word alone, as published: "5 pm" is "five pm".
        """
        written = self._written_out(text)
        return written if self.config.g2p is None else " ".join(sound.symbol for sound in self._say(written))

    def _written_out(self, text: str) -> str:
        """Return the text as it is read, before it becomes phones."""
        if self._given_phones:
            return " ".join(canonical_phone(text).split())
        text = precomposed(text)
        if self.config.g2p is None and self._per_word:
            words = _BRACES_OR_WORD.findall(expand_currency(text))
            return collapse_spaces(" ".join(word if word[0] == "{" else self._clean_word(word) for word in words))
        if self.config.g2p is None and not self._published:
            return self._apply_cleaners(text).strip()
        parts = re.split(r"(\{[^}]*\})", text)  # odd parts are in braces
        return "".join(part if index % 2 else self._apply_cleaners(part) for index, part in enumerate(parts))

    def read(self, text: str, *, where: str = "") -> tuple[str, Counter[str]]:
        """Return the result of ``clean``, and the characters that it leaves out.

        Raises ``InputError``, naming ``where``, for a text that can't be spoken by this voice.
        """
        text = self._lexicon.apply(text)
        removed, dropped = self._check(text, where=where)
        return self.clean(text.translate(removed)), dropped

    def _check(self, text: str, *, where: str) -> tuple[dict[int, None], Counter[str]]:
        """Return characters to remove, for ``str.translate``, and those to report; raises InputError like ``read``."""
        check_length(text, where=where)
        check_markup(text, where=where)
        check_kind(text, self.config, self._table, where=where)
        spelled = _BRACES.sub(" ", text) if self._phones else text
        named: list[str] = []  # eSpeak NG would say their names
        if self.config.g2p is not None and not spelled.isascii():
            language = self.config.g2p_language
            named = [one for one in precomposed(spelled) if is_named(one, language)]
        lost: Counter[str] = Counter(unread_by(self.config.cleaners, spelled) if self._cleans else ())
        lost |= Counter(named)
        if lost and not self._drop:
            raise InputError(describe_unread(lost, text=text, config=self.config, where=where))
        # Published cleaners write lost characters in Latin letters, as published.
        return dict.fromkeys(map(ord, named if self._published else lost)), lost

    def encode(self, text: str, *, where: str = "", draw: RandomNumbers | None = None) -> list[int]:
        """Return the ids (L,) of a transcript; errors name ``where``, for example ``"train.txt:7"``.

        With ``p_arpabet``, every word becomes phones or, with ``draw``, words whose drawn number is below it.
        """
        return list(self.encode_words([Span(text)], where=where, draw=draw).ids)

    def encode_cleaned(
        self, cleaned: str, *, text: str | None = None, where: str = "", draw: RandomNumbers | None = None
    ) -> tuple[list[int], Counter[str]]:
        """Return ids (L,) for a result of ``read``, and the symbols left out; errors quote ``text``, or ``cleaned``."""
        text = cleaned if text is None else text
        if self.config.p_arpabet > 0:
            cleaned = self._pronouncer.pronounce(cleaned, draw=draw)
        symbols = self._split_phones(cleaned) if self._phones else [one for one, _ in self._split_characters(cleaned)]
        return self._numbered(symbols, text=text, reading=cleaned, where=where)

    def _numbered(
        self, symbols: Sequence[str], *, text: str, reading: str, where: str
    ) -> tuple[list[int], Counter[str]]:
        """Return the ids of known symbols, and the unknown symbols; raises InputError like ``encode``."""
        unknown = Counter(symbol for symbol in symbols if symbol not in self._table)
        if unknown and not self._drop:
            raise InputError(describe_unknown(unknown, text=text, reading=reading, table=self._table, where=where))
        known = [symbol for symbol in symbols if symbol in self._table]
        ids = [self._table.ids[symbol] for symbol in known]
        # Punctuation is spoken if nothing else was written, but not if nothing else is left.
        is_cut = self._drop and any(not one.isspace() and one not in self._table for one in text)
        if all(one.isspace() or (is_cut and not any(map(str.isalnum, one))) for one in known):
            left = "after cleaning, nothing is left to speak that this voice has a symbol for"
            raise EmptyTextError(f"empty transcript {quote(text)}: {left}{at(where)}", unknown)
        space = [self._table.ids[" "]] if self.config.prepend_space or self.config.append_space else []
        return space * self.config.prepend_space + ids + space * self.config.append_space, unknown

    def inputs(self, ids: Sequence[int]) -> Tensor:
        """Convert ids to a network's input: (L,) int64, or phonological features (L, n_symbols) float32."""
        return torch.tensor(ids) if self._vectors is None else self._vectors[list(ids)]

    def encode_words(self, spans: Sequence[Span], *, where: str = "", draw: RandomNumbers | None = None) -> EncodedText:
        """Return the ids (L,) of the spans' joined texts, like ``encode``, and the words that they say.

        Words that can't be told apart in the reading count as one. A span with a source is one word.
        """
        written, after = written_words([self._with_phones(span, where=where) for span in spans])
        written = [replace(word, reading=self._lexicon.apply(word.reading)) for word in written]
        text = "".join(word.before + word.reading for word in written) + after
        lost, dropped = self._check(text, where=where)
        words = self._written_out(text.translate(lost))
        reading, symbols, find_owners = self._spoken(words, draw)
        try:
            ids, unknown = self._numbered(symbols, text=text, reading=reading, where=where)
        except EmptyTextError as error:
            raise EmptyTextError(str(error), dropped + error.dropped) from error

        def find_words() -> tuple[Word, ...]:
            alone = [self._tokens(self._written_out(word.reading.translate(lost))) for word in written]
            tokens, owners = find_owners()
            owners = composed(owners, owners_of_tokens(alone, tokens))
            known = [owner for symbol, owner in zip(symbols, owners) if symbol in self._table]
            return words_of_symbols(written, [None] * self.config.prepend_space + known)

        return EncodedText(tuple(ids), find_words, reading=words, dropped=dropped + unknown)

    def _with_phones(self, span: Span, *, where: str) -> Span:
        """Return a span whose IPA or ARPAbet phones are written as in a text of this voice."""
        if span.alphabet is None:
            return span
        check_choice("alphabet of phones", span.alphabet, ALPHABETS)
        phones = " ".join(phones_for_voice(span.text, alphabet=span.alphabet, config=self.config, where=where))
        # Published cleaners find braces only between spaces.
        text = f" {{{phones}}}" if self._per_word else f"{{{phones}}}"
        if self._given_phones:
            text = f" {phones} "
        return replace(span, text=text, source=span.text if span.source is None else span.source)

    def _spoken(self, text: str, draw: RandomNumbers | None) -> tuple[str, list[str], FindOwners]:
        """Return the reading and symbols of a text that is written out in words, and how to find their tokens."""
        reading, tokens = text, self._tokens(text)
        owners: list[Owner | None] = [(index, index) for index in range(len(tokens))]  # of each piece
        sounds = self._say(text) if self.config.g2p is not None else None
        if sounds is not None:
            pieces = [sound.symbol for sound in sounds]
            reading = " ".join(pieces)
        elif self._phones:
            pieces = tokens
        else:
            if self.config.p_arpabet > 0:
                reading = self._pronouncer.pronounce(text, draw=draw)
            starts = [match.start() for match in TOKEN.finditer(reading)]
            places = self._split_characters(reading)
            pieces = [symbol for symbol, _ in places]
            indices = [min(bisect_right(starts, place), len(tokens)) - 1 for _, place in places]
            owners = [(index, index) for index in indices]
        symbols = [self._split_phones(piece) if self._phones else [piece] for piece in pieces]

        def find_owners() -> tuple[list[str], list[Owner | None]]:
            of_text = (tokens, owners) if sounds is None else owners_of_sounds(sounds, text, self._say_alone)
            of_pieces = [None if piece in self._between else owner for piece, owner in zip(pieces, of_text[1])]
            return of_text[0], [owner for owner, parts in zip(of_pieces, symbols) for _ in parts]

        return reading, list(chain.from_iterable(symbols)), find_owners

    def _say(self, text: str) -> list[SpokenSymbol]:
        if ENGLISH_V3 in self.config.cleaners:
            text = with_espeak_phones(text)
        return sounds_of_text(text, language=self.config.g2p_language, table=self._table)

    def _split_characters(self, text: str) -> list[tuple[str, int]]:
        """Split text into characters, and "@HH" for each ARPAbet phone in curly braces, with places in the text."""
        symbols: list[tuple[str, int]] = []
        for match in _ARPABET_OR_TEXT.finditer(text):
            if match[1]:
                symbols += [("@" + phone, match.start()) for phone in match[1].split()]
            else:
                symbols += [(character, place) for place, character in enumerate(match[0], match.start())]
        return symbols

    def _split_phones(self, text: str) -> list[str]:
        """Split phones at spaces; a word that isn't a phone is cut into the longest phones of the set: "kæt"."""
        words = text.split()
        return [phone for word in words for phone in ([word] if word in self._table else self._phone.findall(word))]

    def describe_dropped(self, dropped: Counter[str]) -> str:
        """Return a line that counts and names the symbols that were left out; empty if there are none."""
        if not (n_dropped := dropped.total()):
            return ""
        what = f"{n_dropped} {'phone' if self._given_phones else 'character'}{'s' * (n_dropped > 1)}"
        done = "were left out" if n_dropped > 1 else "was left out"
        if self._cleans and self._published and any(map(script_of, dropped)):
            done += " or written in Latin"
        return f"{what} that this voice has no symbol for {done}: {name_counts(dropped)}"

    def warn_dropped(self, dropped: Counter[str], *, where: str = "") -> None:
        """Print `describe_dropped` to stderr, after ``where`` if given."""
        if line := self.describe_dropped(dropped):
            print(f"warning: {where}{': ' * bool(where)}{line}", file=sys.stderr)

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids: characters with ARPAbet in curly braces, or phones separated by spaces."""
        symbols = [self._table.symbols[index] for index in ids]
        if self._phones:
            return " ".join(symbols)
        text = "".join(f"{{{symbol[1:]}}}" if len(symbol) > 1 else symbol for symbol in symbols)
        return text.replace("}{", " ")
