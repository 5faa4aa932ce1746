"""ONNX files with other graphs and descriptions than a network's."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from harness import Case
from hypothesis import strategies as st
from onnx import TensorProto
from onnx_changes import node, with_output
from values import PLAIN, Mutation, mutations, places_of
from world import World

from common.checkpoints.exported import METADATA_KEY

NAMES = ("vocoder.onnx", "voice.onnx")
_TYPES = {"int64": TensorProto.INT64, "int32": TensorProto.INT32, "double": TensorProto.DOUBLE}
_TYPES |= {"float": TensorProto.FLOAT, "half": TensorProto.FLOAT16, "text": TensorProto.STRING}
_TYPES |= {"bool": TensorProto.BOOL}
_SHAPES: tuple[list[int], ...] = ([-1], [1, -1], [7, -1], [-1, 1, 1], [0, 0, -1], [2**40, -1])
_NUMBERS = (float("nan"), float("inf"), float("-inf"), 1e30, -1e30, -1.0, 0.5, 2.0**40)


def graphs(world: World) -> st.SearchStrategy[Case]:
    """ONNX whose graph computes something else, or whose description is of something else."""
    files = {name: (world.folder / name).read_bytes() for name in NAMES}
    said = {name: _description(data) for name, data in files.items()}
    places = {name: list(places_of(one)) for name, one in said.items()}
    outputs = {name: list(said[name]["outputs"]) for name in NAMES}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        how, name = draw(st.sampled_from(["graph", "graph", "description"])), draw(st.sampled_from(NAMES))
        make: Callable[[], bytes]
        if how == "graph":
            output = draw(st.sampled_from(outputs[name]))
            label, make = draw(_changed_outputs(world.folder / name, output))
            label = f"{output} {label}"
        else:
            mutation = draw(mutations(places[name], PLAIN))
            label, make = f"description {mutation.label}", partial(_redescribed, files[name], said[name], mutation)

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


def _description(data: bytes) -> Any:
    model = onnx.load_from_string(data)
    return json.loads(next(one.value for one in model.metadata_props if one.key == METADATA_KEY))


def _redescribed(data: bytes, description: Any, mutation: Mutation) -> bytes:
    model = onnx.load_from_string(data)
    (entry,) = (one for one in model.metadata_props if one.key == METADATA_KEY)
    entry.value = json.dumps(mutation.applied(description))
    return model.SerializeToString()
