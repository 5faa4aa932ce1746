"""Figures of one clip, its recording read block by block so that a recording of hours needs no more memory."""

import hashlib
import itertools
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile

from common.audio import open_wav
from common.audio.pitch import PITCH_CEILING, PITCH_FLOOR, SHORTEST, PitchMoments, estimate_pitch, moments
from common.config import AudioConfig, TextConfig
from common.errors import AudioError, InputError
from common.extraction.features import Utterance, text_front_end

BLOCK_SECONDS = 60  # s of a recording that are in memory at a time
FRAME_SECONDS = 0.01  # s over which a level is taken
PITCH_RATE = 50  # values of pitch a second
# Hz, half a semitone apart
PITCH_EDGES = PITCH_FLOOR * 2.0 ** np.linspace(0, math.log2(PITCH_CEILING / PITCH_FLOOR), 73)
SILENCE_BELOW = 40.0  # dB: what is that far below the speech is silence in any recording
NOISE_MARGIN = 10.0  # dB above the noise at most, where a noisy recording has its silence
LEAST_CONTRAST = 20.0  # dB between speech and silence at least: quieter sounds of speech are no silence
SHORTEST_SOUND = 3  # frames: a click is no speech
QUIETEST = -120.0  # dBFS, of digital silence
FLAT_TOP = 3  # samples in a row at the clip's extreme
FLAT_TOLERANCE = 1e-4  # of the extreme: three steps of 16 bits
LEAST_EXTREME = 0.05  # of full scale: below, the steps of 16 bits make flat tops of their own


@dataclass(frozen=True)
class Sound:
    """What a recording is like. Levels are in dB relative to full scale."""

    container: str
    subtype: str
    sampling_rate: int  # Hz
    n_channels: int
    n_samples: int
    digest: str  # of the samples, whatever file they stand in
    lowest: float  # smallest sample
    highest: float  # largest sample
    level: float  # dBFS, root mean square of the speech
    noise: float  # dBFS, of the quietest twentieth of the frames
    dc_offset: float  # of full scale
    clipping: float  # share of the samples that stand in flat tops
    leading: float  # s of silence
    trailing: float  # s of silence
    pause: float  # s, the longest between words
    voiced: float  # share of the values of pitch
    pitch: PitchMoments
    pitch_counts: np.ndarray = field(repr=False)  # (72,) values between PITCH_EDGES

    @property
    def seconds(self) -> float:
        return self.n_samples / self.sampling_rate

    @property
    def speech_seconds(self) -> float:
        """Without the silence at both ends."""
        return max(self.seconds - self.leading - self.trailing, FRAME_SECONDS)

    @property
    def peak(self) -> float:
        """dBFS of the largest absolute sample."""
        return decibels(max(-self.lowest, self.highest) ** 2)


@dataclass(frozen=True)
class Transcript:
    """How the text front end reads a transcript."""

    cleaned: str
    n_tokens: int  # 0: nothing to speak is left
    unknown: dict[str, int]  # symbols outside the set -> times
    rewritten: dict[str, int]  # characters beyond ASCII and outside the set, before cleaning -> times
    damaged: tuple[str, ...]  # characters that only a wrong encoding leaves


@dataclass(frozen=True)
class Clip:
    """One line of a list."""

    utterance: Utterance
    transcript: Transcript
    sound: Sound | None = None  # None: it cannot be read
    fault: tuple[str, str] | None = None  # why it cannot be read: one of findings.KINDS, and the reason

    @property
    def speaking_rate(self) -> float | None:
        """Symbols a second of speech; None without a recording or a transcript."""
        return self.transcript.n_tokens / self.sound.speech_seconds if self.sound and self.transcript.n_tokens else None


def measured(clips: Iterable[Clip]) -> list[tuple[Clip, Sound]]:
    """The clips whose recording can be read."""
    return [(clip, clip.sound) for clip in clips if clip.sound is not None]


def measure(utterance: Utterance, *, dataset: Path, text: TextConfig) -> Clip:
    """Read the recording and the transcript of one line."""
    transcript = read_transcript(utterance.text, text)
    path = dataset / utterance.wav
    if not path.is_file():
        return Clip(utterance, transcript, fault=("missing", "no such file"))
    try:
        with open_wav(path) as file:
            return Clip(utterance, transcript, sound=_analyze(file, path))
    except AudioError as error:
        return Clip(utterance, transcript, fault=("unreadable", str(error).removeprefix(f"{path}: ")))


def read_transcript(text: str, config: TextConfig) -> Transcript:
    """What of a transcript the symbol set holds, once it is cleaned."""
    front_end = text_front_end(config, "drop")
    front_end.dropped.clear()
    cleaned, n_tokens = text, 0
    with suppress(InputError):  # too long, or nothing to speak is left
        cleaned = front_end.read(text)
        n_tokens = len(front_end.encode_cleaned(cleaned, text=text)) if text else 0
    known = set(front_end.symbols)
    foreign = Counter(character for character in text if ord(character) > 127 and character not in known)
    return Transcript(
        cleaned=cleaned,
        n_tokens=n_tokens,
        unknown=dict(front_end.dropped),
        rewritten={} if config.input_type == "phone" else dict(foreign),
        damaged=tuple(sorted({character for character in text if _is_damage(character)})),
    )


def _is_damage(character: str) -> bool:
    """The replacement character, or a control character; tabs are spaces."""
    return character == "\ufffd" or (unicodedata.category(character) == "Cc" and character != "\t")


def _analyze(file: soundfile.SoundFile, path: Path) -> Sound:
    """Raises AudioError for samples that are missing or not finite."""
    rate = file.samplerate
    digest, sums, pitches = hashlib.blake2b(digest_size=16), 0.0, []
    extremes: list[tuple[float, int, float, int]] = []
    levels: list[np.ndarray] = []
    n_samples = 0
    for block in _blocks(file, path):
        if not np.isfinite(block).all():
            bad = n_samples + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise AudioError(f"{path}: sample {bad} is not a finite number")
        digest.update(block.tobytes())
        n_samples += len(block)
        extremes += [_extremes(channel) for channel in block.T]
        mono = block.mean(axis=1, dtype=np.float64)
        sums += float(mono.sum())
        levels.append(_frame_levels(mono, rate))
        pitches.append(_pitch(mono, rate))
    if n_samples < file.frames:
        raise AudioError(f"{path}: truncated, {n_samples} of {file.frames} samples")
    if n_samples == 0:
        raise AudioError(f"{path}: no samples")
    frames = np.concatenate(levels)
    is_speech = _is_speech(frames)
    leading, trailing, pause = _silences(is_speech)
    pitch = np.concatenate(pitches)
    return Sound(
        container=file.format,
        subtype=file.subtype,
        sampling_rate=rate,
        n_channels=file.channels,
        n_samples=n_samples,
        digest=digest.hexdigest(),
        lowest=min(lowest for lowest, *_ in extremes),
        highest=max(highest for _, _, highest, _ in extremes),
        level=decibels(float(np.mean(frames[is_speech]))) if is_speech.any() else QUIETEST,
        noise=decibels(float(np.percentile(frames, 5))),
        dc_offset=sums / n_samples,
        clipping=_clipping(extremes) / (n_samples * file.channels),
        leading=leading,
        trailing=trailing,
        pause=pause,
        voiced=float(np.mean(pitch > 0)) if len(pitch) else 0.0,
        pitch=moments(pitch),
        pitch_counts=np.histogram(pitch, PITCH_EDGES)[0],
    )


def _blocks(file: soundfile.SoundFile, path: Path) -> Iterator[np.ndarray]:
    """Samples (T, channels) float32."""
    try:
        yield from file.blocks(BLOCK_SECONDS * file.samplerate, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise AudioError(f"{path}: damaged or truncated") from error


def _extremes(wave: np.ndarray) -> tuple[float, int, float, int]:
    """The smallest sample and the samples in flat tops at it, the largest and those at it."""
    lowest, highest = float(wave.min()), float(wave.max())
    return lowest, _flat_samples(-wave, -lowest), highest, _flat_samples(wave, highest)


def _flat_samples(wave: np.ndarray, extreme: float) -> int:
    """Samples that stand at the extreme with as many neighbors as a recorded wave's crest never has there."""
    runs = _runs(wave >= extreme - FLAT_TOLERANCE * abs(extreme))
    return sum(end - start for start, end in runs if end - start >= FLAT_TOP)


def _clipping(extremes: list[tuple[float, int, float, int]]) -> int:
    """Samples in flat tops of those blocks and channels that reach the extremes of the clip."""
    lowest, highest = min(item[0] for item in extremes), max(item[2] for item in extremes)
    least = max(LEAST_EXTREME, max(-lowest, highest) / 2)  # the other side of a lopsided wave is no clipping
    total = 0
    for low, n_low, high, n_high in extremes:
        total += n_low if -lowest >= least and low <= lowest * (1 - FLAT_TOLERANCE) else 0
        total += n_high if highest >= least and high >= highest * (1 - FLAT_TOLERANCE) else 0
    return total


def _frame_levels(wave: np.ndarray, rate: int) -> np.ndarray:
    """wave (T,) -> mean squares (frames,), the direct current left out."""
    wave = wave - wave.mean()
    size = max(1, round(FRAME_SECONDS * rate))
    size = min(size, len(wave))
    return np.mean(wave[: len(wave) // size * size].reshape(-1, size) ** 2, axis=1)


def quantile(counts: np.ndarray, part: float) -> float | None:
    """The pitch in Hz below which ``part`` of the values counted between PITCH_EDGES lie; None if there are none."""
    total = counts.sum()
    if total == 0:
        return None
    return float(np.interp(part * total, np.concatenate(([0], np.cumsum(counts))), PITCH_EDGES))


def decibels(mean_square: float) -> float:
    """A mean square relative to full scale, in dB."""
    return max(QUIETEST, 10 * math.log10(mean_square)) if mean_square > 0 else QUIETEST


def _is_speech(frames: np.ndarray) -> np.ndarray:
    """Mean squares (frames,) -> which of them sound, clicks left out."""
    speech = decibels(float(np.percentile(frames, 95)))
    if speech <= QUIETEST:
        return np.zeros(len(frames), dtype=bool)
    noise = decibels(float(np.percentile(frames, 5)))
    threshold = max(speech - SILENCE_BELOW, min(noise + NOISE_MARGIN, speech - LEAST_CONTRAST))
    sounds = frames > 10 ** (threshold / 10)
    kept = np.zeros(len(frames), dtype=bool)
    for start, end in _runs(sounds):
        kept[start:end] = end - start >= min(SHORTEST_SOUND, len(frames))
    return kept


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """First and one past the last index of each run that is true."""
    bounds = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return list(zip(bounds[::2].tolist(), bounds[1::2].tolist()))


def _silences(is_speech: np.ndarray) -> tuple[float, float, float]:
    """Seconds at the start, at the end, and of the longest pause between."""
    runs = _runs(is_speech)
    if not runs:
        return len(is_speech) * FRAME_SECONDS, 0.0, 0.0
    pauses = [after[0] - before[1] for before, after in itertools.pairwise(runs)]
    leading, trailing = runs[0][0], len(is_speech) - runs[-1][1]
    return leading * FRAME_SECONDS, trailing * FRAME_SECONDS, max(pauses, default=0) * FRAME_SECONDS


def _pitch(wave: np.ndarray, rate: int) -> np.ndarray:
    """wave (T,) -> pitch in Hz, PITCH_RATE values a second, 0 where unvoiced; nothing where too short for any."""
    hop = max(1, rate // PITCH_RATE)
    if len(wave) < SHORTEST * rate or len(wave) < hop:
        return np.zeros(0)
    config = AudioConfig(sampling_rate=rate, hop_length=hop, mel_fmax=None)
    try:
        return estimate_pitch(wave, config, n_frames=len(wave) // hop)
    except AudioError:
        return np.zeros(0)
