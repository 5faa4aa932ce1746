"""The harmonic vocoder: all harmonics of a pitch, which is heard, and utterances that sound as if they were alone."""

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from test_streaming import error_of
from tiny_harmonic import AUDIO, small_network, speech_mel
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.pitch import AT_FRAMES, estimate_pitch
from common.config import AudioConfig
from common.synthesis.vocoder import NetworkVocoder
from harmonic.arg_parser import InferenceOptions
from harmonic.model import HarmonicVocoder
from harmonic.source import fill_unvoiced, harmonics, phase_at_frames

CPU = torch.device("cpu")
ALIGNED = AudioConfig(framing="aligned")
ODD = AudioConfig(sampling_rate=16000, hop_length=200, win_length=800, n_mels=40)


def slow_harmonics(pitch: list[float], audio: AudioConfig) -> Tensor:
    """Cosines added one by one in float64, from the first frame's center on, up to the last frame's."""
    hop, rate = audio.hop_length, audio.sampling_rate
    samples = [a + (b - a) * n / hop for a, b in itertools.pairwise(pitch) for n in range(hop)]
    phase, values = 0.0, []
    for value in samples:
        fitting = rate / 2 / value
        count = int(fitting)
        total = sum(math.cos(2 * math.pi * k * phase) for k in range(1, count + 1))
        values.append(total + (fitting - count) * math.cos(2 * math.pi * (count + 1) * phase))
        phase += value / rate
    return torch.tensor(values)


@pytest.mark.parametrize("audio", [AUDIO, ODD], ids=["usual", "odd hop"])
def test_the_closed_form_is_the_sum_of_all_harmonics(audio: AudioConfig):
    pitch = [140.0, 150.0, 230.0, 200.0]
    rows = torch.tensor([pitch])
    wave = harmonics(rows, phase_at_frames(rows, audio), audio)
    assert wave.shape == (1, 3 * audio.hop_length + audio.filter_length)
    start = audio.filter_length // 2
    torch.testing.assert_close(
        wave[0, start : start + 3 * audio.hop_length], slow_harmonics(pitch, audio).float(), atol=0.05, rtol=0
    )


def test_a_long_sound_keeps_its_phase():
    pitch = torch.full((1, 20_000), 199.99)
    cycles = 19_999 * AUDIO.hop_length * 199.99 / AUDIO.sampling_rate
    difference = float(phase_at_frames(pitch, AUDIO)[0, -1]) - cycles
    assert abs(difference - round(difference)) < 0.02  # of a cycle, after four minutes


def test_pitch_is_interpolated_through_unvoiced_frames():
    pitch = torch.tensor([[0.0, 100, 0, 0, 800, 0], [0.0, 0, 0, 0, 0, 0]])
    expected = torch.tensor([[100.0, 100, 200, 400, 800, 800], [200.0] * 6])
    torch.testing.assert_close(fill_unvoiced(pitch), expected)


@pytest.mark.parametrize("corrections", [0, 2])
def test_a_given_pitch_is_what_is_heard(corrections: int):
    n_frames = 120
    pitch = torch.linspace(110, 260, n_frames)
    network = small_network()
    torch.nn.init.zeros_(network.filter.end.weight)  # phases that vary at random from frame to frame would be heard
    given = {"pitch": pitch[None], "voicing": torch.ones(1, n_frames)}
    wave = network.infer(speech_mel(n_frames), **given, corrections=corrections)[0]
    found = estimate_pitch(wave.numpy(), AUDIO, n_frames=n_frames, method=AT_FRAMES)
    heard = found > 0
    assert heard[5:35].all() and heard[65:110].all()
    assert np.median(1200 * np.abs(np.log2(found[heard] / pitch.numpy()[heard]))) < 10


@pytest.mark.parametrize("audio", [AUDIO, ALIGNED, ODD], ids=["centered", "aligned", "odd hop"])
def test_corrections_bring_the_mel_near_the_wanted_one(audio: AudioConfig):
    network, mel = small_network(audio), speech_mel(90, audio)
    extractor = MelExtractor(audio)
    errors = []
    for corrections in (0, 2, 8):
        wave = network.infer(mel, corrections=corrections)
        assert wave.shape == (1, 90 * audio.hop_length)
        errors.append(float((extractor(wave)[:, :, 4:86] - mel[:, :, 4:86]).abs().mean()))
    assert errors[0] > 2 * errors[1] and errors[1] > errors[2]


def test_the_noise_depends_on_the_seed_alone():
    network, mel = small_network(), speech_mel(40)
    first, again, other = (network.infer(mel, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.allclose(first, other, atol=1e-3)


def vocoder_of(network: HarmonicVocoder, audio: AudioConfig, corrections: int) -> NetworkVocoder:
    settings = network.settings(InferenceOptions(corrections), seed=3, where=None)
    return NetworkVocoder(network, audio, name="x", autocast=nullcontext, device=CPU, settings=settings)


@pytest.mark.parametrize("corrections", [0, 2, 8])
@pytest.mark.parametrize("audio", [AUDIO, ALIGNED, ODD], ids=["centered", "aligned", "odd hop"])
def test_pieces_are_the_whole(audio: AudioConfig, corrections: int):
    mel = speech_mel(300, audio)[0]
    for n_frames in (1, 9, 60, 300):
        assert error_of(vocoder_of(small_network(audio), audio, corrections), mel[:, :n_frames]) < 1e-5


def test_pitch_is_found_in_float32_even_under_autocast():
    network, mel = small_network(), speech_mel(40)
    with torch.autocast("cpu", torch.bfloat16):
        track = network.track(mel)
    assert torch.equal(track, network.track(mel))
