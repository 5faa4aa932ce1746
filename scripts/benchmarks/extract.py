"""Times feature extraction: utterances and hours of speech a minute, for mels, pitch and both.

The corpus is copied by links into a temporary folder, several times over if asked to.
"""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from common.cli import run
from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import InputError
from common.extraction import ExtractionOptions, ExtractionPlan, extract_corpus
from common.options import option
from scripts.benchmarks.measuring import Row, Table, cell, machine, read_command

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT.parent / "shared" / "data" / "LJSpeech-sample"


@dataclass(frozen=True)
class CorpusOptions:
    """The recordings whose features are extracted."""

    dataset_path: Path = option(SAMPLE, "folder with wavs/", names=("-d",))
    sampling_rate: int = option(22050, "Hz", least=1)
    repeat: int = option(4, "times that the corpus is taken", least=1)
    num_workers: int = option(os.cpu_count() or 1, "processes", least=1, most=1024)


def link_corpus(wavs: Sequence[Path], target: Path, *, repeat: int) -> Path:
    """A corpus in ``target`` of links to recordings, ``repeat`` times; returns its list."""
    lines = []
    for copy in range(repeat):
        folder = target / "wavs" / str(copy)
        folder.mkdir(parents=True)
        for wav in wavs:
            (folder / wav.name).symlink_to(wav.resolve())
            lines.append(f"wavs/{copy}/{wav.name}|text\n")
    (target / "list.txt").write_text("".join(lines))
    return target / "list.txt"


def time_extraction(wavs: Sequence[Path], options: CorpusOptions, *, what: str, n_workers: int) -> Row:
    """The table's row of extracting ``what``: mels, pitch or both."""
    with tempfile.TemporaryDirectory() as folder:
        filelist = link_corpus(wavs, Path(folder), repeat=options.repeat)
        extraction = ExtractionOptions(
            dataset_path=Path(folder),
            wav_text_filelist=(filelist,),
            num_workers=n_workers,
            extract_mels=what != "pitch",
            extract_pitch_mel=what != "mels",
        )
        started = time.process_time()
        audio = AudioConfig(sampling_rate=options.sampling_rate)
        report = extract_corpus(ExtractionPlan(extraction, audio), ranks=Ranks())
        cpu = time.process_time() - started
    speed = report.speech_seconds / report.elapsed_seconds
    return {
        "what": what,
        "workers": str(n_workers),
        "utterances/s": f"{(report.n_utterances - len(report.refused)) / report.elapsed_seconds:.1f}",
        "speech h/min": f"{speed / 60:.2f}",
        "x real time": f"{speed:.0f}",
        # the workers' time is not this process's
        "x per CPU s": cell(report.speech_seconds / cpu if n_workers == 1 else None, ".0f"),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = read_command(CorpusOptions, argv, prog="extract", about=__doc__)
    folder = options.dataset_path / "wavs"
    wavs = sorted(path for path in folder.glob("*") if path.suffix in (".wav", ".flac"))
    if not wavs:
        raise InputError(f"{folder}: no .wav or .flac files; give a corpus by --dataset-path")
    print(f"command: {shlex.join(['scripts/benchmark.sh', 'extract', *sys.argv[1:]])}")
    load = os.getloadavg()[0]
    print(f"machine: {machine(cuda=False)}, {os.cpu_count()} cores, load {load:.1f}, torch {torch.__version__}")
    print(f"corpus: {options.dataset_path}, {options.repeat} times")
    table = Table()
    for what in ("mels", "pitch", "both"):
        for n_workers in sorted({1, options.num_workers}):
            table.add(time_extraction(wavs, options, what=what, n_workers=n_workers))


if __name__ == "__main__":
    run(main)
