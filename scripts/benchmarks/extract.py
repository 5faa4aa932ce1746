"""Times feature extraction: utterances and hours of speech a minute, for mels, pitch and both.

The corpus is copied by links into a temporary folder, several times over if asked to. The last lines time, for
comparison, the mel-spectrogram as a convolution with a Fourier basis, which the original implementation uses, and
Praat's pitch one after the other.
"""

import math
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio import MelExtractor, compress, estimate_pitch, load_wav
from common.cli import ArgumentParser, n_processes, positive_int, run
from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import InputError
from common.extraction import ExtractionPlan, extract_corpus
from common.extraction.summary import Report
from scripts.benchmarks.machine import machine

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT.parent / "shared" / "data" / "LJSpeech-sample"
COMPARED = 40  # clips that the comparison is timed on


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
        plan = ExtractionPlan(Path(folder), config, mels=mels, pitch=("pitch_mel",) if pitch else ())
        started = time.process_time()
        report = extract_corpus(plan, lists=[filelist], ranks=Ranks(), n_workers=n_workers)
        return report, time.process_time() - started


def fourier_mel(config: AudioConfig) -> Callable[[Tensor], Tensor]:
    """The mel-spectrogram by a convolution with cosines and sines: wave (T,) -> (n_mels, F)."""
    extractor = MelExtractor(config)
    n = config.filter_length
    n_bins = n // 2 + 1
    angle = 2 * math.pi * torch.outer(torch.arange(n_bins), torch.arange(n)).double() / n
    basis = (torch.cat([angle.cos(), -angle.sin()]) * extractor.window.double()).float()[:, None]  # (2 bins, 1, n)
    filters = F.pad(extractor.mel_basis, (0, n_bins - extractor.mel_basis.shape[1]))

    def transform(wave: Tensor) -> Tensor:
        padded = F.pad(wave[None, None], (n // 2, n // 2), mode="reflect")
        real, imaginary = F.conv1d(padded, basis, stride=config.hop_length)[0].split(n_bins)
        return compress(filters @ (real.square() + imaginary.square()).sqrt())

    return transform


def clock(work: Callable[[Tensor], object], waves: Sequence[Tensor]) -> np.ndarray:
    """Seconds (2,) that ``work`` takes on one wave after the other: on the clock, and of all threads."""
    started = np.array([time.monotonic(), time.process_time()])
    for wave in waves:
        work(wave)
    return np.array([time.monotonic(), time.process_time()]) - started


def time_original(wavs: Sequence[Path], config: AudioConfig) -> tuple[float, np.ndarray, np.ndarray]:
    """Seconds of speech, and what its mels by convolution and its pitch, one by one, take as `clock` has it."""
    torch.set_num_threads(os.cpu_count() or 1)
    waves = [load_wav(path, sampling_rate=config.sampling_rate) for path in wavs]
    transform, extractor = fourier_mel(config), MelExtractor(config)
    with torch.inference_mode():
        difference = (transform(waves[0]) - extractor(waves[0][None])[0]).abs().mean()
        if difference > 1e-4:
            raise InputError(f"the two mel-spectrograms differ by {difference:.2g}: the comparison would be of nothing")
        by_convolution = clock(transform, waves)
    by_praat = clock(lambda wave: estimate_pitch(wave.numpy(), config, n_frames=extractor.n_frames(len(wave))), waves)
    return sum(len(wave) for wave in waves) / config.sampling_rate, by_convolution, by_praat


def main() -> None:
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
    print(f"command: {shlex.join(['scripts/benchmark_extract.sh', *sys.argv[1:]])}")
    load = os.getloadavg()[0]
    print(f"machine: {machine(cuda=False)}, {os.cpu_count()} cores, load {load:.1f}, torch {torch.__version__}")
    print(f"corpus: {args.dataset_path}, {args.repeat} times")
    print(
        f"{'what':<12} {'workers':>7} {'utterances/s':>12} {'speech h/min':>12} {'x real time':>11} {'x per CPU s':>11}"
    )
    for name, mels, pitch in (("mels", True, False), ("pitch", False, True), ("both", True, True)):
        for n_workers in sorted({1, args.num_workers}):
            report, cpu = time_extraction(wavs, config, mels=mels, pitch=pitch, repeat=args.repeat, n_workers=n_workers)
            speed = report.speech_seconds / report.elapsed_seconds
            made = (report.n_utterances - len(report.refused)) / report.elapsed_seconds
            # the workers' time is not this process's
            per_cpu = f"{report.speech_seconds / cpu:11.0f}" if n_workers == 1 else f"{'':>11}"
            print(f"{name:<12} {n_workers:7} {made:12.1f} {speed / 60:12.2f} {speed:11.0f} {per_cpu}", flush=True)
    seconds, by_convolution, by_praat = time_original(wavs[:COMPARED], config)
    print("for comparison, in one process with all threads, without files:")
    times = {"convolution": by_convolution, "pitch": by_praat, "one by one": by_convolution + by_praat}
    for name, (wall, cpu) in times.items():
        print(f"{name:<12} {'':>7} {'':>12} {'':>12} {seconds / wall:11.0f} {seconds / cpu:11.0f}")


if __name__ == "__main__":
    run(main)
