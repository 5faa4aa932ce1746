"""Write exported files, and compare their results with PyTorch's."""

import json
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from common.audio.mel import MelExtractor
from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.exported import ARCHIVE_ENTRY, METADATA_KEY, Exports, Part, Runner, onnx_runner
from common.checkpoints.loading import LoadedCheckpoint, load_for_inference
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.files import write_atomically, writing

OPSET = 17  # of ONNX; onnxruntime reads it since version 1.12
# Batch sizes and lengths (tokens or frames) to check a file with; the traced example has others.
SHAPES = ((1, 11), (2, 30), (3, 64))
_EXAMPLE_LENGTH = 24
_SEED = 1234
# 7-bit weights: processors before AVX512-VNNI add pairs of products in 16 bits, which overflow with 8-bit weights.
_WEIGHTS = {"reduce_range": True, "per_channel": True}


def write_onnx(
    path: Path, part: Part, metadata: Mapping[str, str], *, quantize: Callable[[Path], None] | None = None
) -> None:
    """Trace a part, and write it as ONNX with ``metadata``; ``quantize`` modifies the traced file."""
    import onnx  # slow to import, like the exporter

    example = part.examples(part.example_batch, _EXAMPLE_LENGTH, torch.Generator().manual_seed(_SEED))
    axes = {
        name: {index: size for index, size in enumerate(shape) if isinstance(size, str)}
        for name, shape in (*part.inputs.items(), *part.outputs.items())
    }
    with writing(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about itself
        torch.onnx.export(
            part.module if part.onnx_form is None else part.onnx_form(quantize is not None),
            (dict(zip(part.inputs, example)),),
            str(path),
            input_names=list(part.inputs),
            output_names=list(part.outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,  # the newer exporter takes twenty times as long for the same graph
        )
        if quantize is not None:
            quantize(path)
        model = onnx.load(path)
    onnx.helper.set_model_props(model, dict(metadata))
    write_atomically(path, lambda file: file.write(model.SerializeToString()))


def exports_of(loaded: LoadedCheckpoint) -> Exports:
    """Return a checkpoint's network as its package exports it; raises OptionError if it can't be exported."""
    if loaded.exported is not None or loaded.spec.find("export", "exports") is None:
        raise OptionError(f"{loaded.path}: cannot be exported; give a checkpoint of a model with an export")
    return loaded.spec.export.exports(*load_for_inference(loaded, device="cpu"), loaded.checkpoint.audio)


def write_compared(path: Path, part: Part, description: dict[str, Any], *, format: str) -> float:
    """Write a part with its description as ``onnx`` or ``torchscript``, and return the `largest_difference`."""
    if format == "onnx":
        write_onnx(path, part, {METADATA_KEY: json.dumps(description)})
        return largest_difference(onnx_runner(path, part.outputs), part)
    extra = {ARCHIVE_ENTRY: json.dumps(description)}
    write_atomically(path, lambda file: torch.jit.save(torch.jit.script(part.module), file, _extra_files=extra))
    # Loading TorchScript runs its code, but this code is ours.
    return largest_difference(partial(run_module, torch.jit.load(path), part.outputs), part)


def write_safetensors(path: Path, checkpoint: Checkpoint, description: dict[str, Any]) -> float:
    """Write a stripped checkpoint's network, with the parameter names of checkpoints.

    Returns the largest difference between the file's weights and the checkpoint's.
    """
    from safetensors.torch import save

    ((network, weights),) = checkpoint.networks.items()
    state = {key: value.contiguous() for key, value in weights.items()}
    content = save(state, metadata={METADATA_KEY: json.dumps(description)})
    write_atomically(path, lambda file: file.write(content))
    read = load_checkpoint(path).networks[network]
    return max(float((read[key].double() - state[key].double()).abs().max()) for key in state)


@torch.no_grad()
def run_module(module: nn.Module, outputs: Iterable[str], inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Run a part of a network on tensors by name; return its ``outputs`` by name, without those that are None."""
    values = module(**inputs)
    values = [value for value in values if value is not None] if isinstance(values, tuple) else [values]
    return dict(zip(outputs, values, strict=True))


def largest_difference(run: Runner, part: Part) -> float:
    """Return the largest difference between a file's outputs and PyTorch's, over `SHAPES`.

    It's relative to an output's largest value if that exceeds 1. Raises InputError if outputs have other shapes.
    """
    differences = []
    for n_batch, length in SHAPES:
        values = part.examples(n_batch, length, torch.Generator().manual_seed(_SEED + length))
        inputs = dict(zip(part.inputs, values))
        made = run(inputs)
        copies = {key: value.clone() for key, value in inputs.items()}
        for name, expected in run_module(part.module, part.outputs, copies).items():
            if made[name].shape != expected.shape:
                shapes = f"shape {tuple(made[name].shape)}, expected {tuple(expected.shape)}"
                raise InputError(f"{name} for {n_batch} utterances of {length}: {shapes}")
            difference = (made[name].double() - expected.double()).abs().max()
            differences.append(float(difference / expected.double().abs().max().clamp(min=1)))
    return max(differences, key=lambda one: (math.isnan(one), one))


def write_quantized(
    path: Path, part: Part, description: dict[str, Any], *, mels: Sequence[Tensor], audio: AudioConfig
) -> float:
    """Write a part as ONNX quantized to 8-bit integers, and return its mel distance from PyTorch.

    Every other one of ``mels`` (n_mels, F) is for calibration, the rest for comparison; a single mel is for both.
    """
    quantization = part.quantization
    assert quantization is not None
    quantize: Callable[[Path], None] = partial(_quantize_products, within=quantization.within)
    if quantization.calibrated:
        shown = [dict(zip(part.inputs, example)) for example in quantization.examples(mels[::2])]
        quantize = partial(_quantize_convolutions, examples=shown)
    logging.disable(logging.WARNING)  # onnxruntime recommends running another tool first, which changes nothing
    write_onnx(path, part, {METADATA_KEY: json.dumps(description | {"quantized": "int8"})}, quantize=quantize)
    logging.disable(logging.NOTSET)
    compared = [dict(zip(part.inputs, example)) for example in quantization.examples(mels[1::2] or mels)]
    return mel_distance(onnx_runner(path, part.outputs), part, compared, audio)


def _quantize_products(path: Path, within: str) -> None:
    """Quantize matrix products whose names contain ``within`` to 8 bits, with dynamic scales."""
    import onnx  # slow to import
    from onnxruntime.quantization import QuantType, quantize_dynamic  # slow to import

    options = {"op_types_to_quantize": ["MatMul"], "weight_type": QuantType.QInt8, **_WEIGHTS}
    names = [node.name for node in onnx.load(path).graph.node if within in node.name]
    quantize_dynamic(path, path, nodes_to_quantize=names, **options)


def _quantize_convolutions(path: Path, examples: Sequence[Mapping[str, Tensor]]) -> None:
    """Quantize the convolutions of an ONNX file to 8 bits, with scales from ``examples``."""
    from onnxruntime.quantization import QuantType, quantize_static

    inputs = iter([{name: value.numpy() for name, value in example.items()} for example in examples])
    reader = SimpleNamespace(get_next=lambda: next(inputs, None))
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(path, path, reader, op_types_to_quantize=["Conv"], **types, **_WEIGHTS)


def mel_distance(run: Runner, part: Part, examples: Sequence[Mapping[str, Tensor]], audio: AudioConfig) -> float:
    """Return the mean absolute difference between a file's natural-log mels and PyTorch's.

    ``examples`` are whole utterances with as many frames in both; if the output is a wave, its mel is computed.
    """
    extractor = None if "mel" in part.outputs else MelExtractor(audio)
    distances = []
    for example in examples:
        pair = run(example), run_module(part.module, part.outputs, example)
        mels = [one["mel"] if extractor is None else extractor(one["wave"]) for one in pair]
        distances.append(float((mels[0] - mels[1]).abs().mean()))
    return sum(distances) / len(distances)
