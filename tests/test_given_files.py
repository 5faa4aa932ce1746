"""What is given as a file is looked at before it is opened, and what stands in lists is refused by its line."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.audio.wav import load_wav
from common.checkpoints.loading import open_checkpoint
from common.data.filelist import read_filelist
from common.errors import InputError
from common.files import parse_yaml, read_json, read_text
from common.synthesis.phrases import read_phrases
from common.synthesis.speech import parse_prosody
from common.text.arpabet import dictionary_of_file, heteronyms_of_file
from common.text.config import TextConfig
from common.text.lexicon import read_lexicon
from common.torch_file import load_tensor
from fastpitch.prosody import load_custom_transform
from jasper.manifest import read_entries
from scripts.download_models import bring

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


@pytest.mark.parametrize("name", ["../a.wav", "/tmp/a.wav"])
def test_an_output_that_cannot_be_is_refused_and_not_echoed(tmp_path: Path, name: str):
    path = tmp_path / "list.txt"
    path.write_text(f"{name}|Some text.\n")
    with pytest.raises(InputError, match=r"list\.txt:1") as caught:
        read_phrases(path)
    assert str(caught.value).isprintable()


def test_a_pipe_as_a_source_of_a_download_is_named(tmp_path: Path, never_blocks: None):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no such file"):
        bring(str(tmp_path / "pipe"), tmp_path / "target", parts=tmp_path / "parts")
