"""Tools for checkpoint files: list voices, inspect, convert, strip, export."""

import json
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from common.checkpoints.command_line import ConversionOptions
from common.cli import ArgumentParser
from common.errors import InputError, OptionError
from common.files import check_output_file
from common.options import add_options, read_options

if TYPE_CHECKING:
    from torch import Tensor

    from common.checkpoints.loading import LoadedCheckpoint

SUFFIXES = {"onnx": ".onnx", "torchscript": ".ts", "safetensors": ".safetensors"}
PIPER = "piper"  # the format for a voice with its vocoder
# Largest differences from PyTorch: of values, of quantized mels (about 0.9 dB), and of audio (full scale is 1).
TOLERANCE, MEL_TOLERANCE, SOUND_TOLERANCE = 1e-4, 0.1, 1e-3
_CALIBRATION_FRAMES = 200  # of each mel: onnxruntime keeps every layer's output for all of them in memory


def voices_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="speech voices", description="List voices with their languages and speakers")
    text = "where to look (default: the shipped voices, ./output and ./pretrained_models)"
    parser.add_argument("folders", type=Path, nargs="*", help=text)
    return parser


def voices(argv: Sequence[str]) -> int:
    """Print a line for each voice, only the last checkpoint of each training; return 1 if there is none."""
    folders = voices_parser().parse_args(argv).folders
    from common.checkpoints.checkpoint import saved_checkpoints
    from common.checkpoints.loading import read_model
    from common.registry import available_models, get_model
    from common.synthesis.loading import VOICES
    from common.text.languages import language_of

    found = 0
    tops = map(Path, ("output", "pretrained_models"))
    for folder in folders or [VOICES, *(one for top in tops for one in sorted(top.rglob(".")))]:
        former = {path for model in available_models("generator") for path in saved_checkpoints(folder, model)[:-1]}
        for path in sorted(set(folder.glob("*")) - former):
            with suppress(InputError, OSError):  # any other file
                _, checkpoint = read_model(path)
                if get_model(checkpoint.model).role != "generator":
                    continue
                text = checkpoint.text
                speakers = ", ".join(text.speakers) if text and text.speakers else "one speaker"
                print(f"{path}: {checkpoint.model}, {language_of(text) if text else '-'}, {speakers}")
                found += 1
    return 0 if found else 1


def inspect_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="speech inspect", description="Describe a checkpoint or an exported file.")
    parser.add_argument("file", type=Path, help="checkpoint, ours or published, or exported file of ours")
    parser.add_argument("--json", action="store_true", help="print one JSON object, not YAML")
    return parser


def inspect(argv: Sequence[str]) -> None:
    """Describe a checkpoint or an exported file."""
    args = inspect_parser().parse_args(argv)
    from common.checkpoints.conversion import inspect_checkpoint

    facts = inspect_checkpoint(args.file)
    for name in {"cmudict", "heteronyms"} & (facts["text"] or {}).keys() if not args.json else ():
        facts["text"][name] = facts["text"][name] and f"{facts['text'][name].count(chr(10))} lines"
    print(json.dumps(facts) if args.json else yaml.safe_dump(facts, sort_keys=False, width=120).rstrip())


def convert_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="speech convert", description="Convert a checkpoint of another toolkit to ours.")
    parser.add_argument("source", type=Path, help="checkpoint of another implementation")
    parser.add_argument("target", type=Path, help="file to write, which must not exist yet")
    add_options(parser, ConversionOptions)
    return parser


def convert(argv: Sequence[str]) -> None:
    """Convert a checkpoint of another implementation to our format."""
    args = convert_parser().parse_args(argv)
    from common.checkpoints.checkpoint import save_checkpoint
    from common.checkpoints.conversion import convert_checkpoint

    checkpoint = convert_checkpoint(args.source, read_options(args, ConversionOptions))
    save_checkpoint(check_new(args.target), checkpoint)
    print(f"recognized {args.source}: {checkpoint.layout}")
    if checkpoint.assumed:
        print(f"note: not recorded for its mels, and assumed to be as published: {', '.join(checkpoint.assumed)}")
    print(f"wrote {args.target}: {checkpoint.model}, {', '.join(checkpoint.networks)}")


def strip_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="speech strip", description="Reduce a checkpoint to what inference needs.")
    parser.add_argument("source", type=Path, help="checkpoint, ours or published")
    text = "file to write, which must not exist yet (default: SOURCE's name with _inference in place of _checkpoint)"
    parser.add_argument("target", type=Path, nargs="?", help=text)
    text = "type of matrices and kernels; computing is in float32, or as --amp says"
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32", help=text)
    return parser


def strip(argv: Sequence[str]) -> None:
    """Write what speaking or transcribing needs: one network, with EMA weights if there are any."""
    args = strip_parser().parse_args(argv)
    from common.checkpoints.checkpoint import save_checkpoint, strip_checkpoint
    from common.checkpoints.loading import check_fit
    from common.checkpoints.reading import load_checkpoint

    name = args.source.stem.replace("_checkpoint", "_inference")  # so that no training resumes from it
    target = args.target or args.source.with_name(f"{name}{'' if '_inference' in name else '_inference'}.pt")
    check_new(target)
    checkpoint = load_checkpoint(args.source, training=False)
    check_fit(checkpoint, where=str(args.source))
    stripped = strip_checkpoint(checkpoint, dtype=args.dtype)
    save_checkpoint(target, stripped)
    held = f"{'EMA ' if checkpoint.has_ema else ''}weights in {args.dtype}, {target.stat().st_size / 1e6:.1f} MB"
    print(f"wrote {target}: {stripped.model}'s {next(iter(stripped.networks))}, {held}")


def calibration_mels(options: Namespace, opened: "LoadedCheckpoint") -> list["Tensor"]:
    """Return the mels (n_mels, F) of --calibration; raise InputError if the vocoder reads other mels."""
    from common.synthesis.loading import contract_of
    from common.synthesis.phrases import load_mels_or_recordings, read_phrases

    if options.calibration is None:
        raise OptionError(f"--quantize: {opened.spec.name} needs --calibration LIST, of mels or recordings to speak")
    phrases, contract = read_phrases(options.calibration), contract_of(opened)
    items, _ = load_mels_or_recordings(phrases, dataset_path=options.dataset_path, contract=contract)
    return [item.mel[:, :_CALIBRATION_FRAMES] for item in items if item.mel is not None]


def check_new(path: Path) -> Path:
    """Return the path of a file to write; raise OptionError if it exists."""
    if path.exists():
        raise OptionError(f"{path}: already exists; name another file, or remove it")
    return path


@contextmanager
def new_files(paths: Iterable[Path]) -> Iterator[None]:
    """Remove these files if the block fails; raise OptionError if one already exists."""
    for path in paths:
        check_output_file(check_new(path))
    try:
        yield
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


def written(path: Path, difference: float, tolerance: float, said: str = "largest difference from PyTorch") -> str:
    """Return a line about a file; raise InputError if its difference from PyTorch is NaN or above the tolerance."""
    if not difference <= tolerance:
        raise InputError(f"{path}: {said} {difference:.3g}, above the tolerance {tolerance:g}; removed")
    return f"wrote {path}: {path.stat().st_size / 1e6:.1f} MB, {said} {difference:.3g}"


def export_piper(options: Namespace, opened: "LoadedCheckpoint") -> None:
    """Write a voice with its vocoder in Piper's format."""
    from common.checkpoints.loading import open_checkpoint
    from common.synthesis import piper  # needs PyTorch

    if options.vocoder is None or options.quantize:
        raise OptionError("--format piper needs --vocoder FILE, such as voices/vocoder-small.pt, and no --quantize")
    vocoder = open_checkpoint(options.vocoder, role="vocoder", ema=True)
    path = options.output or options.checkpoint.with_suffix(".onnx")
    others = piper.companions(path)
    with new_files((path, *others)):
        line = written(path, piper.write_piper(path, opened, vocoder), options.tolerance or SOUND_TOLERANCE)
    print(f"{line}; {' and '.join(map(str, others))}")


def export_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="speech export", description="Write the network of a checkpoint in another format.")
    add = parser.add_argument
    add("checkpoint", type=Path, metavar="CKPT", help="checkpoint, ours or published")
    text = "format of the file; piper: a FastPitch with its vocoder, for piper-tts, sherpa-onnx and others"
    add("--format", choices=(*SUFFIXES, PIPER), default="onnx", help=text)
    add("--vocoder", type=Path, metavar="FILE", help="checkpoint of the vocoder to include with --format piper")
    text = "file to write, which must not exist yet (default: CKPT with the format's suffix); a part's name is added"
    add("-o", "--output", type=Path, metavar="FILE", help=text)
    text = "compute in 8-bit integers: smaller and faster, and no longer equal to PyTorch; the mel distance is printed"
    add("--quantize", choices=("int8",), help=text)
    text = "list of mels or recordings for inference.py, to calibrate --quantize for a vocoder"
    add("--calibration", type=Path, metavar="LIST", help=text)
    add("--dataset-path", type=Path, default=Path(), help="folder that the list's mel or wav starts from")
    text = f"largest difference from PyTorch (default: {TOLERANCE:g}, relative to the largest value if it exceeds 1; "
    text += f"with --quantize {MEL_TOLERANCE:g}, the mean absolute difference of mels; for piper "
    text += f"{SOUND_TOLERANCE:g} of full scale)"
    add("--tolerance", type=float, help=text)
    return parser


def export(argv: Sequence[str]) -> None:
    """Write the network of a checkpoint in another format, and compare the file with PyTorch."""
    options = export_parser().parse_args(argv)
    from common.checkpoints.checkpoint import strip_checkpoint
    from common.checkpoints.exported import describe, part_path
    from common.checkpoints.exporting import exports_of, write_compared, write_quantized, write_safetensors
    from common.checkpoints.loading import open_checkpoint

    opened = open_checkpoint(options.checkpoint)
    if options.format == PIPER:
        export_piper(options, opened)
        return
    exports = exports_of(opened)
    scriptable = options.format != "torchscript" or all(part.scriptable for part in exports.parts)
    quantizable = options.format == "onnx" and all(part.quantization for part in exports.parts)
    if not scriptable or (options.quantize and not quantizable):
        quantized = f" --quantize {options.quantize}" if options.quantize else ""
        raise OptionError(f"--format {options.format}{quantized}: {opened.spec.name} can't be exported this way")
    calibrated = options.quantize and any(part.quantization and part.quantization.calibrated for part in exports.parts)
    mels = calibration_mels(options, opened) if calibrated else []
    stripped = strip_checkpoint(opened.checkpoint)
    about = describe(stripped, exports)
    suffix = f".{options.quantize}.onnx" if options.quantize else SUFFIXES[options.format]
    target = options.output or options.checkpoint.with_suffix(suffix)
    if options.format == "safetensors":
        with new_files([target]):
            print(written(target, write_safetensors(target, stripped, about), options.tolerance or TOLERANCE))
        return
    files = {part_path(target, part.name): part for part in exports.parts}
    with new_files(files):
        for path, part in files.items():
            description = about | {"part": part.name, "inputs": part.inputs, "outputs": part.outputs}
            if options.quantize:
                difference = write_quantized(path, part, description, mels=mels, audio=stripped.audio)
                said = f"{options.quantize}, mean mel distance from PyTorch"
                print(written(path, difference, options.tolerance or MEL_TOLERANCE, said))
            else:
                difference = write_compared(path, part, description, format=options.format)
                print(written(path, difference, options.tolerance or TOLERANCE))
