"""Fetches one file from a URL or a local path: interrupted downloads resume, and the checksum is verified.

python -m scripts.datasets.download https://example.org/corpus.tar.bz2 -o corpus.tar.bz2 --sha256 be1a...
"""

import http.client
import shutil
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path

from common import files
from common.cli import ArgumentParser, run
from common.errors import InputError, OutputError
from common.files import check_file, check_output_file, writing
from common.progress import progress

BLOCK = 1 << 20  # bytes
TIMEOUT = 60  # s without any data


def fetch(source: str, target: Path, *, sha256: str | None = None) -> None:
    """Make ``target`` the file that ``source`` (URL or path) holds; nothing is done if that exists.

    What has arrived stands in ``<target>.part`` and is kept when the connection breaks; the next call resumes
    there. Raises InputError if the source cannot be read or has another checksum than ``sha256`` (hexadecimal).
    """
    if target.is_file():
        _verify(target, sha256)
        return
    check_output_file(target)
    part = target.with_name(target.name + ".part")
    if "://" in source:
        _download(source, part)
    else:
        check_file(Path(source))
        with writing(part):
            shutil.copyfile(source, part)
    try:
        _verify(part, sha256)
    except InputError:
        part.unlink()  # resuming from broken data would never help
        raise
    part.replace(target)


def _download(url: str, part: Path) -> None:
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            if response.status != http.client.PARTIAL_CONTENT:  # the server sends the complete file
                done = 0
            size = response.headers.get("Content-Length")
            total = done + int(size) if size else None
            blocks = None if total is None else -(-total // BLOCK)
            with part.open("ab" if done else "wb") as file, progress(total=blocks, desc=part.stem, unit="MiB") as bar:
                bar.update(done // BLOCK)
                while block := response.read(BLOCK):
                    with writing(part, "; make room and run again to resume"):
                        file.write(block)
                        file.flush()
                    bar.update()
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and done:
            return  # the part is complete already; its checksum decides
        raise InputError(f"{url}: the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(
            f"{url}: cannot be downloaded ({reason}); is this machine offline? Run again to resume, or give the path "
            "of a file that you have"
        ) from error
    if total is not None and part.stat().st_size < total:
        raise InputError(f"{url}: the connection broke at {part.stat().st_size} of {total} bytes; run again to resume")


def _verify(path: Path, sha256: str | None) -> None:
    if sha256 is not None and (found := files.sha256(path)) != sha256.lower():
        raise InputError(f"{path}: SHA-256 is {found}, expected {sha256}; delete the file and try again")


def is_archive(name: str) -> bool:
    """Whether a file's name says that `unpack` can unpack it."""
    suffixes = [suffix for _, suffixes, _ in shutil.get_unpack_formats() for suffix in suffixes]
    return name.lower().endswith(tuple(suffixes))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or a tar into ``folder``, outside of which nothing is written.

    Raises:
        InputError: the archive is broken, or a tar holds a path that leads out of the folder.
        OutputError: the folder cannot be written.
    """
    # Pythons before 3.10.12 and 3.11.4 have no filters; there the checksum has to vouch for the archive.
    is_tar = not archive.name.lower().endswith(".zip")
    options = {"filter": "data"} if is_tar and hasattr(tarfile, "data_filter") else {}
    print(f"unpacking {archive}", file=sys.stderr)
    try:
        shutil.unpack_archive(archive, folder, **options)  # by Python, as a fresh Debian has no bzip2
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not of what is in the archive
            raise OutputError(f"{folder}: {archive} cannot be unpacked there ({error.strerror})") from error
        raise InputError(f"{archive}: cannot be unpacked ({error}); delete it and try again") from error


def main() -> int:
    """Fetch one file, and unpack it if asked."""
    parser = ArgumentParser(description="fetch a file from a URL or a local path")
    parser.add_argument("source", help="URL or path")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where the file shall stand")
    parser.add_argument("--sha256", help="its checksum, in hexadecimal")
    parser.add_argument("--unpack", type=Path, metavar="FOLDER", help="unpack the file, a tar or zip, into this folder")
    args = parser.parse_args()
    fetch(args.source, args.output, sha256=args.sha256)
    if args.unpack is not None:
        unpack(args.output, args.unpack)
    return 0


if __name__ == "__main__":
    run(main)
