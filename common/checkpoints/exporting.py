"""Writing exported files, and comparing what they compute with PyTorch."""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints.exported import ARCHIVE_ENTRY, METADATA_KEY, OnnxForm, Part
from common.checkpoints.running import ModuleRunner, OnnxRunner, Runner
from common.errors import InputError
from common.files import write_atomically, writing

OPSET = 17  # of ONNX: onnxruntime reads it since 1.12
# Batch sizes and lengths (tokens, or frames) that a file is run with; the example it is made of is another.
SHAPES = ((1, 11), (2, 30), (3, 64))
_EXAMPLE_LENGTH = 24
_SEED = 1234


def part_path(path: Path, part: Part) -> Path:
    """Where a part goes: voice.onnx -> voice.encoder.onnx."""
    return path.with_suffix(f".{part.name}{path.suffix}") if part.name else path


def write_onnx(
    path: Path, part: Part, description: dict[str, Any], *, quantize: Callable[[Path], None] | None = None
) -> None:
    """Trace a part, and write it as ONNX with its description; ``quantize`` changes the traced file."""
    import onnx  # takes long to import, as the exporter does

    form = OnnxForm(part.module, tuple(part.inputs))
    if part.onnx_form is not None:
        form = part.onnx_form(quantize is not None)
    example = part.examples(part.example_batch, _EXAMPLE_LENGTH, torch.Generator().manual_seed(_SEED))
    given = dict(zip(part.inputs, example))
    axes = {
        name: {index: size for index, size in enumerate(shape) if isinstance(size, str)}
        for name, shape in (*part.inputs.items(), *part.outputs.items())
    }
    with writing(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        torch.onnx.export(
            form.module,
            ({name: given[name] for name in form.inputs},),
            str(path),
            input_names=list(form.inputs),
            output_names=list(part.outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,  # the newer exporter takes twenty times as long for the same graph
        )
    if quantize is not None:
        with writing(path):
            quantize(path)
    model = form.complete(onnx.load(path))
    entry = model.metadata_props.add()
    entry.key, entry.value = METADATA_KEY, json.dumps(description)
    write_atomically(path, lambda file: file.write(model.SerializeToString()))


def write_torchscript(path: Path, part: Part, description: dict[str, Any]) -> None:
    """Compile a part, and write it as TorchScript with its description."""
    script = torch.jit.script(part.module)
    extra = {ARCHIVE_ENTRY: json.dumps(description)}
    write_atomically(path, lambda file: torch.jit.save(script, file, _extra_files=extra))


def written_runner(path: Path, part: Part, *, format: str) -> Runner:
    """What runs a file that has just been written, and so is trusted: the code in TorchScript is run as it is."""
    if format == "onnx":
        return OnnxRunner(path, part.signature)
    return ModuleRunner(torch.jit.load(path), list(part.outputs))


def largest_difference(run: Runner, part: Part) -> float:
    """How far outputs of a file lie from the part's in PyTorch, over `SHAPES`, at most.

    An output whose largest value exceeds 1 is divided by it.

    Raises:
        InputError: outputs have other shapes, or whole numbers differ.
    """
    return max(difference for shape in SHAPES for difference in _differences(run, part, shape))


def _differences(run: Runner, part: Part, shape: tuple[int, int]) -> Iterator[float]:
    inputs = part.examples(*shape, torch.Generator().manual_seed(_SEED + shape[1]))
    made = run(dict(zip(part.inputs, inputs)))
    with torch.no_grad():
        expected = part.module(**{name: value.clone() for name, value in zip(part.inputs, inputs)})
    expected = expected if isinstance(expected, tuple) else (expected,)
    for name, value in zip(part.outputs, (value for value in expected if value is not None)):
        yield _difference(name, made[name], value, shape)


def _difference(name: str, made: Tensor, expected: Tensor, shape: tuple[int, int]) -> float:
    of = f"{name} for {shape[0]} utterances of {shape[1]}"
    if made.shape != expected.shape:
        raise InputError(f"{of}: shape {tuple(made.shape)}, expected {tuple(expected.shape)}")
    if not expected.is_floating_point():
        if not torch.equal(made, expected):
            raise InputError(f"{of}: other numbers than PyTorch's")
        return 0.0
    if not torch.isfinite(made).all():
        raise InputError(f"{of}: not finite")
    return float((made - expected).abs().max() / expected.abs().max().clamp(min=1))
