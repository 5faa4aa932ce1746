"""Praat TextGrids to phones and durations in mel frames, with uniform names of pauses and edge silences."""

import codecs
import io
import math
from dataclasses import dataclass
from pathlib import Path

import tgt

from common.config import AudioConfig
from common.errors import InputError
from common.text import EDGE_SILENCE, PAUSE

TIER = "phones"
HEADERS = ('File type = "ooTextFile"', 'File type = "ooTextFile short"')
_LARGEST = 1 << 24  # bytes; an hour of phones has 4 million
_LATEST = 1e6  # s, of a time
SILENCE_LABELS = ("sil", "sp", "spn", "")  # an empty label and a gap are silence; spn is an unknown word


@dataclass(frozen=True)
class TextGridAlignment:
    """Phones and how long each one lasts."""

    phones: tuple[str, ...]  # (L,)
    durations: tuple[int, ...]  # (L,) mel frames

    @property
    def n_frames(self) -> int:
        return sum(self.durations)


def read_alignment(path: Path, config: AudioConfig) -> TextGridAlignment:
    """Read the ``phones`` tier of a TextGrid: long or short format, UTF-8 or UTF-16.

    A boundary at ``t`` seconds is at frame ceil(t * sampling_rate / hop_length). Intervals labelled ``sil``,
    ``sp``, ``spn`` or nothing, and gaps of a frame or more, are ``sil`` at either end and ``sp`` between phones.
    An unreadable file, a missing tier and overlapping or truncated intervals are InputErrors.
    """
    tier = _read_tier(path)
    frames_per_second = config.sampling_rate / config.hop_length
    labels: list[str] = []
    durations: list[int] = []
    reached = 0  # frame
    for interval in tier:
        if not 0 <= interval.start_time <= interval.end_time <= _LATEST:
            times = f"{interval.start_time:g} to {interval.end_time:g} s"
            raise InputError(f"{path}: an interval from {times}, expected seconds from 0 to {_LATEST:g} in order")
        start = math.ceil(interval.start_time * config.sampling_rate / config.hop_length)
        end = math.ceil(interval.end_time * config.sampling_rate / config.hop_length)
        if start > reached:
            labels.append("")
            durations.append(start - reached)
        label = interval.text.strip()
        if "|" in label or len(label.split()) > 1:  # a list could not hold it
            raise InputError(f"{path}: the phone {label!r} at {interval.start_time:g} s is not one word")
        labels.append(label)
        durations.append(end - start)
        reached = end
    if not labels:
        raise InputError(f"{path}: the {TIER} tier is empty")
    # times are rounded in the file, so the tier may seem to end after its last interval
    if math.ceil(round(tier.end_time * frames_per_second, 3)) > reached + 1:
        labels.append("")
        durations.append(math.ceil(tier.end_time * frames_per_second) - reached)
    return TextGridAlignment(phones=tuple(_name_silences(labels)), durations=tuple(durations))


def fit(alignment: TextGridAlignment, n_frames: int, *, path: Path, config: AudioConfig) -> TextGridAlignment:
    """The same alignment with as many frames as the mel-spectrogram; the last interval takes a difference of one.

    A mel-spectrogram has 1 + T // hop frames (or T // hop), the boundaries' rounding gives ceil(T / hop). A larger
    difference means that the TextGrid is of another recording, an InputError.
    """
    missing = n_frames - alignment.n_frames
    last = alignment.durations[-1] + missing
    if abs(missing) > 1 or last < 0:
        hop_seconds = config.hop_length / config.sampling_rate
        raise InputError(
            f"{path}: {alignment.n_frames} frames ({alignment.n_frames * hop_seconds:.2f} s), the recording has "
            f"{n_frames} ({n_frames * hop_seconds:.2f} s); is it the TextGrid of this recording?"
        )
    return TextGridAlignment(phones=alignment.phones, durations=(*alignment.durations[:-1], last))


def trim_silence(
    alignment: TextGridAlignment, seconds: float, config: AudioConfig
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Phones and mel frames, first and one past the last, that remain if edge silences last at most ``seconds``.

    The outer part goes: the start of the leading and the end of the trailing silence. With 0 s its phone goes too.
    """
    keep = round(seconds * config.sampling_rate / config.hop_length)  # frames
    phones, durations = alignment.phones, alignment.durations
    first_phone, last_phone = 0, len(phones)
    first_frame, last_frame = 0, alignment.n_frames
    if phones[0] == EDGE_SILENCE:
        first_frame += max(0, durations[0] - keep)
        first_phone += keep == 0
    if len(phones) > 1 and phones[-1] == EDGE_SILENCE:
        last_frame -= max(0, durations[-1] - keep)
        last_phone -= keep == 0
    return (first_phone, last_phone), (first_frame, last_frame)


def _name_silences(labels: list[str]) -> list[str]:
    edges = (0, len(labels) - 1)
    return [
        label if label not in SILENCE_LABELS else EDGE_SILENCE if index in edges else PAUSE
        for index, label in enumerate(labels)
    ]


def _read_tier(path: Path) -> tgt.IntervalTier:
    """The phones tier, its intervals in order of time."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such TextGrid") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > _LARGEST:
        raise InputError(f"{path}: more than {_LARGEST} bytes, expected the TextGrid of one recording")
    # Praat writes UTF-16 with a byte order mark as soon as a label is not ASCII; others write UTF-8
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
        _check_counts(text)
        grid = tgt.read_textgrid(io.StringIO(text, newline=None), include_empty_intervals=True)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: neither UTF-8 nor UTF-16 text") from error
    except (ValueError, IndexError) as error:
        # tgt's message on a broken interval is useful, that of a failed conversion is not
        reason = str(error) if "Could not" in str(error) else "truncated or malformed"
        raise InputError(f"{path}: not a readable TextGrid: {reason.rstrip('.')}") from error
    names = [tier.name for tier in grid]
    if TIER not in names:
        raise InputError(f"{path}: no tier named {TIER}, only {', '.join(names) or 'none'}")
    tier = grid.get_tier_by_name(TIER)
    if not isinstance(tier, tgt.IntervalTier):
        raise InputError(f"{path}: the {TIER} tier holds points, expected intervals")
    return tier


def _check_counts(text: str) -> None:
    """Raise ValueError or IndexError unless the file holds as many tiers and intervals as it announces.

    tgt reads a file that ends between two intervals as if it were complete. The lines are counted as tgt counts them.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() not in ("", '"')]
    if not lines or lines[0] not in HEADERS or "<exists>" not in lines[4]:
        raise ValueError
    is_long = lines[2].startswith("xmin")
    index, tier_lines, first = (7, 6, 1) if is_long else (6, 5, 0)
    object_lines = {"IntervalTier": 4 if is_long else 3, "TextTier": 3 if is_long else 2}
    for _ in range(int(lines[5].rpartition(" ")[2])):
        kind = lines[index + first].rpartition(" ")[2].strip('"')
        if kind not in object_lines:
            raise ValueError
        if (n_objects := int(lines[index + tier_lines - 1].rpartition(" ")[2])) < 0:
            raise ValueError
        index += tier_lines + n_objects * object_lines[kind]
    if index != len(lines):
        raise ValueError
