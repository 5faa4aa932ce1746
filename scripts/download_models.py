"""Puts trained models into ``pretrained_models/<model>/``, or a corpus into a folder, from a URL or a path.

    python -m scripts.download_models hifigan --source https://example.org/g_02500000 https://example.org/config.json
    python -m scripts.download_models corpus --source https://example.org/a.tar.bz2 -o my_voice --member metadata.csv

A source is a checkpoint, an archive (zip or tar) or a folder. Interrupted downloads resume, and checksums are
verified. No checksums of the published models were published: they are verified by opening them.
"""

import http.client
import os
import re
import shutil
import sys
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
from typing import NamedTuple

from common import files
from common.cli import ArgumentParser, run
from common.errors import CheckpointError, InputError, OptionError
from common.files import check_file, check_output_file, make_folder, read_lines, writing
from common.progress import progress
from common.registry import get_model

BLOCK = 1 << 20  # bytes
TIMEOUT = 60  # s without any data
_ARCHIVES = tuple(suffix for _, suffixes, _ in shutil.get_unpack_formats() for suffix in suffixes)


class PublishedModel(NamedTuple):
    """A checkpoint that its owners offer for download."""

    model: str
    address: str
    file: str | None = None  # name of the checkpoint; None: not known


_NGC = "https://api.ngc.nvidia.com/v2/models/nvidia/"
# Name, model, address and, if it is known, file of each.
_ROWS = (line.split("\t") for line in read_lines(Path(__file__).with_name("published_models.tsv")))
PUBLISHED = {name: PublishedModel(model, _NGC + path, *file) for name, model, path, *file in _ROWS}
# Files next to checkpoints that are none.
NO_CHECKPOINT = (".json", ".sha256", ".txt", ".md", ".yaml", ".yml")


def fetch(url: str, target: Path) -> None:
    """Make ``target`` the file at a URL; what stands there already is what an earlier call brought of it.

    Raises InputError if it cannot be downloaded, and OutputError if it cannot be written; the next call resumes.
    """
    check_output_file(target)
    done, size = target.stat().st_size if target.exists() else 0, 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            if response.status != http.client.PARTIAL_CONTENT:  # the server sends the complete file
                done = 0
            size = done + int(response.headers.get("Content-Length", 0))
            with target.open("ab" if done else "wb") as file, progress(desc=target.name, unit="MiB") as bar:
                bar.total = -(-size // BLOCK) or None
                bar.update(done // BLOCK)
                while block := response.read(BLOCK):
                    with writing(target, "; make room and run again to resume"):
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


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or a tar into ``folder``, outside of which nothing is written; raises InputError if it is broken."""
    # Pythons before 3.10.12 and 3.11.4 have no filters; there the checksum has to vouch for the archive.
    is_tar = not archive.name.lower().endswith(".zip")
    options = {"filter": "data"} if is_tar and hasattr(tarfile, "data_filter") else {}
    print(f"unpacking {archive}", file=sys.stderr)
    try:
        shutil.unpack_archive(archive, folder, **options)  # by Python, as a fresh Debian has no bzip2
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        raise InputError(f"{archive}: cannot be unpacked into {folder} ({error})") from error


def bring(source: str, folder: Path, *, parts: Path, sha256: str | None = None) -> None:
    """Put what a URL or path holds into ``folder``: a file, or all of a folder or an archive.

    What has arrived is kept in ``parts`` until all has.

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
        if path.name.lower().endswith(_ARCHIVES):
            unpack(path, folder)
        else:
            make_folder(folder)
            shutil.copyfile(path, folder / path.name)
            if (config := path.with_name("config.json")).is_file():  # the authors' checkpoints need theirs
                shutil.copyfile(config, folder / config.name)
    finally:
        shutil.rmtree(parts, ignore_errors=True)  # resuming from a file that is broken would never help


@contextmanager
def brought(sources: Sequence[str], target: Path, *, sha256: str | None) -> Iterator[Path]:
    """A temporary folder beside ``target`` with what the sources hold; raises as `bring`."""
    make_folder(target.parent)
    parts = target.with_name(f".{target.name}.download")  # what an interrupted download resumes from
    with writing(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
        folder = Path(temporary) / target.name
        for number, source in enumerate(sources):
            bring(source, folder, parts=parts, sha256=None if number else sha256)
        yield folder


def bring_member(source: str, output: Path, *, member: str, sha256: str | None = None) -> None:
    """Make ``output`` the one folder called ``member`` in an archive, or the folder of the file called so.

    Raises InputError where there is no such member, and as `bring`.
    """
    with brought([source], output, sha256=sha256) as fresh:
        found = [*fresh.glob(member), *fresh.glob(f"*/{member}")]
        if len(found) != 1:
            raise InputError(f"{source}: expected one {member} in it, found {len(found)}")
        (found[0] if found[0].is_dir() else found[0].parent).replace(output)
    n_recordings = sum(path.suffix in (".wav", ".flac") for path in output.rglob("*"))
    print(f"{output}: {n_recordings} recordings")


def bring_model(name: str, output: Path, *, sources: Sequence[str], sha256: str | None) -> None:
    """Bring a model into its folder below ``output``, where it stands only once a checkpoint of it is there.

    Without sources it is the published one, unless it is there already. Raises as `bring` and `describe`.
    """
    published = PUBLISHED[name]
    folder = output / get_model(published.model).option  # where the scripts look
    if not sources and any(folder.rglob(published.file or "*.pt")):
        describe(folder, model=published.model, shown_as=folder)
        return
    if not sources:
        print(f"{published.address}: no checksum was published; verified by opening it")
    with brought(sources or [published.address], folder, sha256=sha256) as fresh:
        describe(fresh, model=published.model, shown_as=folder)
        shutil.copytree(fresh, folder, dirs_exist_ok=True, copy_function=os.replace)


def describe(folder: Path, *, model: str, shown_as: Path) -> None:
    """Open the checkpoints below ``folder`` and print a line on each; raises CheckpointError if none is ``model``'s."""
    from common.checkpoints.reading import load_checkpoint

    models = set()
    for path in sorted(folder.rglob("[!.]*")):
        if not path.is_file() or path.suffix.lower() in NO_CHECKPOINT:
            continue
        name = shown_as / path.relative_to(folder)
        try:
            checkpoint = load_checkpoint(path)
        except InputError as error:
            print(f"note: {str(error).replace(str(path), str(name))}")
            continue
        models.add(checkpoint.model)
        print(f"{name}: {checkpoint.model} ({', '.join(checkpoint.networks)}), {checkpoint.audio.sampling_rate} Hz")
    if model not in models:
        raise CheckpointError(f"{shown_as}: no checkpoint of {model}")


def main(argv: Sequence[str] | None = None) -> int:
    """Bring each model, or describe what exists already; or bring a corpus."""
    parser = ArgumentParser(
        prog="download_models.sh",
        description="Put trained models into pretrained_models/: the published ones, or yours from a URL or path.",
        epilog="Instead of --source and --sha256, set FASTPITCH_SOURCE, HIFIGAN_SOURCE (and ..._SHA256) in the "
        "environment; then several models can be named at once.",
    )
    add = parser.add_argument
    text = f"{', '.join(PUBLISHED)}; or corpus, which takes --source and --member"
    add("models", nargs="+", choices=(*PUBLISHED, "corpus"), metavar="model", help=text)
    add("--source", nargs="+", help="URLs or paths: a checkpoint, an archive or a folder; its config.json")
    add("--sha256", help="checksum of the first source, in hexadecimal")
    add("-o", "--output", type=Path, default=Path("pretrained_models"), help="folder of the models")
    add("--member", help="of a corpus: folder in the archive to take as --output, or a file in that folder")
    args = parser.parse_args(argv)
    if (args.source or args.sha256) and len(args.models) > 1:
        raise OptionError("--source and --sha256 are of one model; name the others in calls of their own")
    for name in args.models:
        if name == "corpus":
            bring_member(args.source[0], args.output, member=args.member, sha256=args.sha256)
            continue
        variable = re.sub(r"\W", "_", name).upper()
        sources = args.source or [*filter(None, [os.environ.get(f"{variable}_SOURCE")])]
        sha256 = args.sha256 or os.environ.get(f"{variable}_SHA256") or None
        bring_model(name, args.output, sources=sources, sha256=sha256)
    return 0


if __name__ == "__main__":
    run(main)
