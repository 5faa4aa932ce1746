"""Writes the network of a checkpoint as ONNX, TorchScript or safetensors, and compares the file with PyTorch.

python -m scripts.export_model output/FastPitch_checkpoint_1500.pt --format onnx -o fastpitch.onnx
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.checkpoints import Checkpoint, LoadedCheckpoint, load_for_inference, open_checkpoint, strip_checkpoint
from common.checkpoints.exported import Exports, OnnxRunner, Part, TorchScriptRunner, describe, describe_part
from common.checkpoints.exporting import largest_difference, write_onnx, write_torchscript
from common.checkpoints.safetensors_file import largest_difference_of_weights, write_safetensors
from common.cli import ArgumentParser, positive_float, run
from common.errors import InputError, OptionError
from common.registry import VocoderSpec

SUFFIXES = {"onnx": ".onnx", "torchscript": ".ts", "safetensors": ".safetensors"}
TOLERANCE = 1e-4


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(prog="export_model.sh", description="Write the network of a checkpoint in another format.")
    parser.add_argument("checkpoint", type=Path, metavar="CKPT", help="checkpoint, ours or published")
    parser.add_argument("--format", choices=tuple(SUFFIXES), default="onnx", help="of the file")
    target = "file to write, which must not exist yet (default: CKPT with the format's suffix); of a model in several "
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=f"{target}parts, each part's name is added")
    tolerance = "largest difference from PyTorch; outputs whose values exceed 1 are divided by the largest"
    parser.add_argument("--tolerance", type=positive_float, default=TOLERANCE, help=tolerance)
    return parser.parse_args(argv)


def part_path(path: Path, part: Part) -> Path:
    """Where a part goes: voice.onnx -> voice.encoder.onnx."""
    return path.with_suffix(f".{part.name}{path.suffix}") if part.name else path


def exports_of(loaded: LoadedCheckpoint, network: Any, config: Any, format: str) -> Exports:
    """What is to be written.

    Raises:
        OptionError: the model cannot be exported to that format.
    """
    spec = loaded.spec
    if spec.exports is None:
        raise OptionError(f"--format {format}: {spec.name} cannot be exported so; use safetensors")
    exports = spec.exports(network, config, loaded.checkpoint.audio)
    if format == "torchscript" and not all(part.scriptable for part in exports.parts):
        raise OptionError(
            f"--format torchscript: TorchScript cannot compile {spec.name}'s network; use onnx or safetensors"
        )
    return exports


def export_part(path: Path, part: Part, description: dict[str, Any], *, format: str) -> float:
    """Write and run one file; returns the largest difference from PyTorch."""
    if format == "onnx":
        write_onnx(path, part, description)
        return largest_difference(OnnxRunner(path), part)
    write_torchscript(path, part, description)
    runner = TorchScriptRunner(path, device=torch.device("cpu"), outputs=list(part.outputs))
    return largest_difference(runner, part)


def export_weights(path: Path, stripped: Checkpoint, description: dict[str, Any]) -> float:
    """Write and read the weights of one file; returns the largest difference from the checkpoint's."""
    write_safetensors(path, stripped, description)
    return largest_difference_of_weights(path, stripped)


def check(path: Path, difference: float, tolerance: float) -> str:
    """A line on a file that agrees with PyTorch.

    Raises:
        InputError: it does not.
    """
    said = f"largest difference from PyTorch {difference:.1e}"
    if not difference <= tolerance:
        raise InputError(f"{path}: {said}, above the tolerance {tolerance:g}; removed")
    return f"wrote {path}: {path.stat().st_size / 1e6:.1f} MB, {said}"


def main(argv: Sequence[str] | None = None) -> None:
    """Export one checkpoint."""
    args = parse_args(argv)
    loaded = open_checkpoint(args.checkpoint)
    if loaded.exported is not None:
        raise OptionError(f"{args.checkpoint}: is exported already; give the checkpoint")
    target = args.output or args.checkpoint.with_suffix(SUFFIXES[args.format])
    stripped = strip_checkpoint(loaded.checkpoint)
    network, config = load_for_inference(loaded, device=torch.device("cpu"))
    spec, context = loaded.spec, None
    if isinstance(spec.inference, VocoderSpec) and spec.inference.context is not None:
        context = spec.inference.context(config, stripped.audio)
    description = describe(stripped, context=context)
    write: dict[Path, Callable[[Path], float]] = {}
    if args.format == "safetensors":
        write[target] = partial(export_weights, stripped=stripped, description=description)
    else:
        exports = exports_of(loaded, network, config, args.format)
        for part in exports.parts:
            full = description | describe_part(exports, part)
            write[part_path(target, part)] = partial(export_part, part=part, description=full, format=args.format)
    for path in write:
        if path.exists():
            raise OptionError(f"{path}: exists already; name another FILE with -o, or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        for path, export in write.items():
            print(check(path, export(path), args.tolerance))
    except BaseException:
        for path in write:
            path.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    run(main)
