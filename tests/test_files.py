"""Files are whole or absent, and a file that cannot be read is named."""

import io
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from shell import ROOT

from common.audio.wav import load_wav
from common.checkpoints.loading import open_checkpoint
from common.data.filelist import read_filelist
from common.errors import InputError
from common.files import parse_yaml, read_json, read_text, write_json
from common.synthesis.phrases import read_phrases
from common.synthesis.speech import parse_prosody
from common.text.arpabet import dictionary_of_file, heteronyms_of_file
from common.text.config import TextConfig
from common.text.lexicon import read_lexicon
from common.torch_file import load_tensor, save_tensor
from fastpitch.prosody import load_custom_transform
from jasper.manifest import read_entries
from scripts.download_models import bring


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_kill_in_the_middle_of_a_write_keeps_the_old_file_and_the_next_write_cleans_up(tmp_path: Path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    code = f"""
        import sys
        from pathlib import Path
        from common.files import write_atomically
        def slow(file):
            file.write(b"x" * 100_000); file.flush()
            print("writing", flush=True)
            sys.stdin.read()
        write_atomically(Path({str(path)!r}), slow)
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, **pipes)
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert read_json(path) == {"a": 1}
    assert len(names(tmp_path)) == 2
    write_json(path, {"a": 2})
    assert names(tmp_path) == ["a.json"]
    assert read_json(path) == {"a": 2}


def test_a_view_is_saved_without_what_it_is_a_view_of(tmp_path: Path):
    whole = torch.arange(1_000_000.0)
    save_tensor(tmp_path / "a.pt", whole[10:20])
    assert (tmp_path / "a.pt").stat().st_size < 4000
    assert torch.equal(load_tensor(tmp_path / "a.pt"), whole[10:20])


def test_a_tensor_file_cut_anywhere_is_one_clear_error(tmp_path: Path):
    path = tmp_path / "a.pt"
    save_tensor(path, torch.arange(100.0))
    data = path.read_bytes()
    for size in [*range(0, len(data), 37), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(InputError, match=re.escape(f"{path}: cannot be read (")) as caught:
            load_tensor(path, where="list.txt:7")
        assert "(list.txt:7)" in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_tensor_and_one_that_is_no_tensor_are_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"b\.pt: no such file \(list\.txt:3\)"):
        load_tensor(tmp_path / "b.pt", where="list.txt:3")
    torch.save({"a": torch.zeros(2)}, tmp_path / "c.pt")
    with pytest.raises(InputError, match=r"c\.pt: holds a dict, expected one tensor"):
        load_tensor(tmp_path / "c.pt")


def _as_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "no tensor")
    return file.getvalue()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00", id="recording"),
        pytest.param(_as_archive(), id="archive"),
        pytest.param(pickle.dumps(Path("a")), id="pickle of an object"),
        pytest.param(b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}", id="array of NumPy"),
        pytest.param(b"(q", id="what an unpickler has no error of its own for"),
    ],
)
def test_a_file_of_another_kind_is_one_clear_error(tmp_path: Path, data: bytes):
    path = tmp_path / "a.pt"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_tensor(path, where="list.txt:7")
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "expected one tensor" in message and message.endswith("(list.txt:7)")
    assert "\n" not in message


READERS: dict[str, Callable[[Path], object]] = {
    "text": read_text,
    "JSON": read_json,
    "YAML": lambda path: parse_yaml(read_text(path), where=str(path)),
    "tensor": load_tensor,
    "recording": lambda path: load_wav(path, sampling_rate=None),
    "checkpoint": open_checkpoint,
    "filelist": lambda path: read_filelist(path, columns=("wav",)),
    "phrases": read_phrases,
    "prosody": lambda path: parse_prosody(read_json(path), where=str(path)),
    "lexicon": lambda path: read_lexicon(path, TextConfig(p_arpabet=1.0)),
    "dictionary": dictionary_of_file,
    "heteronyms": heteronyms_of_file,
    "transform": load_custom_transform,
    "manifest": read_entries,
}


@pytest.fixture
def never_blocks() -> Iterator[None]:
    """Opening a pipe would wait for ever; a generous limit ends it, and decides nothing else."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("reader", READERS)
def test_pipes_and_folders_are_named_and_never_opened(tmp_path: Path, reader: str, never_blocks: None):
    pipe, folder = tmp_path / "pipe.json", tmp_path / "folder.json"
    os.mkfifo(pipe)
    folder.mkdir()
    for path, kind in {pipe: "no such", folder: "a folder, expected"}.items():
        if (reader, path) == ("manifest", folder):
            continue  # a folder of recordings
        with pytest.raises(InputError, match=kind) as caught:
            READERS[reader](path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_pipe_as_a_source_of_a_download_is_named(tmp_path: Path, never_blocks: None):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no such file"):
        bring(str(tmp_path / "pipe"), tmp_path / "target", parts=tmp_path / "parts")
