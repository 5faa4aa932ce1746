"""The audio configuration, stored in every checkpoint, and conversion of configs to and from plain types."""

import json
import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from common.errors import InputError, shown
from common.options import check_options, option

_once = cache(lambda adapter, kind: adapter(kind))  # building pydantic's adapter for a class takes milliseconds


@dataclass(frozen=True)
class AudioConfig:
    """The settings of a mel-spectrogram; two models are compatible if theirs are equal.

    ``framing`` is ``centered`` (1 + T // hop frames, reflect-padded by filter_length / 2, as in Tacotron 2) or
    ``aligned`` (T // hop frames, reflect-padded by (filter_length - hop) / 2, with 1e-9 added under the magnitude's
    root, as in HiFi-GAN).
    """

    sampling_rate: int = option(22050, "Hz", least=1, most=1_000_000, names=("-sr",))
    filter_length: int = option(1024, "size of the FFT, samples", least=1, most=2**16)
    hop_length: int = option(256, "samples", least=1, most=2**16)
    win_length: int = option(1024, "samples", least=1, most=2**16)
    n_mels: int = option(80, "mel channels", least=1, most=1024, names=("--n-mel-channels",), published=("--num-mels",))
    mel_fmin: float = option(0.0, "Hz", least=0)
    mel_fmax: float | None = option(8000.0, "Hz", above=0)  # None: half the sampling rate
    framing: str = option(
        "centered",
        "alignment of frames: centered as in Tacotron 2, or aligned as in HiFi-GAN",
        choices=("centered", "aligned"),
    )
    # None: as recorded
    peak: float | None = option(None, "peak amplitude to scale each clip to", above=0, most=1)

    def __post_init__(self) -> None:
        check_options(self)
        if self.win_length > self.filter_length:
            raise InputError(f"win_length {self.win_length} is longer than filter_length {self.filter_length}")
        if self.hop_length > self.win_length:
            raise InputError(f"hop_length {self.hop_length} is longer than win_length {self.win_length}")
        half = self.sampling_rate / 2
        top = half if self.mel_fmax is None else self.mel_fmax
        if self.mel_fmin >= top:
            raise InputError(f"mel_fmin {self.mel_fmin} Hz: expected less than mel_fmax {top} Hz")
        if top > half:
            raise InputError(f"mel_fmax {top} Hz: expected at most half the sampling rate, {half:g} Hz")


class Architecture:
    """Base class of every model's ``ModelConfig``; multi-speaker models have a field ``n_speakers``."""

    @property
    def sees_padding(self) -> str | None:
        """The setting that makes the loss depend on padding, or None."""
        return None

    @property
    def has_aligner(self) -> bool:
        """Whether the network has ``misfits(batch)``, which scores how badly transcripts fit their recordings (B,)."""
        return False

    @property
    def list_columns(self) -> str:
        """The columns of the model's lists, as scripts/prepare_dataset.sh spells them in file names."""
        return "audio_text"


def audio_preset(sampling_rate: int) -> AudioConfig:
    """Return the usual settings at a rate: windows of about 50 ms every 12 ms; fmax is 8000 Hz from 16 to 32 kHz."""
    if sampling_rate < 16000:
        hop = max(16, 16 * round(sampling_rate * 0.00075))  # vocoders need a hop with small factors
        window = 4 * hop
    elif sampling_rate == 16000:
        hop, window = 200, 800
    else:
        scale = 2 ** round(math.log2(sampling_rate / AudioConfig.sampling_rate))
        hop, window = scale * AudioConfig.hop_length, scale * AudioConfig.win_length
    fmax = AudioConfig.mel_fmax if 16000 <= sampling_rate < 32000 else None
    size = 2 ** math.ceil(math.log2(window))
    return AudioConfig(sampling_rate, filter_length=size, hop_length=hop, win_length=window, mel_fmax=fmax)


def to_plain(config: Any) -> dict[str, Any]:
    """Return a config as a dict of plain types, with lists instead of tuples, as in checkpoints and JSON files."""
    return dict(json.loads(json.dumps(asdict(config))))


def from_plain(kind: type, values: Any, *, where: str, error: type[InputError] = InputError) -> Any:
    """Build a dataclass from plain types: lists become tuples, dicts become dataclasses; missing fields are defaults.

    Types are strict: a bool isn't a number, but an int is accepted as a float. If a field is unknown, missing, of
    another type or rejected by the class, raises an ``error`` that begins with ``where`` and names the field.
    """
    from pydantic import TypeAdapter, ValidationError  # few commands need it before they load a model

    with naming_errors(where, error=error):
        try:
            return _once(TypeAdapter, kind).validate_json(json.dumps(values, default=str), strict=True, extra="forbid")
        except ValidationError as found:
            first = found.errors(include_url=False)[0]
            path = ".".join(map(str, first["loc"]))
            message = first["msg"].replace("Unexpected keyword argument", "unknown key")
            got = "" if first["type"] == "missing" else f", got {shown(first['input'])}"
            raise InputError(f"{path}{': ' * bool(path)}{message}{got}") from found


@contextmanager
def naming_errors(where: str, *, error: type[InputError] = InputError) -> Iterator[None]:
    """Prefix InputErrors from the block with ``where``, and raise them as ``error``."""
    try:
        yield
    except InputError as found:
        raise error(f"{where}: {found}" if where else str(found)) from found


def differences(first: Any, second: Any, *, names: tuple[str, str], ignored: Collection[str] = ()) -> list[str]:
    """Return one line per value that differs between two configs of the same class, except in ``ignored`` fields."""
    left, right = (_leaves({k: v for k, v in to_plain(one).items() if k not in ignored}) for one in (first, second))
    pairs = ((path[1:], left.get(path), right.get(path)) for path in left | right)
    return [f"{path}: {shown(one)} ({names[0]}), {shown(two)} ({names[1]})" for path, one, two in pairs if one != two]


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the values in nested dicts and lists of dicts by path: ``.blocks[0].filters``."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {key: leaf for i, one in enumerate(value) for key, leaf in _leaves(one, f"{path}[{i}]").items()}
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, one in value.items() for key, leaf in _leaves(one, f"{path}.{name}").items()}
