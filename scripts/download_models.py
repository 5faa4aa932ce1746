"""Puts trained models into ``pretrained_models/<model>/``, or a corpus into a folder, from a URL or a path.

A source is a checkpoint, an archive (zip or tar) or a folder. Models are verified by opening them, since the published
ones have no checksums.
"""

import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common import files
from common.cli import ArgumentParser, run
from common.errors import CheckpointError, InputError, OptionError
from common.files import check_file, make_folder, read_lines, writing
from common.progress import progress
from common.registry import get_model

BLOCK = 1 << 20  # bytes
TIMEOUT = 60  # s without any data
_ARCHIVES = tuple(suffix for _, suffixes, _ in shutil.get_unpack_formats() for suffix in suffixes)
_BROKEN = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error)  # of an archive


_NGC = "https://api.ngc.nvidia.com/v2/models/nvidia/"
_ROWS = (line.split("\t") for line in read_lines(Path(__file__).with_name("published_models.tsv")))
PUBLISHED = {name: (model, _NGC + path, file) for name, model, path, file in _ROWS}  # model, address, checkpoint's name


def fetch(url: str, target: Path) -> None:
    """Download a URL to ``target``, resuming an earlier call; raise InputError or OutputError."""
    make_folder(target.parent)
    done = target.stat().st_size if target.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            if response.status != http.client.PARTIAL_CONTENT:  # the server sends the complete file
                done = 0
            size = done + int(response.headers.get("Content-Length", 0))
            with target.open("ab" if done else "wb") as file, progress(desc=target.name, unit="MiB") as bar:
                bar.total = -(-(size - done) // BLOCK) or None
                while block := response.read(BLOCK):
                    with writing(target, "; free some space and run again to resume"):
                        file.write(block)
                        file.flush()
                    bar.update()
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and done:
            return  # the file is complete already; its checksum decides
        raise InputError(f"{url}: the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        hint = "is this machine offline? Run again to resume, or give the path of a file that you have"
        raise InputError(f"{url}: cannot be downloaded ({reason}); {hint}") from error
    if (found := target.stat().st_size) < size:
        raise InputError(f"{url}: the connection broke at {found} of {size} bytes; run again to resume")


def bring(source: str, folder: Path, *, parts: Path, sha256: str | None = None) -> None:
    """Copy a file, or the contents of a folder or an archive, from a URL or path into ``folder``.

    A partial download is kept in ``parts`` until it's complete.

    Raises:
        InputError: it cannot be read or unpacked, or its checksum is not ``sha256`` (hexadecimal).
    """
    path = Path(source.removeprefix("file://"))
    if path.is_dir():
        shutil.copytree(path, folder, dirs_exist_ok=True)
        return
    if "://" in source.removeprefix("file://"):
        remote = Path(urllib.parse.unquote(urllib.parse.urlparse(source).path))
        path = parts / (f"{remote.parent.name}.zip" if remote.name == "zip" else remote.name)
        fetch(source, path)
    check_file(path)
    try:
        if sha256 is not None and (found := files.sha256(path)) != sha256.lower():
            raise InputError(f"{path}: SHA-256 is {found}, expected {sha256}")
        if not path.name.lower().endswith(_ARCHIVES):
            make_folder(folder)
            shutil.copyfile(path, folder / path.name)
            return
        # Pythons before 3.10.12 and 3.11.4 have no filters.
        safe = hasattr(tarfile, "data_filter") and not path.name.lower().endswith(".zip")
        shutil.unpack_archive(path, folder, **{"filter": "data"} if safe else {})
    except _BROKEN as error:
        raise InputError(f"{path}: cannot be unpacked into {folder} ({error})") from error
    finally:
        shutil.rmtree(parts, ignore_errors=True)  # resuming a broken file would never succeed


@contextmanager
def brought(sources: Sequence[str], target: Path, *, sha256: str | None) -> Iterator[Path]:
    """Yield a temporary folder next to ``target`` with the contents of the sources; raises the errors of `bring`."""
    make_folder(target.parent)
    parts = target.with_name(f".{target.name}.download")  # kept for resuming
    with writing(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
        folder = Path(temporary) / target.name
        for number, source in enumerate(sources):
            bring(source, folder, parts=parts, sha256=None if number else sha256)
        yield folder


def bring_member(source: str, output: Path, *, member: str, sha256: str | None = None) -> None:
    """Extract the folder ``member`` of an archive, or the folder that contains the file ``member``, as ``output``.

    Raises InputError if there isn't exactly one such member, and the errors of `bring`.
    """
    with brought([source], output, sha256=sha256) as fresh:
        found = [*fresh.glob(member), *fresh.glob(f"*/{member}")]
        if len(found) != 1:
            raise InputError(f"{source}: expected one {member} in it, found {len(found)}")
        (found[0] if found[0].is_dir() else found[0].parent).replace(output)


def bring_model(name: str, output: Path, *, sources: Sequence[str], sha256: str | None) -> None:
    """Put a model, by default the published one, into its folder below ``output`` unless it's already there.

    Raises CheckpointError if none of the files is a checkpoint of the model, and the errors of `bring`.
    """
    from common.checkpoints.reading import load_checkpoint  # --help needs no PyTorch

    model, address, file = PUBLISHED[name]
    folder = output / get_model(model).option  # where the scripts look
    if not sources and any(folder.rglob(file)):
        print(f"{folder} already has it")
        return
    with brought(sources or [address], folder, sha256=sha256) as fresh:
        problems = []
        for path in sorted(path for path in fresh.rglob("[!.]*") if path.is_file()):
            try:
                if load_checkpoint(path).model == model:
                    break
            except InputError as error:
                problems.append(str(error).replace(f"{fresh}/", ""))
        else:
            raise CheckpointError(f"no checkpoint of {model} in it; {'; '.join(problems)}")
        shutil.copytree(fresh, folder, dirs_exist_ok=True, copy_function=os.replace)
    print(f"{folder}: {model}")


def main(argv: Sequence[str] | None = None) -> None:
    """Download each model."""
    parser = ArgumentParser(
        prog="download_models.sh",
        description="Put trained models into pretrained_models/: the published ones, or yours from a URL or path.",
    )
    add = parser.add_argument
    add("models", nargs="+", choices=PUBLISHED, metavar="model", help=", ".join(PUBLISHED))
    add("--source", nargs="+", default=[], help="URLs or paths: a checkpoint, an archive or a folder; its config.json")
    add("--sha256", help="checksum of the first source, in hexadecimal")
    add("-o", "--output", type=Path, default=Path("pretrained_models"), help="folder of the models")
    args = parser.parse_args(argv)
    if (args.source or args.sha256) and len(args.models) > 1:
        raise OptionError("--source and --sha256 are for one model; download each model separately")
    for name in args.models:
        bring_model(name, args.output, sources=args.source, sha256=args.sha256)


if __name__ == "__main__":
    run(main)
