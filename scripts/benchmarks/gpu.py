"""Tests and measures the toolkit on one GPU, step by step, and writes what each step printed to ``OUT/gpu.md``.

    bash scripts/benchmarks/gpu.sh OUT [--only training inference] [--cpu]

The file is written anew after every step, so that a run that is cut off leaves what it has. A step that fails, or takes
longer than it may, does not end the others; the exit status is then 1.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from common.cli import ArgumentParser, run
from common.files import write_text
from common.pages.render import ROOT, commit
from scripts.benchmarks.table import machine, markdown

GROUPS = ("tests", "training", "inference", "recognition", "extraction")
TRAINING = {  # variables of scripts/benchmark.sh train
    "FastPitch": "BS=64 STEPS=10",
    "HiFi-GAN": "BS=64 STEPS=6",
    "Tacotron2": "BS=48 STEPS=2",
    "WaveGlow": "BS=10 STEPS=6",
    "Harmonic": "BS=8 STEPS=6",
    "Jasper": "BS=64 STEPS=4",
}
SMALL = "BS=1 STEPS=1 AMP=false"
DIGITS = "MODEL_CONFIG=jasper/configs/jasper_digits.yaml"  # a small Jasper
DONE, FAILED, TOO_LONG = "done", "failed", "took too long"


def steps_of(work: str, *, cuda: bool) -> Iterator[tuple[str, str]]:
    """Group and command of all steps, for Bash in the root folder. Files go into the folder ``work``."""
    # Files without tests for a GPU may import what such a machine lacks.
    tests = [path.name for path in sorted((ROOT / "tests").glob("test_*.py")) if "pytest.mark.gpu" in path.read_text()]
    flags = "-q -m gpu -p no:cacheprovider --continue-on-collection-errors -rfE"
    yield "tests", f"$PYTHON -m pytest {flags} {' '.join(f'tests/{name}' for name in tests)}"
    for model, size in TRAINING.items():
        small = f"{SMALL}{f' {DIGITS} MAX_DURATION=2' * (model == 'Jasper')}"
        command = f"OUTPUT_DIR={work}/training GRAD_ACCUMULATION=1 bash scripts/benchmark.sh train --model {model}"
        yield "training", f"{size if cuda else small} {command}"
    yield "inference", f"echo Two >{work}/two.txt"
    size = "AMP=both REPEATS=10" if cuda else f"REPEATS=1 PHRASES={work}/two.txt"
    measure = f"BATCH_SIZE=1 OUTPUT_DIR={work}/speaking {size} bash scripts/inference_benchmark.sh"
    for model in ("FastPitch", "Tacotron2"):
        yield "inference", f"$PYTHON -m scripts.benchmarks.random_models {work} --model {model}"
    for vocoder in ("HIFIGAN=random-v1", "WAVEGLOW=random-256") if cuda else ("HIFIGAN=random-v3",):
        yield "inference", f"FASTPITCH={work}/FastPitch_random.pt {vocoder} {measure} --cuda-graphs"
    steps = 400 if cuda else 4
    yield "inference", f"AUDIO=false TACOTRON2={work}/Tacotron2_random.pt {measure} --max-decoder-steps {steps}"
    size = "MAX_DURATION_SEQ=7 ITERATIONS=10" if cuda else f"MAX_DURATION_SEQ=1 ITERATIONS=1 AMP=false {DIGITS}"
    measure = f"BATCH_SIZE_SEQ=1 OUTPUT_DIR={work} {size} bash scripts/inference_benchmark_jasper.sh"
    yield "recognition", measure
    corpus, rate = (f"{work}/noise_7s", "16000") if cuda else (f"{work}/noise_1s", "8000 --mel-fmax 4000")
    words = f"-d {corpus} --wav-text-filelist {corpus}/list.txt --extract-mels{' --cuda' * cuda} --sampling-rate {rate}"
    yield "extraction", f"$PYTHON extract_mels.py {words}"


def take(command: str, *, seconds: float, cuda: bool = False) -> tuple[str, str]:
    """Run a step for so many seconds at most; its status and what it printed."""
    environ = os.environ | {"PYTHON": sys.executable, "NUM_GPUS": str(int(cuda))}
    words = ["timeout", "--kill-after=5", str(seconds), "bash", "-c", command]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    done = subprocess.run(words, cwd=ROOT, env=environ, check=False, **output)
    return {0: DONE, 124: TOO_LONG}.get(done.returncode, FAILED), done.stdout


def main(argv: Sequence[str] | None = None) -> int:
    """Take all steps."""
    parser = ArgumentParser(prog="gpu.sh", description="Test and measure the toolkit on one GPU.")
    parser.add_argument("folder", type=Path, metavar="OUT", help="folder for gpu.md")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, help="steps to take, of those")
    parser.add_argument("--cpu", action="store_true", help="take small work through it on the CPU, without a GPU")
    args = parser.parse_args(argv)
    cuda = not args.cpu and torch.cuda.is_available()
    if not cuda and not args.cpu:
        print("no GPU: small work on the CPU shows that all of it runs; the figures mean nothing")
    title = f"# {time.strftime('%Y-%m-%d')}, {machine(cuda=cuda)}, torch {torch.__version__}, commit {commit()}"
    rows, printed = [], []
    with tempfile.TemporaryDirectory(prefix="gpu.") as work:
        for group, command in steps_of(work, cuda=cuda):
            if group not in args.only:
                continue
            start = time.monotonic()
            status, output = take(command, seconds=150, cuda=cuda)
            took = f"{time.monotonic() - start:.0f}"
            rows.append({"step": group, "status": status, "seconds": took, "command": command})
            printed += ["", f"## {command}", "", "```", output, "```"]
            print(f"{command}: {status}, {took} s", flush=True)
            write_text(args.folder / "gpu.md", "\n".join([title, "", *markdown(rows), *printed]) + "\n")
    print(f"wrote {args.folder / 'gpu.md'}")
    return 0 if all(row["status"] == DONE for row in rows) else 1


if __name__ == "__main__":
    run(main)
