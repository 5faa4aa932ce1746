"""No checkpoint or feature runs code: each call that a pickle names is refused by name, in every container."""

import io
import itertools
import pickle
import re
import zipfile
from pathlib import Path

import pytest

from common.checkpoints.loading import open_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.errors import InputError
from common.torch_file import load_tensor

CANARY = "canary"  # the file that payloads try to make in the current folder
GLOBALS = {  # of a payload that would run, and what it is called with
    "os.system": f"touch {CANARY}",
    "builtins.eval": f"open('{CANARY}', 'w')",
    "__builtin__.eval": f"open('{CANARY}', 'w')",
    "runpy.run_path": "/dev/null",
    "pathlib.Path": CANARY,
    "builtins.open": CANARY,
    "torch.load": "/dev/zero",
    "builtins.getattr": "x",
    "torch.storage._load_from_bytes": "x",
    "common.files.write_text": CANARY,
    "functools.partial": "x",
}
FORMS = ("bare", "legacy", "stored", "deflated")
MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)


def payload(name: str, *, protocol: int) -> bytes:
    """A pickled dict whose only value is the result of a call."""
    module, _, function = name.rpartition(".")
    words = [pickle.dumps(word, protocol=2)[2:-1] for word in (module, function, GLOBALS[name])]
    named = words[0] + words[1] + b"\x93" if protocol == 4 else f"c{module}\n{function}\n".encode()
    return b"\x80" + bytes([protocol]) + b"}" + b"U\x05modelq\x00" + named + words[2] + b"\x85R" + b"s."


def contained(data: bytes, form: str) -> bytes:
    """A file of torch.save with that pickle."""
    if form == "bare":
        return data
    if form == "legacy":
        head, tail = (pickle.dumps(one, protocol=2) for one in ({}, []))
        return MAGIC + pickle.dumps(1001, protocol=2) + head + data + tail
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if form == "deflated" else zipfile.ZIP_STORED) as archive:
        for name, content in {"data.pkl": data, "version": "3\n", "byteorder": "little"}.items():
            archive.writestr(f"archive/{name}", content)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("name", GLOBALS)
def test_a_pickle_that_calls_anything_is_refused_and_calls_nothing(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.pt"
    for protocol, form, read in itertools.product((2, 4), FORMS, (load_tensor, load_checkpoint, open_checkpoint)):
        path.write_bytes(contained(payload(name, protocol=protocol), form))
        with pytest.raises(InputError, match=re.escape(str(path))):
            read(path)
        assert [one.name for one in tmp_path.iterdir()] == ["a.pt"]
