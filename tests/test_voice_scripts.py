"""Corpora of several speakers."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from common.audio.pitch import estimate_pitch
from common.audio.wav import load_wav
from common.config import AudioConfig
from scripts.datasets.embedded_corpus import READER, make_corpus

AUDIO = AudioConfig()


def mean_pitch(folder: Path) -> float:
    """Hz, of what is voiced in a folder's recordings."""
    waves = [load_wav(path, sampling_rate=AUDIO.sampling_rate).numpy() for path in sorted(folder.glob("*.wav"))]
    pitch = np.concatenate([estimate_pitch(wave, AUDIO, n_frames=1 + len(wave) // AUDIO.hop_length) for wave in waves])
    return float(pitch[pitch > 0].mean())


def test_a_corpus_of_several_speakers_names_them_in_its_lists(tmp_path: Path):
    speakers = {name: replace(READER, pitch=pitch) for name, pitch in (("low", 20), ("high", 90))}
    make_corpus(tmp_path / "two", ["Good day.", "Good night."], speakers, n_validation=1)
    lines = [line for name in ("train.txt", "val.txt") for line in (tmp_path / "two" / name).read_text().splitlines()]
    assert sorted(lines) == [
        "wavs/high/EM-0001.wav|good day.|high",
        "wavs/high/EM-0002.wav|good night.|high",
        "wavs/low/EM-0001.wav|good day.|low",
        "wavs/low/EM-0002.wav|good night.|low",
    ]
    assert mean_pitch(tmp_path / "two/wavs/high") > 1.3 * mean_pitch(tmp_path / "two/wavs/low")
