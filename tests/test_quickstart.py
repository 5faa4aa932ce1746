"""The quickstart: a voice that has not learned to speak fails it, and a run that was stopped resumes."""

import numpy as np
import pytest
import soundfile

from common.errors import InputError
from scripts.datasets.choose_texts import read_texts
from scripts.demos import quickstart


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
    sentences.write_text("\n".join([*read_texts(quickstart.SENTENCES).values()][:5]) + "\n", encoding="utf-8")
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
