"""Compares ONNX in onnxruntime, in float32 and in 8-bit integers, with PyTorch on the CPU, in turns in one process.

    python -m scripts.benchmarks.exported
    python -m scripts.benchmarks.exported voice.pt vocoder.pt --calibration mels.tsv --length 300 --repeats 5
    python -m scripts.benchmarks.exported --start-up

All infer from the same input, one utterance of tokens or mel frames at once. Seconds are medians; the ratios to PyTorch
in float32 are medians over the turns, so that a load on the machine slows both of their sides. Without checkpoints a
FastPitch, whose symbols are given six frames each, and a HiFi-GAN v1 and v2 of full size with random weights are made.
PyTorch's bfloat16 is there for information where the processor has it: it is another precision, as 8 bits are.

    ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 python -m scripts.benchmarks.exported

keeps PyTorch to the instructions of an older processor, as published figures are of such. onnxruntime cannot be kept
to them, so the ratios say nothing then; PyTorch's seconds alone do.

--start-up measures, instead, new processes that speak a word: the speaker without PyTorch, and inference.py with the
same models as ONNX files and as checkpoints.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from common.checkpoints import load_for_inference, open_checkpoint
from common.cli import ArgumentParser, positive_int, run
from common.errors import InputError, OptionError
from common.precision import has_bfloat16, keep_freed_memory
from common.registry import GeneratorSpec, VocoderSpec
from common.synthesis import Controls
from common.timing import take_turns
from scripts import export_model
from scripts.benchmarks.machine import machine
from scripts.benchmarks.random_models import make_vocoder, make_voice
from scripts.benchmarks.table import markdown

FRAMES_PER_TOKEN = 6
_WARMUP = 2  # turns that are not counted
_ANY_DISTANCE = "10"  # of mels: random weights are measured for their speed alone
_CALIBRATION_MELS = 2
_COLUMNS = ("PyTorch, s", "ONNX, s", "int8, s", "bfloat16, s")
_INSTRUCTIONS = ("avx2", "avx512_f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimd", "sve")
_WORD = "hello"
# A small process, since the peak that Linux gives for a new one includes the process that started it.
_LAUNCHER = """
import resource, subprocess, sys, time
started = time.perf_counter()
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
_ROOT = Path(__file__).parents[2]


def inference_of(path: Path, length: int, *, amp: bool = False) -> Callable[[], Any]:
    """What infers from one random utterance of ``length`` tokens or frames, the same for a checkpoint and its export.

    Raises:
        OptionError: the model makes neither mels nor sound.
    """
    loaded = open_checkpoint(path)
    network, config = load_for_inference(loaded, device=torch.device("cpu"))
    generator, lengths = torch.Generator().manual_seed(0), torch.tensor([length])
    if isinstance(loaded.spec.inference, VocoderSpec):
        mel = torch.randn(1, loaded.checkpoint.audio.n_mels, length, generator=generator) - 5

        def infer() -> Any:
            return network.infer(mel, None)

    elif isinstance(loaded.spec.inference, GeneratorSpec):
        tokens = torch.randint(1, config.n_symbols, (1, length), generator=generator)
        controls = Controls(durations=torch.full((1, length), float(FRAMES_PER_TOKEN)))

        def infer() -> Any:
            return network.infer(tokens, lengths, controls).mel

    else:
        raise OptionError(f"{path}: {loaded.spec.name} makes neither mels nor sound")

    def infer_in_16_bits() -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return infer()

    return infer_in_16_bits if amp else infer


def compare(ways: Sequence[Callable[[], Any]], *, repeats: int) -> list[list[float]]:
    """Seconds of each way in each turn, one after the other."""
    with torch.inference_mode():
        return take_turns(ways, _WARMUP + repeats)[_WARMUP:]


def files_of(path: Path, folder: Path, *, calibration: Path | None) -> dict[str, Path]:
    """A checkpoint's exported files by their names in the table; a vocoder's integers need mels to calibrate with."""
    files = {"ONNX": folder / f"{path.stem}.onnx"}
    export_model.main([str(path), "-o", str(files["ONNX"])])
    is_vocoder = isinstance(open_checkpoint(path, ema=True).spec.inference, VocoderSpec)
    if calibration is not None or not is_vocoder:
        files["int8"] = folder / f"{path.stem}.int8.onnx"
        mels = ["--calibration", str(calibration)] if is_vocoder else []
        words = [str(path), "--quantize", "int8", *mels, "--tolerance", _ANY_DISTANCE, "-o", str(files["int8"])]
        export_model.main(words)
    return files


def row_of(path: Path, files: Mapping[str, Path], *, length: int, repeats: int) -> dict[str, str]:
    """A row of the table: seconds, and how many times as fast as PyTorch."""
    ways = {"PyTorch": inference_of(path, length)}
    ways |= {name: inference_of(file, length) for name, file in files.items()}
    if has_bfloat16(cuda=False):
        ways["bfloat16"] = inference_of(path, length, amp=True)
    turns = compare(list(ways.values()), repeats=repeats)
    row = {"model": path.stem} | dict.fromkeys(_COLUMNS, "-")
    for index, name in enumerate(ways):
        ratio = statistics.median(turn[0] / turn[index] for turn in turns)
        seconds = statistics.median(turn[index] for turn in turns)
        row[f"{name}, s"] = f"{seconds:.3f}" if name == "PyTorch" else f"{seconds:.3f} ({ratio:.2f} x)"
    return row


def random_checkpoints(folder: Path, kinds: Sequence[str]) -> list[Path]:
    """A FastPitch of full size and HiFi-GANs, with random weights."""
    voice = make_voice(folder)
    for kind in kinds:
        make_vocoder(folder, "HiFi-GAN", kind, count=_CALIBRATION_MELS)
    return [voice, *(folder / f"HiFi-GAN_{kind}.pt" for kind in kinds)]


def start_up(voice: Path, vocoder: Path, folder: Path, *, repeats: int) -> list[dict[str, str]]:
    """Rows on new processes that load two models and speak a word."""
    exported, sound = [folder / "voice.onnx", folder / "vocoder.onnx"], folder / "speech.wav"
    for path, target in zip((voice, vocoder), exported):
        export_model.main([str(path), "-o", str(target)])

    def inference(*models: Path) -> list[str]:
        words = [word for option, path in zip(("--fastpitch", "--hifigan"), models) for word in (option, str(path))]
        return ["inference.py", *words, "--text", _WORD, "--quiet", "-o", str(sound)]

    commands = {
        "onnx_speaker.py": ["-m", "scripts.demos.onnx_speaker", *map(str, exported), _WORD, "-o", str(sound)],
        "inference.py, ONNX": inference(*exported),
        "inference.py, checkpoints": inference(voice, vocoder),
    }
    rows = []
    for name, words in commands.items():
        measured = [measure_process([sys.executable, *words]) for _ in range(repeats)]
        seconds, megabytes = (statistics.median(column) for column in zip(*measured))
        rows.append({"command": name, "s": f"{seconds:.2f}", "peak memory, MB": f"{megabytes:.0f}"})
    return rows


def measure_process(command: Sequence[str]) -> tuple[float, float]:
    """Seconds and the peak memory in MB of a process, from its start to its end.

    Raises:
        InputError: it failed.
    """
    words = [sys.executable, "-S", "-c", _LAUNCHER, *command]
    done = subprocess.run(words, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"{' '.join(command)}: exit status {done.returncode}")
    seconds, kilobytes = map(float, done.stdout.split())
    return seconds, kilobytes / 1000


def instructions() -> str:
    """What the processor has of the instructions that matter here, and what PyTorch uses of them."""
    capabilities = torch.cpu.get_capabilities()
    there = [name for name in _INSTRUCTIONS if capabilities.get(name)]
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA")
    used = f"PyTorch's own kernels use {torch.backends.cpu.get_cpu_capability()}"
    return f"{' '.join(there) or 'none known'}; {used}" + (f", oneDNN {limit} at most" if limit else "")


def main(argv: Sequence[str] | None = None) -> None:
    """Export, and print the table."""
    parser = ArgumentParser(prog="exported.py", description="Time ONNX in onnxruntime against PyTorch.")
    parser.add_argument("checkpoints", type=Path, nargs="*", help="of voices and vocoders")
    parser.add_argument("--length", type=positive_int, default=120, help="tokens of a voice, frames of a vocoder")
    parser.add_argument("--repeats", type=positive_int, default=7, help="turns, or processes of --start-up")
    parser.add_argument("--calibration", type=Path, metavar="LIST", help="of mels, for vocoders in 8-bit integers")
    parser.add_argument("--start-up", action="store_true", help="measure processes; of checkpoints a voice, a vocoder")
    args = parser.parse_args(argv)
    if args.start_up and len(args.checkpoints) not in (0, 2):
        raise OptionError("--start-up: give the checkpoints of a voice and of a vocoder, or none")
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as name:
        folder, checkpoints, calibration = Path(name), args.checkpoints, args.calibration
        if not checkpoints:
            checkpoints = random_checkpoints(folder, ("v2",) if args.start_up else ("v1", "v2"))
            calibration = folder / "random_mels.tsv"
        if args.start_up:
            rows = start_up(*checkpoints, folder, repeats=args.repeats)
        else:
            rows = []
            for path in checkpoints:
                files = files_of(path, folder, calibration=calibration)
                rows.append(row_of(path, files, length=args.length, repeats=args.repeats))
    print(f"{machine(cuda=False)}; {instructions()}")
    if not args.start_up:
        print(f"{args.length} tokens or frames; in brackets how many times as fast as PyTorch in float32")
    print("\n".join(markdown(rows)))


if __name__ == "__main__":
    run(main)
