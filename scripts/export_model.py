"""Writes the network of a checkpoint as ONNX, TorchScript or safetensors, and compares the file with PyTorch.

python -m scripts.export_model output/FastPitch_checkpoint_1500.pt --format onnx -o fastpitch.onnx
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints import Checkpoint, LoadedCheckpoint, load_for_inference, open_checkpoint, strip_checkpoint
from common.checkpoints.exported import Exports, Part, describe, describe_part
from common.checkpoints.exporting import largest_difference, part_path, write_onnx, write_torchscript, written_runner
from common.checkpoints.quantization import MEL_TOLERANCE, write_quantized
from common.checkpoints.safetensors_file import largest_difference_of_weights, write_safetensors
from common.cli import ArgumentParser, positive_float, run
from common.errors import InputError, OptionError
from common.files import check_output_file
from common.registry import VocoderSpec
from common.synthesis import contract_of, load_mels_or_recordings, read_phrases

SUFFIXES = {"onnx": ".onnx", "torchscript": ".ts", "safetensors": ".safetensors"}
TOLERANCE = 1e-4
_CALIBRATION_FRAMES = 200  # of a mel: onnxruntime keeps what every layer makes of all of them in memory


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(prog="export_model.sh", description="Write the network of a checkpoint in another format.")
    parser.add_argument("checkpoint", type=Path, metavar="CKPT", help="checkpoint, ours or published")
    parser.add_argument("--format", choices=tuple(SUFFIXES), default="onnx", help="of the file")
    target = "file to write, which must not exist yet (default: CKPT with the format's suffix); of a model in several "
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=f"{target}parts, each part's name is added")
    text = "compute in 8-bit integers: smaller and faster, and no longer equal to PyTorch; the mel distance is printed"
    parser.add_argument("--quantize", choices=("int8",), help=text)
    text = "list of mels or recordings, as inference.py speaks them, that show --quantize a vocoder's values"
    parser.add_argument("--calibration", type=Path, metavar="LIST", help=text)
    text = "folder that the list's mel or wav starts from"
    parser.add_argument("--dataset-path", type=Path, default=Path(), help=text)
    text = (
        "largest difference from PyTorch, outputs whose values exceed 1 are divided by the largest; or with --quantize "
    )
    text += f"mean absolute difference of mels (default: {TOLERANCE:g}, or {MEL_TOLERANCE:g})"
    parser.add_argument("--tolerance", type=positive_float, help=text)
    args = parser.parse_args(argv)
    if args.quantize and args.format != "onnx":
        raise OptionError(f"--quantize {args.quantize}: for --format onnx alone; leave it out")
    if args.calibration and not args.quantize:
        raise OptionError("--calibration is for --quantize int8; leave it out, or add that")
    return args


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
    write = write_onnx if format == "onnx" else write_torchscript
    write(path, part, description)
    return largest_difference(written_runner(path, part, format=format), part)


def calibration_mels(args: argparse.Namespace, loaded: LoadedCheckpoint, exports: Exports) -> list[Tensor]:
    """The mels (n_mels, F) of --calibration, where --quantize needs them.

    Raises:
        InputError: the list cannot be read, or its mels are not what the vocoder reads.
        OptionError: the model has no quantized form, or the list is missing or useless.
    """
    spec, parts = loaded.spec, exports.parts
    if not all(part.quantization for part in parts):
        raise OptionError(f"--quantize {args.quantize}: {spec.name} has no quantized form; leave it out")
    calibrated = any(part.quantization and part.quantization.calibrated for part in parts)
    if calibrated != (args.calibration is not None):
        wanted = "needs --calibration LIST, of mels or recordings to speak" if calibrated else "needs no --calibration"
        raise OptionError(f"--quantize {args.quantize}: {spec.name} {wanted}")
    if not calibrated:
        return []
    contract = contract_of(loaded, None, accepted=())
    items, _ = load_mels_or_recordings(
        read_phrases(args.calibration), dataset_path=args.dataset_path, contract=contract
    )
    return [item.mel[:, :_CALIBRATION_FRAMES] for item in items if item.mel is not None]


def export_weights(path: Path, stripped: Checkpoint, description: dict[str, Any]) -> float:
    """Write and read the weights of one file; returns the largest difference from the checkpoint's."""
    write_safetensors(path, stripped, description)
    return largest_difference_of_weights(path, stripped)


def check(path: Path, difference: float, args: argparse.Namespace) -> str:
    """A line on a file that agrees with PyTorch.

    Raises:
        InputError: it does not.
    """
    said = f"largest difference from PyTorch {difference:.1e}"
    tolerance = args.tolerance or (MEL_TOLERANCE if args.quantize else TOLERANCE)
    if args.quantize:
        said = f"{args.quantize}, mean mel distance from PyTorch {difference:.3g}"
    if not difference <= tolerance:
        raise InputError(f"{path}: {said}, above the tolerance {tolerance:g}; removed")
    return f"wrote {path}: {path.stat().st_size / 1e6:.1f} MB, {said}"


def main(argv: Sequence[str] | None = None) -> None:
    """Export one checkpoint."""
    args = parse_args(argv)
    loaded = open_checkpoint(args.checkpoint)
    if loaded.exported is not None:
        raise OptionError(f"{args.checkpoint}: is exported already; give the checkpoint")
    suffix = f".{args.quantize}{SUFFIXES[args.format]}" if args.quantize else SUFFIXES[args.format]
    target = args.output or args.checkpoint.with_suffix(suffix)
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
        export: Callable[..., float] = partial(export_part, format=args.format)
        if args.quantize:
            mels = calibration_mels(args, loaded, exports)
            export = partial(write_quantized, mels=mels, audio=stripped.audio)
        for part in exports.parts:
            full = description | describe_part(exports, part)
            write[part_path(target, part)] = partial(export, part=part, description=full)
    for path in write:
        if path.exists():
            raise OptionError(f"{path}: exists already; name another FILE with -o, or remove it")
        check_output_file(path)
    try:
        for path, write_part in write.items():
            print(check(path, write_part(path), args))
    except BaseException:
        for path in write:
            path.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    run(main)
