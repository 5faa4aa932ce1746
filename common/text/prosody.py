"""Speaking styles, and parsing of SSML's <prosody>, <emphasis> and <break>, which raises ValueError."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Style:
    """How to speak a span: factors of nested elements multiply, shifts add up, absolute values replace each other."""

    rate: float = 1.0  # 2.0 is twice as fast
    pitch: float = 1.0  # factor of the pitch in Hz
    pitch_shift: float = 0.0  # Hz, added after the factor
    pitch_hz: float | None = None  # requested mean pitch in Hz; pitch and pitch_shift apply to it
    pitch_range: float = 1.0  # factor of the pitch's distance from its mean
    volume: float = 1.0  # factor of the amplitude; 0 is silent
    speaker: str | None = None  # None: the caller's


NEUTRAL = Style()

MAX_PAUSE = 10.0  # s of one <break>

RATES = {"x-slow": 0.5, "slow": 0.75, "medium": 1.0, "fast": 1.25, "x-fast": 1.75}
PITCHES = {"x-low": 0.75, "low": 0.87, "medium": 1.0, "high": 1.15, "x-high": 1.33}  # about 5 and 2.4 semitones
PITCH_RANGES = {"x-low": 0.25, "low": 0.5, "medium": 1.0, "high": 1.5, "x-high": 2.0}
VOLUMES = {"silent": 0.0, "x-soft": 0.25, "soft": 0.5, "medium": 1.0, "loud": 1.4, "x-loud": 2.0}  # -12 dB to 6 dB
PAUSES = {"x-weak": 0.1, "weak": 0.2, "medium": 0.4, "strong": 0.7, "x-strong": 1.0}  # s
EMPHASES = {
    "strong": Style(rate=0.85, pitch=1.1, pitch_range=1.3, volume=1.25),
    "moderate": Style(rate=0.93, pitch=1.05, pitch_range=1.15, volume=1.1),
    "none": NEUTRAL,
    "reduced": Style(rate=1.1, pitch=0.97, pitch_range=0.8, volume=0.85),
}
# Limits for all elements around a text together, and for values requested in other ways.
LIMITS = {
    "rate": (0.1, 10.0),
    "pitch": (0.25, 4.0),
    "pitch_shift": (-500.0, 500.0),  # Hz
    "pitch_hz": (20.0, 1000.0),
    "pitch_range": (0.0, 4.0),
    "volume": (0.0, 10.0),
}


class _Attribute(NamedTuple):
    """An attribute of <prosody>: the style field that it changes, and the allowed values."""

    field: str
    keywords: Mapping[str, float]
    units: tuple[str, ...]  # "": a number without one
    examples: str
    absolute: tuple[str, ...] = ()  # further fields that "default" resets


PROSODY = {
    "rate": _Attribute("rate", RATES, ("", "%"), "0.9, 90%, +10%"),
    "pitch": _Attribute(
        "pitch", PITCHES, ("%", "st", "hz"), "90%, +10%, +2st, 200Hz, +20Hz", ("pitch_shift", "pitch_hz")
    ),
    "range": _Attribute("pitch_range", PITCH_RANGES, ("%",), "90%, +10%"),
    "volume": _Attribute("volume", VOLUMES, ("%", "db"), "+6dB, -6dB, 90%, +10%"),
}
_AMOUNT = re.compile(
    r"([+-]?)([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s?(%|st|hz|db|ms|s|)", re.IGNORECASE | re.ASCII
)


def combined(outer: Style, inner: Style) -> Style:
    """Combine the style ``inner`` with the style ``outer`` around it, as for nested elements of SSML."""
    return Style(
        rate=outer.rate * inner.rate,
        pitch=outer.pitch * inner.pitch,
        pitch_shift=outer.pitch_shift + inner.pitch_shift,
        pitch_hz=outer.pitch_hz if inner.pitch_hz is None else inner.pitch_hz,
        pitch_range=outer.pitch_range * inner.pitch_range,
        volume=outer.volume * inner.volume,
        speaker=inner.speaker or outer.speaker,
    )


def emphasized(style: Style, attributes: Mapping[str, str]) -> Style:
    """Return the style within an <emphasis>, given the style around it."""
    level = attributes.get("level", "moderate").strip()
    tag = f"<emphasis level={level!r}>"
    if level not in EMPHASES:
        raise ValueError(f"{tag}: expected one of {', '.join(EMPHASES)}, got {level!r}")
    return _limited(combined(style, EMPHASES[level]), tag)


def with_prosody(style: Style, attributes: Mapping[str, str]) -> Style:
    """Return the style within a <prosody>, given the style around it."""
    if not attributes:
        raise ValueError(f"<prosody>: expected one of {', '.join(PROSODY)}, got no attribute")
    for name, value in attributes.items():
        tag = f"<prosody {name}={value!r}>"
        style = _limited(_changed(style, PROSODY[name], value.strip(), tag=tag), tag)
    return style


def pause_seconds(attributes: Mapping[str, str]) -> float:
    """Return the seconds of a <break>: its time, else the default of its strength."""
    strength = attributes.get("strength", "medium").strip()
    if strength not in PAUSES:
        expected = f"expected one of {', '.join(PAUSES)}"
        raise ValueError(f"<break strength={strength!r}>: {expected}, got {strength!r}")
    if "time" not in attributes:
        return PAUSES[strength]
    time = attributes["time"].strip()
    match = _AMOUNT.fullmatch(time)
    if not match or match[1] == "-" or match[3] not in ("s", "ms"):
        raise ValueError(f"<break time={time!r}>: expected seconds (1.5s) or milliseconds (300ms), got {time!r}")
    seconds = float(match[2]) / (1000 if match[3] == "ms" else 1)
    if seconds > MAX_PAUSE:
        raise ValueError(f"<break time={time!r}>: expected at most {MAX_PAUSE:g}s, got {time!r}")
    return seconds


def _changed(style: Style, attribute: _Attribute, value: str, *, tag: str) -> Style:
    changes: dict[str, Any] = {name: getattr(NEUTRAL, name) for name in (attribute.field, *attribute.absolute)}
    if value == "default":
        return replace(style, **changes)
    factor = attribute.keywords.get(value)
    if factor is None:
        match = _AMOUNT.fullmatch(value)
        unit = match[3].lower() if match else ""
        if not match or unit not in attribute.units or (not unit and match[1]):
            expected = ", ".join([*attribute.keywords, "default"])
            raise ValueError(f"{tag}: expected such as {attribute.examples}, or one of {expected}, got {value!r}")
        amount = float(match[1] + match[2])
        if unit == "hz" and match[1]:
            return replace(style, pitch_shift=style.pitch_shift + amount)
        if unit == "hz":
            return replace(style, **changes | {"pitch_hz": amount})
        factor = _factor(amount, unit, signed=bool(match[1]))
    changes = {attribute.field: getattr(style, attribute.field) * factor}
    return replace(style, **changes)


def _factor(amount: float, unit: str, *, signed: bool) -> float:
    """ "90%" is 0.9, "+10%" 1.1, "+2st" two semitones, "+6dB" twice the amplitude."""
    if unit == "%":
        return (100 + amount) / 100 if signed else amount / 100
    if unit in ("st", "db"):
        steps = max(-1000.0, min(amount, 1000.0))  # far beyond every limit, and within a float's range
        return 2 ** (steps / 12) if unit == "st" else 10 ** (steps / 20)
    return amount


def _limited(style: Style, tag: str) -> Style:
    for name, (low, high) in LIMITS.items():
        value = getattr(style, name)
        if value is not None and not low <= value <= high:
            what = {"pitch_hz": "pitch in Hz", "pitch_shift": "pitch shift in Hz"}.get(name, f"factor of {name}")
            raise ValueError(f"{tag}: expected a {what.replace('_', ' ')} from {low:g} to {high:g}, got {value:.9g}")
    return style
