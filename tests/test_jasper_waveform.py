"""Recordings as Jasper reads them: resampled, trimmed and perturbed as published."""

import re
from pathlib import Path

import librosa
import numpy as np
import pytest
import torch
from golden_files import listed, read_golden, recordings
from safetensors.torch import load_file
from torch import Tensor

from common.audio.wav import load_wav, save_wav
from common.errors import AudioError
from jasper.manifest import read_entries
from jasper.waveform import change_speed, draw_speed, duration_of, load_recording, perturb, shift, voiced_part
from jasper.yaml_config import DatasetSettings, GainPerturbation, ShiftPerturbation, SpeedPerturbation

RATE = 16000


def tone(n_samples: int, *, rate: int = RATE, frequency: float = 440.0) -> Tensor:
    return 0.5 * torch.sin(2 * torch.pi * frequency * torch.arange(n_samples) / rate)


@pytest.mark.parametrize("speed", listed("jasper/augmentation.json", "speed_perturbation", "rates"))
def test_a_change_of_speed_agrees_with_sox(goldens: Path, speed: float):
    about = read_golden(goldens / "jasper/augmentation.json", "speed_perturbation")
    wave = load_wav(goldens / "jasper" / about["clip"], sampling_rate=RATE)
    changed = change_speed(wave, speed)
    assert len(changed) == about["results"][str(speed)]["output_samples"]
    expected = load_file(goldens / "jasper/speed_perturbation.safetensors")[f"output.rate_{speed}"]
    first = int(re.search(r"samples (\d+)\.\.", about["stored"])[1])
    noise = changed[first : first + len(expected)] - expected
    assert 10 * np.log10(float(expected.square().sum() / noise.square().sum())) > 60  # dB; the golden's README asks 40


@pytest.mark.parametrize("milliseconds", listed("jasper/augmentation.json", "shift_examples", "results"))
def test_a_shift_moves_the_wave_as_published(goldens: Path, milliseconds: str):
    about = read_golden(goldens / "jasper/augmentation.json", "shift_examples")
    examples, n_samples = about["results"], int(re.search(r"\(i\+1\)/(\d+)", about["input"])[1])
    wave = torch.arange(1, n_samples + 1) / n_samples
    settings = DatasetSettings(shift_perturbation=ShiftPerturbation(float(milliseconds), float(milliseconds), p=1.0))
    shifted = perturb(wave, settings, np.random.default_rng(0))
    torch.testing.assert_close(shifted, shift(wave, examples[milliseconds]["shift_samples"]), rtol=0, atol=0)
    assert shifted[:3].tolist() == examples[milliseconds]["first3"]
    assert shifted[-3:].tolist() == examples[milliseconds]["last3"]


@pytest.mark.parametrize("name", ["a.m4a", "a.opus", "a.OGG"])
def test_compressed_recordings_are_read_in_time_with_what_was_written(name: str, tmp_path: Path):
    random = torch.Generator().manual_seed(0)
    wave = tone(2 * RATE) * torch.rand(20, generator=random).repeat_interleave(RATE // 10)
    save_wav(tmp_path / name, wave, sampling_rate=RATE)
    (entry,) = read_entries(tmp_path)
    read = load_recording(entry.paths[0], sampling_rate=RATE, trim=False)
    assert (duration_of(entry.paths[0]), len(read) / RATE) == (pytest.approx(2.0, abs=0.1),) * 2
    assert float(torch.corrcoef(torch.stack([read[: len(wave)], wave]))[0, 1]) > 0.95
    (tmp_path / name).write_bytes(bytes(5000))
    for read_file in (
        duration_of,
        lambda path, where: load_recording(path, sampling_rate=RATE, trim=False, where=where),
    ):
        with pytest.raises(AudioError, match=f"{name}.*list:3"):
            read_file(entry.paths[0], where="list:3")


def test_a_shift_longer_than_the_wave_leaves_silence():
    for n_samples in (9, -9):
        assert shift(torch.ones(5), n_samples).tolist() == [0.0] * 5


def test_gain_is_a_factor_of_its_decibels():
    settings = DatasetSettings(gain_perturbation=GainPerturbation(-6, -6, p=1.0))
    louder = perturb(torch.ones(3), settings, np.random.default_rng(0))
    torch.testing.assert_close(louder, torch.full((3,), 0.5011872336272722))


def test_speeds_are_drawn_from_their_range_or_its_ends_with_their_probability():
    random = np.random.default_rng(0)
    smooth = [draw_speed(SpeedPerturbation(0.85, 1.15, p=1.0), random) for _ in range(2000)]
    assert 0.85 <= min(smooth) < 0.86 and 1.14 < max(smooth) <= 1.15
    assert abs(np.mean(smooth) - 1) < 0.01
    discrete = [draw_speed(SpeedPerturbation(0.9, 1.1, discrete=True, p=1.0), random) for _ in range(3000)]
    assert {speed: round(discrete.count(speed) / 3000, 1) for speed in set(discrete)} == {0.9: 0.3, 1.0: 0.3, 1.1: 0.3}
    seldom = [draw_speed(SpeedPerturbation(0.9, 1.1, p=0.1), random) for _ in range(3000)]
    assert 0.07 < sum(speed != 1 for speed in seldom) / 3000 < 0.13


def test_a_wave_is_not_slowed_down_beyond_the_longest():
    settings = DatasetSettings(speed_perturbation=SpeedPerturbation(0.5, 0.5, p=1.0))
    assert len(perturb(tone(1000), settings, np.random.default_rng(0), longest=1200)) == 1200
    assert len(perturb(tone(1000), settings, np.random.default_rng(0))) == 2000


def test_trimming_agrees_with_librosa(goldens: Path):
    generator = torch.Generator().manual_seed(0)
    for lead, trail, level in ((3000, 700, 1e-5), (0, 9000, 0.0), (5000, 0, 1e-4), (100, 100, 3e-4)):
        noise = level * torch.randn(lead + 4000 + trail, generator=generator)
        noise[lead : lead + 4000] += tone(4000)
        _, (start, end) = librosa.effects.trim(noise.numpy(), top_db=60)
        assert voiced_part(noise) == slice(start, end)
    paths = recordings("jasper/audio/*.flac")
    for path in paths:
        wave = load_wav(path, sampling_rate=RATE)
        _, (start, end) = librosa.effects.trim(wave.numpy(), top_db=60)
        assert voiced_part(wave) == slice(start, end)


@pytest.mark.parametrize("n_samples", [1, 100, 511, 512, 513, 5000])
def test_silence_and_short_sounds_are_not_trimmed_away(n_samples: int):
    assert voiced_part(torch.zeros(n_samples)) == slice(0, n_samples)
    click = torch.zeros(n_samples)
    click[0] = 1.0
    kept = voiced_part(click)
    assert kept.start == 0 and kept.stop > 0


def test_a_recording_of_another_rate_is_read_at_the_wanted_one(tmp_path: Path):
    path = tmp_path / "a.wav"
    save_wav(path, tone(4000, rate=8000), sampling_rate=8000)
    wave = load_recording(path, sampling_rate=RATE, trim=False)
    torch.testing.assert_close(wave[500:-500], tone(8000)[500:-500], rtol=0, atol=1e-3)
