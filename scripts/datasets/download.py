"""Brings an archive from a URL or a local path and unpacks it: interrupted downloads resume, checksums are verified.

    python -m scripts.datasets.download https://example.org/a.tar.bz2 -o corpus --member metadata.csv --sha256 be1a...

makes ``corpus`` the folder in the archive that holds ``metadata.csv``.
"""

import http.client
import shutil
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from pathlib import Path

from common import files
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.files import check_file, check_output_file, make_folder, writing
from common.progress import progress

BLOCK = 1 << 20  # bytes
TIMEOUT = 60  # s without any data
_ARCHIVES = tuple(suffix for _, suffixes, _ in shutil.get_unpack_formats() for suffix in suffixes)


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
    """Unpack a zip or a tar into ``folder``, outside of which nothing is written.

    Raises InputError where the archive is broken, or a tar holds a path that leads out of the folder.
    """
    # Pythons before 3.10.12 and 3.11.4 have no filters; there the checksum has to vouch for the archive.
    is_tar = not archive.name.lower().endswith(".zip")
    options = {"filter": "data"} if is_tar and hasattr(tarfile, "data_filter") else {}
    print(f"unpacking {archive}", file=sys.stderr)
    try:
        shutil.unpack_archive(archive, folder, **options)  # by Python, as a fresh Debian has no bzip2
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        raise InputError(f"{archive}: cannot be unpacked into {folder} ({error})") from error


def bring(source: str, folder: Path, *, parts: Path, sha256: str | None = None, name: str = "") -> None:
    """Put what a URL or path holds into ``folder``: a file, or all of a folder or an archive.

    ``name`` is the file's where its address does not end in it. What has arrived is kept in ``parts`` until all has.

    Raises:
        InputError: it cannot be read or unpacked, or its checksum is not ``sha256`` (hexadecimal).
    """
    path = Path(source.removeprefix("file://"))
    if path.is_dir():
        shutil.copytree(path, folder, dirs_exist_ok=True)
        return
    if "://" in source.removeprefix("file://"):
        path = parts / (name or Path(urllib.parse.unquote(urllib.parse.urlparse(source).path)).name)
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
    finally:
        shutil.rmtree(parts, ignore_errors=True)  # resuming from a file that is broken would never help


def bring_member(source: str, output: Path, *, member: str, sha256: str | None = None) -> None:
    """Make ``output`` the one folder called ``member`` in an archive, or the folder of the file called so.

    Raises InputError where there is no such member, and as `bring`.
    """
    unpacked, parts = (output.with_name(f".{output.name}.{end}") for end in ("unpacked", "download"))
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        bring(source, unpacked, parts=parts, sha256=sha256)
        found = [*unpacked.glob(member), *unpacked.glob(f"*/{member}")]
        if len(found) != 1:
            raise InputError(f"{source}: expected one {member} in it, found {len(found)}")
        with writing(output):
            (found[0] if found[0].is_dir() else found[0].parent).replace(output)
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)


def main() -> None:
    """Bring one archive."""
    parser = ArgumentParser(description="download and unpack an archive")
    parser.add_argument("source", help="URL or path of a tar or zip")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to make")
    parser.add_argument("--member", required=True, help="folder in the archive to take, or a file in that folder")
    parser.add_argument("--sha256", help="the archive's checksum, in hexadecimal")
    args = parser.parse_args()
    bring_member(args.source, args.output, member=args.member, sha256=args.sha256)


if __name__ == "__main__":
    run(main)
