"""Figures of a clip, from its recording and its transcript, and how badly they match by a voice's aligner."""

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import soundfile
import torch
from scipy.ndimage import binary_opening

from common.audio.levels import FRAME_SECONDS, measure_frames
from common.audio.pitch import estimate_pitch
from common.audio.wav import open_wav
from common.checkpoints.loading import load_networks, open_checkpoint
from common.config import AudioConfig
from common.errors import AudioError, InputError, OptionError
from common.extraction.features import Utterance, text_front_end
from common.files import write_text
from common.pages.tables import read_measures
from common.text.config import TextConfig
from common.text.front_end import EmptyTextError

PITCH_RATE = 50  # pitch values per second
QUIETEST = -120.0  # dBFS, of digital silence
FLAT_TOP = 3  # samples in a row at the clip's extreme
LEAST_CLIPPED = 9  # samples, three flat tops; a coarse recording may have one by chance
FLAT_TOLERANCE = 1e-4  # relative to the extreme: three 16-bit steps
LEAST_EXTREME = 0.05  # of full scale; below this, 16-bit quantization alone makes flat tops

Range = tuple[float | None, float | None]  # of pitch, Hz

MEASURES = read_measures("data_report/measures.tsv")


@dataclass(frozen=True)
class Sound:
    """The samples of a recording."""

    container: str
    subtype: str
    sampling_rate: int  # Hz
    n_channels: int
    n_samples: int
    samples_blake2b: str  # digest of the samples, independent of the file format
    lowest: float  # smallest sample
    highest: float  # largest sample


@dataclass(frozen=True)
class Clip:
    """One line of a list: its transcript as the text front end reads it, and its recording."""

    utterance: Utterance
    cleaned: str  # the transcript
    n_tokens: int  # 0: no text is left to speak
    unknown: dict[str, int]  # symbols outside the set -> count
    sound: Sound | None = None  # None: it can't be read
    figures: dict[str, float] = field(default_factory=dict)  # the values of MEASURES that are known
    fault: tuple[str, str] | None = None  # why it can't be read: one of findings.KINDS, and the reason


def measure(utterance: Utterance, *, dataset: Path, text: TextConfig, pitch_range: Range = (None, None)) -> Clip:
    """Read and measure the recording and the transcript of one line."""
    front_end, path = text_front_end(text, unknown_symbols="drop"), dataset / utterance.wav
    cleaned, n_tokens, unknown = utterance.text, 0, Counter[str]()
    try:
        cleaned, unknown = front_end.read(utterance.text)
        ids, dropped = front_end.encode_cleaned(cleaned, text=utterance.text)
        n_tokens, unknown = len(ids), unknown + dropped
    except InputError as error:  # too long, or no symbol is left
        unknown += error.dropped if isinstance(error, EmptyTextError) else Counter()
    clip = Clip(utterance, cleaned, n_tokens, dict(unknown))
    if not path.is_file():
        return replace(clip, fault=("missing", "no such file"))
    try:
        with open_wav(path) as file:
            sound, figures = _analyze(file, path, pitch_range)
    except AudioError as error:
        return replace(clip, fault=("unreadable", str(error).removeprefix(f"{path}: ")))
    if n_tokens:
        ends = figures["leading silence"] + figures["trailing silence"]
        figures["speaking rate"] = n_tokens / max(figures["duration"] - ends, FRAME_SECONDS)
    return replace(clip, sound=sound, figures=figures)


def _analyze(file: soundfile.SoundFile, path: Path, pitch_range: Range) -> tuple[Sound, dict[str, float]]:
    """Read the samples of an open file and measure them; raises AudioError if they are damaged or not finite."""
    rate = file.samplerate
    try:
        samples = file.read(dtype="float32", always_2d=True)  # (T, channels)
    except soundfile.LibsndfileError as error:
        raise AudioError(f"{path}: damaged or truncated") from error
    if not len(samples) or not np.isfinite(samples).all():
        raise AudioError(f"{path}: empty, or contains non-finite samples")
    lowest, highest = float(samples.min()), float(samples.max())
    mono = samples.mean(axis=1, dtype=np.float64)
    levels, pitch = measure_frames(mono, rate), np.zeros(0)
    config = AudioConfig(sampling_rate=rate, hop_length=max(1, rate // PITCH_RATE), mel_fmax=None)
    with suppress(AudioError):  # too short for a pitch
        pitch = estimate_pitch(mono, config, n_frames=len(mono) // config.hop_length, pitch_range=pitch_range)
    figures = {
        "duration": len(samples) / rate,
        **_silences(levels.sounding),
        "speech level": _decibels(levels.powers[levels.sounding].mean()) if levels.sounding.any() else QUIETEST,
        "peak": _decibels(max(-lowest, highest) ** 2),
        "noise": _decibels(np.percentile(levels.powers, 5)),
        "clipped samples": 100 * (_n_clipped(samples) / samples.size),
        "DC offset": float(mono.mean()),
        "voiced": 100 * float(np.mean(pitch > 0)) if len(pitch) else 0.0,
    }
    if (pitch > 0).any():
        values = np.percentile(pitch[pitch > 0], (5, 50, 95)).tolist()
        figures |= zip(("pitch, 5 %", "pitch, median", "pitch, 95 %"), values)
    digest = hashlib.blake2b(samples.tobytes(), digest_size=16).hexdigest()
    return Sound(file.format, file.subtype, rate, file.channels, len(samples), digest, lowest, highest), figures


def _n_clipped(samples: np.ndarray) -> int:
    """Count the samples (T, channels) that are in flat tops, at the extremes of all channels."""
    least = max(LEAST_EXTREME, float(np.abs(samples).max()) / 2)  # the other side of a lopsided wave isn't clipped
    total = 0
    for side in (samples, -samples):
        if (extreme := side.max()) >= least:
            total += int(binary_opening(side >= extreme * (1 - FLAT_TOLERANCE), np.ones((FLAT_TOP, 1))).sum())
    return total if total >= LEAST_CLIPPED else 0


def _decibels(mean_square: float) -> float:
    """Convert a mean square relative to full scale to dB."""
    return max(QUIETEST, 10 * math.log10(mean_square)) if mean_square > 0 else QUIETEST


def _silences(is_speech: np.ndarray) -> dict[str, float]:
    """Return the seconds of silence at the start, at the end, and in the longest pause in between."""
    bounds = np.flatnonzero(np.pad(is_speech, 1, constant_values=True))  # the first and last are outside
    leading, *pauses, trailing = np.diff(bounds) - 1 if is_speech.any() else (len(is_speech), 0)
    frames = {"leading silence": leading, "trailing silence": trailing, "longest pause": max(pauses, default=0)}
    return {name: float(n * FRAME_SECONDS) for name, n in frames.items()}


def with_misfits(clips: Sequence[Clip], refused: Collection[int], *, dataset: Path, checkpoint: Path) -> list[Clip]:
    """Add each clip's misfit of transcript and recording, by a voice's aligner, except for the indices in ``refused``.

    Raises InputError if the checkpoint has no aligner, or a recording doesn't have the voice's format.
    """
    opened = open_checkpoint(checkpoint, role="generator", ema=True)
    made = opened.checkpoint
    networks, config = load_networks(made, ema=opened.ema, device=torch.device("cpu"), where=str(checkpoint))
    if not config.has_aligner:
        raise OptionError(f"--report-checkpoint {checkpoint}: no aligner; give a FastPitch with a learned alignment")
    assert made.text is not None
    network: Any = next(iter(networks.values()))
    usable = [clip.utterance for clip in clips if clip.utterance.index not in refused]
    if not usable:
        return list(clips)
    settings = {"config": config, "audio": made.audio, "text": made.text, "unknown_symbols": "drop"}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "usable.txt"
        lines = ("|".join(filter(None, (item.wav, item.text, item.speaker))) for item in usable)
        write_text(path, "".join(f"{line}\n" for line in lines))
        open_dataset = opened.spec.data_function.teacher_forced_dataset
        loaded = open_dataset(dataset, path, networks=networks, **settings)
        misfits = [value for batch in loaded.plain_batches() for value in network.misfits(batch).tolist()]
    found = {item.index: {"misfit": misfit} for item, misfit in zip(usable, misfits)}
    return [replace(clip, figures=clip.figures | found.get(clip.utterance.index, {})) for clip in clips]
