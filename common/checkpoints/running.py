"""Exported networks as functions of tensors: what they take and give, and what runs them."""

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from common.errors import CheckpointError, reason, shown

_LOCATION = b"location"
Shape = tuple[str | int, ...]  # names of dimensions, or sizes that are fixed


@dataclass(frozen=True)
class Signature:
    """Names and shapes of what a part of a network takes and gives, float32 where nothing else is said."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    # Outputs that count in int64 -> the dimension that no count exceeds. Those of one for each utterance are above 0.
    counts: Mapping[str, str] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)  # counts -> what they add up to in each utterance
    multiples: Mapping[str, tuple[str, int]] = field(
        default_factory=dict
    )  # dimension -> another, and how many times it

    def plain(self) -> dict[str, dict[str, list[str | int]]]:
        """Inputs and outputs as a file's description has them."""
        return {
            "inputs": {name: list(shape) for name, shape in self.inputs.items()},
            "outputs": {name: list(shape) for name, shape in self.outputs.items()},
        }

    def problem(self, given: Mapping[str, Tensor], made: Mapping[str, Any]) -> str | None:
        """What is wrong with the outputs ``made`` of the inputs ``given``, numpy arrays if they are right."""
        sizes: dict[str | int, int] = {}
        for name, shape in self.inputs.items():
            sizes |= zip(shape, given[name].shape)
        values: dict[str, Tensor] = {}
        for name, shape in self.outputs.items():
            kind = "int64" if name in self.counts else "float32"
            found = getattr(made[name], "shape", None)
            if found is None or str(getattr(made[name], "dtype", "")) != kind or len(found) != len(shape):
                return f"{name} is {_described(made[name])}, expected {kind} of {len(shape)} dimensions"
            for dimension, size in zip(shape, found):
                wanted = dimension if isinstance(dimension, int) else sizes.setdefault(dimension, max(size, 1))
                if size != wanted:
                    return f"{name} has the shape {shown(tuple(found))}, expected {wanted} for {shown(dimension)}"
            values[name] = torch.from_numpy(made[name])
        for dimension, (other, factor) in self.multiples.items():
            if sizes[dimension] != sizes[other] * factor:
                return f"{dimension} are {sizes[dimension]}, expected {factor} for each of {sizes[other]} {other}"
        for name, dimension in self.counts.items():
            least = int(values[name].dim() == 1)
            if values[name].numel() and not least <= values[name].min() <= values[name].max() <= sizes[dimension]:
                return f"{name} lie outside {least} to {sizes[dimension]}, the {dimension}"
        for name, total in self.sums.items():
            if not torch.equal(values[name].sum(1), values[total]):
                return f"{name} does not add up to {total}"
        return None


def vocoder_signature(n_mels: int, hop_length: int, noise: dict[str, Shape] | None = None) -> Signature:
    """What a vocoder's exported file takes and gives; ``noise`` is its further input, if it takes its noise."""
    inputs: dict[str, Shape] = {"mel": ("batch", n_mels, "frames"), **(noise or {}), "lengths": ("batch",)}
    return Signature(inputs, {"wave": ("batch", "samples")}, multiples={"samples": ("frames", hop_length)})


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{shown(str(value.dtype))} of {len(shape)} dimensions"


class Runner(Protocol):
    """A part of an exported network, ready to run."""

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Outputs by their names."""


class OnnxRunner:
    """An ONNX file in onnxruntime, on the CPU, with as many threads as PyTorch has."""

    def __init__(self, path: Path, signature: Signature, session: Any = None) -> None:
        """``session`` is that of `open_session`, if it is open already.

        Raises:
            CheckpointError: the file takes or gives other tensors.
        """
        self._path, self._signature = path, signature
        self._session = open_session(path)[0] if session is None else session
        pairs = (("inputs", self._session.get_inputs()), ("outputs", self._session.get_outputs()))
        for kind, values in pairs:
            names = [one.name for one in values]
            if sorted(names) != sorted(wanted := list(getattr(signature, kind))):
                raise CheckpointError(f"{path}: its graph has the {kind} {shown(names)}, expected {', '.join(wanted)}")
        self._outputs = list(signature.outputs)

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Run the graph on tensors by name, and return its outputs by name.

        Raises:
            CheckpointError: it cannot be run, or gives anything else than it should.
        """
        given = {name: value.numpy() for name, value in inputs.items()}
        try:
            made = dict(zip(self._outputs, self._session.run(self._outputs, given), strict=True))
        except Exception as error:  # onnxruntime's errors have no common class but this
            raise CheckpointError(f"{self._path}: onnxruntime cannot run it ({reason(error)})") from error
        if problem := self._signature.problem(inputs, made):
            raise CheckpointError(f"{self._path}: damaged, its output {problem}")
        return {name: torch.from_numpy(value) for name, value in made.items()}


def open_session(path: Path) -> tuple[Any, dict[str, str]]:
    """An ONNX file opened in onnxruntime, and its metadata.

    Raises:
        CheckpointError: onnxruntime cannot read it.
    """
    import onnxruntime  # takes long to import

    check_no_other_files(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4  # nothing: its errors are raised as well
    # Its threads wait for work in a loop, which would slow PyTorch's until they give up.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        _ = [one.name for one in (*session.get_inputs(), *session.get_outputs())]  # which raises where it is no UTF-8
        return session, session.get_modelmeta().custom_metadata_map
    except Exception as error:  # onnxruntime's errors have no common class but this
        raise CheckpointError(f"{path}: onnxruntime cannot read it ({reason(error)})") from error


def check_no_other_files(path: Path) -> None:
    """Raise CheckpointError for an ONNX file whose weights are in files that it names, which are never opened."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(_LOCATION) < 0:  # the key of each such name
            return
    import onnx  # takes long to import, and few files need it
    from google.protobuf.message import DecodeError

    try:
        found = any(map(_is_elsewhere, _messages(onnx.load(path, load_external_data=False))))
    except DecodeError as error:
        raise CheckpointError(f"{path}: damaged, it cannot be read as ONNX") from error
    if found:
        raise CheckpointError(f"{path}: names other files for its weights, which are not opened; export it whole")


def _messages(message: Any) -> Iterator[Any]:
    """A message of protobuf and all that are in it."""
    yield message
    for kind, value in message.ListFields():
        if kind.message_type is not None:
            for one in value if hasattr(value, "__len__") else [value]:
                yield from _messages(one)


def _is_elsewhere(message: Any) -> bool:
    return message.DESCRIPTOR.name == "TensorProto" and bool(message.external_data or message.data_location)


class ModuleRunner:
    """A part of a network in PyTorch."""

    def __init__(self, module: nn.Module, outputs: Sequence[str]) -> None:
        self._module, self._outputs = module, outputs

    @torch.no_grad()
    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Run the module on tensors by name, and return its outputs that are not None by name."""
        values = self._module(**inputs)
        values = [value for value in values if value is not None] if isinstance(values, tuple) else [values]
        return dict(zip(self._outputs, values, strict=True))
