"""Pitch, its averages and its normalization agree with the originals', and the cache estimates it once."""

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
from common.audio.options import PITCH_KINDS
from common.audio.pitch import (
    AT_FRAMES,
    PitchStatistics,
    estimate_pitch,
    normalize,
    pitch_of_kind,
    read_pitch_statistics,
    split_durations,
    statistics,
)
from common.audio.pitch_cache import PitchCache
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


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [150.0, 150.0], [150.0, 160.0, np.nan]])
def test_statistics_of_no_speech_are_a_clear_error(values: list[float]):
    with pytest.raises(InputError, match="statistics"):
        statistics([np.array(values)])


def test_a_recording_shorter_than_three_periods_is_a_clear_error():
    with pytest.raises(
        AudioError, match=r"a clip of 0\.030 s: too short, pitch needs at least 0\.040 s \(list\.txt:7\)"
    ):
        estimate_pitch(tone(200, 0.03), CONFIG, n_frames=3, where="list.txt:7")
    assert len(estimate_pitch(tone(200, 0.041), CONFIG, n_frames=4)) == 4


def test_a_value_that_praat_lacks_at_the_end_is_unvoiced_as_in_the_original():
    wave, n_frames = tone(200, 22 * 256 / 22050), 23
    sound = parselmouth.Sound(wave, 22050)
    track = sound.to_pitch(time_step=sound.duration / (n_frames + 3), pitch_floor=75, pitch_ceiling=600)
    values = track.selected_array["frequency"]
    assert len(values) == n_frames - 1 and values.all()
    assert np.array_equal(estimate_pitch(wave, CONFIG, n_frames=n_frames), [*values, 0])


@pytest.mark.parametrize("framing, first", [("centered", 0), ("aligned", 128)])
def test_pitch_at_frames_is_that_of_their_centers(framing: str, first: int):
    hertz = np.linspace(150, 250, 22050)
    wave = 0.3 * np.sin(2 * np.pi * np.cumsum(hertz) / 22050)
    found = estimate_pitch(wave, replace(CONFIG, framing=framing), n_frames=80, method=AT_FRAMES)
    centers = first + 256 * np.arange(80)
    assert np.abs(found - hertz[centers])[10:70].max() < 0.2  # Hz; half a hop is 0.6


@pytest.mark.parametrize(
    "mean, std",
    [("NaN", "20.0"), ("150.0", "NaN"), ("150.0", "Infinity"), ("150.0", "0.0"), ("-150.0", "20.0"), ("150.0", "-1")],
)
def test_statistics_that_are_no_finite_numbers_above_0_are_refused(mean: str, std: str, tmp_path: Path):
    (path := tmp_path / "stats.json").write_text(f'{{"mean": {mean}, "std": {std}}}')
    with pytest.raises(InputError, match=f"^{path}: .*(nan|inf|std 0|mean -150|std -1) "):
        read_pitch_statistics(path)


AUDIO = AudioConfig()
N_FRAMES = 44


def tone_tensor(hertz: float, *, seconds: float = 0.5, rate: int = 22050) -> torch.Tensor:
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
    wave = tone_tensor(180)
    first = PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES)
    again = PitchCache(tmp_path, AUDIO).pitch(wave.clone(), n_frames=N_FRAMES)
    assert estimates == ["praat"]
    assert torch.equal(first, again)
    wanted = estimate_pitch(wave.numpy(), AUDIO, n_frames=N_FRAMES)
    assert torch.equal(first, torch.from_numpy(wanted).float())


def test_another_recording_method_or_description_of_frames_never_finds_that_pitch(
    tmp_path: Path, estimates: list[str], monkeypatch: pytest.MonkeyPatch
):
    wave = tone_tensor(180)
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
    wave = tone_tensor(180)
    wanted = PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES)
    (path,) = tmp_path.rglob("*.pt")
    path.write_bytes(path.read_bytes()[:100])
    assert torch.equal(PitchCache(tmp_path, AUDIO).pitch(wave, n_frames=N_FRAMES), wanted)
    assert len(estimates) == 2
    assert torch.equal(torch.load(path), wanted)
