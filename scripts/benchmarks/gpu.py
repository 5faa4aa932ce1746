"""Tests and measures the toolkit on one GPU, step by step, and writes what each step printed to ``OUT/gpu.md``.

    bash scripts/benchmarks/gpu.sh OUT [--only training inference] [--cpu]

The file is written anew after every step, so that a run that is cut off leaves what it has. A step that fails, or takes
longer than it may, does not end the others; the exit status is then 1.
"""

import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from common.cli import ArgumentParser, run
from common.files import write_text
from common.options import add_options, option, read_options
from common.pages.render import ROOT, commit
from scripts.benchmarks.measuring import machine, markdown

GROUPS = ("tests", "training", "inference", "recognition", "extraction")
TRAINING = {  # options of scripts.benchmarks.train
    "FastPitch": "-bs 64 --steps 10",
    "HiFi-GAN": "-bs 64 --steps 6",
    "Tacotron2": "-bs 48 --steps 2",
    "WaveGlow": "-bs 10 --steps 6",
    "Harmonic": "-bs 8 --steps 6",
    "Jasper": "-bs 64 --steps 4 --cudnn-benchmark",
}
DIGITS = "--model-config jasper/configs/jasper_digits.yaml"  # a small Jasper
DONE, FAILED, TOO_LONG = "done", "failed", "took too long"


@dataclass(frozen=True)
class GpuOptions:
    """Which steps are taken, and on what."""

    only: tuple[str, ...] = option((), "steps to take, of those", choices=GROUPS)
    cpu: bool = option(False, "take small work through it on the CPU, as where there is no GPU")


def steps_of(work: str, *, cuda: bool) -> Iterator[tuple[str, str]]:
    """Group and command of all steps: a module, or a script of the root folder. Files go into the folder ``work``."""
    # Files without tests for a GPU may import what such a machine lacks.
    tests = [path.name for path in sorted((ROOT / "tests").glob("test_*.py")) if "pytest.mark.gpu" in path.read_text()]
    flags = "-q -m gpu -p no:cacheprovider --continue-on-collection-errors -rfE"
    yield "tests", f"pytest {flags} {' '.join(f'tests/{name}' for name in tests)}"
    on = " --cuda" if cuda else ""
    for model, size in TRAINING.items():
        small = f"-bs 1 --steps 1 --max-duration 2 --settings fp32 {DIGITS * (model == 'Jasper')}"
        yield "training", f"scripts.benchmarks.train --model {model} --accumulation 1 {size if cuda else small}{on}"
    make, table = "scripts.benchmarks.random_models", "scripts.benchmarks.table"
    size = "-i phrases/benchmark_8_128.tsv --cuda-graphs --repeats 10 --warmup-steps 16"
    size = size if cuda else f"--text Two -o {work}/two.wav --repeats 1 --warmup-steps 0"
    for model in ("FastPitch", "Tacotron2"):
        yield "inference", f"{make} {work} --model {model}"
    runs = {"Tacotron2": f"--tacotron2 {work}/Tacotron2_random.pt --max-decoder-steps {400 if cuda else 4} --no-audio"}
    for model, kind in {"HiFi-GAN": "v1", "WaveGlow": "256"}.items() if cuda else [("HiFi-GAN", "v3")]:
        yield "inference", f"{make} {work} --model {model} --kind {kind} --count 1"
        vocoder = f"--{model.lower().replace('-', '')} {work}/{model}_{kind}.pt"
        runs[model] = f"--fastpitch {work}/FastPitch_random.pt {vocoder}"
    logs = {f"{work}/log_{model}{amp}.json": f"{words}{amp}" for model, words in runs.items() for amp in (" --amp", "")}
    for log, words in logs.items():
        yield "inference", f"inference.py {words} --batch-size 1 --log-file '{log}'{on} {size}"
    yield "inference", f"{table} inference {shlex.join(logs)}"
    size = "--max-duration 7 --count 8" if cuda else f"--max-duration 1 --count 1 {DIGITS}"
    yield "recognition", f"{make} {work}/noise --model Jasper {size}"
    words = f"--jasper {work}/noise/Jasper_random.pt -i {work}/noise/list.txt --dataset-path {work}/noise"
    words += f" --batch-size 1 --log-file {work}/log_jasper.json{on}{' --amp --repeats 10' if cuda else ''}"
    yield "recognition", f"inference.py {words}"
    yield "recognition", f"{table} recognition {work}/log_jasper.json"
    words = f"-d {work}/noise --wav-text-filelist {work}/noise/list.txt --extract-mels{on} --sampling-rate"
    yield "extraction", f"extract_mels.py {words} {16000 if cuda else '8000 --mel-fmax 4000'}"


def take(command: str, *, seconds: float) -> tuple[str, str]:
    """Run a step for so many seconds at most; its status and what it printed."""
    name, *words = shlex.split(command)
    words = [sys.executable, *([str(ROOT / name)] if name.endswith(".py") else ["-m", name]), *words]
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            done = subprocess.run(words, cwd=ROOT, stdout=output, stderr=output, timeout=seconds, check=False)
            status = FAILED if done.returncode else DONE
        except subprocess.TimeoutExpired:
            status = TOO_LONG
        output.seek(0)
        return status, output.read()


def main(argv: Sequence[str] | None = None) -> int:
    """Take all steps."""
    parser = ArgumentParser(prog="gpu.sh", description="Test and measure the toolkit on one GPU.")
    parser.add_argument("folder", type=Path, metavar="OUT", help="folder for gpu.md")
    add_options(parser, GpuOptions)
    args = parser.parse_args(argv)
    options: GpuOptions = read_options(args, GpuOptions)
    cuda = not options.cpu and torch.cuda.is_available()
    if not cuda and not options.cpu:
        print("no GPU: small work on the CPU shows that all of it runs; the figures mean nothing")
    title = f"# {time.strftime('%Y-%m-%d')}, {machine(cuda=cuda)}, torch {torch.__version__}, commit {commit()}"
    rows, printed = [], []
    with tempfile.TemporaryDirectory(prefix="gpu.") as work:
        for group, command in steps_of(work, cuda=cuda):
            if options.only and group not in options.only:
                continue
            start = time.monotonic()
            status, output = take(command, seconds=150 if group == "tests" or not cuda else 60)
            took = f"{time.monotonic() - start:.0f}"
            rows.append({"step": group, "status": status, "seconds": took, "command": command})
            printed += ["", f"## {command}", "", "```", output, "```"]
            print(f"{command}: {status}, {took} s", flush=True)
            write_text(args.folder / "gpu.md", "\n".join([title, "", *markdown(rows), *printed]) + "\n")
    print(f"wrote {args.folder / 'gpu.md'}")
    return 0 if all(row["status"] == DONE for row in rows) else 1


if __name__ == "__main__":
    run(main)
