"""Writes the network of a checkpoint as ONNX, TorchScript or safetensors, and compares the file with PyTorch.

python -m scripts.export_model output/FastPitch_checkpoint_1500.pt --format onnx -o fastpitch.onnx
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import checkpoints, synthesis  # whose functions are imported when they are used: --help needs no PyTorch
from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.files import check_output_file
from common.options import add_options, option, read_options

if TYPE_CHECKING:
    from torch import Tensor

    from common.checkpoints import Exports, LoadedCheckpoint

SUFFIXES = {"onnx": ".onnx", "torchscript": ".ts", "safetensors": ".safetensors"}
TOLERANCE, MEL_TOLERANCE = 1e-4, 0.1  # the second is the largest useful mel distance, about 0.9 dB
_CALIBRATION_FRAMES = 200  # of a mel: onnxruntime keeps what every layer makes of all of them in memory


@dataclass(frozen=True)
class ExportOptions:
    """What an exported file is."""

    format: str = option("onnx", "of the file", choices=tuple(SUFFIXES))
    output: Path | None = option(
        None,
        "file to write, which must not exist yet (default: CKPT with the format's suffix); of a model in several "
        "parts, each part's name is added",
        names=("-o",),
        metavar="FILE",
        writes=True,
    )
    quantize: str | None = option(
        None,
        "compute in 8-bit integers: smaller and faster, and no longer equal to PyTorch; the mel distance is printed",
        choices=("int8",),
    )
    calibration: Path | None = option(
        None,
        "list of mels or recordings, as inference.py speaks them, that show --quantize a vocoder's values",
        metavar="LIST",
    )
    dataset_path: Path = option(Path(), "folder that the list's mel or wav starts from")
    tolerance: float | None = option(
        None,
        "largest difference from PyTorch, outputs whose values exceed 1 are divided by the largest; or with --quantize "
        f"mean absolute difference of mels (default: {TOLERANCE:g}, or {MEL_TOLERANCE:g})",
        above=0,
    )

    def __post_init__(self) -> None:
        if self.quantize and self.format != "onnx":
            raise OptionError(f"--quantize {self.quantize}: for --format onnx alone; leave it out")

    @property
    def suffix(self) -> str:
        """The end of the name of a file that is not named."""
        return f".{self.quantize}{SUFFIXES[self.format]}" if self.quantize else SUFFIXES[self.format]


def exports_of(opened: "LoadedCheckpoint", network: Any, config: Any, options: ExportOptions) -> "Exports":
    """The parts to be written.

    Raises:
        OptionError: the model cannot be exported so.
    """
    spec = opened.spec
    exports = None if spec.exports is None else spec.exports(network, config, opened.checkpoint.audio)
    if exports is None or (options.format == "torchscript" and not all(part.scriptable for part in exports.parts)):
        raise OptionError(f"--format {options.format}: {spec.name} cannot be exported so; use another")
    if options.quantize and not all(part.quantization for part in exports.parts):
        raise OptionError(f"--quantize {options.quantize}: {spec.name} has no quantized form; leave it out")
    return exports


def calibration_mels(options: ExportOptions, opened: "LoadedCheckpoint", exports: "Exports") -> list["Tensor"]:
    """The mels (n_mels, F) of --calibration, where a vocoder needs them to be quantized.

    Raises:
        InputError: the list cannot be read, or its mels are not what the vocoder reads.
        OptionError: there is no list.
    """
    if not any(part.quantization and part.quantization.calibrated for part in exports.parts):
        return []
    if options.calibration is None:
        wanted = "needs --calibration LIST, of mels or recordings to speak"
        raise OptionError(f"--quantize {options.quantize}: {opened.spec.name} {wanted}")
    items, _ = synthesis.load_mels_or_recordings(
        synthesis.read_phrases(options.calibration),
        dataset_path=options.dataset_path,
        contract=synthesis.contract_of(opened),
    )
    return [item.mel[:, :_CALIBRATION_FRAMES] for item in items if item.mel is not None]


def writers(opened: "LoadedCheckpoint", options: ExportOptions, target: Path) -> dict[Path, Callable[[Path], float]]:
    """The files to write, and what writes each of them and returns its difference from PyTorch."""
    stripped = checkpoints.strip_checkpoint(opened.checkpoint)
    network, config = checkpoints.load_for_inference(opened, device="cpu")
    find_context = getattr(opened.spec.inference, "context", None)
    context = None if find_context is None else find_context(config, stripped.audio)
    description = checkpoints.describe(stripped, context=context)
    if options.format == "safetensors":
        return {target: partial(checkpoints.write_safetensors, checkpoint=stripped, description=description)}
    exports = exports_of(opened, network, config, options)
    write: Callable[..., float] = partial(checkpoints.write_compared, format=options.format)
    if options.quantize:
        mels = calibration_mels(options, opened, exports)
        write = partial(checkpoints.write_quantized, mels=mels, audio=stripped.audio)
    return {
        checkpoints.part_path(target, part): partial(
            write, part=part, description=description | checkpoints.describe_part(exports, part)
        )
        for part in exports.parts
    }


def check(path: Path, difference: float, options: ExportOptions) -> str:
    """A line on a file that agrees with PyTorch; raises InputError if it does not."""
    said = f"largest difference from PyTorch {difference:.1e}"
    tolerance = options.tolerance or (MEL_TOLERANCE if options.quantize else TOLERANCE)
    if options.quantize:
        said = f"{options.quantize}, mean mel distance from PyTorch {difference:.3g}"
    if not difference <= tolerance:
        raise InputError(f"{path}: {said}, above the tolerance {tolerance:g}; removed")
    return f"wrote {path}: {path.stat().st_size / 1e6:.1f} MB, {said}"


def main(argv: Sequence[str] | None = None) -> None:
    """Export one checkpoint."""
    parser = ArgumentParser(prog="export_model.sh", description="Write the network of a checkpoint in another format.")
    parser.add_argument("checkpoint", type=Path, metavar="CKPT", help="checkpoint, ours or published")
    add_options(parser, ExportOptions)
    args = parser.parse_args(argv)
    options = read_options(args, ExportOptions)
    opened = checkpoints.open_checkpoint(args.checkpoint)
    if opened.exported is not None:
        raise OptionError(f"{args.checkpoint}: is exported already; give the checkpoint")
    files = writers(opened, options, options.output or args.checkpoint.with_suffix(options.suffix))
    for path in files:
        if path.exists():
            raise OptionError(f"{path}: exists already; name another FILE with -o, or remove it")
        check_output_file(path)
    try:
        for path, write in files.items():
            print(check(path, write(path), options))
    except BaseException:
        for path in files:
            path.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    run(main)
