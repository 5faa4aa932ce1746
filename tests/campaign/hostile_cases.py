"""Files that would run code, name files, or take a machine's memory: pickles, archives, safetensors and graphs."""

import io
import json
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from harness import CANARY, Case
from hypothesis import strategies as st
from values import PLAIN, mutations, places_of, text_mutations
from world import World

GLOBALS = {  # of a payload that would run, and what it is called with
    "os.system": (b"os", b"system", f"touch {CANARY}"),
    "posix.system": (b"posix", b"system", f"touch {CANARY}"),
    "exec": (b"builtins", b"exec", "print('payload-ran-' * 3)"),
    "eval": (b"builtins", b"eval", "print('payload-ran-' * 3)"),
    "Python 2's eval": (b"__builtin__", b"eval", "print('payload-ran-' * 3)"),
    "subprocess": (b"subprocess", b"getoutput", f"touch {CANARY}"),
    "runpy": (b"runpy", b"run_path", "/dev/stdin"),
    "pathlib": (b"pathlib", b"Path", CANARY),
    "open": (b"builtins", b"open", CANARY),
    "io.open": (b"io", b"open", "/dev/zero"),
    "torch.load": (b"torch", b"load", "/dev/zero"),
    "torch.hub": (b"torch.hub", b"load", "x"),
    "numpy": (b"numpy", b"fromfile", "/dev/zero"),
    "importlib": (b"importlib", b"import_module", "antigravity"),
    "range": (b"builtins", b"range", 10**10),
    "list": (b"builtins", b"list", "x" * 100),
    "getattr": (b"builtins", b"getattr", "x"),
    "a network": (b"torch.nn.modules.linear", b"Linear", 10**6),
    "torch.device": (b"torch", b"device", "cpu"),
    "torch.Size": (b"torch", b"Size", 5),
    "OrderedDict": (b"collections", b"OrderedDict", 5),
    "tensor of 10 ** 10": (b"torch._utils", b"_rebuild_parameter", 5),
    "storage": (b"torch.storage", b"_load_from_bytes", "x"),
    "our package": (b"common.files", b"write_text", CANARY),
    "dotted": (b"common", b"files.os.system", f"touch {CANARY}"),
    "copyreg": (b"copyreg", b"_reconstructor", "x"),
    "functools": (b"functools", b"partial", "x"),
}
WAYS = ("pt", "hifigan", "features", "resume", "convert", "inspect")
MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)


def _payload(name: str, *, protocol: int) -> bytes:
    module, function, argument = GLOBALS[name]
    head = b"\x80" + bytes([protocol])
    value = pickle.dumps(argument, protocol=2)[2:-1]
    named = b"c" + module + b"\n" + function + b"\n"
    if protocol == 4:
        named = (
            pickle.dumps(module.decode(), protocol=2)[2:-1]
            + pickle.dumps(function.decode(), protocol=2)[2:-1]
            + b"\x93"
        )
    return head + b"}" + b"U\x05modelq\x00" + named + value + b"\x85R" + b"s."


def _containers(data: bytes, form: str) -> bytes:
    if form == "bare":
        return data
    if form == "legacy":
        return (
            MAGIC + pickle.dumps(1001, protocol=2) + pickle.dumps({}, protocol=2) + data + pickle.dumps([], protocol=2)
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if form == "deflated" else zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
        if form == "TorchScript":
            archive.writestr("archive/constants.pkl", b"\x80\x02).")
    return file.getvalue()


def _commands(world: World, path: Path, way: str) -> tuple[str, list[str]]:
    if way == "features":
        (path.parent / "one.tsv").write_text(f"output\tmel\na.wav\t{path.name}\n")
        words = ["-i", "one.tsv", "--dataset-path", str(path.parent), "-o", "out", "--hifigan", str(world.vocoder)]
        return "inference", words
    if way == "resume":
        return "train", world.train_vocoder(world.folder / "wavs", "--checkpoint-path", str(path))
    if way in ("convert", "inspect"):
        return f"scripts.{way}_checkpoint", [str(path), *(["out/new.pt"] if way == "convert" else [])]
    return "inference", world.speak(path, "--hifigan" if way == "hifigan" else "--fastpitch")


def _case(world: World, label: str, way: str, make: Callable[[], bytes], *, wrong: bool = True) -> Case:
    program = _commands(world, Path("/nonexistent/x"), "pt")[0] if way in ("pt", "hifigan", "features") else ""
    program = program or ("train" if way == "resume" else f"scripts.{way}_checkpoint")

    def write(folder: Path) -> list[str]:
        path = folder / "file.pt"
        path.write_bytes(make())
        return _commands(world, path, way)[1]

    return Case(f"{label} ({way})", program, write, wrong=wrong)


def pickles(world: World) -> st.SearchStrategy[Case]:
    """Pickles that call something, in every container and through every way in; and pickles with changed opcodes."""
    valid = {form: _valid(world, form) for form in ("zip", "legacy")}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        way = draw(st.sampled_from(WAYS))
        if draw(st.booleans()):
            name, protocol = draw(st.sampled_from(list(GLOBALS))), draw(st.sampled_from([2, 4]))
            form = draw(st.sampled_from(["bare", "legacy", "stored", "deflated", "TorchScript"]))
            label = f"{name}, protocol {protocol}, {form}"
            return _case(world, label, way, lambda: _containers(_payload(name, protocol=protocol), form))
        pickled, wrap = valid[draw(st.sampled_from(["zip", "legacy"]))]
        codes = list(pickletools.genops(pickled))
        at = draw(st.integers(0, len(codes) - 2))
        start, end = codes[at][2], codes[at + 1][2]
        names = [code.name for code in pickletools.opcodes]
        code = draw(st.sampled_from(["absent", "twice", *names]))
        opcode = next((one.code.encode("latin-1") for one in pickletools.opcodes if one.name == code), b"")
        part = pickled[start:end]
        part = {"absent": b"", "twice": part * 2}.get(code, opcode + part[1:])
        label = f"opcode {at} ({codes[at][0].name}) becomes {code}, {len(pickled)}"
        return _case(world, label, way, lambda: wrap(pickled[:start] + part + pickled[end:]), wrong=False)

    return cases()


def _valid(world: World, form: str) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The pickle of a small checkpoint, and what makes a file of a changed one."""
    file = io.BytesIO()
    payload = torch.load(world.voice, weights_only=True)
    torch.save(payload, file, _use_new_zipfile_serialization=form == "zip")
    data = file.getvalue()
    if form == "zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = {name: archive.read(name) for name in archive.namelist()}
        (name,) = (name for name in records if name.endswith("data.pkl"))
        return records[name], lambda changed: _zipped({**records, name: changed})
    stream = io.BytesIO(data)
    for _ in range(3):
        pickle.load(stream)
    start = stream.tell()
    end = next(place for code, _, place in pickletools.genops(stream) if code.name == "STOP") + 1
    return data[start:end], lambda changed: data[:start] + changed + data[end:]


def _zipped(records: dict[str, bytes], *, method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    return file.getvalue()


# ---- archives that are larger inside, and tensors that claim more than there is

SIZES = (2**31, 3 * 2**30 - 2**28, 8 * 2**30, 2**40, 2**62, -1, 0)


def archives(world: World) -> st.SearchStrategy[Case]:
    """Zip archives that repeat or misname records; storages and tensors of other sizes than they have."""
    payload = torch.load(world.voice, weights_only=True)
    with zipfile.ZipFile(io.BytesIO(_saved(payload))) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    (pickled,) = (name for name in records if name.endswith("data.pkl"))
    storage = next(name for name in records if "/data/" in name)

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        way = draw(st.sampled_from(WAYS))
        how = draw(st.sampled_from(["size", "size", "size", "record"]))
        if how == "size":
            size, what = (
                draw(st.sampled_from(SIZES)),
                draw(st.sampled_from(["elements", "shape", "stride", "expanded"])),
            )
            form = draw(st.sampled_from(["legacy", "stored", "deflated"]))
            return _case(world, f"{what} {size}, {form}", way, lambda: _sized(size, what, form))
        what = draw(st.sampled_from(_RECORDS))
        return _case(world, what, way, lambda: _misnamed(records, pickled, storage, what), wrong=what in _WRONG_RECORDS)

    return cases()


def _misnamed(records: dict[str, bytes], pickled: str, storage: str, what: str) -> bytes:
    changed = dict(records)
    if what == "a storage absent":
        del changed[storage]
    elif what == "a storage half":
        changed[storage] = changed[storage][: len(changed[storage]) // 2]
    elif what == "a storage twice as long":
        changed[storage] *= 2
    elif what == "no pickle":
        del changed[pickled]
    elif what == "two pickles":
        changed = {"other/data.pkl": changed[pickled], **changed}
    elif what == "a name of a parent":
        changed["../../canary"] = b"x"
    elif what == "another byte order":
        changed[next(name for name in changed if name.endswith("byteorder"))] = b"big"
    elif what == "another version":
        changed[next(name for name in changed if name.endswith("version"))] = b"99999999999999999999\n"
    elif what == "empty":
        changed = {}
    return _zipped(changed)


def _sized(size: int, what: str, form: str) -> bytes:
    if what == "elements":  # of a storage
        count, shape, stride = size, (2,), (1,)
    elif what == "shape":
        count, shape, stride = 2, (size,), (1,)
    elif what == "stride":
        count, shape, stride = 2, (2,), (size,)
    else:  # an expanded tensor
        count, shape, stride = 1, (16, size // 64), (0, 0)
    return _containers(_tensor_pickle(count, shape, stride), form)


_WRONG_RECORDS = ["a storage absent", "no pickle", "empty"]
_RECORDS = [*_WRONG_RECORDS, "a storage half", "a storage twice as long", "two pickles"]
_RECORDS += ["a name of a parent", "another byte order", "another version"]


def _saved(payload: Any) -> bytes:
    file = io.BytesIO()
    torch.save(payload, file)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    """Writes a tensor's description as torch.save does, with any figures."""

    def persistent_id(self, value: Any) -> Any:
        """A storage."""
        return value.count if isinstance(value, _Storage) else None


class _Storage:
    def __init__(self, count: int) -> None:
        self.count = ("storage", torch.FloatStorage, "0", "cpu", count)


class _Described:
    def __init__(self, *figures: Any) -> None:
        self.figures = figures

    def __reduce__(self) -> Any:
        return torch._utils._rebuild_tensor_v2, self.figures


def _tensor_pickle(count: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, protocol=2).dump(_Described(_Storage(count), 0, shape, stride, False, {}))
    return file.getvalue()


# ---- safetensors and ONNX


def exported(world: World) -> st.SearchStrategy[Case]:
    """Safetensors with wrong headers, and files that begin as ONNX does."""
    data = (world.folder / "vocoder.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    names = list(header)
    tree = {name: header[name] for name in [*names[:2], *(["__metadata__"] if "__metadata__" in header else [])]}
    places = list(places_of(tree))

    def with_header(changed: Any, length: int | None = None) -> bytes:
        text = json.dumps(changed).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + data[8 + size :]

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        how = draw(st.sampled_from(["header", "header", "length", "bytes", "metadata", "onnx"]))
        wrong = False
        if how == "header":
            mutation = draw(mutations(places, PLAIN))
            changed = mutation.applied(tree)
            whole = {**header, **changed} if isinstance(changed, dict) else changed
            made, label = with_header(whole), mutation.label
        elif how == "metadata":
            described = {key: _read(value) for key, value in header["__metadata__"].items()}
            mutation = draw(mutations(list(places_of(described)), PLAIN))
            changed = mutation.applied(described)
            texts = (
                {key: value if isinstance(value, str) else json.dumps(value) for key, value in changed.items()}
                if isinstance(changed, dict)
                else changed
            )
            made, label = with_header({**header, "__metadata__": texts}), f"metadata {mutation.label}"
        elif how == "length":
            length = draw(st.sampled_from([0, 1, 8, size - 1, size + 1, 2**31, 2**40, 2**63, 2**64 - 1]))
            made, label, wrong = with_header(header, length), f"header of {length} bytes", True
        elif how == "bytes":
            change = draw(text_mutations)
            made, label = change.applied(data), change.label
        else:
            tail = draw(st.binary(max_size=40))
            made, label, wrong = b"\x08" + tail, f"ONNX {tail.hex()}", True
        form = draw(st.sampled_from(["file.safetensors", "file.pt", "file.onnx"]))

        def write(folder: Path) -> list[str]:
            (folder / form).write_bytes(made)
            return world.speak(folder / form, "--hifigan")

        return Case(f"{form} {label}", "inference", write, wrong=wrong)

    return cases()


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
