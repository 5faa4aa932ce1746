"""What a Triton Inference Server would do with a model repository: its rules, its batches, and its HTTP service."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnxruntime
from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2 as pb

# Triton's name of a type -> that of the KServe protocol, onnxruntime's and numpy's.
TYPES = {"TYPE_INT64": ("INT64", "tensor(int64)", "<i8"), "TYPE_FP32": ("FP32", "tensor(float)", "<f4")}
Tensors = dict[str, np.ndarray]


class RefusedError(Exception):
    """What Triton would not load, or not answer."""


def need(condition: bool, message: str) -> None:
    """Refuse what breaks a rule."""
    if not condition:
        raise RefusedError(message)


class Repository:
    """A model repository that Triton would load; `RefusedError` says why it would not."""

    def __init__(self, folder: Path) -> None:
        self.configs: dict[str, pb.ModelConfig] = {}
        self.sessions: dict[str, onnxruntime.InferenceSession] = {}
        for path in sorted(folder.iterdir()):
            config = text_format.Parse((path / "config.pbtxt").read_text(), pb.ModelConfig())
            need(config.name == path.name, f"{path.name}: the configuration calls it {config.name}")
            versions = [one.name for one in path.iterdir() if one.is_dir()]
            need(versions == ["1"], f"{path.name}: versions {versions}")
            self.configs[path.name] = config
            if config.HasField("ensemble_scheduling"):
                continue
            session = onnxruntime.InferenceSession(str(path / "1" / "model.onnx"), providers=["CPUExecutionProvider"])
            self.sessions[path.name] = session
            check_model(config, session)
        for config in self.configs.values():
            if config.HasField("ensemble_scheduling"):
                check_ensemble(config, self.configs)

    def infer(self, name: str, requests: Sequence[Tensors]) -> list[Tensors]:
        """Outputs of requests that are run together, as clients get them."""
        config = self.configs[name]
        for request in requests:
            check_request(config, request)
        if name in self.sessions:
            return self._run_together(config, requests)
        tensors = [dict(request) for request in requests]
        for step in config.ensemble_scheduling.step:
            given = [{key: one[value] for key, value in step.input_map.items()} for one in tensors]
            for one, made in zip(tensors, self.infer(step.model_name, given)):
                one.update({value: made[key] for key, value in step.output_map.items()})
        return [{output.name: one[output.name] for output in config.output} for one in tensors]

    def _run_together(self, config: pb.ModelConfig, requests: Sequence[Tensors]) -> list[Tensors]:
        sizes = [len(next(iter(request.values()))) for request in requests]
        need(sum(sizes) <= config.max_batch_size, f"a batch of {sum(sizes)}")
        given = {}
        for tensor in config.input:
            values = [request[tensor.name] for request in requests]
            need(len({value.shape[1:] for value in values}) == 1, f"{tensor.name}: unlike shapes are not run together")
            joined = np.concatenate(values)
            shape = tensor.reshape.shape if tensor.HasField("reshape") else joined.shape[1:]
            given[tensor.name] = joined.reshape(len(joined), *shape)
        names = [tensor.name for tensor in config.output]
        made = dict(zip(names, self.sessions[config.name].run(names, given)))
        for tensor in config.output:
            if tensor.HasField("reshape"):
                made[tensor.name] = made[tensor.name].reshape(-1, *tensor.dims)
        places = np.cumsum(sizes)[:-1]
        split = {name: np.split(value, places) for name, value in made.items()}
        return [{name: values[row] for name, values in split.items()} for row in range(len(requests))]


def check_model(config: pb.ModelConfig, session: onnxruntime.InferenceSession) -> None:
    """What Triton and its ONNX backend check of a model before they serve it."""
    need((config.backend, config.platform) == ("onnxruntime", ""), f"backend {config.backend}")
    need(config.max_batch_size > 0, "no batches")
    need(config.HasField("dynamic_batching"), "no dynamic batching")
    need(all(0 < n <= config.max_batch_size for n in config.dynamic_batching.preferred_batch_size), "preferred sizes")
    need(len(config.instance_group) == 1 and config.instance_group[0].count > 0, "instance groups")
    for listed, values in ((config.input, session.get_inputs()), (config.output, session.get_outputs())):
        need([one.name for one in listed] == [one.name for one in values], f"names of {config.name}'s tensors")
        for one, value in zip(listed, values):
            check_dims(one)
            kind = TYPES.get(pb.DataType.Name(one.data_type))
            need(kind is not None and kind[1] == value.type, f"{one.name}: type {value.type}")
            dims = one.reshape.shape if one.HasField("reshape") else one.dims
            expected = [-1 if isinstance(size, str) else size for size in value.shape]
            need([-1, *dims] == expected, f"{one.name}: dims {list(dims)}, the model has {value.shape}")


def check_dims(tensor: pb.ModelInput | pb.ModelOutput) -> None:
    """Rules of the dimensions of any tensor."""
    need(len(tensor.dims) > 0, f"{tensor.name}: no dims")
    need(all(size == -1 or size > 0 for size in tensor.dims), f"{tensor.name}: dims {list(tensor.dims)}")
    if tensor.HasField("reshape"):
        need(np.prod(tensor.reshape.shape) == np.prod(tensor.dims), f"{tensor.name}: reshape of another size")


def check_ensemble(config: pb.ModelConfig, models: dict[str, pb.ModelConfig]) -> None:
    """Every input of every step is given before it, by a tensor of its type and dims, and so is every output."""
    need(config.platform == "ensemble" and not config.instance_group, "an ensemble has a platform and no instances")
    known = {tensor.name: tensor for tensor in config.input}
    used: set[str] = set()
    for step in config.ensemble_scheduling.step:
        model = models[step.model_name]
        need(config.max_batch_size <= model.max_batch_size, f"{step.model_name} takes smaller batches")
        need(set(step.input_map) == {one.name for one in model.input}, f"{step.model_name}: input_map")
        need(set(step.output_map) <= {one.name for one in model.output}, f"{step.model_name}: output_map")
        for tensor in model.input:
            name = step.input_map[tensor.name]
            need(name in known, f"{step.model_name}: {name} comes from nowhere")
            check_alike(known[name], tensor)
            used.add(name)
        for tensor in model.output:
            if tensor.name in step.output_map:
                name = step.output_map[tensor.name]
                need(name not in known, f"{name} is made twice")
                known[name] = tensor
    need(used >= {tensor.name for tensor in config.input}, "inputs that no step uses")
    for tensor in (*config.input, *config.output):
        check_dims(tensor)
        need(not tensor.HasField("reshape"), f"{tensor.name}: reshape in an ensemble changes what its models get")
    for tensor in config.output:
        need(tensor.name in known, f"{tensor.name} comes from nowhere")
        check_alike(known[tensor.name], tensor)


def check_alike(given: pb.ModelInput, taken: pb.ModelInput) -> None:
    """Two tensors that an ensemble connects, as their models show them to clients."""
    need(given.data_type == taken.data_type, f"{taken.name}: another type")
    need(list(given.dims) == list(taken.dims), f"{taken.name}: {list(given.dims)} for {list(taken.dims)}")


def check_request(config: pb.ModelConfig, request: Tensors) -> None:
    """A request gives every input once, of its type and shape, of one batch size."""
    need(set(request) == {one.name for one in config.input}, f"inputs {sorted(request)}")
    need(len({len(value) for value in request.values()}) == 1, "unlike batch sizes")
    for tensor in config.input:
        value = request[tensor.name]
        need(value.dtype == np.dtype(TYPES[pb.DataType.Name(tensor.data_type)][2]), f"{tensor.name}: {value.dtype}")
        shape = value.shape[1:]
        fits = len(shape) == len(tensor.dims) and all(want in (-1, size) for want, size in zip(tensor.dims, shape))
        need(fits, f"unexpected shape for input '{tensor.name}': {value.shape}, expected [-1,{list(tensor.dims)}]")


@contextmanager
def serve(repository: Repository) -> Iterator[tuple[str, list[tuple[str, Tensors]]]]:
    """The URL of an HTTP service in the KServe protocol, and the requests that it has been sent."""
    received: list[tuple[str, Tensors]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, _, _, name, what = self.path.split("/")
            assert what == "config"
            if name not in repository.configs:
                return self.answer(404, {"error": f"Request for unknown model: '{name}' is not found"})
            config = json_format.MessageToDict(repository.configs[name], preserving_proto_field_name=True)
            return self.answer(200, config)

        def do_POST(self) -> None:
            _, _, _, name, what = self.path.split("/")
            assert what == "infer" and self.headers["Content-Type"] == "application/octet-stream"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            size = int(self.headers["Inference-Header-Content-Length"])
            try:
                request, outputs = read_request(body[:size], body[size:])
                received.append((name, request))
                (made,) = repository.infer(name, [request])
            except RefusedError as error:
                return self.answer(400, {"error": str(error)})
            described, blocks = [], b""
            for output in outputs:
                block = made[output].tobytes()
                kind = next(kind for kind, _, code in TYPES.values() if np.dtype(code) == made[output].dtype)
                parameters = {"binary_data_size": len(block)}
                shape = list(made[output].shape)
                described.append({"name": output, "shape": shape, "datatype": kind, "parameters": parameters})
                blocks += block
            return self.answer(200, {"model_name": name, "outputs": described}, blocks)

        def answer(self, status: int, value: object, blocks: bytes = b"") -> None:
            header = json.dumps(value).encode()
            self.send_response(status)
            if blocks:
                self.send_header("Inference-Header-Content-Length", str(len(header)))
            self.send_header("Content-Length", str(len(header) + len(blocks)))
            self.end_headers()
            self.wfile.write(header + blocks)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()


def read_request(header: bytes, blocks: bytes) -> tuple[Tensors, list[str]]:
    """The tensors of a request, and the names of the outputs that it wants in binary."""

    def refuse(constant: str) -> None:
        raise RefusedError(f"{constant} is not JSON")

    request = json.loads(header, parse_constant=refuse)
    tensors, place = {}, 0
    for tensor in request["inputs"]:
        need(tensor["name"] not in tensors, f"{tensor['name']}: given twice")
        dtype = next(np.dtype(code) for kind, _, code in TYPES.values() if kind == tensor["datatype"])
        n_bytes = tensor["parameters"]["binary_data_size"]
        need(n_bytes == dtype.itemsize * int(np.prod(tensor["shape"])), f"{tensor['name']}: {n_bytes} bytes")
        block = blocks[place : place + n_bytes]
        tensors[tensor["name"]] = np.frombuffer(block, dtype).reshape(tensor["shape"])
        place += n_bytes
    need(place == len(blocks), f"{len(blocks)} bytes, the tensors have {place}")
    need(all(output["parameters"]["binary_data"] is True for output in request["outputs"]), "outputs in JSON")
    return tensors, [output["name"] for output in request["outputs"]]
