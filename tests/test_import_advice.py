"""Recordings that no training takes are refused before lists are written, with the command that imports them."""

import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from corpus import encode_aac, glide

from common.errors import InputError
from scripts.datasets import describe_mels, make_filelists
from scripts.import_recordings import main as import_recordings


def make_corpus(folder: Path, sounds: dict[str, np.ndarray | None], rate: int = 22050, **rates: int) -> Path:
    """A corpus of clips, each of a name with a suffix and samples, by default a voice-like sound."""
    (folder / "wavs").mkdir(parents=True)
    for name, wave in sounds.items():
        own = rates.get(Path(name).stem, rate)
        soundfile.write(folder / "wavs" / name, glide(1.0, rate=own) if wave is None else wave, own)
    (folder / "metadata.csv").write_text("".join(f"{Path(name).stem}|Some text.\n" for name in sounds))
    return folder


def make_lists(monkeypatch: pytest.MonkeyPatch, corpus: Path, *words: str) -> None:
    options = ["-d", corpus, "-o", corpus / "lists", "--name", "my", "--n-val", "1", "--n-test", "0", *words]
    monkeypatch.setattr(sys, "argv", ["make_filelists", *map(str, options)])
    assert make_filelists.main() == 0


VOICE = glide(1.0)
REFUSED = {
    "stereo": ({"a.wav": np.stack([VOICE, VOICE], axis=1)}, {"rate": 44100}, r"wavs/a\.wav: 2 channels, 44100 Hz"),
    "mp3": ({"a.wav": None, "b.mp3": None}, {}, r"wavs/b\.wav: no such file, but b\.mp3 is"),
    "mp3 alone": ({"a.mp3": None, "b.mp3": None}, {}, r"wavs: no recordings \(\.wav or \.flac\)"),
    "M4A as WAV": ({"a.wav": None, "b.wav": None}, {}, r"wavs/b\.wav: a format that training does not read"),
    "two rates": (
        {"a.wav": None, "b.wav": None, "c.wav": None},
        {"b": 16000},
        r"my voice: sampling rates differ, 2 of 22050 Hz \(wavs/a\.wav\) and 1 of 16000 Hz \(wavs/b\.wav\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained_on_is_refused_before_lists_are_written(case: str, tmp_path: Path, monkeypatch):
    sounds, rates, message = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    corpus = make_corpus(Path("my voice"), sounds, **rates)
    if case == "M4A as WAV":
        encode_aac(corpus / "wavs/b.wav", np.stack([VOICE, VOICE], axis=1), 22050, "mp4")
    command = "; run bash scripts/import_recordings.sh 'my voice' 'my voice_22050'"
    with pytest.raises(InputError, match=f"{message}{command}$") as raised:
        make_lists(monkeypatch, corpus)
    assert len(str(raised.value)) < 160 and not (corpus / "lists").exists()
    words = ["describe_mels", "-d", str(corpus), "-o", str(corpus / "audio.json")]
    monkeypatch.setattr(sys, "argv", words)
    if case != "mp3":
        with pytest.raises(InputError, match=command):
            describe_mels.main()
    assert import_recordings(["my voice", "my voice_22050", "--num-workers", "1"]) == 0
    make_lists(monkeypatch, Path("my voice_22050")) if len(sounds) > 1 else None
