"""Turns LibriSpeech's FLAC files into wav files, with copies of other speeds, and writes the manifests to train with.

    python -m scripts.datasets.preprocess_librispeech LibriSpeech --subsets train-clean-100 dev-clean --speeds 0.9 1.1

writes ``LibriSpeech/train-clean-100-wav/`` with ``<id>.wav``, ``<id>-0.9.wav`` and ``<id>-1.1.wav`` next to each other,
and ``LibriSpeech/librispeech-train-clean-100-wav.json``. Run again, it resumes: existing files stay. Copies of
other speeds are made of training subsets alone.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.audio import check_wav, load_wav, save_wav
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.extraction import map_in_processes
from common.files import write_atomically
from common.options import add_options, option
from common.progress import progress
from jasper.manifest import manifest_bytes
from jasper.waveform import change_speed, resample

SUBSETS = (
    *("train-clean-100", "train-clean-360", "train-other-500"),
    *("dev-clean", "dev-other", "test-clean", "test-other"),
)


@dataclass(frozen=True)
class Job:
    """One utterance to convert."""

    folder: Path  # of all subsets, which paths in the manifest are relative to
    source: Path  # FLAC
    target: Path  # wav of natural speed
    transcript: str
    where: str  # "103-1240.trans.txt:1"
    speeds: tuple[float, ...]
    sampling_rate: int  # Hz

    def files(self) -> list[tuple[float, Path]]:
        """Speed and path of each wav."""
        stem = self.target.stem
        copies = [(speed, self.target.with_name(f"{stem}-{speed:g}.wav")) for speed in self.speeds]
        return [(1.0, self.target), *copies]


def find_jobs(folder: Path, subset: str, *, speeds: Sequence[float], sampling_rate: int) -> list[Job]:
    """Every utterance of a subset, in order; raises InputError where a transcript or its recording is missing."""
    root = folder / subset
    jobs = []
    copies = tuple(speed for speed in speeds if speed != 1) if subset.startswith("train") else ()
    for path in sorted(root.rglob("*.trans.txt")):
        for name, transcript, where in _transcripts(path):
            source = path.with_name(f"{name}.flac")
            if not source.is_file():
                raise InputError(f"{source}: no such file ({where}); is the download complete?")
            target = (folder / f"{subset}-wav" / source.relative_to(root)).with_suffix(".wav")
            jobs.append(Job(folder, source, target, transcript, where, copies, sampling_rate))
    if not jobs:
        raise InputError(f"{root}: holds no transcripts (*.trans.txt); scripts/download_librispeech.sh brings them")
    return jobs


def _transcripts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Name, text in lower case, and place of each line."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        name, _, text = line.strip().partition(" ")
        if not text.strip():
            raise InputError(f"{path}:{number}: expected an utterance's name and its text, got {line!r}")
        yield name, text.strip().lower(), f"{path}:{number}"


def convert(job: Job) -> dict[str, Any]:
    """Write what is missing of an utterance's wav files, each completely or not at all; its entry of the manifest."""
    if not all(path.is_file() for _, path in job.files()):
        own_rate = check_wav(job.source, sampling_rate=None, where=job.where).sampling_rate
        recorded = load_wav(job.source, sampling_rate=own_rate, where=job.where)
        wave = resample(recorded, ratio=job.sampling_rate / own_rate)
        for speed, path in job.files():
            if not path.is_file():
                save_wav(path, change_speed(wave, speed), sampling_rate=job.sampling_rate, durable=False)
    return _entry(job)


def _entry(job: Job) -> dict[str, Any]:
    files = []
    for speed, path in job.files():
        info = check_wav(path, sampling_rate=job.sampling_rate, where=job.where)
        file = {"fname": path.relative_to(job.folder).as_posix(), "speed": speed, "channels": 1, "bitdepth": 16}
        file |= {"sample_rate": info.sampling_rate, "num_samples": info.n_samples}
        files.append(file | {"duration": info.n_samples / info.sampling_rate})
    original = files[0]
    sizes = {"original_duration": original["duration"], "original_num_samples": original["num_samples"]}
    return {"transcript": job.transcript, "files": files} | sizes


@dataclass(frozen=True)
class LibriSpeechOptions:
    """What to make of LibriSpeech."""

    subsets: tuple[str, ...] = option((), "folders to convert; if not given, those of LibriSpeech in it")
    speeds: tuple[float, ...] = option((), "of copies: 1.1 is faster", above=0, most=10, empty=True, metavar="RATE")
    sampling_rate: int = option(16000, "of the wav files, Hz", least=1)
    n_workers: int = option(os.cpu_count(), "processes", least=1, most=1024)


def main(argv: Sequence[str] | None = None) -> int:
    """Convert each subset and write its manifest."""
    parser = ArgumentParser(prog="preprocess_librispeech", description="make wav files and manifests of LibriSpeech")
    parser.add_argument("folder", type=Path, help="that holds LibriSpeech's subsets")
    add_options(parser, LibriSpeechOptions)
    args = parser.parse_args(argv)
    subsets = args.subsets or [name for name in SUBSETS if (args.folder / name).is_dir()]
    if not subsets:
        raise InputError(f"{args.folder}: holds none of {', '.join(SUBSETS)}; scripts/download_librispeech.sh does")
    for subset in subsets:
        jobs = find_jobs(args.folder, subset, speeds=args.speeds, sampling_rate=args.sampling_rate)
        done = map_in_processes(convert, jobs, n_workers=min(args.n_workers, len(jobs)))
        entries = list(progress(done, total=len(jobs), desc=subset))
        manifest = args.folder / f"librispeech-{subset}-wav.json"
        data = manifest_bytes(entries)
        write_atomically(manifest, lambda file, data=data: file.write(data))
        hours = sum(entry["original_duration"] for entry in entries) / 3600
        print(f"{manifest}: {len(entries)} utterances, {hours:.1f} h")
    return 0


if __name__ == "__main__":
    run(main)
