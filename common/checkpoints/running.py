"""Exported networks as functions of tensors: what they take and give, and what runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from common.errors import CheckpointError, reason

Shape = tuple[str | int, ...]  # names of dimensions, or sizes that are fixed


@dataclass(frozen=True)
class Signature:
    """Names and shapes of what a part of a network takes and gives, float32 or int64 where they count."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]

    def plain(self) -> dict[str, dict[str, list[str | int]]]:
        """Inputs and outputs as a file's description has them."""
        return {
            "inputs": {name: list(shape) for name, shape in self.inputs.items()},
            "outputs": {name: list(shape) for name, shape in self.outputs.items()},
        }


def vocoder_signature(n_mels: int, noise: dict[str, Shape] | None = None) -> Signature:
    """What a vocoder's exported file takes and gives; ``noise`` is its further input, if it takes its noise."""
    inputs: dict[str, Shape] = {"mel": ("batch", n_mels, "frames"), **(noise or {}), "lengths": ("batch",)}
    return Signature(inputs, {"wave": ("batch", "samples")})


class Runner(Protocol):
    """A part of an exported network, ready to run."""

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Outputs by their names."""


class OnnxRunner:
    """An ONNX file in onnxruntime, on the CPU, with as many threads as PyTorch has."""

    def __init__(self, path: Path, signature: Signature, session: Any = None) -> None:
        """``session`` is that of `open_session`, if it is open already."""
        self._path = path
        self._session = open_session(path)[0] if session is None else session
        self._outputs = list(signature.outputs)

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Run the graph on tensors by name, and return its outputs by name.

        Raises:
            CheckpointError: it cannot be run.
        """
        given = {name: value.numpy() for name, value in inputs.items()}
        try:
            made = dict(zip(self._outputs, self._session.run(self._outputs, given), strict=True))
        except Exception as error:  # onnxruntime's errors have no common class but this
            raise CheckpointError(f"{self._path}: onnxruntime cannot run it ({reason(error)})") from error
        return {name: torch.from_numpy(value) for name, value in made.items()}


def open_session(path: Path) -> tuple[Any, dict[str, str]]:
    """An ONNX file opened in onnxruntime, and its metadata.

    Raises:
        CheckpointError: onnxruntime cannot read it.
    """
    import onnxruntime  # takes long to import

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4  # nothing: its errors are raised as well
    # Its threads wait for work in a loop, which would slow PyTorch's until they give up.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return session, session.get_modelmeta().custom_metadata_map
    except Exception as error:  # onnxruntime's errors have no common class but this
        raise CheckpointError(f"{path}: onnxruntime cannot read it ({reason(error)})") from error


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
