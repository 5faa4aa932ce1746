"""Corpora and models come whole or not at all, from a server, an archive or a folder."""

import http.server
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from conftest import SHARED
from limits import HANG_LIMIT

from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig
from common.errors import CheckpointError, InputError, OptionError
from common.text.config import TextConfig
from fastpitch.config import ModelConfig
from scripts.download_models import PUBLISHED, bring, bring_member, fetch, main as download_models


class RangeServer(http.server.BaseHTTPRequestHandler):
    """Serves ``content``, ranges included, and breaks each connection after ``limit`` bytes."""

    content = bytes(range(256)) * 4000
    limit = 10**9
    requests: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.requests.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        is_there = self.path in ("/file", "/zip")
        if not is_there or start >= len(self.content):
            self.send_error(416 if is_there else 404)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start : start + self.limit])

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, type[RangeServer]]]:
    monkeypatch.setattr("scripts.download_models.TIMEOUT", HANG_LIMIT)
    handler = type("Handler", (RangeServer,), {"requests": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", handler
        running.shutdown()
        thread.join()


def test_an_interrupted_download_resumes_where_it_broke(tmp_path: Path, server: tuple[str, type[RangeServer]]):
    url, handler = server
    target, parts, digest = tmp_path / "new", tmp_path / "parts", sha256(RangeServer.content).hexdigest()
    handler.limit = 600_000
    with pytest.raises(InputError, match="run again to resume"):
        bring(f"{url}/file", target, parts=parts, sha256=digest)
    assert not target.exists()
    fetch(f"{url}/file", parts / "file")
    bring(f"{url}/file", target, parts=parts, sha256=digest)  # it is complete already
    assert (target / "file").read_bytes() == RangeServer.content
    assert handler.requests == [None, "bytes=600000-", "bytes=1024000-"] and not parts.exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{url}/file", r"parts/file: SHA-256 is [0-9a-f]{64}, expected abcd"),
        ("{url}/other", "/other: the server answers 404"),
        ("http://127.0.0.1:1/file", r"cannot be downloaded \(.*is this machine offline\?"),
        ("/absent.tar", r"absent\.tar: no such file"),
    ],
)
def test_a_source_that_is_not_what_it_should_be_is_one_clear_line_and_not_kept(
    tmp_path: Path, server: tuple[str, type[RangeServer]], source: str, message: str
):
    with pytest.raises(InputError, match=message):
        bring(source.format(url=server[0]), tmp_path / "out", parts=tmp_path / "parts", sha256="abcd")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_folder_of_an_archive_is_taken_whole_or_not_at_all(tmp_path: Path):
    archive, output = tmp_path / "corpus.tar.bz2", tmp_path / "corpus"
    with tarfile.open(archive, "w:bz2") as tar:
        member = tarfile.TarInfo("LJSpeech-1.1/metadata.csv")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"a|b\n"))
    with pytest.raises(InputError, match=r"corpus\.tar\.bz2: expected one recordings in it, found 0"):
        bring_member(str(archive), output, member="recordings")
    bring_member(archive.as_uri(), output, member="metadata.csv")
    assert (output / "metadata.csv").read_text() == "a|b\n"
    zipped = write_zip(tmp_path / "a.zip", {"recordings/b.wav": b"b", "../b": b"b"})
    bring_member(str(zipped), tmp_path / "fsdd/recordings", member="recordings")
    assert [path.name for path in (tmp_path / "fsdd").rglob("*")] == ["recordings", "b.wav"]
    for path in (archive, zipped):
        path.write_bytes(path.read_bytes()[:40])
        with pytest.raises(InputError, match=rf"{path.name}: cannot be unpacked"):
            bring_member(str(path), tmp_path / "broken", member="recordings")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "corpus", "corpus.tar.bz2", "fsdd"]


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    """A checkpoint of a tiny FastPitch."""
    config = ModelConfig(symbols_embedding_dim=8, in_fft_output_size=8, out_fft_output_size=8)
    networks = {"fastpitch": {"proj.bias": torch.zeros(80)}}
    checkpoint = Checkpoint("FastPitch", config, AudioConfig(), TextConfig(), networks)
    save_checkpoint(tmp_path / "from" / "voice.pt", checkpoint)
    return tmp_path / "from" / "voice.pt"


def test_a_model_is_copied_unpacked_verified_and_described(tmp_path: Path, voice: Path, capsys: pytest.CaptureFixture):
    output = tmp_path / "models"
    archive = write_zip(tmp_path / "voice.zip", {"v1/voice.pt": voice.read_bytes(), "v1/LICENSE.txt": b"free"})
    digest = sha256(archive.read_bytes()).hexdigest()
    download_models(["fastpitch", "--source", str(archive), "--sha256", digest, "-o", str(output)])
    assert (output / "fastpitch" / "v1" / "voice.pt").read_bytes() == voice.read_bytes()
    assert capsys.readouterr().out.splitlines() == [f"{output}/fastpitch: FastPitch"]
    assert [path.name for path in output.iterdir()] == ["fastpitch"], "nothing else stays"
    voice.with_name("config.json").write_text("{}")
    download_models(["fastpitch", "--source", str(voice), str(voice.with_name("config.json")), "-o", str(output)])
    assert {path.name for path in (output / "fastpitch").iterdir()} == {"v1", "voice.pt", "config.json"}


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["hifigan", "fastpitch", "--source", "a"], OptionError, "--source and --sha256 are for one model"),
        (["hifigan", "--source", "{voice}"], CheckpointError, r"no checkpoint of HiFi-GAN"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_clear_line_and_leaves_nothing_behind(
    tmp_path: Path, voice: Path, words: list[str], error: type[InputError], message: str
):
    with pytest.raises(error, match=message):
        download_models([word.format(voice=voice) for word in words] + ["-o", str(tmp_path / "models")])
    assert not list((tmp_path / "models").glob("[!.]*"))


def test_every_published_model_has_its_name_file_and_address():
    facts = SHARED / "originals" / "published_models.json"
    if not facts.is_file():
        pytest.skip(f"{facts}: not there")
    for name, fact in json.loads(facts.read_text()).items():
        _, address, file = PUBLISHED[name]
        assert (file, address) == (fact["file"] or "*.pt", fact["address"]), name
