"""Exported files with other graphs, weights, records and descriptions than a network's."""

import io
import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from harness import Case
from hypothesis import strategies as st
from onnx import TensorProto
from onnx_changes import node, with_output
from values import PLAIN, Mutation, mutations, places_of, text_mutations
from world import World

from common.checkpoints.exported import ARCHIVE_ENTRY, METADATA_KEY

NAMES = ("vocoder.onnx", "voice.onnx", "vocoder.ts")
_TYPES = {"int64": TensorProto.INT64, "int32": TensorProto.INT32, "double": TensorProto.DOUBLE}
_TYPES |= {"float": TensorProto.FLOAT, "half": TensorProto.FLOAT16, "text": TensorProto.STRING}
_TYPES |= {"bool": TensorProto.BOOL}
_SHAPES: tuple[list[int], ...] = ([-1], [1, -1], [7, -1], [-1, 1, 1], [0, 0, -1], [2**40, -1])
_NUMBERS = (float("nan"), float("inf"), float("-inf"), 1e30, -1e30, -1.0, 0.5, 2.0**40)
_CODE = {  # of all modules of a TorchScript file
    "none": b"",
    "no text": b"\xff\0" * 99,
    "brackets": b"(" * 1_000_000,
    "branches": b"def f(x):\n  if True:\n    y = 1\n" + b"  elif True:\n    y = 1\n" * 50_000,
    "a file": b'class A(Module):\n  def forward(self) -> Tensor:\n    return torch.from_file("canary", True, 24)\n',
}
_OPERATIONS = {  # which a pickle begins with
    "a number of 2 ** 31": b"]r\xff\xff\xff\x7f0",
    "a type": b"ctorch.jit._pickle\nrestore_type_tag\n(]X\x00\x00\x03\x00" + b"List[" * 39_321 + b"LLLtR0",
    "PyTorch's class": b"c__torch__.torch.classes.a\nB\n)\x81}b0",
    "a function": b"cos\nsystem\nX\x0c\0\0\0touch canary\x85R0",
    "deep lists": b"]" * 100_000 + b"a" * 99_999 + b"0",
}


def graphs(world: World) -> st.SearchStrategy[Case]:
    """ONNX whose graph computes something else, TorchScript with other records, and both with other descriptions."""
    files = {name: (world.folder / name).read_bytes() for name in NAMES}
    said = {name: _description(data) for name, data in files.items()}
    places = {name: list(places_of(one)) for name, one in said.items()}
    outputs = {name: list(said[name]["outputs"]) for name in NAMES}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        how = draw(st.sampled_from(["graph", "graph", "description", "records"]))
        name = draw(st.sampled_from(NAMES[:2] if how == "graph" else NAMES[2:] if how == "records" else NAMES))
        make: Callable[[], bytes]
        if how == "graph":
            output = draw(st.sampled_from(outputs[name]))
            label, make = draw(_changed_outputs(world.folder / name, output))
            label = f"{output} {label}"
        elif how == "description":
            mutation = draw(mutations(places[name], PLAIN))
            label, make = f"description {mutation.label}", partial(_redescribed, files[name], said[name], mutation)
        else:
            label, make = draw(_changed_records(files[name]))

        program = draw(st.sampled_from(["inference", "inference", "scripts.inspect_checkpoint"]))

        def write(folder: Path) -> list[str]:
            path = folder / name
            path.write_bytes(make())
            if program != "inference":
                return [str(path)]
            if name.startswith("vocoder"):
                return world.speak(path, "--hifigan")
            return ["--fastpitch", str(path), "--text", "Go on.", "-o", "out", "--griffin-lim-iters", "1", "--timings"]

        return Case(f"{program} {name} {label}", program, write, wrong=False)

    return cases()


@st.composite
def _changed_outputs(draw: st.DrawFn, path: Path, output: str) -> tuple[str, Callable[[], bytes]]:
    """A label, and what makes the ONNX file whose output is computed further."""
    kind = TensorProto.INT64 if output in ("mel_lengths", "frames_of_tokens") else TensorProto.FLOAT
    how = draw(st.sampled_from(["Cast", "Reshape", "ReduceSum", "Concat", "Add", "Mul", "Shape", "SequenceConstruct"]))
    if how == "Cast":
        name = draw(st.sampled_from(list(_TYPES)))
        made = node(how, "old", output=output, to=_TYPES[name])
        return f"as {name}", partial(with_output, path, output, made, kind=_TYPES[name])
    if how == "Reshape":
        shape = draw(st.sampled_from(_SHAPES))
        return f"{how} {shape}", partial(
            with_output, path, output, node(how, "old", "a", output=output), kind=kind, a=shape
        )
    if how in ("Add", "Mul"):
        number: Any = draw(st.sampled_from(_NUMBERS[5:] if kind == TensorProto.INT64 else _NUMBERS))
        value = [int(number)] if kind == TensorProto.INT64 else float(number)
        made = node(how, "old", "a", output=output)
        return f"{how} {number}", partial(with_output, path, output, made, kind=kind, a=value)
    axis = draw(st.integers(0, 2))
    inputs, attributes = {"Concat": (["old", "old"], {"axis": axis}), "ReduceSum": (["old"], {"keepdims": 0})}.get(
        how, (["old"], {})
    )
    kind = TensorProto.INT64 if how == "Shape" else kind
    return f"{how} {axis}", partial(
        with_output, path, output, node(how, *inputs, output=output, **attributes), kind=kind
    )


@st.composite
def _changed_records(draw: st.DrawFn, data: bytes) -> tuple[str, Callable[[], bytes]]:
    """A label, and what makes the TorchScript file with other records."""
    records = _records(data)
    how = draw(st.sampled_from(["code", "operations", "bytes", "absent", "twice", "compressed"]))
    if how == "code":
        name = draw(st.sampled_from(list(_CODE)))
        changed = {key: _CODE[name] if "/code/" in key else value for key, value in records.items()}
        return f"code {name}", partial(_zipped, changed)
    (pickled,) = (key for key in records if key.endswith("/data.pkl"))
    if how == "operations":
        name = draw(st.sampled_from(list(_OPERATIONS)))
        content = records[pickled]
        return name, partial(_zipped, {**records, pickled: content[:2] + _OPERATIONS[name] + content[2:]})
    key = draw(st.sampled_from([pickled, pickled, *records]))
    if how == "bytes":
        change = draw(text_mutations)
        return f"{key} {change.label}", lambda: _zipped({**records, key: change.applied(records[key])})
    if how == "absent":
        return f"{key} absent", partial(_zipped, {name: value for name, value in records.items() if name != key})
    if how == "twice":
        return f"{key} twice", partial(_zipped, {**records, f"more/{key}": records[key]})
    method = draw(st.sampled_from([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    return f"{key} compressed {method}", partial(_zipped, records, key, method)


def _description(data: bytes) -> Any:
    if data[:2] == b"PK":
        records = _records(data)
        return json.loads(next(value for name, value in records.items() if name.endswith(ARCHIVE_ENTRY)))
    model = onnx.load_from_string(data)
    return json.loads(next(one.value for one in model.metadata_props if one.key == METADATA_KEY))


def _redescribed(data: bytes, description: Any, mutation: Mutation) -> bytes:
    text = json.dumps(mutation.applied(description))
    if data[:2] == b"PK":
        records = _records(data)
        return _zipped({name: text.encode() if name.endswith(ARCHIVE_ENTRY) else one for name, one in records.items()})
    model = onnx.load_from_string(data)
    (entry,) = (one for one in model.metadata_props if one.key == METADATA_KEY)
    entry.value = text
    return model.SerializeToString()


def _records(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(records: dict[str, bytes], compressed: str = "", method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data, method if name == compressed else zipfile.ZIP_STORED)
    return file.getvalue()
