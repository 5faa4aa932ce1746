"""Pitch by pYIN as published, and the cache that estimates each recording's pitch once for all runs and processes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import parselmouth
import pytest
import soundfile
import torch
from golden_files import entries, read_golden
from safetensors.numpy import load_file

import common.audio.pitch_cache
from common.audio.pitch import PitchStatistics, estimate_pitch, normalize
from common.audio.pitch_cache import PitchCache
from common.config import AudioConfig
from common.errors import AudioError, InputError

AUDIO = AudioConfig()
N_FRAMES = 44


def tone(hertz: float, *, seconds: float = 0.5, rate: int = 22050) -> torch.Tensor:
    t = torch.arange(round(seconds * rate)) / rate
    return 0.3 * torch.sin(2 * torch.pi * hertz * t) + 0.1 * torch.sin(4 * torch.pi * hertz * t)


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods by which pitch has been estimated so far."""
    made: list[str] = []

    def counted(*args, method: str, **kwargs) -> np.ndarray:
        made.append(method)
        return estimate_pitch(*args, method=method, **kwargs)

    monkeypatch.setattr(common.audio.pitch_cache, "estimate_pitch", counted)
    return made


def shortest_clips() -> list[str]:
    """The two shortest clips that have pitch by pYIN, which takes seconds for a longer one."""
    clips = entries("pitch/pitch_1_1.json", "clips")
    return sorted(clips, key=lambda name: clips[name]["mel_len"])[:2]


@pytest.mark.parametrize("clip", shortest_clips())
def test_pyin_agrees_with_the_published_pitch(clip: str, goldens: Path):
    wave, rate = soundfile.read(goldens / "audio" / "clips" / f"{clip}.flac", dtype="float32")
    wanted = load_file(goldens / "pitch" / "pitch_1_1.safetensors")[f"{clip}.pitch_raw"][0]
    made = estimate_pitch(wave, replace(AUDIO, sampling_rate=rate), n_frames=len(wanted), method="pyin")
    assert np.array_equal(made == 0, wanted == 0)
    assert np.abs(made - wanted).max() < 1e-2
    facts = read_golden(goldens / "pitch" / "pitch_1_1.json")
    normalized = normalize(made, PitchStatistics(facts["default_mean"], facts["default_std"]))
    wanted = load_file(goldens / "pitch" / "pitch_1_1.safetensors")[f"{clip}.pitch_normalised"][0]
    assert np.abs(normalized - wanted).max() < 2e-4


def test_pitch_is_estimated_once_and_is_what_the_estimator_says(tmp_path: Path, estimates: list[str]):
    wave = tone(180)
    first = PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES)
    again = PitchCache(tmp_path, AUDIO).pitch(wave.clone(), n_frames=N_FRAMES)
    assert estimates == ["praat"]
    assert torch.equal(first, again)
    wanted = estimate_pitch(wave.numpy(), AUDIO, n_frames=N_FRAMES)
    assert torch.equal(first, torch.from_numpy(wanted).float())


def test_another_recording_method_or_description_of_frames_never_finds_that_pitch(
    tmp_path: Path, estimates: list[str], monkeypatch: pytest.MonkeyPatch
):
    wave = tone(180)
    PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES)
    changed = wave.clone()
    changed[5000] += 1e-4
    PitchCache(tmp_path, AUDIO).pitch(changed, n_frames=N_FRAMES)
    PitchCache(tmp_path, AUDIO, method="pyin").pitch(wave, n_frames=N_FRAMES)
    PitchCache(tmp_path, replace(AUDIO, hop_length=255)).pitch(wave, n_frames=N_FRAMES)
    PitchCache(tmp_path, replace(AUDIO, framing="aligned")).pitch(wave, n_frames=N_FRAMES)
    monkeypatch.setattr(parselmouth, "PRAAT_VERSION", "1.0")
    PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES)
    assert len(estimates) == 6
    PitchCache(tmp_path, AUDIO, pitch_range=(None, 900.0)).pitch(wave, n_frames=N_FRAMES)
    assert len(estimates) == 7
    PitchCache(tmp_path, replace(AUDIO, mel_fmax=7000.0)).pitch(wave, n_frames=N_FRAMES)  # no matter for pitch
    assert len(estimates) == 7


def test_a_file_that_a_power_cut_has_broken_is_made_again(tmp_path: Path, estimates: list[str]):
    wave = tone(180)
    wanted = PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES)
    (path,) = tmp_path.rglob("*.pt")
    path.write_bytes(path.read_bytes()[:100])
    assert torch.equal(PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES), wanted)
    assert len(estimates) == 2
    assert torch.equal(torch.load(path), wanted)


def test_what_cannot_be_is_one_clear_line(tmp_path: Path):
    with pytest.raises(AudioError, match=r"a clip of 0\.030 s: too short, .* \(list\.txt:7\)"):
        PitchCache(tmp_path, AUDIO).pitch(tone(200, seconds=0.03), n_frames=3, where="list.txt:7")
    (tmp_path / "file").write_text(json.dumps({}))
    with pytest.raises(InputError, match=r"cannot be written.*choose another --pitch-cache"):
        PitchCache(tmp_path / "file", AUDIO).pitch(tone(200), n_frames=N_FRAMES)
    assert (tmp_path / "file").read_text() == "{}"
