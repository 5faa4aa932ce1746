"""SSML: a text with markup becomes spans with the style in which each is said, pauses, marks and boundaries."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """How a span is said: factors of nested elements are multiplied, shifts are added, absolute values replace."""

    rate: float = 1.0  # 2.0 is twice as fast
    pitch: float = 1.0  # factor of the pitch in Hz
    pitch_shift: float = 0.0  # Hz, added after the factor
    pitch_hz: float | None = None  # mean pitch in Hz that is asked for; pitch and pitch_shift apply to it
    pitch_range: float = 1.0  # factor of the pitch's distance from its mean
    volume: float = 1.0  # factor of the amplitude; 0 is silent
    speaker: str | None = None  # None: as the call says


NEUTRAL = Style()


@dataclass(frozen=True)
class Span:
    """Text in one style: what the front end reads."""

    text: str  # of a <sub> its alias, of a <say-as> the words
    style: Style = NEUTRAL
    source: str | None = None  # what was written, where that differs from the text
    alphabet: str | None = None  # "ipa" or "arpabet": the text is phones in it


@dataclass(frozen=True)
class Pause:
    """Silence of a <break>."""

    seconds: float


@dataclass(frozen=True)
class Mark:
    """A <mark>: a name for its place in the sound."""

    name: str


@dataclass(frozen=True)
class Boundary:
    """The end of an utterance: "sentence" or "paragraph"."""

    kind: str


Item = Span | Pause | Mark | Boundary
