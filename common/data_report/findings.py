"""Find problems with clips: each finding has its line of the list, the reason, and advice."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import median_abs_deviation

from common.audio.mel import MelExtractor
from common.audio.pitch import SHORTEST
from common.audio.wav import CONTAINERS, LOSSLESS
from common.config import AudioConfig
from common.data_report.clip import MEASURES, Clip, Sound
from common.data_report.options import Limits
from common.options import option_of
from common.pages.tables import Row, read_table
from common.text.symbols import name_symbol

REFUSED = "refused"
LEAST_VOICED = 5.0  # % of the pitch values
SMALLEST_GROUP = 8  # clips for a useful median; a speaker with fewer is compared with all clips
# Kind -> figure, the scale on which it is compared, and the minimum robust standard deviation on that scale: smaller
# differences are inaudible, however similar the other clips are.
OUTLIERS: dict[str, tuple[str, Callable[[Any], Any], float]] = {
    "speaking_rate": ("speaking rate", np.log, 0.05),
    "level": ("speech level", np.asarray, 1.5),  # dB
    "pitch": ("pitch, median", lambda hertz: 12 * np.log2(hertz), 0.75),  # semitones
    "misfit": ("misfit", np.asarray, 0.1),  # nats per frame
}

# Kinds of findings by name: level (refused: extraction or training stops or skips the clip; suspicious: it is used),
# title, advice, and, for simple checks, the figures and the option with their limit.
KINDS = {row.pop("kind"): row for row in read_table("data_report/kinds.tsv")}
_LIMITED = [(kind, name, row["limit"]) for kind, row in KINDS.items() for name in row["figures"].split("; ") if name]
_OF_SILENT_CLIPS = ("short", "long", "near_silent", "dc_offset")  # a near-silent clip's other figures are meaningless


class Finding(NamedTuple):
    """A finding about one clip."""

    clip: Clip
    kind: str  # of KINDS
    reason: str

    @property
    def level(self) -> str:
        """Refused or suspicious."""
        return KINDS[self.kind]["level"]

    @property
    def row(self) -> Row:
        """The cells of its row in a table."""
        return self.clip.utterance.where, self.clip.utterance.wav, self.reason


Reasons = Iterator[tuple[str, str]]  # kind and reason


def find_issues(clips: Sequence[Clip], *, audio: AudioConfig, limits: Limits) -> list[Finding]:
    """Return all findings of ``clips``, in the order of KINDS, then of the lists."""
    extractor = MelExtractor(audio)
    found = [*_duplicates(clips), *_outliers(clips, limits)]
    for clip in clips:
        reasons = [*_of_text(clip), *filter(None, [clip.fault])]
        if clip.sound is not None:
            reasons += [*_of_file(clip.sound, audio), *_of_sound(clip, extractor, limits)]
        found += [Finding(clip, *one) for one in reasons]
    order = list(KINDS)
    return sorted(found, key=lambda one: (order.index(one.kind), one.clip.utterance.index))


def _of_file(sound: Sound, audio: AudioConfig) -> Reasons:
    if sound.container not in CONTAINERS or sound.subtype not in LOSSLESS:
        yield "format", f"{sound.container} file with {sound.subtype} samples"
    if sound.n_channels != 1:
        yield "channels", f"{sound.n_channels} channels"
    if sound.sampling_rate != audio.sampling_rate:
        yield "sampling_rate", f"{sound.sampling_rate} Hz, expected {audio.sampling_rate}"
    if sound.lowest < -1 or sound.highest > 1:
        yield "range", f"samples from {sound.lowest:g} to {sound.highest:g}"


def _of_text(clip: Clip) -> Reasons:
    if clip.n_tokens == 0:
        yield "empty_text", "no text is left to speak" if clip.utterance.text else "the transcript is empty"
    if clip.unknown:
        yield "unknown_symbols", ", ".join(f"{name_symbol(symbol)} {count}x" for symbol, count in clip.unknown.items())


def _of_sound(clip: Clip, extractor: MelExtractor, limits: Limits) -> Reasons:
    figures, rate = clip.figures, extractor.config.sampling_rate
    n_samples = round(figures["duration"] * rate)  # after resampling, if needed
    n_frames, n_tokens = extractor.n_frames(n_samples), clip.n_tokens
    if n_samples < max(extractor.min_samples, SHORTEST * rate):
        yield "too_short", f"{figures['duration']:.3f} s"
        return
    if n_frames < n_tokens:
        yield "too_few_frames", f"{n_tokens} symbols, {n_frames} frames ({figures['duration']:.2f} s)"
    is_silent = figures["speech level"] < limits.report_min_level
    for kind, name, option in _LIMITED:
        value, limit, measure = figures[name], getattr(limits, option), MEASURES[name]
        share = 100 if measure.unit == "%" else 1
        is_out = value < limit if option.startswith("report_min") else abs(value) > limit * share
        if is_out and (not is_silent or kind in _OF_SILENT_CLIPS):
            yield kind, f"{name} {measure.show(value)} {measure.unit}, {option_of(option)} is {limit:g}"
    if not is_silent and figures["voiced"] < LEAST_VOICED:
        yield "unvoiced", f"{figures['voiced']:.1f} % of the clip has a pitch"


def _duplicates(clips: Sequence[Clip]) -> Iterator[Finding]:
    """Yield clips whose file, sound or text (the first of these that applies) also occurs on an earlier line."""
    firsts: dict[tuple[Any, ...], Clip] = {}
    for clip in clips:
        item, words = clip.utterance, " ".join(clip.cleaned.split()) if clip.n_tokens else None
        keys = {
            "same_path": item.name,
            "same_audio": None if clip.sound is None else clip.sound.samples_blake2b,
            "same_text": None if words is None else (item.speaker, words),
        }
        earlier = {kind: firsts.setdefault((kind, key), clip) for kind, key in keys.items() if key is not None}
        kind = next((kind for kind, one in earlier.items() if one is not clip), None)
        if kind is not None:
            first, what = earlier[kind].utterance, "text" if kind == "same_text" else "recording"
            is_overlap = first.list_index != item.list_index
            reason = f"the same {what} as {first.wav} ({first.where})"
            yield Finding(clip, "overlap" if is_overlap else kind, reason)


def _outliers(clips: Sequence[Clip], limits: Limits) -> Iterator[Finding]:
    """Yield clips that are far from their speaker's median, or from the median of all clips if the speaker has few."""
    loud = [clip for clip in clips if clip.figures.get("speech level", -math.inf) >= limits.report_min_level]
    for kind, (name, scale, least) in OUTLIERS.items():
        chosen = [
            one for one in loud if name in one.figures and (kind != "pitch" or one.figures["voiced"] >= LEAST_VOICED)
        ]
        if len(chosen) < SMALLEST_GROUP:
            continue
        for speaker in {clip.utterance.speaker for clip in chosen}:
            own = [clip for clip in chosen if clip.utterance.speaker == speaker]
            group = own if len(own) >= SMALLEST_GROUP else chosen
            values = np.array([clip.figures[name] for clip in group])
            usual, deviation = np.median(values), max(least, median_abs_deviation(scale(values), scale="normal"))
            for clip in own:
                distance = (scale(clip.figures[name]) - scale(usual)) / deviation
                if (distance if kind == "misfit" else abs(distance)) > limits.report_outlier:
                    own_value, usual_value = (MEASURES[name].show(one) for one in (clip.figures[name], usual))
                    words = f"{own_value} {MEASURES[name].unit}, median {usual_value}"
                    yield Finding(clip, kind, f"{words} ({abs(distance):.0f} deviations)")
