"""Tests and measures the toolkit on one GPU, step by step within a given time, and leaves a table and JSON.

    bash scripts/benchmarks/gpu.sh OUT [--seconds 530] [--only training inference] [--cpu]

``OUT/gpu.md`` begins with a table of the steps and ends with what each printed; ``OUT/gpu.json`` holds the same and the
figures as numbers. Both are written anew after every step, so that a run that is cut off leaves what it has. A step
that fails, or takes longer than it may, is said and does not end the others; the exit status is then 1.
"""

import importlib.metadata
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.files import read_json, write_json, write_text
from common.options import add_options, option, read_options
from common.pages.render import ROOT, commit
from scripts.benchmarks.measuring import Row, machine, markdown

REQUIREMENTS = ROOT / "requirements.txt"
GROUPS = ("tests", "training", "decoder", "inference", "recognition", "extraction")
# Of training, for scripts.benchmarks.train: the published sizes on a GPU, tiny networks on a CPU.
TRAINING = {
    "FastPitch": "-bs 64 --steps 10",
    "HiFi-GAN": "-bs 64 --steps 6",
    "Tacotron2": "-bs 48 --steps 2",
    "WaveGlow": "-bs 10 --steps 6",
    "Harmonic": "-bs 8 --steps 6",
    "Jasper": "-bs 64 --steps 4 --cudnn-benchmark",
}
TINY_TRAINING = {
    "FastPitch": "--in-fft-n-layers 1 --out-fft-n-layers 1 --in-fft-conv1d-filter-size 16 "
    "--out-fft-conv1d-filter-size 16 --symbols-embedding-dim 16 --in-fft-output-size 16 --out-fft-output-size 16",
    "HiFi-GAN": "--preset v3 --upsample-initial-channel 16 --mpd-periods 2 --mpd-channels 2 2 2 2 2 "
    "--msd-channels 2 2 2 2 2 2 2 --msd-groups 1 1 1 1 1 1 1 --segment-length 2048",
    "Tacotron2": "--encoder-embedding-dim 16 --symbols-embedding-dim 16 --attention-rnn-dim 16 --attention-dim 8 "
    "--decoder-rnn-dim 16 --prenet-dim 8 --postnet-embedding-dim 16",
    "WaveGlow": "--wn-channels 8 --flows 2 --segment-length 2000",
    "Harmonic": "--channels 8 --layers 1 --pitch-channels 8 --max-duration 4",
    "Jasper": "--model-config jasper/configs/jasper_digits.yaml --max-duration 2",
}
DONE, FAILED, TOO_LONG, LEFT_OUT = "done", "failed", "took too long", "left out: no time"


@dataclass(frozen=True)
class GpuOptions:
    """Which steps are taken, on what, and for how long."""

    seconds: float = option(530.0, "in which it ends", above=0)
    only: tuple[str, ...] = option((), "steps to take, of those", choices=GROUPS)
    cpu: bool = option(False, "take tiny networks through it on the CPU, as where there is no GPU")


@dataclass(frozen=True)
class Step:
    """One command: a module, or a script of the root folder, and its arguments."""

    name: str  # begins with one of GROUPS
    command: str
    seconds: float  # at most, on a GPU
    figures: Path | None = None  # JSON that the command writes


@dataclass(frozen=True)
class Outcome:
    """What became of a step."""

    step: Step
    status: str
    seconds: float
    output: str

    def plain(self) -> dict[str, Any]:
        """Convert to plain types for JSON."""
        figures = self.step.figures
        return {
            "step": self.step.name,
            "command": self.step.command,
            "status": self.status,
            "seconds": round(self.seconds, 1),
            "output": self.output.splitlines(),
            "figures": read_json(figures) if figures is not None and figures.is_file() else None,
        }


def steps_of(folder: Path, *, cuda: bool) -> Iterator[Step]:
    """All steps, in the order in which they are taken; files go into ``folder``."""
    # Files without tests for a GPU may import what such a machine lacks.
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("test_*.py"))}
    tests = " ".join(f"tests/{name}" for name, text in texts.items() if "pytest.mark.gpu" in text)
    flags = "-q -m gpu -p no:cacheprovider --continue-on-collection-errors -rfE"
    yield Step("tests", f"pytest {flags} {tests}", 150)
    on, work = (" --cuda" if cuda else ""), shlex.quote(str(folder))
    for model, size in TRAINING.items():
        words = size if cuda else f"-bs 2 --steps 1 {TINY_TRAINING[model]}"
        words += f" --json {work}/{model}.json --settings fp32{' bfloat16 float16' if cuda else ''}{on}"
        command = f"scripts.benchmarks.train --model {model} --accumulation 1 {words}"
        yield Step(f"training {model}", command, 60, folder / f"{model}.json")
    sizes = "--batch-sizes 1 8 --steps 400" if cuda else "--batch-sizes 1 --steps 2 --symbols 4"
    yield Step("decoder", f"scripts.benchmarks.decoder {sizes}{on}", 40)
    make, table = "scripts.benchmarks.random_models", "scripts.benchmarks.table"
    yield Step("inference voice", f"{make} {work} --model FastPitch", 30)
    kinds = {"HiFi-GAN": "v1", "WaveGlow": "256"} if cuda else {"HiFi-GAN": "v3"}
    for model, kind in kinds.items():
        yield Step(f"inference {kind}", f"{make} {work} --model {model} --kind {kind} --count 1", 30)
        size = "-i phrases/benchmark_8_128.tsv --cuda-graphs --repeats 10 --warmup-steps 16"
        size = size if cuda else f"--text Two -o {work}/two.wav --repeats 1 --warmup-steps 0"
        models = f"--fastpitch {work}/FastPitch_random.pt --{model.lower().replace('-', '')} {work}/{model}_{kind}.pt"
        for precision, amp in (("mixed", " --amp"), ("full", "")):
            words = f"{models} --batch-size 1 --log-file {work}/log_{model}_{precision}.json{amp}{on} {size}"
            yield Step(f"inference {model}, {precision} precision", f"inference.py {words}", 40)
    logs = " ".join(f"{work}/log_{model}_{precision}.json" for model in kinds for precision in ("mixed", "full"))
    yield Step("inference table", f"{table} inference {logs}", 20)
    size = "--max-duration 1 --count 1 --model-config jasper/configs/jasper_digits.yaml"
    size = "--max-duration 7 --count 8" if cuda else size
    yield Step("recognition noise", f"{make} {work}/noise --model Jasper {size}", 30)
    words = f"--jasper {work}/noise/Jasper_random.pt -i {work}/noise/list.txt --dataset-path {work}/noise"
    words += f" --batch-size 1 --log-file {work}/log_jasper.json{on}{' --amp --repeats 10' if cuda else ''}"
    yield Step("recognition", f"inference.py {words}", 40)
    yield Step("recognition table", f"{table} recognition {work}/log_jasper.json", 20)
    words = f"-d {work}/noise --wav-text-filelist {work}/noise/list.txt --extract-mels{on} --sampling-rate"
    yield Step("extraction", f"extract_mels.py {words} {16000 if cuda else '8000 --mel-fmax 4000'}", 40)


def take(step: Step, *, seconds: float) -> Outcome:
    """Run a step in a process group of its own, for so many seconds at most."""
    name, *words = shlex.split(step.command)
    command = [sys.executable, *([str(ROOT / name)] if name.endswith(".py") else ["-m", name]), *words]
    start = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = FAILED if process.wait(seconds) else DONE
        except subprocess.TimeoutExpired:
            status = TOO_LONG
        finally:  # also where this process is stopped
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has started too
            process.wait()
        output.seek(0)
        return Outcome(step, status, time.monotonic() - start, output.read())


def check_packages() -> None:
    """Raise InputError, with a command, if this Python lacks what the steps need."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    names = [found[0] for line in lines if (found := re.match(r"[\w.-]+", line))]
    there = {str(one.metadata["Name"]).lower().replace("_", "-") for one in importlib.metadata.distributions()}
    missing = [name for name in [*names, "pytest"] if name.lower().replace("_", "-") not in there]
    if missing:
        wheels = " ".join(missing)
        raise InputError(
            f"{sys.executable} lacks {wheels}; bring them: pip download --dest wheels {wheels}; "
            f"then here: pip install --no-index --find-links wheels {wheels}"
        )


def write_results(folder: Path, about: dict[str, str], outcomes: Sequence[Outcome]) -> None:
    """Write what there is so far."""
    plain = [outcome.plain() for outcome in outcomes]
    write_json(folder / "gpu.json", about | {"steps": plain})
    rows: list[Row] = [
        {
            "step": one["step"],
            "status": one["status"],
            "seconds": f"{one['seconds']:.0f}",
            "command": f"`{one['command']}`",
        }
        for one in plain
    ]
    parts = [f"# {', '.join(f'{name} {value}' for name, value in about.items())}", "", *markdown(rows)]
    for one in plain:
        parts += ["", f"## {one['step']}", "", "```", *one["output"], "```"]
    write_text(folder / "gpu.md", "\n".join(parts) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Take all steps that there is time for; files that they need are made in ``OUT/work``, which is removed again."""
    parser = ArgumentParser(prog="gpu.sh", description="Test and measure the toolkit on one GPU.")
    parser.add_argument("folder", type=Path, metavar="OUT", help="folder for gpu.md and gpu.json")
    add_options(parser, GpuOptions)
    args = parser.parse_args(argv)
    options: GpuOptions = read_options(args, GpuOptions)
    check_packages()
    end = time.monotonic() + options.seconds
    cuda = not options.cpu and torch.cuda.is_available()
    if not cuda and not options.cpu:
        print("no GPU: tiny networks on the CPU show that all of it runs; the figures mean nothing")
    about = {"date": time.strftime("%Y-%m-%d"), "device": machine(cuda=cuda), "torch": torch.__version__}
    about["commit"] = commit() or "unknown"
    work = args.folder.resolve() / "work"
    shutil.rmtree(work, ignore_errors=True)  # of an earlier run
    work.mkdir(parents=True)
    outcomes: list[Outcome] = []
    for step in steps_of(work, cuda=cuda):
        if options.only and step.name.split()[0] not in options.only:
            continue
        left = end - time.monotonic()
        outcome = Outcome(step, LEFT_OUT, 0.0, "")
        if left >= 5:
            outcome = take(step, seconds=min(left, step.seconds) if cuda else left)
        outcomes.append(outcome)
        print(f"{step.name}: {outcome.status}, {outcome.seconds:.0f} s", flush=True)
        write_results(args.folder, about, outcomes)
    shutil.rmtree(work)
    print(f"wrote {args.folder / 'gpu.md'} and {args.folder / 'gpu.json'}")
    return 0 if all(outcome.status == DONE for outcome in outcomes) else 1


if __name__ == "__main__":
    run(main)
