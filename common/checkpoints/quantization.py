"""ONNX files that compute in 8-bit integers, and what that costs in mel distance."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.audio import MelExtractor
from common.checkpoints.exported import Part
from common.checkpoints.exporting import write_onnx
from common.checkpoints.running import OnnxRunner, Runner
from common.config import AudioConfig

MEL_TOLERANCE = 0.1  # largest useful mel distance, about 0.9 dB
# Weights of 7 bits: the instructions of processors before AVX512-VNNI add pairs of products in 16 bits, in which those
# of 8 bits overflow.
_WEIGHTS = {"reduce_range": True, "per_channel": True}


def write_quantized(
    path: Path, part: Part, description: dict[str, Any], *, mels: Sequence[Tensor], audio: AudioConfig
) -> float:
    """Write a part as ONNX of 8-bit integers, and run it; returns the mel distance from PyTorch.

    Of ``mels`` (n_mels, F), which only a part with calibrated scales needs, every second one calibrates, and the others
    compare; a mel alone does both.
    """
    quantization = part.quantization
    assert quantization is not None
    quantize: Callable[[Path], None] = partial(_quantize_products, within=quantization.within)
    if quantization.calibrated:
        assert part.onnx_form is not None
        names = part.onnx_form(True).inputs
        shown = [dict(zip(part.inputs, example)) for example in quantization.examples(mels[::2])]
        examples = [{name: example[name] for name in names} for example in shown]
        quantize = partial(_quantize_convolutions, examples=examples)
    write_onnx(path, part, description | {"quantized": "int8"}, quantize=quantize)
    compared = [dict(zip(part.inputs, example)) for example in quantization.examples(mels[1::2] or mels)]
    return mel_distance(OnnxRunner(path, part.signature), part, compared, audio)


def _quantize_products(path: Path, within: str) -> None:
    """Make the matrix products of an ONNX file compute in 8 bits, with the inputs' scales found at run time; those
    alone whose names have the part ``within``.
    """
    import onnx  # takes long to import
    from onnxruntime.quantization import QuantType, quantize_dynamic  # takes long to import

    options = {"op_types_to_quantize": ["MatMul"], "weight_type": QuantType.QInt8, **_WEIGHTS}
    names = [node.name for node in onnx.load(path).graph.node if within in node.name]
    with _without_advice():
        quantize_dynamic(path, path, nodes_to_quantize=names, **options)


def _quantize_convolutions(path: Path, examples: Sequence[Mapping[str, Tensor]]) -> None:
    """Make the convolutions of an ONNX file compute in 8 bits, with the inputs' scales that ``examples`` show."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._rest: Iterator[Mapping[str, Tensor]] = iter(examples)

        def get_next(self) -> dict[str, object] | None:
            example = next(self._rest, None)
            return None if example is None else {name: value.numpy() for name, value in example.items()}

    with _without_advice():
        quantize_static(
            path,
            path,
            Reader(),
            op_types_to_quantize=["Conv"],
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            **_WEIGHTS,
        )


@contextmanager
def _without_advice() -> Iterator[None]:
    """Without the warning that a file was not prepared by another tool first, which changes nothing here."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)


def mel_distance(run: Runner, part: Part, examples: Sequence[Mapping[str, Tensor]], audio: AudioConfig) -> float:
    """Mean absolute difference of the mels (natural logarithm) that a file and the part in PyTorch speak.

    ``examples`` are whole utterances, whose mels have as many frames in both; of waves the mels are computed.
    """
    extractor = None if "mel" in part.outputs else MelExtractor(audio)
    distances = []
    for example in examples:
        with torch.no_grad():
            values = part.module(**example)
        values = values if isinstance(values, tuple) else (values,)
        expected = dict(zip(part.outputs, (value for value in values if value is not None)))
        pair = (run(example), expected)
        mels = [one["mel"] if extractor is None else extractor(one["wave"]) for one in pair]
        distances.append(float((mels[0] - mels[1]).abs().mean()))
    return sum(distances) / len(distances)
