"""The quickstart: a voice that has not learned to speak fails it, and a run that was stopped resumes."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from shell import ROOT

from common.errors import InputError
from common.synthesis.phrases import read_phrases
from scripts.datasets.embedded_corpus import SENTENCES, read_sentences
from scripts.demos import quickstart
from scripts.demos.quickstart import measure


def test_a_phrase_without_pitch_does_not_spoil_the_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    phrases = read_phrases(ROOT / "phrases" / "devset10.tsv")[:3]
    for phrase in phrases:
        soundfile.write(tmp_path / phrase.output, np.zeros(99), 22050)
    found = iter([(1.0, 4.0), (2.0, math.nan), (4.5, 6.0)])

    def aligned(*_: object) -> SimpleNamespace:
        mcd, error = next(found)
        figures = {"mcd_db": mcd, "f0_rmse_hz": error, "f0_rmse_cents": 10 * error, "voicing_error": 0.1}
        return SimpleNamespace(distance=figures)

    monkeypatch.setattr(quickstart, "aligned", aligned)
    assert measure(tmp_path, phrases) == pytest.approx(2.5)
    line = "mean distortion 2.50 dB, F0 error 5.0 Hz (50 cents), voicing error 10.0 %\n"
    assert capsys.readouterr().out == line
    assert len(list((tmp_path / "reference").glob("*.wav"))) == 3


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> list[str]:
    """Options of a run that is over in seconds and cannot have learned to speak."""
    names = [one for one in quickstart.TRAINING if one.endswith(("dim", "output-size", "filter-size", "n-layers"))]
    small = [word for name in names for word in (name, "1" if name.endswith("n-layers") else "32")]
    small += ["--batch-size", "2", "--warmup-steps", "1"]
    monkeypatch.setattr(quickstart, "TRAINING", [*quickstart.TRAINING, *small])
    monkeypatch.setattr(quickstart, "N_VALIDATION", 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("\n".join(read_sentences(SENTENCES)[:5]) + "\n", encoding="utf-8")
    phrases = tmp_path / "phrases.tsv"
    phrases.write_text("output\ttext\nfirst.wav\tGood morning.\nsecond\tShe stopped, and looked.\n", encoding="utf-8")
    return ["--sentences", str(sentences), "--phrases", str(phrases), "--output", str(tmp_path / "q"), "--epochs", "1"]


@pytest.mark.slow
def test_an_untrained_voice_goes_all_the_way_and_fails_at_the_bound_and_resumes(tiny, tmp_path, capfd, monkeypatch):
    with pytest.raises(InputError, match=r"mean distortion, .* dB, is above .* dB: the voice has not learned"):
        quickstart.main(tiny)
    for name in ("first", "second"):
        samples, rate = soundfile.read(tmp_path / "q" / f"{name}.wav")
        assert rate == 22050
        assert np.abs(samples).max() > 0
        assert (tmp_path / "q" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "q" / "reference" / f"{name}.wav").is_file()
    out = capfd.readouterr().out
    assert "mean distortion" in out
    first_checkpoint = (tmp_path / "q" / "voice" / "FastPitch_checkpoint_1.pt").stat().st_mtime_ns
    monkeypatch.setattr(quickstart, "MAX_DISTORTION_DB", 1000)
    quickstart.main(tiny)  # within the bound
    assert (tmp_path / "q" / "voice" / "FastPitch_checkpoint_1.pt").stat().st_mtime_ns == first_checkpoint
