"""Converts LibriSpeech's FLAC files to wav files, with copies at other speeds, and writes manifests for training.

``LibriSpeech/train-clean-100-wav/`` gets ``<id>.wav``, ``<id>-0.9.wav`` and ``<id>-1.1.wav`` next to each other, and
``LibriSpeech/librispeech-train-clean-100-wav.json`` lists them. To resume, run it again: existing files stay. Copies at
other speeds are only made of training subsets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common.audio.wav import check_wav, load_wav, save_wav
from common.errors import InputError
from common.extraction.batches import map_in_processes
from common.files import read_lines, write_json
from jasper.waveform import change_speed
from scripts.launch import librispeech_manifest

SAMPLING_RATE = 16000  # Hz


@dataclass(frozen=True)
class Job:
    """One utterance to convert."""

    source: Path  # FLAC
    targets: dict[float, Path]  # wav by speed; speed 1 is the first
    transcript: str
    where: str  # "103-1240.trans.txt:1"


def find_jobs(folder: Path, subset: str, *, speeds: Sequence[float]) -> list[Job]:
    """Return all utterances of a subset in order; raise InputError if there are none, or if a file is missing."""
    root, jobs = folder / subset, []
    copies = [speed for speed in speeds if speed != 1] if subset.startswith("train") else []
    for path in sorted(root.rglob("*.trans.txt")):
        for number, line in enumerate(read_lines(path), 1):
            name, _, transcript = line.strip().partition(" ")
            source, where = path.with_name(f"{name}.flac"), f"{path}:{number}"
            if not transcript.strip() or not source.is_file():
                raise InputError(f"{where}: expected the name of a FLAC file here and its text, got {line!r}")
            target = (folder / f"{subset}-wav" / source.relative_to(root)).with_suffix(".wav")
            targets = {speed: target.with_name(f"{target.stem}-{speed:g}.wav") for speed in copies}
            jobs.append(Job(source, {1.0: target, **targets}, transcript.strip().lower(), where))
    if not jobs:
        raise InputError(f"{root}: contains no transcripts (*.trans.txt); run scripts/download_librispeech.sh")
    return jobs


def convert(job: Job, *, folder: Path) -> dict[str, Any]:
    """Write an utterance's missing wav files; return its manifest entry, with paths relative to ``folder``."""
    missing = {speed: path for speed, path in job.targets.items() if not path.is_file()}
    if missing:
        wave = load_wav(job.source, sampling_rate=SAMPLING_RATE, where=job.where)
        for speed, path in missing.items():
            save_wav(path, change_speed(wave, speed), sampling_rate=SAMPLING_RATE, durable=False)
    files = []
    for speed, path in job.targets.items():
        n_samples = check_wav(path, sampling_rate=SAMPLING_RATE, where=job.where).n_samples
        file = {"fname": path.relative_to(folder).as_posix(), "speed": speed, "channels": 1, "bitdepth": 16}
        file |= {"sample_rate": SAMPLING_RATE, "num_samples": n_samples, "duration": n_samples / SAMPLING_RATE}
        files.append(file)
    first = {f"original_{name}": files[0][name] for name in ("duration", "num_samples")}
    return {"transcript": job.transcript, "files": files} | first


def preprocess(folder: Path, subset: str, *, speeds: Sequence[float], n_workers: int | None) -> None:
    """Convert a subset of LibriSpeech and write its manifest; raises InputError if it's missing or damaged."""
    jobs = find_jobs(folder, subset, speeds=speeds)
    entries = list(map_in_processes(partial(convert, folder=folder), jobs, n_workers=n_workers, desc=subset))
    manifest = librispeech_manifest(folder, subset)
    write_json(manifest, entries)
    print(f"{manifest}: {len(entries)} utterances")
