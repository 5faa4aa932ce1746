"""Tests and measures the toolkit on one GPU, step by step within a given time, and leaves a table and JSON.

    bash scripts/benchmarks/gpu.sh OUT [--seconds 530] [--only training inference] [--cpu]

``OUT/gpu.md`` begins with a table of the steps and ends with what each printed; ``OUT/gpu.json`` holds the same and the
figures as numbers. Both are written anew after every step, so that a run that is cut off leaves what it has. A step
that fails, or takes longer than it may, is said and does not end the others; the exit status is then 1.
"""

import os
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
from common.files import read_json, write_json, write_text
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
DONE, FAILED, TOO_LONG, LEFT_OUT = "done", "failed", "took too long", "left out: no time"


@dataclass(frozen=True)
class GpuOptions:
    """Which steps are taken, on what, and for how long."""

    seconds: float = option(530.0, "in which it ends", above=0)
    only: tuple[str, ...] = option((), "steps to take, of those", choices=GROUPS)
    cpu: bool = option(False, "take small work through it on the CPU, as where there is no GPU")


@dataclass(frozen=True)
class Step:
    """One command: a module, or a script of the root folder, and its arguments."""

    name: str  # begins with one of GROUPS
    command: str
    seconds: float  # at most, on a GPU
    figures: Path | None = None  # JSON that the command writes


def steps_of(folder: Path, *, cuda: bool) -> Iterator[Step]:
    """All steps, in the order in which they are taken; files go into ``folder``."""
    # Files without tests for a GPU may import what such a machine lacks.
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("test_*.py"))}
    tests = " ".join(f"tests/{name}" for name, text in texts.items() if "pytest.mark.gpu" in text)
    flags = "-q -m gpu -p no:cacheprovider --continue-on-collection-errors -rfE"
    yield Step("tests", f"pytest {flags} {tests}", 150)
    on, work = (" --cuda" if cuda else ""), shlex.quote(str(folder))
    for model, size in TRAINING.items():
        small = f"-bs 1 --steps 1 --max-duration 2 {DIGITS * (model == 'Jasper')}"
        words = f"--json {work}/{model}.json --settings fp32{' bfloat16 float16' if cuda else ''}{on}"
        command = f"scripts.benchmarks.train --model {model} --accumulation 1 {size if cuda else small} {words}"
        yield Step(f"training {model}", command, 60, folder / f"{model}.json")
    make, table = "scripts.benchmarks.random_models", "scripts.benchmarks.table"
    for model in ("FastPitch", "Tacotron2"):
        yield Step(f"inference voice {model}", f"{make} {work} --model {model}", 30)
    kinds = {"HiFi-GAN": "v1", "WaveGlow": "256"} if cuda else {"HiFi-GAN": "v3"}
    size = "-i phrases/benchmark_8_128.tsv --cuda-graphs --repeats 10 --warmup-steps 16"
    size = size if cuda else f"--text Two -o {work}/two.wav --repeats 1 --warmup-steps 0"
    runs = {"Tacotron2": f"--tacotron2 {work}/Tacotron2_random.pt --max-decoder-steps {400 if cuda else 4} --no-audio"}
    for model, kind in kinds.items():
        yield Step(f"inference {kind}", f"{make} {work} --model {model} --kind {kind} --count 1", 30)
        vocoder = f"--{model.lower().replace('-', '')} {work}/{model}_{kind}.pt"
        runs[model] = f"--fastpitch {work}/FastPitch_random.pt {vocoder}"
    logs = []
    for model, models in runs.items():
        for precision, amp in (("mixed", " --amp"), ("full", "")):
            logs.append(f"{work}/log_{model}_{precision}.json")
            words = f"{models} --batch-size 1 --log-file {logs[-1]}{amp}{on} {size}"
            yield Step(f"inference {model}, {precision} precision", f"inference.py {words}", 40)
    yield Step("inference table", f"{table} inference {' '.join(logs)}", 20)
    size = "--max-duration 7 --count 8" if cuda else f"--max-duration 1 --count 1 {DIGITS}"
    yield Step("recognition noise", f"{make} {work}/noise --model Jasper {size}", 30)
    words = f"--jasper {work}/noise/Jasper_random.pt -i {work}/noise/list.txt --dataset-path {work}/noise"
    words += f" --batch-size 1 --log-file {work}/log_jasper.json{on}{' --amp --repeats 10' if cuda else ''}"
    yield Step("recognition", f"inference.py {words}", 40)
    yield Step("recognition table", f"{table} recognition {work}/log_jasper.json", 20)
    words = f"-d {work}/noise --wav-text-filelist {work}/noise/list.txt --extract-mels{on} --sampling-rate"
    yield Step("extraction", f"extract_mels.py {words} {16000 if cuda else '8000 --mel-fmax 4000'}", 40)


def take(step: Step, *, seconds: float) -> dict[str, Any]:
    """Run a step in a process group of its own, for so many seconds at most; its outcome as plain types."""
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
        return outcome(step, status, time.monotonic() - start, output.read())


def outcome(step: Step, status: str, seconds: float, output: str) -> dict[str, Any]:
    """What became of a step, as JSON holds it."""
    found = {"step": step.name, "command": step.command, "status": status, "seconds": round(seconds, 1)}
    figures = read_json(step.figures) if step.figures is not None and step.figures.is_file() else None
    return found | {"output": output.splitlines(), "figures": figures}


def write_results(folder: Path, about: dict[str, str], outcomes: Sequence[dict[str, Any]]) -> None:
    """Write what there is so far."""
    write_json(folder / "gpu.json", about | {"steps": outcomes})
    columns = ("step", "status", "seconds", "command")
    rows = [{name: str(one[name]) for name in columns} for one in outcomes]
    parts = [f"# {', '.join(f'{name} {value}' for name, value in about.items())}", "", *markdown(rows)]
    for one in outcomes:
        parts += ["", f"## {one['step']}", "", "```", *one["output"], "```"]
    write_text(folder / "gpu.md", "\n".join(parts) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Take all steps that there is time for; files that they need are made in ``OUT/work``, which is removed again."""
    parser = ArgumentParser(prog="gpu.sh", description="Test and measure the toolkit on one GPU.")
    parser.add_argument("folder", type=Path, metavar="OUT", help="folder for gpu.md and gpu.json")
    add_options(parser, GpuOptions)
    args = parser.parse_args(argv)
    options: GpuOptions = read_options(args, GpuOptions)
    end = time.monotonic() + options.seconds
    cuda = not options.cpu and torch.cuda.is_available()
    if not cuda and not options.cpu:
        print("no GPU: small work on the CPU shows that all of it runs; the figures mean nothing")
    about = {"date": time.strftime("%Y-%m-%d"), "device": machine(cuda=cuda), "torch": torch.__version__}
    about["commit"] = commit() or "unknown"
    work = args.folder.resolve() / "work"
    shutil.rmtree(work, ignore_errors=True)  # of an earlier run
    work.mkdir(parents=True)
    outcomes: list[dict[str, Any]] = []
    for step in steps_of(work, cuda=cuda):
        if options.only and step.name.split()[0] not in options.only:
            continue
        left = end - time.monotonic()
        if left < 5:
            outcomes.append(outcome(step, LEFT_OUT, 0.0, ""))
        else:
            outcomes.append(take(step, seconds=min(left, step.seconds) if cuda else left))
        print(f"{step.name}: {outcomes[-1]['status']}, {outcomes[-1]['seconds']:.0f} s", flush=True)
        write_results(args.folder, about, outcomes)
    shutil.rmtree(work)
    print(f"wrote {args.folder / 'gpu.md'} and {args.folder / 'gpu.json'}")
    return 0 if all(one["status"] == DONE for one in outcomes) else 1


if __name__ == "__main__":
    run(main)
