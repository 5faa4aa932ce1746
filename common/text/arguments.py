"""Command-line options of the text front end, and the TextConfig they describe."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.cli import option_of, real_number
from common.config import G2P, INPUT_TYPES, TRANSCRIPT_TYPES, TextConfig, from_plain
from common.errors import InputError, OptionError
from common.files import read_json
from common.text.arpabet import (
    ARPABET_AMBIGUOUS,
    ARPABET_BY,
    check_held,
    dictionary_of_file,
    heteronyms_of_file,
    load_dictionary,
)
from common.text.cleaners import CLEANERS, ENGLISH_V3
from common.text.espeak import transcribe
from common.text.front_end import UNKNOWN_SYMBOLS
from common.text.g2p import G2P_SETS
from common.text.phone_features import phone_features, read_phone_features
from common.text.symbols import CHARACTER_SETS, PADDING, PHONE_SETS, SILENCES, get_symbol_table

NO_G2P = "none"
# Beside features: the teacher that made them, with its weights and text front end; else absent.
TEACHER = "follower.json"
_PATHS = {"cmudict_path": dictionary_of_file, "heteronyms_path": heteronyms_of_file}  # option -> what it is read by

# Options by destination, as argparse takes them.
_TEXT_OPTIONS: dict[str, dict[str, Any]] = {
    "input_type": {"choices": ("char", "phone"), "default": "char"},
    "symbol_set": {"choices": (*CHARACTER_SETS, *PHONE_SETS), "default": "english_basic"},
    "text_cleaners": {"nargs": "*", "choices": tuple(CLEANERS), "default": [ENGLISH_V3]},
    "unknown_symbols": {"choices": UNKNOWN_SYMBOLS, "default": "error"},
    "prepend_space_to_text": {"action": "store_true"},
    "append_space_to_text": {"action": "store_true"},
}
_PHONEME_OPTIONS: dict[str, dict[str, Any]] = {
    "p_arpabet": {"type": real_number(0, 1), "default": 0.0, "metavar": "P"},
    "handle_arpabet": {"choices": ARPABET_BY, "default": "word"},
    "handle_arpabet_ambiguous": {"choices": ARPABET_AMBIGUOUS, "default": "ignore"},
    "cmudict_path": {"type": Path},
    "heteronyms_path": {"type": Path},
    "g2p": {"choices": G2P},
    "g2p_language": {"default": "en-us", "metavar": "TAG"},
    "transcript_type": {"choices": TRANSCRIPT_TYPES, "default": TRANSCRIPT_TYPES[0]},
}
_RENAMED = {
    "text_cleaners": "cleaners",
    "handle_arpabet": "arpabet_by",
    "handle_arpabet_ambiguous": "arpabet_ambiguous",
    "prepend_space_to_text": "prepend_space",
    "append_space_to_text": "append_space",
    "cmudict_path": "cmudict",
    "heteronyms_path": "heteronyms",
}
# Option's destination -> field of TextConfig.
_FIELDS = {name: _RENAMED.get(name, name) for name in _TEXT_OPTIONS | _PHONEME_OPTIONS if name != "unknown_symbols"}
_HELP = {
    "input_type": "transcripts are characters (with ARPAbet in curly braces), or phones separated by spaces",
    "symbol_set": f"ordered table of symbols; for phones one of {', '.join(PHONE_SETS)}",
    "text_cleaners": "cleaners of character transcripts, applied in this order; published voices: english_cleaners",
    "unknown_symbols": "symbols that are not in the set end the run, or are dropped with one warning that counts them; "
    "with --from-checkpoint they are dropped unless this says otherwise",
    "prepend_space_to_text": "begin characters with a space, which can take the silence before the first word",
    "append_space_to_text": "end characters with one",
    "p_arpabet": "probability that a word becomes the dictionary's ARPAbet phones, drawn for each word in each epoch",
    "handle_arpabet": "draw for each word, or once for a sentence, which becomes phones completely or not at all",
    "handle_arpabet_ambiguous": "words that the dictionary pronounces in several ways stay letters, or are said the "
    "first way",
    "cmudict_path": "dictionary in CMUdict's format, instead of the package cmudict's",
    "heteronyms_path": "words that stay letters, one a line, instead of the toolkit's own list",
    "g2p": "the voice reads text of --g2p-language, which becomes phones of --symbol-set ipa_marked or ipa",
    "g2p_language": "language tag of eSpeak NG, such as de, fr-fr or pt-br",
    "transcript_type": "with --g2p: what the lists for training hold; phones are taken as they are, and the voice "
    "still reads text",
}
_OVERRIDE_HELP = {
    "p_arpabet": "probability that a word becomes ARPAbet phones (default: every word, if the voice was trained with "
    "any)",
    "cmudict_path": "dictionary in CMUdict's format, instead of the checkpoint's",
    "heteronyms_path": "words that stay letters, instead of the checkpoint's",
    "g2p": "make phones of text, or read phones, instead of what the checkpoint says",
    "g2p_language": "language tag of eSpeak NG, instead of the checkpoint's",
}


class _OfVoice:
    """The value of an option for a file that a checkpoint holds, or names."""

    def __init__(self, text: TextConfig) -> None:
        self.text = text

    def __str__(self) -> str:
        return "the voice's own"


def with_given_files(stored: TextConfig, given: TextConfig) -> TextConfig:
    """A stored front end with the given dictionary and heteronyms for those that it names and does not hold.

    Raises InputError where none are given.
    """
    named = {name: getattr(given, _FIELDS[name]) for name in _PATHS if getattr(stored, name) is not None}
    changes: dict[str, Any] = {name: None for name, text in named.items() if text is not None}
    check_held(stored := replace(stored, **changes))
    return replace(stored, **{_FIELDS[name]: text for name, text in named.items()})


def add_text_arguments(parser: argparse.ArgumentParser, *, features: bool = False) -> None:
    """Add the options that say how a transcript becomes symbol ids, or with ``features`` phonological features too."""
    text = parser.add_argument_group("text")
    phonemes = parser.add_argument_group("phonemes", "words as phones, of a dictionary (English) or of eSpeak NG")
    for group, options in ((text, _TEXT_OPTIONS), (phonemes, _PHONEME_OPTIONS)):
        for name, form in options.items():
            more = {"choices": INPUT_TYPES} if features and name == "input_type" else {}
            group.add_argument(option_of(name), **form | more, help=_HELP[name])
    if features:
        table = (
            "with --input-type pf, which reads phones as vectors of phonological features: CSV or tabs, with a header "
            "symbol,syl,son... and a row for each phone, of +, - and 0 or of numbers, as panphon's ipa_all.csv"
        )
        text.add_argument("--phone-features", type=Path, metavar="FILE", help=table)


def text_config_from_args(args: Any, *, speakers: Sequence[str] = ()) -> TextConfig:
    """The ``TextConfig`` of parsed options; ``speakers`` are names in order of their ids.

    Raises ``OptionError`` when the symbol set does not hold what the input type asks for, or an option of phonemes
    has no effect or names what does not exist.
    """
    _check_phoneme_options(args)
    if args.input_type == "pf":
        return _features_config(args, speakers=tuple(speakers))
    if getattr(args, "phone_features", None) is not None:
        raise OptionError("--phone-features is only used by --input-type pf")
    if args.g2p is not None:
        return _g2p_config(args, speakers=tuple(speakers))
    wanted = PHONE_SETS if args.input_type == "phone" else CHARACTER_SETS
    if args.symbol_set not in wanted:
        given = f"--symbol-set {args.symbol_set} does not fit --input-type {args.input_type}"
        raise OptionError(f"{given}: use one of {', '.join(wanted)}")
    values = _values(args, _FIELDS)
    if args.input_type == "phone":  # which are not cleaned, so two runs that differ in this option alone are the same
        values["cleaners"] = ()
    return TextConfig(**values, speakers=tuple(speakers))


def _features_config(args: Any, *, speakers: tuple[str, ...]) -> TextConfig:
    """Phones as phonological features; a symbol set of phones says which of them the table must be of."""
    if args.g2p is not None:
        raise OptionError("--g2p makes symbols, not phonological features; leave out --input-type pf, or it")
    if args.phone_features is None:
        raise OptionError("--input-type pf needs the table of features: --phone-features FILE")
    lines = read_phone_features(args.phone_features)
    if args.symbol_set in PHONE_SETS:
        check_notation(lines, args.symbol_set)
    return TextConfig(input_type="pf", symbol_set="", cleaners=(), speakers=speakers, phone_features=lines)


def check_notation(lines: tuple[str, ...], symbol_set: str) -> None:
    """Refuse by OptionError a table of features that lists no phone of a symbol set, so is of another notation."""
    listed = phone_features(lines).table
    phones = get_symbol_table(symbol_set).symbols
    if not any(phone in listed for phone in phones if phone not in (PADDING, *SILENCES)):
        raise OptionError(f"--symbol-set {symbol_set}: the table of phonological features lists none of its phones")


def _values(args: Any, options: Iterable[str]) -> dict[str, Any]:
    """Fields of TextConfig, by the ``options`` that are given."""
    values = {_FIELDS[option]: getattr(args, option) for option in options if getattr(args, option) is not None}
    for option, read in _PATHS.items():
        if isinstance(given := values.get(_FIELDS[option]), _OfVoice):
            check_held(given.text)
            values[_FIELDS[option]] = getattr(given.text, _FIELDS[option])
        elif given is not None:
            values[_FIELDS[option]] = read(given)
    return values | ({"cleaners": tuple(values["cleaners"])} if "cleaners" in values else {})


def options_of_text(config: TextConfig) -> dict[str, object]:
    """The options that ``text_config_from_args`` makes ``config`` of, by destination; speakers are no option.

    Symbols that the voice lacks are dropped.
    """
    options: dict[str, Any] = {option: getattr(config, field) for option, field in _FIELDS.items()}
    for name in _PATHS:
        is_own = options[name] is not None or getattr(config, name) is not None
        options[name] = _OfVoice(config) if is_own else None
    options["unknown_symbols"] = "drop"
    del options["transcript_type"]  # which is of the lists, not of the voice
    cleaners = options.pop("text_cleaners")
    is_cleaned = config.input_type == "char" or config.g2p is not None  # phones are not
    return options | ({"text_cleaners": list(cleaners)} if is_cleaned else {})


def written_options(text: TextConfig) -> str:
    """The options of train.py for this text front end."""
    words = ["--input-type", text.input_type, "--symbol-set", text.symbol_set, "--text-cleaners", *text.cleaners]
    if text.p_arpabet:
        words += ["--p-arpabet", "1"]  # the teacher read every word as phones
    if text.g2p is not None:
        words += ["--g2p", text.g2p, "--g2p-language", text.g2p_language]
        words += ["--transcript-type", text.transcript_type] * (text.transcript_type != "text")
    return " ".join(words)


@dataclass(frozen=True)
class StoredTeacher:
    """What a folder of durations or of mels says of the model that made them, in the file `TEACHER`."""

    model: str
    sha256: str  # of its checkpoint
    text: TextConfig
    ema: bool = False  # folders from before there was a choice hold what the raw weights made
    unknown_symbols: str = "error"


def read_teacher(path: Path) -> StoredTeacher:
    """The teacher that such a file is of; raises InputError."""
    teacher: StoredTeacher = from_plain(StoredTeacher, read_json(path), where=str(path))
    return teacher


def text_of_teacher(text: TextConfig, durations: Path) -> tuple[TextConfig, str] | None:
    """The text front end of the teacher whose attention gave a folder of ``durations``, which fit its symbols alone,
    and what it did with unknown symbols.

    None where ``text`` is neither the default nor the teacher's, and where the durations are from elsewhere.
    """
    path = durations / TEACHER
    if not path.is_file():
        return None
    stored = read_teacher(path)
    p_arpabet = 1.0 if stored.text.p_arpabet else 0.0  # a teacher reads every word as phones
    taught: TextConfig = replace(stored.text, p_arpabet=p_arpabet, speakers=text.speakers)
    is_default = text == TextConfig(cleaners=(ENGLISH_V3,), speakers=text.speakers)
    return (taught, stored.unknown_symbols) if is_default or text == taught else None


def _g2p_config(args: Any, *, speakers: tuple[str, ...]) -> TextConfig:
    """Phones of text by eSpeak NG; a set of characters, which is the default, gives way to the set for them."""
    symbol_set = G2P_SETS[0] if args.symbol_set in CHARACTER_SETS else args.symbol_set
    if symbol_set not in G2P_SETS:
        raise OptionError(f"--g2p {args.g2p} makes phones of --symbol-set {' or '.join(G2P_SETS)}, not of {symbol_set}")
    english = _is_english(args.g2p_language)
    return TextConfig(
        input_type="phone",
        symbol_set=symbol_set,
        cleaners=tuple(name for name in args.text_cleaners if english or not name.startswith("english")),
        speakers=speakers,
        g2p=args.g2p,
        g2p_language=args.g2p_language,
        transcript_type=args.transcript_type,
    )


def _is_english(language: str) -> bool:
    return language.split("-")[0] == "en"


def _cleaned_kind(config: TextConfig) -> tuple[str | None, bool]:
    """What decides which cleaners fit a voice of phones: whether it reads text, and whether that is English."""
    return config.g2p, _is_english(config.g2p_language)


def _check_phoneme_options(args: Any) -> None:
    """Refuse options of phonemes that have no effect or name what does not exist."""
    phones = args.input_type != "char" or args.g2p is not None
    if phones and args.p_arpabet:
        raise OptionError("--p-arpabet makes phones of characters; leave out --input-type phone and --g2p, or it")
    if phones and (args.prepend_space_to_text or args.append_space_to_text):
        raise OptionError("--prepend-space-to-text and --append-space-to-text are for characters, not for phones")
    for name in _PATHS:
        if getattr(args, name) is not None and not args.p_arpabet:
            raise OptionError(f"{option_of(name)} is only used by --p-arpabet")
    if args.g2p is None and args.g2p_language != "en-us":
        raise OptionError("--g2p-language is only used by --g2p espeak")
    if args.g2p is None and args.transcript_type != "text":
        instead = "without it, the transcripts of --input-type phone are phones"
        raise OptionError(f"--transcript-type {args.transcript_type} is only used by --g2p espeak; {instead}")
    if args.p_arpabet and args.cmudict_path is None:
        load_dictionary()
    if args.g2p is not None:
        _check_language(args.g2p_language)


def _check_language(language: str) -> None:
    try:
        transcribe("", language=language)
    except InputError as error:
        raise OptionError(f"--g2p-language {language}: {error}") from error


def add_phoneme_overrides(group: argparse._ArgumentGroup) -> None:
    """Add the options that change how a trained voice makes phonemes; each is None where it is not given."""
    for name, words in _OVERRIDE_HELP.items():
        form = _PHONEME_OPTIONS[name] | {"default": None}
        if name == "g2p":
            form["choices"] = (*G2P, NO_G2P)
        group.add_argument(option_of(name), **form, help=words)


def override_phonemes(args: Any, config: TextConfig) -> TextConfig:
    """A voice's front end with the options of ``add_phoneme_overrides``, as far as they are given.

    Raises ``OptionError`` for an option that has no effect on the voice.
    """
    if args.g2p in G2P and config.symbol_set not in G2P_SETS:
        sets = " and ".join(G2P_SETS)
        raise OptionError(f"--g2p {args.g2p} makes phones of the sets {sets}, but the voice reads {config.symbol_set}")
    if args.p_arpabet is not None and config.input_type != "char":
        raise OptionError("--p-arpabet makes phones of characters, but the voice reads phones")
    given = [name for name in _PATHS if getattr(args, name) is not None]
    if given and not (config.p_arpabet if args.p_arpabet is None else args.p_arpabet):
        raise OptionError(f"{option_of(given[0])} is only used by a voice with phonemes, or --p-arpabet")
    changes = _values(args, _OVERRIDE_HELP)
    changes |= dict.fromkeys(given)  # what the checkpoint names is not needed
    if args.g2p is not None:  # what is given to read is of that kind, whatever the training lists held
        changes["transcript_type"] = "text"
    if args.g2p == NO_G2P:
        changes |= {"g2p": None, "cleaners": ()}
    before, config = config, replace(config, **changes)
    if config.g2p is not None and _cleaned_kind(before) != _cleaned_kind(config):
        config = replace(config, cleaners=(ENGLISH_V3,) if _is_english(config.g2p_language) else ())
    if "g2p_language" in changes and config.g2p is None:
        raise OptionError("--g2p-language is only used by a voice that makes phones of text, or --g2p espeak")
    if config.g2p is not None:
        _check_language(config.g2p_language)
    return config


def with_phone_features(args: Any, stored: TextConfig) -> TextConfig:
    """The front end of a voice that reads phonological features, with the table that is given where it has none."""
    if args.input_type not in (None, "pf"):
        raise OptionError(f"--input-type {args.input_type}: the voice reads phonological features (pf); leave it out")
    if (
        option := next((name for name in ("p_arpabet", "g2p", "text_cleaners") if getattr(args, name)), None)
    ) is not None:
        raise OptionError(f"{option_of(option)} is not for a voice that reads phonological features; leave it out")
    if args.phone_features is not None and stored.phone_features:
        raise OptionError("--phone-features: the checkpoint holds its table; leave it out")
    if args.phone_features is not None:
        stored = replace(stored, phone_features=read_phone_features(args.phone_features))
    if args.symbol_set is not None and stored.phone_features:
        check_notation(stored.phone_features, args.symbol_set)
    return stored
