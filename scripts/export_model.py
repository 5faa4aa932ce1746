"""Writes the network of a checkpoint as ONNX, TorchScript or safetensors, and compares the file with PyTorch.

python -m scripts.export_model output/FastPitch_checkpoint_1500.pt --format onnx -o fastpitch.onnx
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import checkpoints, synthesis  # whose functions are imported when they are used: --help needs no PyTorch
from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.files import check_output_file

if TYPE_CHECKING:
    from torch import Tensor

    from common.checkpoints import Checkpoint, LoadedCheckpoint, Part

SUFFIXES = {"onnx": ".onnx", "torchscript": ".ts", "safetensors": ".safetensors"}
TOLERANCE, MEL_TOLERANCE = 1e-4, 0.1  # the second is the largest useful mel distance, about 0.9 dB
_CALIBRATION_FRAMES = 200  # of a mel: onnxruntime keeps what every layer makes of all of them in memory


def calibration_mels(options: Namespace, opened: "LoadedCheckpoint") -> list["Tensor"]:
    """The mels (n_mels, F) of --calibration, by which a vocoder is quantized; raises InputError for others than its."""
    if options.calibration is None:
        raise OptionError(f"--quantize: {opened.spec.name} needs --calibration LIST, of mels or recordings to speak")
    phrases, contract = synthesis.read_phrases(options.calibration), synthesis.contract_of(opened)
    items, _ = synthesis.load_mels_or_recordings(phrases, dataset_path=options.dataset_path, contract=contract)
    return [item.mel[:, :_CALIBRATION_FRAMES] for item in items if item.mel is not None]


def write(
    path: Path,
    part: "Part",
    description: dict[str, Any],
    *,
    stripped: "Checkpoint",
    mels: Sequence["Tensor"],
    options: Namespace,
) -> str:
    """Write a file, and compare it with PyTorch; returns a line on it.

    Raises:
        InputError: what they compute differs by more than the tolerance.
    """
    tolerance, said = TOLERANCE, "largest difference from PyTorch"
    if options.format == "safetensors":
        difference = checkpoints.write_safetensors(path, stripped, description)
    elif options.quantize:
        tolerance, said = MEL_TOLERANCE, f"{options.quantize}, mean mel distance from PyTorch"
        difference = checkpoints.write_quantized(path, part, description, mels=mels, audio=stripped.audio)
    else:
        difference = checkpoints.write_compared(path, part, description, format=options.format)
    if not difference <= (options.tolerance or tolerance):
        wanted = f"{options.tolerance or tolerance:g}"
        raise InputError(f"{path}: {said} {difference:.3g}, above the tolerance {wanted}; removed")
    return f"wrote {path}: {path.stat().st_size / 1e6:.1f} MB, {said} {difference:.3g}"


def main(argv: Sequence[str] | None = None) -> None:
    """Export one checkpoint."""
    parser = ArgumentParser(prog="export_model.sh", description="Write the network of a checkpoint in another format.")
    add = parser.add_argument
    add("checkpoint", type=Path, metavar="CKPT", help="checkpoint, ours or published")
    add("--format", choices=tuple(SUFFIXES), default="onnx", help="of the file")
    text = "file to write, which must not exist yet (default: CKPT with the format's suffix); a part's name is added"
    add("-o", "--output", type=Path, metavar="FILE", help=text)
    text = "compute in 8-bit integers: smaller and faster, and no longer equal to PyTorch; the mel distance is printed"
    add("--quantize", choices=("int8",), help=text)
    text = "list of mels or recordings, as inference.py speaks them, that show --quantize a vocoder's values"
    add("--calibration", type=Path, metavar="LIST", help=text)
    add("--dataset-path", type=Path, default=Path(), help="folder that the list's mel or wav starts from")
    text = f"largest difference from PyTorch (default: {TOLERANCE:g}, of outputs whose values exceed 1 a share of the "
    text += f"largest; with --quantize {MEL_TOLERANCE:g}, the mean absolute difference of mels)"
    add("--tolerance", type=float, help=text)
    options = parser.parse_args(argv)
    opened = checkpoints.open_checkpoint(options.checkpoint)
    if opened.exported is not None or opened.spec.exports is None:
        raise OptionError(f"{options.checkpoint}: a checkpoint of {opened.spec.name} that can be exported is expected")
    network, config = checkpoints.load_for_inference(opened, device="cpu")
    exports = opened.spec.exports(network, config, opened.checkpoint.audio)
    scriptable = options.format != "torchscript" or all(part.scriptable for part in exports.parts)
    quantizable = options.format == "onnx" and all(part.quantization for part in exports.parts)
    if not scriptable or (options.quantize and not quantizable):
        asked = f"--format {options.format}{f' --quantize {options.quantize}' if options.quantize else ''}"
        raise OptionError(f"{asked}: {opened.spec.name} cannot be exported so")
    calibrated = options.quantize and any(part.quantization and part.quantization.calibrated for part in exports.parts)
    mels = calibration_mels(options, opened) if calibrated else []
    stripped = checkpoints.strip_checkpoint(opened.checkpoint)
    find_context = getattr(opened.spec.inference, "context", None)
    about = checkpoints.describe(stripped, context=find_context and find_context(config, stripped.audio))
    suffix = f".{options.quantize}.onnx" if options.quantize else SUFFIXES[options.format]
    target = options.output or options.checkpoint.with_suffix(suffix)
    if options.format == "safetensors":
        files = {target: (exports.parts[0], about)}
    else:
        described = [(part, about | checkpoints.describe_part(exports, part)) for part in exports.parts]
        files = {checkpoints.part_path(target, part): (part, description) for part, description in described}
    for path in files:
        if path.exists():
            raise OptionError(f"{path}: exists already; name another FILE with -o, or remove it")
        check_output_file(path)
    try:
        for path, (part, description) in files.items():
            print(write(path, part, description, stripped=stripped, mels=mels, options=options))
    except BaseException:
        for path in files:
            path.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    run(main)
