"""Changes of exported ONNX files, for tests of what is done with other outputs than a network's."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def with_output(path: Path, output: str, *made: onnx.NodeProto, kind: int = TensorProto.FLOAT, **values) -> bytes:
    """An ONNX file whose output another node makes, of ``old``, with ``values`` as constants."""
    model = onnx.load(path)
    for node in model.graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                names[index] = "old" if name == output else name
    model.graph.node.extend(made)
    model.graph.initializer.extend(numpy_helper.from_array(np.array(value), name) for name, value in values.items())
    (found,) = (one for one in model.graph.output if one.name == output)
    found.type.tensor_type.elem_type = kind
    found.type.tensor_type.ClearField("shape")
    return model.SerializeToString()


def node(kind: str, *inputs: str, output: str = "wave", **attributes) -> onnx.NodeProto:
    return helper.make_node(kind, list(inputs), [output], **attributes)
