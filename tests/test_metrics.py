"""Mel-cepstral distortion and F0 error are what they say: decibels, cents, and blind to pace and loudness."""

import math

import numpy as np
import pytest

from common.errors import AudioError
from common.evaluation.metrics import N_COEFFICIENTS, Figures, compare_speech, floored, mean_distortion, speech_pairs

RATE = 22050  # Hz


def distortion(reference: np.ndarray, synthesized: np.ndarray) -> float:
    left, right = floored(reference), floored(synthesized)
    return mean_distortion(left, right, speech_pairs(left, right))


def voiced(f0: np.ndarray, *, seed: int = 0, seconds: float = 1.5) -> np.ndarray:
    """A harmonic wave with F0 ``f0`` (N,) Hz spread over its length, and formants that move."""
    rng = np.random.default_rng(seed)
    n = round(seconds * RATE)
    at = np.linspace(0, 1, n)
    phase = 2 * math.pi * np.cumsum(np.interp(at, np.linspace(0, 1, len(f0)), f0)) / RATE
    formants = np.cumsum(rng.uniform(300, 900, size=(4, 6)), axis=0)  # Hz
    wave = np.zeros(n)
    for k in range(1, 30):
        frequency = k * np.interp(at, np.linspace(0, 1, len(f0)), f0)
        gain = sum(
            np.exp(-(((frequency - np.interp(at, np.linspace(0, 1, 6), track)) / 150) ** 2)) for track in formants
        )
        wave += (gain + 0.01) * np.cos(k * phase)
    return (0.3 * wave / np.abs(wave).max()).astype(np.float32)


def compare(reference: np.ndarray, synthesized: np.ndarray) -> Figures:
    return compare_speech(reference, synthesized, sampling_rate=RATE)


@pytest.fixture(scope="module")
def wave() -> np.ndarray:
    return voiced(np.array([110.0, 140.0, 120.0, 95.0]))


@pytest.fixture(scope="module")
def log_mel() -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.cumsum(rng.standard_normal((80, 60)), axis=0) / 8


def test_a_wave_is_at_no_distance_from_itself_however_loud_or_padded_with_silence(wave):
    same, quiet = compare(wave, wave), compare(wave, 0.1 * wave)
    assert (same["mcd_db"], same["f0_rmse_hz"], same["f0_rmse_cents"], same["voicing_error"]) == (0, 0, 0, 0)
    assert same["n_pairs"] > 100 and quiet["mcd_db"] < 1e-3 and quiet["f0_rmse_cents"] < 0.1
    padded = np.concatenate([np.zeros(RATE // 2), wave, np.zeros(RATE // 3)])
    assert compare(wave, padded)["mcd_db"] < 0.3


def test_slowing_by_repeated_frames_does_not_count(log_mel):
    slow = np.repeat(log_mel, 3, axis=1)
    assert distortion(log_mel, slow) == pytest.approx(0, abs=1e-9)
    uneven = np.repeat(log_mel, np.random.default_rng(2).integers(1, 5, log_mel.shape[1]), axis=1)
    assert distortion(uneven, log_mel) == pytest.approx(0, abs=1e-9)


def test_distortion_is_the_root_mean_square_difference_in_decibels(log_mel):
    rng = np.random.default_rng(3)
    position = (np.arange(80) + 0.5) / 80
    ripple = sum(rng.normal() * np.cos(math.pi * k * position) for k in range(1, N_COEFFICIENTS + 1)) / 200
    still = np.repeat(log_mel[:, :1], 20, axis=1)
    decibels = math.sqrt(np.mean((20 / math.log(10) * ripple) ** 2))
    assert distortion(still, still + ripple[:, None]) == pytest.approx(decibels, rel=1e-6)


def test_other_sounds_are_further_than_the_same_sounds_on_another_tune(wave):
    same = voiced(np.array([125.0, 100.0, 130.0, 120.0]))
    other = voiced(np.array([110.0, 140.0, 120.0, 95.0]), seed=7)
    assert compare(wave, other)["mcd_db"] > 2 * compare(wave, same)["mcd_db"]


def test_noise_has_no_pitch_to_compare_and_differs_in_voicing(wave):
    noise = 0.1 * np.random.default_rng(5).standard_normal(len(wave))
    found = compare(wave, noise)
    assert math.isnan(found["f0_rmse_hz"]) and found["voicing_error"] > 0.5 and found["mcd_db"] > 5


@pytest.mark.parametrize("bad", [np.zeros(0), np.zeros(1000), np.full(1000, np.nan)])
def test_a_wave_that_cannot_be_compared_is_refused(wave, bad):
    with pytest.raises(AudioError):
        compare(wave, bad)
