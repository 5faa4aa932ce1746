"""Corpora of several speakers, and the voice that is trained on one."""

from pathlib import Path

import pytest

from scripts.datasets import make_corpus
from scripts.demos import two_speakers


def test_a_corpus_of_several_speakers_names_them_in_its_lists(tmp_path: Path):
    (tmp_path / "sentences.txt").write_text("Good day.\nGood night.\n")
    words = ["-o", str(tmp_path / "two"), "--sentences", str(tmp_path / "sentences.txt"), "--n-validation", "1"]
    make_corpus.main([*words, "--speakers", "low=20", "high=90"])
    lines = [line for name in ("train.txt", "val.txt") for line in (tmp_path / "two" / name).read_text().splitlines()]
    assert sorted(lines) == [
        "wavs/high/EM-0001.wav|good day.|high",
        "wavs/high/EM-0002.wav|good night.|high",
        "wavs/low/EM-0001.wav|good day.|low",
        "wavs/low/EM-0002.wav|good night.|low",
    ]
    high, low = (sorted((tmp_path / "two" / "wavs" / name).glob("*.wav")) for name in ("high", "low"))
    assert two_speakers.mean_pitch(high) > 1.3 * two_speakers.mean_pitch(low)
    with pytest.raises(SystemExit):
        make_corpus.main([*words, "--speakers", "low=200"])


@pytest.mark.slow
def test_two_speakers_trained_without_durations_are_told_apart_by_their_mean_pitch(tmp_path: Path, capfd):
    assert two_speakers.main(["-o", str(tmp_path), "--n-sentences", "40", "--n-phrases", "3"]) == 0
    out = capfd.readouterr().out
    assert "low    recorded" in out
    assert "high   recorded" in out
