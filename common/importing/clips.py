"""Convert a recording to a clip (mono, at one sampling rate and loudness, with little silence), or to several."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.audio.decoding import decode
from common.audio.levels import CEILING, find_sound, measure_loudness
from common.audio.wav import save_wav
from common.errors import AudioError, InputError, OutputError
from common.importing import cutting
from common.importing.cutting import AlignedClip, align_reading
from common.importing.frames import RATE
from common.importing.options import ImportOptions
from common.importing.subtitles import split_sentences

SHORTEST = 0.3  # s of sound
LONGEST = 1800.0  # s; longer recordings are cut without being read to the end first
_FADE = 0.005  # s, where silence is cut off


@dataclass(frozen=True)
class ImportedClip:
    """The outcome for a recording, a part of a long reading, or a transcript: a row of import.tsv."""

    source: str = ""  # recording, relative to the source folder, or location of a transcript without a recording
    part: str = ""  # of a long reading: start and end in seconds, or the number of a sentence that wasn't found
    clip: str = ""  # path in wavs/, without suffix
    state: str = "refused"  # or "imported", "cut" (a recording cut into several clips), or "" (not made yet)
    reason: str = ""  # why it is refused
    size: int = 0  # bytes of the source
    modified: int = 0  # ns, of the source
    settings: str = ""
    sampling_rate: int = 0  # Hz, of the source
    channels: int = 0
    seconds_before: float = 0.0
    seconds: float = 0.0
    cut_at_start: float = 0.0  # s
    cut_at_end: float = 0.0  # s
    gain: float = 0.0  # dB
    loudness: float = 0.0  # LUFS, of the clip
    confidence: float = 1.0  # that the transcript matches the clip, if the recording was cut
    text: str = ""  # the transcript

    @property
    def is_imported(self) -> bool:
        return self.state == "imported"


def import_clip(row: ImportedClip, *, source: Path, target: Path, options: ImportOptions) -> ImportedClip | None:
    """Make the clip that a row describes; return the row with what was done, or why the recording is refused.

    If the recording is so long that it must be cut, return None and make no clip. Raises OutputError.
    """
    rate = options.sampling_rate
    try:
        decoded = decode(source / row.source, sampling_rate=rate)
        row = replace(row, sampling_rate=decoded.sampling_rate, channels=decoded.n_channels)
        blocks, n_samples = [], 0
        for block in decoded.blocks:
            blocks.append(block)
            n_samples += len(block)
            if n_samples > LONGEST * rate and options.cut_longer:
                return None
        wave = np.concatenate([np.zeros(0, np.float32), *blocks])
        row = replace(row, seconds_before=round(len(wave) / rate, 3))
        wave, facts = level_and_trim(wave, options)
        if options.cut_longer and facts["seconds"] > options.cut_longer:
            return None
        save_wav(target / "wavs" / f"{row.clip}.wav", torch.from_numpy(wave), sampling_rate=rate, durable=False)
    except AudioError as error:
        return replace(row, state="refused", reason=str(error).removeprefix(f"{source / row.source}: "))
    return replace(row, state="imported", reason="", **facts)


def level_and_trim(wave: np.ndarray, options: ImportOptions) -> tuple[np.ndarray, dict[str, Any]]:
    """Trim and level wave (T,) float32; return samples (T',) and `ImportedClip` fields; raises AudioError."""
    rate = options.sampling_rate
    sound = find_sound(wave, rate)
    if sound is None:
        raise AudioError("silent")
    if sound.end - sound.start < SHORTEST:
        raise AudioError(f"{sound.end - sound.start:.2f} s of sound, expected at least {SHORTEST:g}")
    start = max(0, round((sound.start - options.silence) * rate))
    end = min(len(wave), round((sound.end + options.silence) * rate))
    kept = wave[start:end] - np.float32(wave.mean(dtype=np.float64))
    n_faded = min(round(_FADE * rate), len(kept))
    fade = np.linspace(0, 1, n_faded, dtype=np.float32)
    if start > 0:
        kept[:n_faded] *= fade
    if end < len(wave):
        kept[len(kept) - n_faded :] *= fade[::-1]
    before = measure_loudness(kept, rate)
    peak = 20 * math.log10(max(float(np.abs(kept).max()), 1e-9))
    gain = min(options.loudness - before, CEILING - peak)
    facts = {
        "seconds": len(kept) / rate,
        "cut_at_start": start / rate,
        "cut_at_end": (len(wave) - end) / rate,
        "gain": gain,
        "loudness": before + gain,
    }
    return kept * np.float32(10 ** (gain / 20)), {name: round(value, 3) for name, value in facts.items()}


def import_recording(row: ImportedClip, *, source: Path, target: Path, options: ImportOptions) -> list[ImportedClip]:
    """Make a recording's clip, or cut it into several; return the rows from `import_clip` or `cut_recording`."""
    clip = import_clip(row, source=source, target=target, options=options)
    return [clip] if clip is not None else cut_recording(row, source=source, target=target, options=options)


def cut_recording(row: ImportedClip, *, source: Path, target: Path, options: ImportOptions) -> list[ImportedClip]:
    """Cut a recording into clips; return rows for them and for what doesn't match, and the recording's own row last."""
    recording = source / row.source
    try:
        blocks = decode(recording, sampling_rate=RATE).blocks
        assert options.language is not None, "import_recordings chooses one"
        reading = align_reading(blocks, split_sentences(row.text), language=options.language)
        rows = [*_import_clips(row, reading.clips, recording=recording, target=target, options=options)]
    except OutputError:
        raise
    except (InputError, OSError) as error:
        return [replace(row, state="refused", reason=str(error).removeprefix(f"{recording}: "))]
    for clip in reading.odd_lengths:
        lengths = f"{clip.end_s - clip.start_s:.1f} s, expected {cutting.SHORTEST:g} to {cutting.LONGEST:g}"
        rows.append(ImportedClip(row.source, _part(clip.start_s, clip.end_s), reason=f"{lengths}: {clip.text}"))
    for number, sentence in enumerate(reading.unmatched_text, 1):
        rows.append(ImportedClip(row.source, f"text {number}", reason=f"not found in the recording: {sentence}"))
    return [*rows, replace(row, state="cut")]


def _import_clips(
    row: ImportedClip, clips: Sequence[AlignedClip], *, recording: Path, target: Path, options: ImportOptions
) -> Iterator[ImportedClip]:
    """Write a recording's clips, except doubtful ones, trimmed and leveled like short recordings; yield all rows."""
    rate = options.sampling_rate
    decoded = decode(recording, sampling_rate=rate)
    wave = np.concatenate([np.zeros(0, np.float32), *decoded.blocks])
    for number, clip in enumerate(clips, 1):
        made = replace(
            row,
            part=_part(clip.start_s, clip.end_s),
            clip=f"{row.clip}_{number:04d}",
            state="imported",
            sampling_rate=decoded.sampling_rate,
            channels=decoded.n_channels,
            seconds_before=round(clip.end_s - clip.start_s, 3),
            confidence=round(clip.confidence, 3),
            text=clip.text,
        )
        if clip.confidence < cutting.CONFIDENT:
            yield replace(made, state="refused", reason=f"may not match the text: {clip.text}")
            continue
        try:
            trimmed, facts = level_and_trim(wave[round(clip.start_s * rate) : round(clip.end_s * rate)], options)
        except AudioError as error:
            yield replace(made, state="refused", reason=str(error))
            continue
        save_wav(target / "wavs" / f"{made.clip}.wav", torch.from_numpy(trimmed), sampling_rate=rate, durable=False)
        yield replace(made, **facts)


def _part(start_s: float, end_s: float) -> str:
    return f"{start_s:.2f} to {end_s:.2f} s"
