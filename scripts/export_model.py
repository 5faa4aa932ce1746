"""Writes the network of a checkpoint as ONNX, TorchScript or safetensors, and compares the file with PyTorch.

python -m scripts.export_model output/FastPitch_checkpoint_1500.pt --format onnx -o fastpitch.onnx
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from common import checkpoints, synthesis  # whose functions are imported when they are used: --help needs no PyTorch
from common.checkpoints.command_line import parse_options
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


def build_parser(without: Collection[str] = ()) -> ArgumentParser:
    """The options of an export, but for fields ``without``, which the checkpoint's model does not have."""
    parser = ArgumentParser(prog="export_model.sh", description="Write the network of a checkpoint in another format.")
    parser.add_argument("checkpoint", type=Path, metavar="CKPT", help="checkpoint, ours or published")
    add_options(parser, ExportOptions, without=without)
    return parser


def calibration_mels(options: ExportOptions, opened: "LoadedCheckpoint") -> list["Tensor"]:
    """The mels (n_mels, F) of --calibration, which a vocoder needs to be quantized.

    Raises:
        InputError: the list cannot be read, or its mels are not what the vocoder reads.
        OptionError: there is no list.
    """
    if options.calibration is None:
        wanted = "needs --calibration LIST, of mels or recordings to speak"
        raise OptionError(f"--quantize {options.quantize}: {opened.spec.name} {wanted}")
    phrases, contract = synthesis.read_phrases(options.calibration), synthesis.contract_of(opened)
    items, _ = synthesis.load_mels_or_recordings(phrases, dataset_path=options.dataset_path, contract=contract)
    return [item.mel[:, :_CALIBRATION_FRAMES] for item in items if item.mel is not None]


def writers(
    opened: "LoadedCheckpoint", exports: "Exports", options: ExportOptions, context: int | None
) -> dict[Path, Callable[[Path], float]]:
    """The files to write, and what writes each of them and returns its difference from PyTorch.

    ``context`` is that of `VocoderSpec.context`, frames.
    """
    target = options.output or opened.path.with_suffix(options.suffix)
    stripped = checkpoints.strip_checkpoint(opened.checkpoint)
    description = checkpoints.describe(stripped, context=context)
    if options.format == "safetensors":
        return {target: partial(checkpoints.write_safetensors, checkpoint=stripped, description=description)}
    if options.format == "torchscript" and not all(part.scriptable for part in exports.parts):
        raise OptionError(f"--format torchscript: {opened.spec.name} cannot be exported so; use another")
    write: Callable[..., float] = partial(checkpoints.write_compared, format=options.format)
    if options.quantize:
        calibrated = any(part.quantization and part.quantization.calibrated for part in exports.parts)
        mels = calibration_mels(options, opened) if calibrated else []
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
    args = build_parser().parse_args(argv)
    opened = checkpoints.open_checkpoint(args.checkpoint)
    if opened.exported is not None or opened.spec.exports is None:
        raise OptionError(f"{args.checkpoint}: a checkpoint of {opened.spec.name} that can be exported is expected")
    network, config = checkpoints.load_for_inference(opened, device="cpu")
    exports = opened.spec.exports(network, config, opened.checkpoint.audio)
    quantizing = ("quantize", "calibration", "dataset_path")
    without = () if all(part.quantization for part in exports.parts) else quantizing
    options = read_options(parse_options(argv, build_parser(without), [opened.spec]), ExportOptions)
    find_context = getattr(opened.spec.inference, "context", None)
    context = None if find_context is None else find_context(config, opened.checkpoint.audio)
    files = writers(opened, exports, options, context)
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
