"""Converts Praat TextGrids to phones and durations in mel frames, with uniform names for pauses and edge silences."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from common.config import AudioConfig
from common.errors import InputError, shown
from common.text.symbols import EDGE_SILENCE, PAUSE

if TYPE_CHECKING:
    import tgt

TIER = "phones"
SILENCE_LABELS = ("sil", "sp", "<eps>", "")  # ignoring case; an empty label or a gap is silence
UNKNOWN_WORD = "spn"  # the Montreal Forced Aligner's phone for a word that its dictionary lacks


@dataclass(frozen=True)
class TextGridAlignment:
    """Phones and how long each one lasts."""

    phones: tuple[str, ...]  # (L,)
    durations: tuple[int, ...]  # (L,) mel frames
    end: float | None = None  # s, of the last interval


def read_alignment(path: Path, config: AudioConfig) -> TextGridAlignment:
    """Read the tier ``phones``, or ``anna - phones``, of a TextGrid in any format and encoding that Praat reads.

    A boundary at ``t`` seconds is at frame ceil(t * sampling_rate / hop_length). Intervals labeled ``sil``,
    ``sp`` or nothing, and gaps of a frame or more, are ``sil`` at either end and ``sp`` between phones.
    Raises InputError for an unreadable file, a missing tier, or intervals that overlap, are truncated or unlabeled.
    """
    tier = _read_tier(path)

    def frame_of(seconds: float) -> int:
        # Times are rounded in the file and in floating point, where 0.07 s x 24000 Hz / 240 is 7.000000000000001.
        return math.ceil(round(seconds * config.sampling_rate / config.hop_length, 3))

    parts: list[tuple[str, int]] = []  # labels and frames
    reached = 0  # frame
    for interval in tier:
        first, last = float(interval.start_time), float(interval.end_time)
        start = max(reached, frame_of(first))
        end = max(start, frame_of(last))
        if start > reached:
            parts.append(("", start - reached))
        label = interval.text.strip()
        if "|" in label or len(label.split()) > 1:  # which a list can't hold
            raise InputError(f"{path}: the phone {shown(label)} at {first:g} s is not one word")
        parts.append((label, end - start))
        reached = end
    if not parts:
        raise InputError(f"{path}: the {TIER} tier is empty")
    end_time, tier_end = float(tier[-1].end_time), float(tier.end_time)
    if frame_of(tier_end) > reached + 1:
        parts.append(("", frame_of(tier_end) - reached))
        end_time = tier_end
    labels, durations = zip(*parts)
    silences = [EDGE_SILENCE, *[PAUSE] * (len(labels) - 2), EDGE_SILENCE]
    phones = (silence if label.lower() in SILENCE_LABELS else label for label, silence in zip(labels, silences))
    return TextGridAlignment(tuple(phones), durations, end_time)


def fit(alignment: TextGridAlignment, n_frames: int, *, path: Path, config: AudioConfig) -> TextGridAlignment:
    """Fit an alignment to the mel-spectrogram's number of frames; the last interval absorbs a difference of one.

    A mel-spectrogram has 1 + T // hop frames (or T // hop), while the rounded boundaries give ceil(T / hop). Raises
    InputError for a larger difference, which means that the TextGrid is of another recording.
    """
    n_own = sum(alignment.durations)
    missing = n_frames - n_own
    last = alignment.durations[-1] + missing
    if abs(missing) > 1 or last < 0:
        hop_seconds = config.hop_length / config.sampling_rate
        raise InputError(
            f"{path}: {n_own} frames ({n_own * hop_seconds:.2f} s), the recording has "
            f"{n_frames} ({n_frames * hop_seconds:.2f} s); is it the TextGrid of this recording?"
        )
    return replace(alignment, durations=(*alignment.durations[:-1], last))


def trim_silence(
    alignment: TextGridAlignment, seconds: float, config: AudioConfig
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the ranges of phones and mel frames that remain if edge silences last at most ``seconds``.

    This removes the start of the leading and the end of the trailing silence; with 0 s, their phones too.
    """
    keep = round(seconds * config.sampling_rate / config.hop_length)  # frames
    phones, durations = alignment.phones, alignment.durations
    first_phone, last_phone = 0, len(phones)
    first_frame, last_frame = 0, sum(durations)
    if phones[0] == EDGE_SILENCE:
        first_frame += max(0, durations[0] - keep)
        first_phone += keep == 0
    if len(phones) > 1 and phones[-1] == EDGE_SILENCE:
        last_frame -= max(0, durations[-1] - keep)
        last_phone -= keep == 0
    return (first_phone, last_phone), (first_frame, last_frame)


def _read_tier(path: Path) -> "tgt.IntervalTier":
    """Read the phones tier of a file, with Praat's own reader."""
    import parselmouth  # here, because features without TextGrids need neither
    import tgt

    if not path.is_file():
        raise InputError(f"{path}: no such TextGrid")
    try:
        grid = parselmouth.read(str(path)).to_tgt(include_empty_intervals=True)
    except (parselmouth.PraatError, AttributeError, ValueError) as error:  # ValueError: intervals that overlap
        raise InputError(f"{path}: not a readable TextGrid: {str(error).splitlines()[0]}") from error
    tiers = [tier for tier in grid.tiers if tier.name.lower().rpartition(" - ")[2] == TIER]  # of "anna - phones"
    tiers = [tier for tier in tiers if isinstance(tier, tgt.IntervalTier)]
    spoken = [tier for tier in tiers if any(one.text.strip() for one in tier)] or tiers[:1]  # other speakers are silent
    if len(spoken) != 1:
        names = ", ".join(shown(tier.name) for tier in grid.tiers)
        problem = "several tiers of phones" if spoken else f"no tier of intervals named {TIER}, only"
        raise InputError(f"{path}: {problem} {names or 'none'}")
    return spoken[0]
