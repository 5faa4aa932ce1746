"""Pitch, its averages and its normalisation agree with the original's."""

from pathlib import Path

import numpy as np
import pytest
from golden_files import read_golden
from safetensors.numpy import load_file

from common.audio.options import ESTIMATORS, PITCH_KINDS
from common.audio.pitch import (
    AT_FRAMES,
    estimate_pitch,
    normalize,
    pitch_of_kind,
    read_pitch_statistics,
    split_durations,
    statistics,
)
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.errors import AudioError, InputError

CONFIG = AudioConfig()
TOLERANCE = 1e-6  # Hz


@pytest.fixture(scope="module")
def golden(goldens: Path) -> dict[str, np.ndarray]:
    return load_file(goldens / "pitch" / "pitch_1_0.safetensors")


@pytest.fixture(scope="module")
def facts(goldens: Path) -> dict:
    return read_golden(goldens / "pitch" / "pitch_1_0.json")


def load_clip(goldens: Path, clip: str) -> np.ndarray:
    return load_wav(goldens / "audio" / "clips" / f"{clip}.flac", sampling_rate=CONFIG.sampling_rate).numpy()


def tone(frequency: float, seconds: float, rate: int = 22050) -> np.ndarray:
    t = np.arange(round(seconds * rate)) / rate
    return 0.3 * np.sin(2 * np.pi * frequency * t) + 0.1 * np.sin(4 * np.pi * frequency * t)


def test_pitch_of_every_kind_agrees_with_the_original(goldens: Path, golden: dict, facts: dict):
    assert facts["clips"]
    for clip, fact in facts["clips"].items():
        pitch = estimate_pitch(load_clip(goldens, clip), CONFIG, n_frames=fact["mel_len"])
        for durations in (name for name in fact if f"{clip}.{name}.durations" in golden):
            for kind in PITCH_KINDS:
                got = pitch_of_kind(kind, pitch, golden[f"{clip}.{durations}.durations"])
                assert np.abs(got - golden[f"{clip}.{durations}.{kind}"]).max() < TOLERANCE, (clip, durations, kind)


def test_pitch_of_a_part_of_a_recording_agrees_with_the_original(goldens: Path, golden: dict, facts: dict):
    part = facts["part"]
    wave, n_frames = load_clip(goldens, part["clip"]), len(golden[f"{part['clip']}.part.pitch_mel"])
    pitch = estimate_pitch(wave, CONFIG, n_frames=n_frames, part=(part["start"], part["end"]))
    for kind in PITCH_KINDS:
        got = pitch_of_kind(kind, pitch, golden[f"{part['clip']}.part.durations"])
        assert np.abs(got - golden[f"{part['clip']}.part.{kind}"]).max() < TOLERANCE


@pytest.mark.parametrize("kind", PITCH_KINDS)
def test_statistics_and_normalized_pitch_agree_with_the_original(golden: dict, facts: dict, kind: str):
    wanted = facts["normalisation"][kind.removeprefix("pitch_")]
    pitches = {clip: golden[f"{clip}.textgrid.{kind}"] for clip in facts["clips"]}
    found = statistics(pitches.values())
    assert abs(found.mean - wanted["mean"]) < 1e-9 and abs(found.std - wanted["std"]) < 1e-9
    for clip, pitch in pitches.items():
        assert np.abs(normalize(pitch, found) - golden[f"{clip}.textgrid.{kind}_normalised"]).max() < 1e-9


def test_durations_are_split_as_the_original_does(goldens: Path):
    cases = read_golden(goldens / "pitch" / "dur_chunk_sizes.json")
    assert cases
    for case in cases:
        assert split_durations(np.array([case["n"]]), case["parts"]).tolist() == case["out"]


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [150.0], [150.0, 150.0]])
def test_statistics_of_no_speech_are_a_clear_error(values: list[float]):
    with pytest.raises(InputError, match="no statistics to normalize by"):
        statistics([np.array(values)])


@pytest.mark.parametrize(("rate", "hop"), [(22050, 256), (16000, 200), (48000, 256), (16000, 64), (8000, 256)])
def test_a_glide_is_followed_at_any_frame_rate(rate: int, hop: int):
    config = AudioConfig(sampling_rate=rate, hop_length=hop, mel_fmax=None)
    t = np.arange(rate) / rate
    wave = 0.5 * np.sin(2 * np.pi * (150 * t + 50 * t**2))  # 150 Hz to 250 Hz in a second
    n_frames = 1 + rate // hop
    pitch = estimate_pitch(wave, config, n_frames=n_frames)
    assert pitch.shape == (n_frames,)
    middle = slice(n_frames // 5, -n_frames // 5)
    wanted = 150 + 100 * np.arange(n_frames) * hop / rate
    assert np.abs(pitch[middle] - wanted[middle]).max() < 5


@pytest.mark.parametrize("method", [*ESTIMATORS, AT_FRAMES])
@pytest.mark.parametrize(("hertz", "pitch_range"), [(50, (40, None)), (700, (None, 900))])
def test_pitch_is_looked_for_in_the_range_that_is_given(method: str, hertz: int, pitch_range: tuple):
    wave = sum(tone(hertz * harmonic, 0.5) for harmonic in (1, 2, 3)) / 3
    pitch = estimate_pitch(wave, CONFIG, n_frames=44, method=method, pitch_range=pitch_range)[10:30]
    assert np.abs(pitch - hertz).max() < 0.02 * hertz
    if method != "pyin" or hertz < 65:
        assert not np.allclose(estimate_pitch(wave, CONFIG, n_frames=44, method=method)[10:30], hertz, rtol=0.02)


def test_a_recording_shorter_than_three_periods_is_a_clear_error():
    with pytest.raises(
        AudioError, match=r"a clip of 0\.030 s: too short, pitch needs at least 0\.040 s \(list\.txt:7\)"
    ):
        estimate_pitch(tone(200, 0.03), CONFIG, n_frames=3, where="list.txt:7")
    assert len(estimate_pitch(tone(200, 0.041), CONFIG, n_frames=4)) == 4


@pytest.mark.parametrize(
    "mean, std",
    [("NaN", "20.0"), ("150.0", "NaN"), ("150.0", "Infinity"), ("150.0", "0.0"), ("-150.0", "20.0"), ("150.0", "-1")],
)
def test_statistics_that_are_no_finite_numbers_above_0_are_refused(mean: str, std: str, tmp_path: Path):
    (path := tmp_path / "stats.json").write_text(f'{{"mean": {mean}, "std": {std}}}')
    with pytest.raises(InputError, match=f"^{path}: .*(nan|inf|std 0|mean -150|std -1) "):
        read_pitch_statistics(path)
    with pytest.raises(InputError):
        statistics([np.array([150.0, 160.0, float("nan")])])
