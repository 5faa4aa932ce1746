"""Exported files: the contents and descriptions of ONNX and TorchScript files, and opening ONNX files."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from common.checkpoints.checkpoint import FORMAT_VERSION, Checkpoint, Weights, plain_configs, read_own
from common.errors import CheckpointError, reason
from common.files import check_file
from common.text.front_end import TextFrontEnd

Shape = tuple[str | int, ...]  # names of dynamic dimensions, or fixed sizes
Shapes = dict[str, Shape]  # inputs or outputs by name; float32, or int64 for counts
WAVE: Shapes = {"wave": ("batch", "samples")}  # a vocoder's output
Runner = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]  # a part of an exported network: inputs -> outputs
Examples = Callable[[int, int, torch.Generator], tuple[Tensor, ...]]
Noise = Callable[[int, int], Tensor]  # (frames, seed) -> the input ``noise`` for speaking

EXPORT_VERSION = 1
METADATA_KEY = "speech_toolkit"  # key of the description in ONNX and safetensors
ARCHIVE_ENTRY = "speech_toolkit.json"  # the description in TorchScript, in the archive's folder "extra"
_SHORTER = 3  # tokens or frames by which each utterance of an example is shorter than the previous one
# The protobuf of tensors in another file: the length of its name (below 128), and as many bytes as it may have.
_EXTERNAL = re.compile(rb"\x6a[\x00-\xff]{1,2}\n\x08location\x12([\x00-\xff])(?=([\x00-\xff]{0,127}))")


def onnx_runner(path: Path, outputs: Iterable[str], session: Any = None) -> Runner:
    """Return a function that runs an ONNX file in onnxruntime on the CPU; it raises CheckpointError.

    ``outputs`` are names in order; ``session`` is from `open_session` if the file is open already.
    """
    session, names = session or open_session(path)[0], list(outputs)

    def run(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        try:
            made = session.run(names, {name: value.numpy() for name, value in inputs.items()})
        except Exception as error:  # onnxruntime's errors have no other class in common
            raise CheckpointError(f"{path}: onnxruntime cannot run it ({reason(error)})") from error
        return {name: torch.from_numpy(value) for name, value in zip(names, made, strict=True)}

    return run


def open_session(path: Path) -> tuple[Any, dict[str, str]]:
    """Open an ONNX file in onnxruntime with PyTorch's number of threads; return the session and the file's metadata.

    Weights may be in other files in its folder. Raises CheckpointError if onnxruntime can't read the file, or if
    weights are outside the folder, because onnxruntime before 1.24 opens any file that a model names.
    """
    import onnxruntime  # slow to import

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4  # its errors are raised anyway
    # Otherwise, its idle threads would spin and slow down PyTorch's.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    content = path.read_bytes()
    model = str(path) if _has_external_weights(path, content) else content
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return session, session.get_modelmeta().custom_metadata_map
    except Exception as error:  # onnxruntime's errors have no other class in common
        raise CheckpointError(f"{path}: onnxruntime cannot read it ({reason(error)})") from error


def _has_external_weights(path: Path, content: bytes) -> bool:
    """Whether other files in the folder contain an ONNX file's weights; CheckpointError if they're elsewhere."""
    folder, found = path.parent.resolve(), _EXTERNAL.findall(content)
    for length, name in set(found):
        file = (folder / os.fsdecode(name[: length[0]])).resolve()
        if length[0] > len(name) or not file.is_relative_to(folder):
            raise CheckpointError(f"{path}: its weights are in a file outside its folder; export it as one file")
        if not file.is_file():
            raise CheckpointError(f"{path}: {file.name}, which contains its weights, is missing; put it next to it")
    return bool(found)


def random_examples(
    inputs: Mapping[str, Shape], made: Mapping[str, Callable[[Tensor], Tensor]], **sizes: Callable[[int], int]
) -> Examples:
    """Return a function that makes example inputs: ``lengths``, and normal random numbers, converted by ``made``.

    A dimension is as long as the utterances, or as long as its function in ``sizes`` returns.
    """

    def examples(n_batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        known = {"batch": n_batch} | {name: size(length) for name, size in sizes.items()}

        def example(name: str, shape: Shape) -> Tensor:
            if name == "lengths":
                return torch.tensor([max(1, length - _SHORTER * row) for row in range(n_batch)])
            size = [known.get(one, length) if isinstance(one, str) else one for one in shape]
            values = torch.randn(size, generator=generator)
            return made[name](values) if name in made else values

        return tuple(example(*one) for one in inputs.items())

    return examples


@dataclass(frozen=True)
class Quantization:
    """How to quantize a part's ONNX file to 8-bit integers, if that's faster."""

    # True: quantize convolutions, with scales from examples; False: matrix products, with dynamic scales
    calibrated: bool
    # (mels (n_mels, F)) -> inputs of one whole utterance each, for calibration and comparison
    examples: Callable[[Sequence[Tensor]], list[tuple[Tensor, ...]]]
    within: str = ""  # quantize only matrix products whose node names contain this


@dataclass(frozen=True)
class Part:
    """A network, or a part of one, that is exported to a file as a function of tensors."""

    name: str  # in the file's name; "" if the network is one part
    module: nn.Module
    inputs: Shapes
    outputs: Shapes
    examples: Examples  # (batch size, length, generator) -> inputs; the last utterance is shorter than ``length``
    scriptable: bool = False  # whether torch.jit.script supports it; a trace would be bound to one device
    example_batch: int = 1  # batch size of the traced example
    # (whether it will be quantized) -> an equivalent module that is faster in ONNX; None: ``module``
    onnx_form: Callable[[bool], nn.Module] | None = None
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Exports:
    """The parts of a model that are exported."""

    parts: tuple[Part, ...]
    description: dict[str, Any] = field(default_factory=dict)  # further metadata for users of the file, plain types
    noise: Noise | None = None


def describe(checkpoint: Checkpoint, exports: Exports) -> dict[str, Any]:
    """Describe a stripped checkpoint in plain types, for files that are exported from it.

    The fingerprint is the same in all parts of a checkpoint; a part's file adds its name, inputs and outputs.
    """
    assert checkpoint.stripped is not None
    text = checkpoint.text
    ((network, state),) = checkpoint.networks.items()
    description = {
        "version": EXPORT_VERSION,
        "network": network,
        **plain_configs(checkpoint),
        "ema": checkpoint.stripped.ema,
        "symbols": None if text is None or text.input_type == "pf" else TextFrontEnd(text).symbols,
        "context_frames": None,
        **exports.description,
    }
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, value in sorted(state.items()):
        digest.update(name.encode())
        digest.update(value.contiguous().numpy().tobytes())
    return description | {"fingerprint": digest.hexdigest(), "parts": [part.name for part in exports.parts]}


def part_path(path: Path, name: str) -> Path:
    """Return the path of a part: voice.onnx -> voice.encoder.onnx."""
    return path.with_suffix(f".{name}{path.suffix}") if name else path


@dataclass(frozen=True)
class ExportedFile:
    """An ONNX file that has been opened."""

    path: Path
    description: dict[str, Any]
    session: Any  # that of `open_session`

    def runners(self) -> dict[str, Runner]:
        """Return runners for all parts of its network by name: this file, and those next to it.

        Raises CheckpointError if one is missing or from another checkpoint.
        """
        own, files = self.description["part"], {}
        whole = self.path.with_name(self.path.name.removesuffix(f".{own}{self.path.suffix}") + self.path.suffix)
        for name in self.description["parts"]:
            file = self
            if name != own:
                path = part_path(whole, name)
                check_file(path, kind=f"file, the {name} that belongs to {self.path}", error=CheckpointError)
                file, wanted = open_exported(path)[0], self.description | {"part": name}
                if any(file.description[key] != wanted[key] for key in ("part", "fingerprint")):
                    raise CheckpointError(f"{path}: not the {name} that belongs to {self.path}; export both again")
            files[name] = onnx_runner(file.path, file.description["outputs"], file.session)
        return files


def open_exported(path: Path) -> tuple[ExportedFile, Checkpoint]:
    """Open an ONNX file; also return its checkpoint, which has no weights.

    Raises CheckpointError if it's damaged, of a newer version, or not written by `scripts/export_model.sh`.
    """
    session, metadata = open_session(path)
    description = read_description(metadata, where=path)
    checkpoint = read_own(payload_of(description, {}), training=False, where=str(path))
    return ExportedFile(path, description, session), checkpoint


def read_description(metadata: Mapping[str, str], *, where: Path) -> dict[str, Any]:
    """Read the result of `describe` from a file's metadata.

    Raises CheckpointError if it's missing or of another version.
    """
    if METADATA_KEY not in metadata:
        raise CheckpointError(f"{where}: not written by scripts/export_model.sh")
    defaults = {"part": "", "parts": [""], "fingerprint": "", "context_frames": None}  # of older files
    description: dict[str, Any] = defaults | json.loads(metadata[METADATA_KEY])
    if (version := description["version"]) != EXPORT_VERSION:
        raise CheckpointError(f"{where}: export version {version}, expected {EXPORT_VERSION}; use a newer toolkit")
    return description


def payload_of(description: dict[str, Any], networks: Weights) -> dict[str, Any]:
    """Return the dict that `save_checkpoint` would write for a described checkpoint."""
    parts = {"networks": networks, "ema": None, "training": None}
    return description | parts | {"format": FORMAT_VERSION, "stripped": {"dtype": "float32", "ema": description["ema"]}}
