"""The denoiser: as published, the same in any batch, and for sounds of any length and rate."""

from pathlib import Path

import pytest
import torch
from golden_files import audio_config, listed, read_case
from hifigan_goldens import generator_case
from torch import Tensor

from common.audio.denoiser import BIAS_FRAMES, Denoiser
from common.config import AudioConfig, audio_preset


@pytest.fixture(scope="module")
def golden(goldens: Path) -> tuple[AudioConfig, dict, dict[str, Tensor]]:
    about, tensors = read_case(goldens / "hifigan", "denoiser")
    return audio_config(about["parameters"]), about, tensors


def test_the_noise_of_a_network_is_its_sound_of_zeros(goldens, golden):
    audio, about, published = golden
    network, _ = generator_case(goldens / "hifigan", about["generator"].split(".")[0])
    network.prepare_for_inference()
    n_mels = network.conv_pre.weight.size(1)
    assert f"[1,{n_mels},{BIAS_FRAMES}]" in about["parameters"]["bias_mel"]
    with torch.no_grad():
        noise = network.infer(torch.zeros(1, n_mels, BIAS_FRAMES))
    torch.testing.assert_close(noise, published["output.bias_audio"], rtol=0, atol=2e-5)
    bias = Denoiser(noise[0], audio, strength=0.1).bias
    torch.testing.assert_close(bias, published["output.bias_spec"][0, :, 0], rtol=0, atol=5e-4)


@pytest.mark.parametrize("strength", listed("hifigan/denoiser.json", "strengths"))
def test_sound_is_denoised_as_published(golden, strength):
    audio, _, published = golden
    denoiser = Denoiser(published["output.bias_audio"][0], audio, strength=strength)
    ours = denoiser(published["input.audio"])
    torch.testing.assert_close(ours, published[f"output.denoised_{strength}"][:, 0], rtol=0, atol=1e-5)


def noise_and_waves(audio: AudioConfig, n_frames: list[int]) -> tuple[Tensor, list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    noise = 0.05 * torch.randn(BIAS_FRAMES * audio.hop_length, generator=generator)
    return noise, [0.3 * torch.randn(n * audio.hop_length, generator=generator) for n in n_frames]


RATES = [16000, 44100]


@pytest.mark.parametrize("sampling_rate", RATES)
def test_an_utterance_alone_equals_itself_in_any_batch(sampling_rate):
    audio = audio_preset(sampling_rate)
    noise, waves = noise_and_waves(audio, [9, 1, 30, 2, 4])
    denoiser = Denoiser(noise, audio, strength=0.3)
    batch = torch.nn.utils.rnn.pad_sequence([torch.cat([wave, torch.ones(3)]) for wave in waves], batch_first=True)
    together = denoiser(batch, torch.tensor([len(wave) for wave in waves]))
    for wave, sound in zip(waves, together):
        alone = denoiser(wave[None])[0]
        assert alone.shape == wave.shape
        torch.testing.assert_close(sound[: len(wave)], alone, rtol=0, atol=1e-6)
        assert not sound[len(wave) :].any()


@pytest.mark.parametrize("sampling_rate", RATES)
def test_strength_zero_leaves_a_sound_of_any_length_as_it_is(sampling_rate):
    audio = audio_preset(sampling_rate)
    noise, waves = noise_and_waves(audio, [1, 2, 3, 40])
    for wave in waves:
        torch.testing.assert_close(Denoiser(noise, audio, strength=0.0)(wave[None])[0], wave, rtol=0, atol=1e-5)
