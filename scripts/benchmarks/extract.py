"""Times feature extraction: utterances and hours of speech a minute, for mels, pitch and both.

The corpus is copied by links into a temporary folder, several times over if asked to.
"""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from common.cli import ArgumentParser, n_processes, positive_int, run
from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import InputError
from common.extraction import ExtractionOptions, ExtractionPlan, extract_corpus
from common.extraction.summary import Report
from scripts.benchmarks.machine import machine
from scripts.benchmarks.table import Table, cell

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT.parent / "shared" / "data" / "LJSpeech-sample"


def link_corpus(wavs: Sequence[Path], target: Path, *, repeat: int) -> Path:
    """A corpus in ``target`` of links to recordings, ``repeat`` times; gives its list."""
    lines = []
    for copy in range(repeat):
        folder = target / "wavs" / str(copy)
        folder.mkdir(parents=True)
        for wav in wavs:
            (folder / wav.name).symlink_to(wav.resolve())
            lines.append(f"wavs/{copy}/{wav.name}|text\n")
    (target / "list.txt").write_text("".join(lines))
    return target / "list.txt"


def time_extraction(
    wavs: Sequence[Path], config: AudioConfig, *, mels: bool, pitch: bool, repeat: int, n_workers: int
) -> tuple[Report, float]:
    """What was made, and the CPU seconds that this process took."""
    with tempfile.TemporaryDirectory() as folder:
        filelist = link_corpus(wavs, Path(folder), repeat=repeat)
        corpus = {"dataset_path": Path(folder), "wav_text_filelist": (filelist,), "num_workers": n_workers}
        options = ExtractionOptions(**corpus, extract_mels=mels, extract_pitch_mel=pitch)
        started = time.process_time()
        report = extract_corpus(ExtractionPlan(options, config), ranks=Ranks())
        return report, time.process_time() - started


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(description="Time feature extraction.")
    parser.add_argument("-d", "--dataset-path", type=Path, default=SAMPLE, help="folder with wavs/")
    parser.add_argument("--sampling-rate", type=positive_int, default=22050, help="Hz")
    parser.add_argument("--repeat", type=positive_int, default=4, help="times that the corpus is taken")
    parser.add_argument("--num-workers", type=n_processes, default=os.cpu_count(), help="processes")
    args = parser.parse_args()
    config = AudioConfig(sampling_rate=args.sampling_rate)
    wavs = sorted(path for path in (args.dataset_path / "wavs").glob("*") if path.suffix in (".wav", ".flac"))
    if not wavs:
        raise InputError(f"{args.dataset_path / 'wavs'}: no .wav or .flac files; give a corpus by --dataset-path")
    print(f"command: {shlex.join(['scripts/benchmark.sh', 'extract', *sys.argv[1:]])}")
    load = os.getloadavg()[0]
    print(f"machine: {machine(cuda=False)}, {os.cpu_count()} cores, load {load:.1f}, torch {torch.__version__}")
    print(f"corpus: {args.dataset_path}, {args.repeat} times")
    table = Table()
    for name, mels, pitch in (("mels", True, False), ("pitch", False, True), ("both", True, True)):
        for n_workers in sorted({1, args.num_workers}):
            report, cpu = time_extraction(wavs, config, mels=mels, pitch=pitch, repeat=args.repeat, n_workers=n_workers)
            speed = report.speech_seconds / report.elapsed_seconds
            made = (report.n_utterances - len(report.refused)) / report.elapsed_seconds
            table.add(
                {
                    "what": name,
                    "workers": str(n_workers),
                    "utterances/s": f"{made:.1f}",
                    "speech h/min": f"{speed / 60:.2f}",
                    "x real time": f"{speed:.0f}",
                    # the workers' time is not this process's
                    "x per CPU s": cell(report.speech_seconds / cpu if n_workers == 1 else None, ".0f"),
                }
            )


if __name__ == "__main__":
    run(main)
