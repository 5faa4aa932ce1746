"""Importing long readings: clips of each recording and its text, and what of both does not match."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from common.audio import decode, save_wav
from common.errors import AudioError, InputError
from common.importing.clips import ImportedClip, level_and_trim
from common.importing.cutting import CONFIDENT, ReadClip, Reading, align_reading
from common.importing.options import SUFFIXES, ImportOptions
from common.importing.reading import RATE
from common.importing.recordings import safe_name
from common.importing.run import finish_corpus, start_corpus
from common.importing.subtitles import TEXT_SUFFIXES, read_reading_text
from common.progress import progress


def import_readings(source: Path, text: Path, target: Path, options: ImportOptions) -> int:
    """Make a corpus of long readings in the folder ``target``; the exit status, 1 where no clip is made.

    ``source`` is a recording, or a folder; ``text`` says what is read, or is a folder with a file for each recording
    of ``source``, named alike. Clips of low confidence are listed and not made.

    Raises:
        InputError: there is no recording or no text, eSpeak NG cannot say it, or a recording cannot be decoded.
        OptionError: the folders overlap, or ``target`` holds something else.
    """
    pairs = _pairs(source, text)
    start_corpus(source, target)
    rows: list[ImportedClip] = []
    unmatched: list[ImportedClip] = []
    texts: dict[str, str] = {}
    for recording, path in progress(pairs, desc="aligning", unit="recording"):
        read = read_reading_text(path)
        blocks = decode(recording, sampling_rate=RATE).blocks
        try:
            reading = align_reading(blocks, read.sentences, language=options.language, windows_s=read.windows_s)
        except InputError as error:
            raise InputError(f"{recording}: {error}") from error
        names = (f"{safe_name(recording.stem)}_{number:04d}" for number in range(1, len(reading.clips) + 1))
        for clip, row in zip(reading.clips, _import_clips(recording, reading.clips, names, target, options)):
            rows.append(row)
            texts[row.source] = clip.text
        unmatched += _list_unmatched(recording, path, reading)
    return finish_corpus(rows, unmatched, texts, target=target, options=options)


def _pairs(source: Path, text: Path) -> list[tuple[Path, Path]]:
    """Recordings and their texts."""
    recordings = [source]
    if source.is_dir():
        recordings = sorted(path for path in source.iterdir() if path.suffix.lower() in SUFFIXES)
    if text.is_dir():
        texts = [recording.with_suffix(suffix).name for recording in recordings for suffix in TEXT_SUFFIXES]
        found = {Path(name).stem: text / name for name in reversed(texts) if (text / name).is_file()}
        pairs = [(recording, found[recording.stem]) for recording in recordings if recording.stem in found]
        if not pairs:
            raise InputError(f"{text}: no {', '.join(TEXT_SUFFIXES)} is named as one of the recordings in {source}")
        return pairs
    if len(recordings) != 1:
        count = f"{len(recordings)} recordings" if recordings else "no recording"
        raise InputError(f"{source}: {count}; name one recording, or as --text a folder with a text for each")
    return [(recordings[0], text)]


def _import_clips(
    recording: Path, clips: Sequence[ReadClip], names: Iterable[str], target: Path, options: ImportOptions
) -> Iterator[ImportedClip]:
    """Write the clips of a recording that are certain, each as short recordings are; their rows."""
    decoded = decode(recording, sampling_rate=options.sampling_rate)
    waves = _stretches(decoded.blocks, clips, options.sampling_rate)
    for clip, name, wave in zip(clips, names, waves):
        row = ImportedClip(_place(recording, clip.start_s, clip.end_s), name, confidence=round(clip.confidence, 3))
        row = replace(row, sampling_rate=decoded.sampling_rate, channels=decoded.n_channels)
        row = replace(row, seconds_before=round(clip.end_s - clip.start_s, 3))
        if clip.confidence < CONFIDENT:
            yield replace(row, reason=f"may not say: {clip.text}")
            continue
        try:
            trimmed, facts = level_and_trim(wave, options)
        except AudioError as error:
            yield replace(row, reason=str(error))
            continue
        path = target / "wavs" / f"{name}.wav"
        save_wav(path, torch.from_numpy(trimmed), sampling_rate=options.sampling_rate, durable=False)
        yield replace(row, state="imported", **facts)


def _stretches(blocks: Iterator[np.ndarray], clips: Sequence[ReadClip], rate: int) -> Iterator[np.ndarray]:
    """The samples of each clip, of which none begins before another one ends; no more than one is in memory."""
    held, first = np.zeros(0, np.float32), 0  # samples, and the place of the first one
    for clip in clips:
        start, end = round(clip.start_s * rate), round(clip.end_s * rate)
        while first + len(held) < end and (block := next(blocks, None)) is not None:
            held = np.concatenate([held, block])
            passed = min(max(start - first, 0), len(held))
            held, first = held[passed:], first + passed
        yield held[max(start - first, 0) : end - first].copy()


def _list_unmatched(recording: Path, text: Path, reading: Reading) -> Iterator[ImportedClip]:
    for start, end in reading.unmatched_sound:
        yield ImportedClip(_place(recording, start, end), reason="says what the text does not")
    for number, sentence in enumerate(reading.unmatched_text, 1):
        yield ImportedClip(f"{text.name} {number}", reason=f"not found in the recording: {sentence}")


def _place(recording: Path, start_s: float, end_s: float) -> str:
    return f"{recording.name} {start_s:.2f} to {end_s:.2f} s"
