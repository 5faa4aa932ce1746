"""Exported files, ONNX and TorchScript: what they hold and say of it, and how they are recognized and run."""

import hashlib
import json
import mmap
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from common.checkpoints.checkpoint import Checkpoint, Stripped, is_onnx, names_in_archive
from common.checkpoints.fields import Description, check_checkpoint, read_description
from common.checkpoints.scripted import ARCHIVE_ENTRY, check_script
from common.config import to_plain
from common.errors import CheckpointError, OptionError, shown
from common.formats.torch_file import UnreadableError, archive_records
from common.text import TextFrontEnd

EXPORT_VERSION = 1
METADATA_KEY = "speech_toolkit"  # of the description in every format

_MOST_INFLATED = 1 << 26  # bytes that compression saves; TorchScript compresses its code
_LOCATION = b"location"

Examples = Callable[[int, int, torch.Generator], tuple[Tensor, ...]]


@dataclass(frozen=True)
class OnnxForm:
    """What a part's ONNX is made of, where another form of the same function is faster there."""

    module: nn.Module
    inputs: tuple[str, ...]  # those of the part's inputs that it takes
    complete: Callable[[Any], Any] = lambda model: model  # the traced onnx.ModelProto -> the part's


@dataclass(frozen=True)
class Quantization:
    """How a part's ONNX computes in 8-bit integers where that is faster."""

    # Whether it is its convolutions, with scales that examples show; else its matrix products, with scales of their own
    calibrated: bool
    # (mels (n_mels, F) to calibrate with, if that is so) -> inputs of one whole utterance each, to compare mels by
    examples: Callable[[Sequence[Tensor]], list[tuple[Tensor, ...]]]


@dataclass(frozen=True)
class Part:
    """A network, or a part of one, as a function of tensors alone, which a file holds."""

    name: str  # "" where the network is one part; else in the file's name
    module: nn.Module
    inputs: Mapping[str, tuple[str | int, ...]]  # name -> the names of its dimensions, or sizes that are fixed
    outputs: Mapping[str, tuple[str | int, ...]]
    examples: Examples  # (batch size, length, generator) -> inputs; the last utterance is shorter than ``length``
    # Whether torch.jit.script takes it, for any device. What can be traced alone would be bound to one.
    scriptable: bool = False
    example_batch: int = 1  # of the example that is traced
    onnx_form: Callable[[bool], OnnxForm] | None = None  # (whether it is to be quantized); None: module
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Exports:
    """What a model's package gives to be exported."""

    parts: tuple[Part, ...]
    description: dict[str, Any] = field(default_factory=dict)  # what else users of the file must know: plain types


class Runner(Protocol):
    """An exported file, ready to run."""

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Outputs by their names."""


class OnnxRunner:
    """An ONNX file in onnxruntime, on the CPU, with as many threads as PyTorch has."""

    def __init__(self, path: Path) -> None:
        import onnxruntime  # takes long to import

        check_no_other_files(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3  # errors alone
        # Its threads wait for work in a loop, which would slow PyTorch's until they give up.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no common class but this
            raise CheckpointError(f"{path}: onnxruntime cannot read it ({_first_line(error)})") from error
        self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        self._outputs = [one.name for one in self._session.get_outputs()]

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """As `Runner`."""
        values = self._session.run(None, {name: value.numpy() for name, value in inputs.items()})
        return {name: torch.from_numpy(value) for name, value in zip(self._outputs, values)}


class TorchScriptRunner:
    """A TorchScript file on a device."""

    def __init__(self, path: Path, *, device: torch.device, outputs: Sequence[str]) -> None:
        self._path, self._outputs = path, outputs
        check_script(path)
        try:
            self._module = torch.jit.load(path, map_location=device)
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(f"{path}: PyTorch cannot read it ({_first_line(error)})") from error

    @torch.no_grad()
    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """As `Runner`."""
        try:
            values = self._module(**inputs)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, torch.jit.Error) as error:  # the latter is what its code raises
            reason = shown(str(error).strip().rpartition("\n")[2])
            raise CheckpointError(f"{self._path}: TorchScript cannot run it ({reason})") from error
        values = [value for value in values if value is not None] if isinstance(values, tuple) else [values]
        return dict(zip(self._outputs, values))


def describe(checkpoint: Checkpoint, *, context: int | None) -> dict[str, Any]:
    """What a file says of the stripped checkpoint that it is made of, in plain types.

    ``context`` is that of `VocoderSpec.context`, frames.
    """
    assert checkpoint.stripped is not None
    text = checkpoint.text
    ((network, state),) = checkpoint.networks.items()
    description = {
        "version": EXPORT_VERSION,
        "model": checkpoint.model,
        "network": network,
        "config": {
            "model": checkpoint.config,
            "audio": to_plain(checkpoint.audio),
            "text": None if text is None else to_plain(text),
        },
        "ema": checkpoint.stripped.ema,
        "assumed": list(checkpoint.assumed),
        "assumed_config": list(checkpoint.assumed_config),
        "symbols": None if text is None or text.input_type == "pf" else TextFrontEnd(text).symbols,
        "context_frames": context,
    }
    return description | {"fingerprint": _fingerprint(description, state)}


def _fingerprint(description: dict[str, Any], state: dict[str, Tensor]) -> str:
    """The same for all parts of a checkpoint, by its weights and what is said of it, and another for any other."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, value in sorted(state.items()):
        digest.update(name.encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def describe_part(exports: Exports, part: Part) -> dict[str, Any]:
    """What a file says of the part that it holds."""
    return {
        "part": part.name,
        "parts": [one.name for one in exports.parts],
        "inputs": {name: list(shape) for name, shape in part.inputs.items()},
        "outputs": {name: list(shape) for name, shape in part.outputs.items()},
        **exports.description,
    }


def exported_format(path: Path) -> str | None:
    """``onnx`` or ``torchscript`` by the content of a file that `scripts/export_model.sh` writes; None for another."""
    if not path.is_file():
        return None
    if is_onnx(path):
        return "onnx"
    is_script = any(name.endswith(f"/extra/{ARCHIVE_ENTRY}") for name in names_in_archive(path))
    return "torchscript" if is_script else None


@dataclass(frozen=True)
class ExportedFile:
    """An ONNX or TorchScript file that has been opened."""

    path: Path
    format: str
    description: dict[str, Any]
    onnx: OnnxRunner | None = None

    def runner(self, device: torch.device) -> Runner:
        """What runs it.

        Raises:
            OptionError: it does not run on such a device.
        """
        if self.onnx is None:
            return TorchScriptRunner(self.path, device=device, outputs=list(self.description["outputs"]))
        if device.type != "cpu":
            raise OptionError(f"{self.path}: ONNX files are run on the CPU; leave out --cuda, or give the checkpoint")
        return self.onnx

    def parts(self) -> dict[str, "ExportedFile"]:
        """All files of its network, by the names of their parts: itself, and those that lie beside it.

        Raises:
            CheckpointError: one is missing, or of another checkpoint.
        """
        own = self.description["part"]
        if not own:
            return {own: self}
        stem, _, suffix = self.path.name.rpartition(f".{own}")
        if not stem or suffix not in ("", self.path.suffix):
            raise CheckpointError(
                f"{self.path}: the {own} of a {self.description['model']}, whose name must end in .{own} and the "
                f"format's suffix, as scripts/export_model.sh has it, so that the other parts are found beside it"
            )
        return {
            name: self if name == own else self._other_part(self.path.with_name(f"{stem}.{name}{suffix}"), name)
            for name in self.description["parts"]
        }

    def _other_part(self, path: Path, name: str) -> "ExportedFile":
        needed = f"the {name} that belongs to {self.path}"
        if not path.is_file():
            raise CheckpointError(f"{path}: no such file, expected {needed}; export the checkpoint again")
        format = exported_format(path)
        if format is None:
            raise CheckpointError(f"{path}: not an exported file, expected {needed}")
        other, checkpoint = open_exported(path, format)
        if (part := other.description["part"]) != name:
            raise CheckpointError(f"{path}: holds the {part or 'whole'} of a {checkpoint.model}, expected {needed}")
        if other.description["fingerprint"] != self.description["fingerprint"]:
            raise CheckpointError(f"{path}: of another checkpoint than {self.path}; give parts of one export")
        return other


def open_exported(path: Path, format: str) -> tuple[ExportedFile, Checkpoint]:
    """An exported file, and the checkpoint that it is of, which has no weights.

    Raises:
        CheckpointError: it is damaged, of a newer version, or not written by `scripts/export_model.sh`.
    """
    onnx = None
    stored: str | bytes | None
    if format == "onnx":
        onnx = OnnxRunner(path)
        stored = onnx.metadata.get(METADATA_KEY)
    else:
        stored = _description_in_archive(path)
    if stored is None:
        raise CheckpointError(f"{path}: an ONNX file that scripts/export_model.sh did not write")
    description, known = read_description(stored, version=EXPORT_VERSION, where=str(path))
    return ExportedFile(path, format, description, onnx), checkpoint_of(known, networks={}, where=str(path))


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


def _description_in_archive(path: Path) -> bytes:
    """The description in a TorchScript archive, none of whose files is much larger than it."""
    try:
        records = archive_records(path)
    except UnreadableError as error:
        raise CheckpointError(f"{path}: damaged, {error}") from error
    if sum(record.size for record in records.values()) > path.stat().st_size + _MOST_INFLATED:
        raise CheckpointError(f"{path}: damaged, its files are compressed to much less than they are")
    name = next(name for name in records if name.endswith(f"/extra/{ARCHIVE_ENTRY}"))
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def checkpoint_of(description: Description, *, networks: dict[str, dict[str, Tensor]], where: str) -> Checkpoint:
    """The checkpoint that a description is of."""
    config = description.config
    checkpoint = Checkpoint(
        model=description.model,
        config=config.model,
        audio=config.audio,
        text=config.text,
        networks=networks,
        assumed=description.assumed,
        assumed_config=description.assumed_config,
        stripped=Stripped(dtype="float32", ema=description.ema),
    )
    return check_checkpoint(checkpoint, where=where)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
