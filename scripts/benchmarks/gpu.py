"""Tests and measures the toolkit on one GPU, step by step, and writes what each step printed to ``OUT/gpu.md``.

    bash scripts/benchmarks/gpu.sh OUT [--only training inference] [--minutes 9] [--cpu]

The file is written anew after every step, and when the run is stopped, with what the last step had printed; where the
run is killed that stays in ``OUT/step.txt``. A step that fails, or takes longer than it may, does not end others, but
the exit status is then 1.
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
from common.files import make_folder, write_text
from common.pages.render import ROOT
from scripts.benchmarks.table import machine, markdown

GROUPS = ("training", "inference", "tests", "recognition", "extraction", "tf32", "compiling")
SECONDS = 90  # of a step
MINUTES = 9.0  # of all steps
TRAINING = (  # arguments of scripts.benchmarks.updates, with the published batches
    "FastPitch -bs 64 --accumulation 4",
    "HiFi-GAN -bs 128",
    "Tacotron2 -bs 128",
    "WaveGlow -bs 10",
    "Jasper -bs 64 --accumulation 4 --steps 2",
    "FastPitch -bs 64 --accumulation 4 --learned-alignment",
    "Harmonic -bs 8",
)
DIGITS = "jasper/configs/jasper_digits.yaml"  # a small Jasper
SMALL = {  # options of networks that a CPU trains quickly
    "FastPitch": "--in-fft-n-layers 1 --out-fft-n-layers 1",
    "HiFi-GAN": "--preset v3 --segment-size 2048 --mpd-periods 2 --mpd-channels 2 4 4 4 4 "
    "--msd-channels 2 2 4 4 4 4 4 --msd-groups 1 1 2 2 2 2 1",
    "Tacotron2": "--attention-rnn-dim 16 --decoder-rnn-dim 16 --postnet-embedding-dim 16",
    "WaveGlow": "--wn-channels 16 --flows 4 --early-every 2 --segment-length 2000",
    "Jasper": f"--model-config {DIGITS} --max-duration 2",
    "Harmonic": "--segment-frames 16",
}
DONE, FAILED, TOO_LONG, STOPPED = "done", "failed", "took too long", "stopped"


def _commit() -> str:
    """The commit of the toolkit's own repository; "unknown" in a copy without one."""
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def _updates(words: str, work: str, setting: str = "bfloat16", *, cuda: bool) -> str:
    """The command that times updates, or takes a small network through them."""
    words += f" --settings {setting}"
    if not cuda:  # later arguments take precedence
        words += f" -bs 1 --accumulation 1 --steps 1 --settings full {SMALL[words.split()[0]]}"
    return f"$PYTHON -m scripts.benchmarks.updates {work} --model {words}{' --cuda' * cuda}"


def _speaking(work: str, *, cuda: bool) -> Iterator[tuple[str, str]]:
    """Latencies of speech from text to sound."""
    make = f"echo Two >{work}/two.txt; $PYTHON -m scripts.benchmarks.random_models {work} --model"
    yield "inference", f"{make} FastPitch && {make} Tacotron2"
    size = "AMP=both REPEATS=10" if cuda else f"REPEATS=1 PHRASES={work}/two.txt"
    measure = f"OUTPUT_DIR={work}/speaking {size} bash scripts/inference_benchmark.sh"
    fastpitch, tacotron2 = (f"{name.upper()}={work}/{name}_random.pt" for name in ("FastPitch", "Tacotron2"))
    hifigan, sizes = ("random-v1", '"1 2 4 8"') if cuda else ("random-v3", "1")
    common = f"{fastpitch} HIFIGAN={hifigan} BS_SEQUENCE={sizes}"
    yield "inference", f"{common} {measure}"
    for strength in ("0", "0.005"):
        yield "inference", f"{common} DENOISING={strength} {measure} --cuda-graphs"
    waveglow, steps = ("random-256", 600) if cuda else ("random-16", 4)
    for voice, options in ((fastpitch, "--cuda-graphs"), (tacotron2, f"--max-decoder-steps {steps}")):
        yield "inference", f"{voice} WAVEGLOW={waveglow} BS_SEQUENCE={sizes} {measure} {options}"
    yield "compiling", f"{make} FastPitch && {fastpitch} HIFIGAN={hifigan} BS_SEQUENCE=1 {measure} --compile"


def steps_of(work: str, *, cuda: bool) -> list[tuple[str, str]]:
    """Group and command of all steps in order, for Bash in the root folder. Files go into the folder ``work``."""
    # Files without tests for a GPU may import what such a machine lacks.
    tests = [path.name for path in sorted((ROOT / "tests").glob("test_*.py")) if "pytest.mark.gpu" in path.read_text()]
    pytest = "$PYTHON -m pytest -q -m gpu -p no:cacheprovider -rfE"
    steps = [("training", _updates(words, work, cuda=cuda)) for words in TRAINING]
    steps += _speaking(work, cuda=cuda)
    size = 'MAX_DURATION_SEQ="2 7 16.7" BATCH_SIZE_SEQ="1 2 4 8 16" ITERATIONS=10'
    if not cuda:
        size = f"MAX_DURATION_SEQ=1 BATCH_SIZE_SEQ=1 ITERATIONS=1 AMP=false MODEL_CONFIG={DIGITS}"
    steps.append(("recognition", f"OUTPUT_DIR={work} {size} bash scripts/inference_benchmark_jasper.sh"))
    corpus, size = f"{work}/recordings", "16" if cuda else f"1 --max-duration 1 --model-config {DIGITS}"
    make = f"$PYTHON -m scripts.benchmarks.random_models {corpus} --model Jasper --no-checkpoint --count {size}"
    words = f"-d {corpus} --wav-text-filelist {corpus}/list.txt --extract-mels"
    rate = "16000 --cuda" if cuda else "8000 --mel-fmax 4000"
    steps.append(("extraction", f"{make} && $PYTHON extract_mels.py {words} --sampling-rate {rate}"))
    files = " ".join(f"tests/{name}" for name in tests)
    steps.append(("tests", f"{pytest} --continue-on-collection-errors {files}"))
    steps += [("tf32", _updates(words, work, "tf32", cuda=cuda)) for words in TRAINING]
    steps += [("compiling", _updates(words, work, "bfloat16 --ways compiled", cuda=cuda)) for words in TRAINING[:2]]
    if not cuda:  # where compiling takes minutes
        steps = [(group, "export TORCH_COMPILE_DISABLE=1; " * (group == "compiling") + step) for group, step in steps]
    return sorted(steps, key=lambda step: GROUPS.index(step[0]))


def take(command: str, printed: Path, *, seconds: float, cuda: bool = False) -> str:
    """Run a step, which is interrupted after so many seconds or with this process, and prints to a file; its status."""
    environ = os.environ | {"PYTHON": sys.executable, "NUM_GPUS": str(int(cuda)), "PYTHONUNBUFFERED": "1"}
    words = ["timeout", "--signal=INT", "--kill-after=10", str(seconds), "bash", "-c", command]
    with printed.open("wb") as file:
        step = subprocess.Popen(words, cwd=ROOT, env=environ, stdout=file, stderr=subprocess.STDOUT)
        try:
            return {0: DONE, 124: TOO_LONG, 137: TOO_LONG}.get(step.wait(), FAILED)
        except KeyboardInterrupt:
            step.terminate()  # which `timeout` passes on
            step.wait()
            raise


def main(argv: Sequence[str] | None = None) -> int:
    """Take all steps."""
    parser = ArgumentParser(prog="gpu.sh", description="Test and measure the toolkit on one GPU.")
    parser.add_argument("folder", type=Path, metavar="OUT", help="folder for gpu.md")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, help="steps to take, of those")
    parser.add_argument("--cpu", action="store_true", help="take small work through it on the CPU, without a GPU")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time for all of it")
    args = parser.parse_args(argv)
    cuda = not args.cpu and torch.cuda.is_available()
    if not cuda and not args.cpu:
        print("no GPU: small work on the CPU shows that all of it runs; the figures mean nothing")
    title = f"# {time.strftime('%Y-%m-%d')}, {machine(cuda=cuda)}, torch {torch.__version__}, commit {_commit()}"
    rows, sections = [], []
    end, printed, stop = time.monotonic() + 60 * args.minutes, args.folder / "step.txt", None
    make_folder(args.folder)
    with tempfile.TemporaryDirectory(prefix="gpu.") as work:
        steps = [step for step in steps_of(work, cuda=cuda) if step[0] in args.only]
        for group, command in steps:
            start = time.monotonic()
            if (seconds := min(SECONDS, end - start)) < 1 or stop:
                break
            try:
                status = take(command, printed, seconds=round(seconds), cuda=cuda)
            except KeyboardInterrupt as error:
                status, stop = STOPPED, error
            took = f"{time.monotonic() - start:.0f}"
            rows.append({"step": group, "status": status, "seconds": took, "command": command})
            sections += ["", f"## {command}", "", "```", printed.read_text("utf-8", "replace"), "```"]
            print(f"{command}: {status}, {took} s", flush=True)
            write_text(args.folder / "gpu.md", "\n".join([title, "", *markdown(rows), *sections]) + "\n")
    printed.unlink(missing_ok=True)
    left_out = f", without {len(steps) - len(rows)} steps that time was too short for" * (len(rows) < len(steps))
    print(f"wrote {args.folder / 'gpu.md'}{left_out}")
    if stop is not None:
        raise stop
    return 0 if all(row["status"] == DONE for row in rows) else 1


if __name__ == "__main__":
    run(main)
