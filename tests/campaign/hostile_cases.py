"""Checkpoints and features that would run code, and that are damaged."""

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from harness import CANARY, Case
from hypothesis import strategies as st
from values import text_mutations
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
    "getattr": (b"builtins", b"getattr", "x"),
    "storage": (b"torch.storage", b"_load_from_bytes", "x"),
    "our package": (b"common.files", b"write_text", CANARY),
    "dotted": (b"common", b"files.os.system", f"touch {CANARY}"),
    "copyreg": (b"copyreg", b"_reconstructor", "x"),
    "functools": (b"functools", b"partial", "x"),
}
WAYS = ("pt", "hifigan", "features", "resume", "convert", "inspect")
FORMS = ("bare", "legacy", "stored", "deflated", "TorchScript")
WHOLE_FILES = ("empty file", "PNG", "gzip", "UTF-16", "zero bytes")
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
    """Pickles that call something, in every container and through every way in."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        way, name = draw(st.sampled_from(WAYS)), draw(st.sampled_from(list(GLOBALS)))
        protocol, form = draw(st.sampled_from([2, 4])), draw(st.sampled_from(FORMS))
        label = f"{name}, protocol {protocol}, {form}"
        return _case(world, label, way, lambda: _containers(_payload(name, protocol=protocol), form))

    return cases()


def containers(world: World) -> st.SearchStrategy[Case]:
    """Checkpoints and a feature whose bytes are changed."""
    names = {"pt": "voice.pt", "hifigan": "vocoder.pt", "inspect": "fastpitch_1_1.pt", "features": "mel.pt"}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        way, form, mutation = (
            draw(st.sampled_from(list(names))),
            draw(st.sampled_from(["zip", "legacy"])),
            draw(changes),
        )

        def make() -> bytes:
            file = io.BytesIO()
            payload = torch.load(world.folder / names[way], weights_only=True)
            torch.save(payload, file, _use_new_zipfile_serialization=form == "zip")
            return mutation.applied(file.getvalue())

        return _case(world, f"{form} {mutation.label}", way, make, wrong=mutation.at < 0.9)

    changes = text_mutations.filter(lambda one: one.name in ("truncated", *WHOLE_FILES))
    return cases()
