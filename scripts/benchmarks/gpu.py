"""Tests and measures the toolkit on one GPU, step by step within a given time, and leaves a table and JSON.

    bash scripts/benchmarks/gpu.sh OUT [--seconds 530] [--only training inference] [--cpu]

``OUT/gpu.md`` begins with a table of the steps and ends with what each printed; ``OUT/gpu.json`` holds the same and the
figures as numbers. Both are written anew after every step, so that a run that is cut off leaves what it has. A step
that fails, or takes longer than it may, is said and does not end the others; the exit status is then 1.

Steps are forks of one process that has imported PyTorch and all models, which saves each of them some seconds; that
process itself never touches the GPU.
"""

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import runpy
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.cli import ArgumentParser, positive_float, run
from common.errors import InputError
from common.files import read_json, write_json, write_text
from common.pages.render import ROOT, commit
from common.registry import available_models, get_model
from scripts.benchmarks.machine import machine
from scripts.benchmarks.table import Row, markdown

# What the steps need besides what a machine for PyTorch has: module -> what pip calls it.
NEEDED = {
    "soundfile": "soundfile cffi pycparser",
    "soxr": "soxr",
    "librosa": "librosa audioread decorator platformdirs pooch",
    "unidecode": "Unidecode",
    "tgt": "tgt",
    "parselmouth": "praat-parselmouth",
    "jiwer": "jiwer rapidfuzz",
    "yaml": "PyYAML",
    "tqdm": "tqdm",
    "scipy": "scipy",
    "matplotlib": "matplotlib",
    "tensorboard": "tensorboard",
    "pytest": "pytest",
}
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
SETTINGS = {"cuda": "fp32 bfloat16 float16", "cpu": "fp32"}
PHRASES = "phrases/benchmark_8_128.tsv"
DONE, FAILED, TOO_LONG, LEFT_OUT = "done", "failed", "took too long", "left out: no time"


@dataclass(frozen=True)
class Step:
    """One command: a module, or a script of the root folder, and its arguments."""

    name: str
    command: tuple[str, ...]
    seconds: float  # at most, on a GPU
    figures: Path | None = None  # JSON that the command writes

    @property
    def group(self) -> str:
        """What ``--only`` chooses it by."""
        return self.name.partition(" ")[0]


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
            "command": " ".join(self.step.command),
            "status": self.status,
            "seconds": round(self.seconds, 1),
            "output": self.output.splitlines(),
            "figures": read_json(figures) if figures is not None and figures.is_file() else None,
        }


def steps_of(folder: Path, *, cuda: bool) -> list[Step]:
    """All steps, in the order in which they are taken; files go into ``folder``."""
    on = ("--cuda",) if cuda else ()
    tests = ("pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "--continue-on-collection-errors", *_gpu_tests())
    steps = [Step("tests", (*tests, "-rfE"), 150)]
    for model in TRAINING:
        words = TRAINING[model] if cuda else f"-bs 2 --steps 1 {TINY_TRAINING[model]}"
        figures = folder / f"training_{model}.json"
        settings = SETTINGS["cuda" if cuda else "cpu"]
        command = f"scripts.benchmarks.train --model {model} --accumulation 1 {words} --json {figures}".split()
        steps.append(Step(f"training {model}", (*command, "--settings", *settings.split(), *on), 60, figures))
    sizes = "--batch-sizes 1 8 --steps 400" if cuda else "--batch-sizes 1 --steps 2 --symbols 4"
    steps.append(Step("decoder", ("scripts.benchmarks.decoder", *sizes.split(), *on), 40))
    return [*steps, *_inference(folder, on), *_recognition(folder, on), *_extraction(folder, on)]


def _gpu_tests() -> list[str]:
    """The files that have tests for a GPU: others may import what such a machine lacks."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("test_*.py"))}
    return [f"tests/{name}" for name, text in texts.items() if "pytest.mark.gpu" in text]


def _inference(folder: Path, on: tuple[str, ...]) -> list[Step]:
    """128 characters to sound, with random weights, in each precision."""
    random, voice = "scripts.benchmarks.random_models", folder / "FastPitch_random.pt"
    steps = [Step("inference voice", (random, str(folder), "--model", "FastPitch"), 30)]
    logs = []
    vocoders = {"HiFi-GAN": ("v1", "--hifigan"), "WaveGlow": ("256", "--waveglow")} if on else {}
    vocoders = vocoders or {"HiFi-GAN": ("v3", "--hifigan")}
    for model, (kind, option) in vocoders.items():
        steps.append(
            Step(f"inference {kind}", (random, str(folder), "--model", model, "--kind", kind, "--count", "1"), 30)
        )
        for precision in (["--amp"], []):
            log = folder / f"nvlog_infer_{option[2:]}{''.join(precision)}.json"
            logs.append(str(log))
            words = ["--fastpitch", str(voice), option, str(folder / f"{model}_{kind}.pt"), "--batch-size", "1"]
            words += ["--log-file", str(log), *precision, *on]
            size = f"-i {PHRASES} --cuda-graphs --repeats 10 --warmup-steps 16"
            size = size if on else f"--text Two -o {folder / 'two.wav'} --repeats 1 --warmup-steps 0"
            name = f"inference {model}, {'mixed' if precision else 'full'} precision"
            steps.append(Step(name, ("inference.py", *words, *size.split()), 40))
    return [*steps, Step("inference table", ("scripts.benchmarks.table", "inference", *logs), 20)]


def _recognition(folder: Path, on: tuple[str, ...]) -> list[Step]:
    """Jasper's latency with random weights."""
    noise = folder / "noise"
    size = "--count 8 --max-duration 7" if on else "--count 1 --max-duration 1"
    size += "" if on else " --model-config jasper/configs/jasper_digits.yaml"
    log = folder / "nvlog_jasper.json"
    words = ["--jasper", str(noise / "Jasper_random.pt"), "-i", str(noise / "list.txt"), "--dataset-path", str(noise)]
    words += ["--batch-size", "1", "--log-file", str(log), *on, *(["--amp", "--repeats", "10"] if on else [])]
    return [
        Step(
            "recognition noise",
            ("scripts.benchmarks.random_models", str(noise), "--model", "Jasper", *size.split()),
            30,
        ),
        Step("recognition", ("inference.py", *words), 40),
        Step("recognition table", ("scripts.benchmarks.table", "recognition", str(log)), 20),
    ]


def _extraction(folder: Path, on: tuple[str, ...]) -> list[Step]:
    """Mels of the recognizer's noise."""
    noise = folder / "noise"
    words = ["-d", str(noise), "--wav-text-filelist", str(noise / "list.txt"), "--extract-mels", *on]
    words += ["--sampling-rate", "16000"] if on else ["--sampling-rate", "8000", "--mel-fmax", "4000"]
    return [Step("extraction", ("extract_mels.py", *words), 40)]


def take(step: Step, folder: Path, *, seconds: float) -> Outcome:
    """Run a step in a fork, for so many seconds at most."""
    path = folder / "output.txt"
    start = time.monotonic()
    path.touch()
    process = multiprocessing.get_context("fork").Process(target=_run_here, args=(step, path))
    process.start()
    assert process.pid is not None
    os.setpgid(process.pid, process.pid)  # as it does itself, whichever comes first
    process.join(seconds)
    if process.exitcode is None:
        os.killpg(process.pid, signal.SIGKILL)  # what it has started too
        process.join()
        status = TOO_LONG
    else:
        status = FAILED if process.exitcode else DONE
    output = path.read_text(encoding="utf-8", errors="replace")
    path.unlink()
    return Outcome(step, status, time.monotonic() - start, output)


def _run_here(step: Step, output: Path) -> None:
    """Run a step in this process, with what it prints in a file."""
    os.setpgid(0, 0)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(descriptor, stream.fileno())
    name, *words = step.command
    sys.argv = [name, *words]
    if name.endswith(".py"):
        runpy.run_path(str(ROOT / name), run_name="__main__")
    else:
        sys.modules.pop(name, None)  # it is run, not imported
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def check_modules() -> None:
    """Raises InputError, with a command, if this Python lacks what the steps need."""
    missing = {name: pip for name, pip in NEEDED.items() if importlib.util.find_spec(name) is None}
    if missing:
        wheels = " ".join(missing.values())
        raise InputError(
            f"{sys.executable} lacks {', '.join(missing)}; bring them: "
            f"pip download --no-deps --dest wheels {wheels}; then here: pip install --no-index --no-deps wheels/*"
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
    title = ", ".join(f"{name} {value}" for name, value in about.items())
    parts = [f"# {title}", "", *markdown(rows)]
    for one in plain:
        parts += ["", f"## {one['step']}", "", "```", *one["output"], "```"]
    write_text(folder / "gpu.md", "\n".join(parts) + "\n")


def _in_fork(ask: Callable[[], Any]) -> Any:
    """What ``ask()`` gives in a fork, where alone the GPU may be touched."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    asking = context.Process(target=lambda: answers.put(ask()))
    asking.start()
    answer = answers.get()
    asking.join()
    return answer


def main(argv: Sequence[str] | None = None) -> int:
    """Take all steps that there is time for; files that they need are made in ``OUT/work``, which is removed again."""
    args = parse_args(argv)
    check_modules()
    end = time.monotonic() + args.seconds
    cuda = not args.cpu and _in_fork(torch.cuda.is_available)
    if not cuda and not args.cpu:
        print("no GPU: tiny networks on the CPU show that all of it runs; the figures mean nothing")
    date, name = time.strftime("%Y-%m-%d"), _in_fork(partial(machine, cuda=cuda))
    about = {"date": date, "device": name, "torch": torch.__version__, "commit": commit() or "unknown"}
    work = args.folder.resolve() / "work"
    shutil.rmtree(work, ignore_errors=True)  # of an earlier run
    work.mkdir(parents=True)
    for name in available_models():
        get_model(name)
    for name in ("inference", "extract_mels", "scripts.benchmarks.train"):
        importlib.import_module(name)
    outcomes: list[Outcome] = []
    for step in steps_of(work, cuda=cuda):
        if args.only and step.group not in args.only:
            continue
        left = end - time.monotonic()
        if left < 5:
            outcomes.append(Outcome(step, LEFT_OUT, 0.0, ""))
        else:
            outcomes.append(take(step, work, seconds=min(left, step.seconds) if cuda else left))
        outcome = outcomes[-1]
        print(f"{step.name}: {outcome.status}, {outcome.seconds:.0f} s", flush=True)
        write_results(args.folder, about, outcomes)
    shutil.rmtree(work)
    print(f"wrote {args.folder / 'gpu.md'} and {args.folder / 'gpu.json'}")
    return 0 if all(outcome.status == DONE for outcome in outcomes) else 1


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(prog="gpu.sh", description="Test and measure the toolkit on one GPU.")
    parser.add_argument("folder", type=Path, metavar="OUT", help="folder for gpu.md and gpu.json")
    parser.add_argument("--seconds", type=positive_float, default=530.0, help="in which it ends")
    groups = list(dict.fromkeys(step.group for step in steps_of(Path(), cuda=True)))
    parser.add_argument("--only", nargs="+", choices=groups, help="steps to take, of those")
    parser.add_argument(
        "--cpu", action="store_true", help="take tiny networks through it on the CPU, as where there is no GPU"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    run(main)
