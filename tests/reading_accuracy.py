"""How rightly a long reading is cut: LJSpeech's clips in a row with gaps.

A clip's boundary is within 0.1 s if it is at most so far from the true pause: from the end of the sound of one of
LJSpeech's clips, as `common.audio.levels` finds it, to the beginning of the next one's. Boundaries of sentences that
are not found or are cut count as wrong; those within clips of several sentences are left out.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soundfile
import soxr

from common.audio.decoding import decode
from common.audio.levels import find_sound
from common.audio.wav import load_wav
from common.importing.cutting import CONFIDENT, AlignedReading, align_reading
from common.importing.frames import RATE

GAPS = (0.1, 2.0)  # s
NEAR = 0.1  # s


@dataclass(frozen=True)
class Truth:
    """A recording of sentences in a row, and the text that goes with it."""

    waves: tuple[np.ndarray, ...]  # of gaps and clips in turn
    sentences: tuple[str, ...]  # of the recording
    sounds: tuple[tuple[float, float], ...]  # s, of each
    text: tuple[str, ...]


def read_aloud(data: Path, order: Sequence[int], rng: np.random.Generator) -> Truth:
    """The clips of a corpus in some order with gaps of digital silence."""
    lines = [line.split("|")[:2] for line in (data / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    waves, sounds, at = [], [], 0
    for place in order:
        gap = np.zeros(round(rng.uniform(*GAPS) * RATE), np.float32)
        wave = load_wav(data / "wavs" / f"{lines[place][0]}.wav", sampling_rate=RATE).numpy()
        sound = find_sound(wave, RATE)
        assert sound is not None
        at += len(gap)
        sounds.append((at / RATE + sound.start, at / RATE + sound.end))
        at += len(wave)
        waves += [gap, wave]
    text = tuple(lines[place][1] for place in order)
    return Truth(tuple(waves), text, tuple(sounds), text)


def settings(truth: Truth, rng: np.random.Generator) -> Iterator[Truth]:
    """The cases that are measured."""
    yield truth
    text = list(truth.text)
    left_out = set(rng.choice(np.arange(1, len(text) - 1), 3, replace=False).tolist())
    fewer = tuple(sentence for place, sentence in enumerate(text) if place not in left_out)
    yield replace(truth, text=fewer)
    first = int(rng.integers(len(text) - 1))
    text[first : first + 2] = text[first + 1], text[first]
    yield replace(truth, text=tuple(text))
    power = np.mean([np.square(wave).mean() for wave in truth.waves[1::2]])
    noise = np.sqrt(power / 100)
    noisy = tuple(wave + noise * rng.standard_normal(len(wave)).astype(np.float32) for wave in truth.waves)
    yield replace(truth, waves=noisy)
    yield replace(truth, waves=as_mp3(truth.waves))
    both = tuple(sentence for sentence in text if sentence in fewer)
    yield replace(truth, waves=as_mp3(noisy), text=both)


def as_mp3(waves: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Waves as they come from an MP3 of 44.1 kHz and two channels."""
    wave = soxr.resample(np.concatenate(waves), RATE, 44100)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mp3"
        with soundfile.SoundFile(path, "w", 44100, 2) as file:
            for start in range(0, len(wave), 1 << 16):
                file.write(np.stack([wave[start : start + (1 << 16)]] * 2, axis=1))
        return tuple(decode(path, sampling_rate=RATE).blocks)


def measure(reading: AlignedReading, truth: Truth) -> tuple[float, int]:
    """The share of boundaries within 0.1 s of the true pause, and how many certain clips are false."""
    ends = [0.0, *(end for _, end in truth.sounds)]
    starts = [*(start for start, _ in truth.sounds), sum(map(len, truth.waves)) / RATE]
    pauses = list(zip(ends, starts))  # before each sentence, and after the last one
    distances = []
    for place, sentence in enumerate(truth.sentences):
        if sentence not in truth.text:
            continue
        middle = sum(truth.sounds[place]) / 2
        clip = next((clip for clip in reading.clips if clip.start_s < middle < clip.end_s), None)
        for side, (silent, sounding) in enumerate((pauses[place], pauses[place + 1])):
            if clip is None or sentence not in clip.text:
                distances.append(np.inf)
            elif (clip.text.startswith, clip.text.endswith)[side](sentence):
                edge = (clip.start_s, clip.end_s)[side]
                distances.append(max(silent - edge, edge - sounding, 0.0))
    sure = [clip for clip in reading.clips if clip.confidence >= CONFIDENT]
    n_false = sum(not says(clip.text, clip.start_s, clip.end_s, truth) for clip in sure)
    return float(np.mean(np.array(distances) <= NEAR)), n_false


def says(text: str, start: float, end: float, truth: Truth) -> bool:
    """Whether a stretch holds the sound of just these sentences, to half a second."""
    inside = [place for place, sound in enumerate(truth.sounds) if start < sum(sound) / 2 < end]
    if text != " ".join(truth.sentences[place] for place in inside) or not inside:
        return False
    return abs(truth.sounds[inside[0]][0] - start) < 0.5 and abs(truth.sounds[inside[-1]][1] - end) < 0.5


def measure_all(data: Path) -> list[tuple[float, int]]:
    """What `measure` says of each case, of the clips of a corpus in their order."""
    rng = np.random.default_rng(0)
    n_clips = len((data / "metadata.csv").read_text(encoding="utf-8").splitlines())
    cases = settings(read_aloud(data, range(n_clips), rng), rng)
    return [measure(align_reading(iter(truth.waves), truth.text), truth) for truth in cases]
