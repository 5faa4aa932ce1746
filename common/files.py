"""Atomic writes, and reads whose errors name the file."""

import codecs
import fcntl
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from common.errors import InputError, OptionError, OutputError, at

_BLOCK = 1 << 20  # bytes


@contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Turn an OSError in the block into an OutputError that names ``path``; ``hint`` says what to do."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{error}{hint}") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}){hint}") from error


def make_folder(path: Path, hint: str = "") -> None:
    """Create a folder and its parents if they are missing; same errors as `writing`."""
    with writing(path, hint):
        path.mkdir(parents=True, exist_ok=True)


def lock_folder(folder: Path) -> TextIO:
    """Lock ``folder`` for this process until the returned file is closed; forked processes don't inherit the lock.

    Does nothing on file systems without locks. Raises OutputError if another process holds the lock, or as `writing`.
    """
    path = folder / ".lock"
    with writing(path):
        file = path.open("a", encoding="utf-8")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError | PermissionError):  # other errors: no locks here
            raise OutputError(f"{folder}: another process is writing to it; stop it or use another folder") from error
    return file


def check_output_file(path: Path) -> None:
    """Create a file's folder, and check early that the file can be written; same errors as `write_atomically`."""
    with writing(path):
        tempfile.TemporaryFile(dir=_target(path).parent).close()


def write_atomically(
    path: Path, write: Callable[[BinaryIO], object], *, durable: bool = True, shared: bool = False
) -> None:
    """Let ``write`` fill a temporary file, then rename it to ``path``, so that ``path`` is never incomplete.

    With ``shared``, several processes may write the same path at once; the last one wins. A kill can leave
    ``.<name>.tmp`` behind. ``durable=False`` skips fsync, for thousands of small files; a power failure may then lose
    the newest. Same errors as `writing`.
    """
    with writing(path):
        target = _target(path)
        temporary = target.with_name(f".{target.name}{f'.{uuid.uuid4().hex}' if shared else ''}.tmp")
        try:
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            if isinstance(error, RuntimeError) and error.__context__ is not None:
                raise error.__context__ from None  # which PyTorch's writer hides
            raise


def _target(path: Path) -> Path:
    """Return the file that ``path`` names, following links, and create its folder; raises OSError for other kinds."""
    with suppress(FileNotFoundError):  # from Python 3.14 on, path.exists() hides other errors too
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError("a folder or device is there, not a file")
    target = path.resolve() if path.is_symlink() else path
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def check_apart(written: Iterable[tuple[str, Path]], read: Iterable[tuple[str, Path]] = ()) -> None:
    """Raise OptionError if a file is in ``written`` twice, or also in ``read``; pairs are (name for messages, path)."""
    names = {os.path.realpath(path): name for name, path in read}
    for name, path in written:
        key = os.path.realpath(path)
        if key in names and not path.is_dir():
            raise OptionError(f"{name} {path}: {names[key]} names the same file; give another one")
        names[key] = name


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text to ``path`` atomically."""
    write_atomically(path, lambda file: file.write(text.encode("utf-8")))


def write_json(path: Path, value: Any) -> None:
    """Write plain types to ``path`` as JSON, atomically."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, *, kind: str = "file") -> Any:
    """Read JSON; raises an InputError that names the place if the file is missing or isn't JSON."""
    try:
        return json.loads(read_text(path, kind=kind))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg})") from error


def parse_yaml(text: str, *, where: str) -> Any:
    """Parse YAML of plain types; other text raises an InputError that begins with ``where``."""
    import yaml  # here, because few commands need it

    class Loader(yaml.SafeLoader):
        """Reads 1e-5 as a number; in YAML 1.1, it's a string."""

    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )
    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date
        raise InputError(f"{where}: not YAML ({' '.join(str(error).split())})") from error


def check_file(path: Path, *, kind: str = "file", where: str = "", error: type[InputError] = InputError) -> None:
    """Raise ``error``, with ``where`` (``list.txt:7``), if a path isn't a regular file."""
    if not path.is_file():
        found = f"a folder, expected a {kind}" if path.is_dir() else f"no such {kind}"
        raise error(f"{path}: {found}{at(where)}")


def read_text(path: Path, *, kind: str = "file") -> str:
    """Read a text file, or standard input for ``-``, as UTF-8, or as UTF-16 if it has a byte order mark."""
    if path != Path("-"):
        check_file(path, kind=kind)
    data = sys.stdin.buffer.read() if path == Path("-") else path.read_bytes()
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = error.start - data.rfind(b"\n", 0, error.start)
        raise InputError(f"{path}:{line}: byte {byte} is not UTF-8; save the {kind} as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path) -> list[str]:
    """Read lines of text; same errors as `read_text`."""
    return read_text(path).removesuffix("\n").split("\n")  # splitlines() would also split within texts


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
