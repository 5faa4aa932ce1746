"""Mel-spectrograms agree with the originals' and with librosa's, and the denoiser with the published one."""

from pathlib import Path

import librosa
import numpy as np
import pytest
import torch
from golden_files import audio_config, group, listed, matching, read_case, read_golden
from hifigan_goldens import generator_case
from safetensors.torch import load_file
from torch import Tensor

from common.audio.denoiser import BIAS_FRAMES, Denoiser
from common.audio.mel import MelExtractor, energy, griffin_lim, linear_magnitude
from common.audio.wav import load_wav
from common.config import AudioConfig, audio_preset
from common.errors import AudioError

SMALL = {"sampling_rate": 8000, "filter_length": 256, "hop_length": 64, "win_length": 200, "n_mels": 20}
SMALL_CENTERED = AudioConfig(**SMALL, mel_fmax=3500.0)
SMALL_ALIGNED = AudioConfig(**SMALL, mel_fmin=50.0, mel_fmax=None, framing="aligned")


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * 1.6 - 0.8


def test_mels_and_energy_agree_with_the_originals_on_every_case(goldens: Path):
    expected = load_file(goldens / "audio" / "mel.safetensors")
    cases = read_golden(goldens / "audio" / "index.json", "cases")
    assert cases
    for case in cases:
        config = audio_config(case["params"], peak=32767 / 32768 if case["peak_norm"] else None)
        if case.get("flac"):
            wave = load_wav(goldens / "audio" / case["flac"], sampling_rate=config.sampling_rate)
        else:
            wave = torch.zeros(case["n_samples"])  # the case of digital silence
        if isinstance(case["samples"], list):
            wave = wave[slice(*case["samples"])]
        mel = MelExtractor(config)(wave[None])[0]
        wanted = expected[f"{case['name']}.mel"]
        assert mel.shape == wanted.shape, case["name"]
        assert (mel - wanted).abs().max() < 2e-3 and (mel - wanted).abs().mean() < 1e-5, case["name"]
        assert (energy(mel) - expected[f"{case['name']}.energy"]).abs().max() < 1e-3, case["name"]


def test_aligned_mels_agree_with_the_original_vocoders(goldens: Path):
    about, tensors = read_case(goldens / "hifigan", "mel_spectrogram")
    parameters, expected = about["parameters"], group(tensors, "output")
    assert {name.rsplit("_", 2)[0] for name in expected} == set(about["clips"])
    for name, wanted in expected.items():
        clip, level, fmax = name.rsplit("_", 2)
        mel_fmax = None if fmax == "fmaxNone" else float(fmax.removeprefix("fmax"))
        peak = 0.95 if level == "norm" else None
        config = audio_config(parameters, framing="aligned", mel_fmax=mel_fmax, peak=peak)
        wave = load_wav(goldens / "hifigan" / "audio" / f"{clip}.flac", sampling_rate=config.sampling_rate)
        mel = MelExtractor(config)(wave[None])[0]
        assert mel.shape == wanted.shape
        assert (mel - wanted).abs().max() < 5e-3 and (mel - wanted).abs().mean() < 1e-5, name


def test_the_filters_and_the_window_are_the_originals(goldens: Path):
    expected = load_file(goldens / "audio" / "stft_basis.safetensors")
    extractor = MelExtractor(audio_config(read_golden(goldens / "audio" / "index.json", "stft_defaults")))
    n_bins = extractor.mel_basis.shape[1]
    assert torch.allclose(extractor.mel_basis, expected["mel_basis"][:, :n_bins], atol=1e-8)
    assert not expected["mel_basis"][:, n_bins:].any()
    assert torch.allclose(extractor.window, expected["window"], atol=1e-7)


@pytest.mark.parametrize("config", [SMALL_CENTERED, SMALL_ALIGNED, AudioConfig(**SMALL, mel_fmax=3500.0, peak=0.95)])
def test_an_utterance_does_not_depend_on_its_batch(config: AudioConfig):
    lengths = torch.tensor([900, 129, 640, 899, 641])
    waves = noise(5, 900)  # noise past the ends: what lies there must not matter
    extractor = MelExtractor(config)
    mels = extractor(waves, lengths)
    assert mels.shape == (5, config.n_mels, extractor.n_frames(900))
    for wave, length, mel in zip(waves, lengths, mels):
        alone = extractor(wave[None, :length])[0]
        n_frames = extractor.n_frames(int(length))
        assert alone.shape[1] == n_frames
        assert torch.allclose(mel[:, :n_frames], alone, atol=1e-5)
        assert not mel[:, n_frames:].any()


@pytest.mark.parametrize("config", [SMALL_CENTERED, SMALL_ALIGNED])
def test_a_clip_too_short_to_pad_is_a_clear_error(config: AudioConfig):
    extractor = MelExtractor(config)
    assert extractor(noise(1, extractor.min_samples)).isfinite().all()
    with pytest.raises(AudioError, match=f"{extractor.min_samples - 1} samples: too short, a frame needs at least"):
        extractor(noise(1, extractor.min_samples - 1))


@pytest.mark.parametrize("config", [SMALL_CENTERED, SMALL_ALIGNED])
def test_gradients_are_right_and_finite_even_in_silence(config: AudioConfig):
    extractor = MelExtractor(config)
    wave = noise(1, 700)
    wave[:, 300:] = 0.0
    wave.requires_grad_()
    extractor(wave).sum().backward()
    assert wave.grad.isfinite().all() and wave.grad.abs().max() > 0
    step = torch.zeros_like(wave).index_fill(1, torch.tensor([150]), 1e-3)
    with torch.no_grad():
        slope = (extractor(wave + step).double().sum() - extractor(wave - step).double().sum()) / 2e-3
    assert float(wave.grad[0, 150]) == pytest.approx(float(slope), rel=2e-3)


def test_reduced_precision_around_it_does_not_touch_the_mels():
    extractor, wave = MelExtractor(SMALL_CENTERED), noise(2, 2000)
    wanted = extractor(wave)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(extractor(wave), wanted)


@pytest.mark.parametrize(("framing", "clip"), list(zip(("centered", "aligned"), matching("audio/clips/*.flac"))))
def test_griffin_lim_speaks_a_real_mel(goldens: Path, framing: str, clip: str):
    config = AudioConfig(framing=framing)
    extractor = MelExtractor(config)
    wave = load_wav(goldens / clip, sampling_rate=None)
    mel = extractor(wave[None])[0]
    sound = griffin_lim(mel, config)
    assert sound.shape == (mel.shape[1] * config.hop_length,) and sound.abs().max() < 1.2
    again = extractor(sound[None])[0][:, : mel.shape[1]]
    assert (again - mel).abs().mean() < 0.15  # neighbouring frames of speech differ by 0.46
    assert torch.equal(griffin_lim(mel, config), sound)


@pytest.mark.parametrize("config", [AudioConfig(), SMALL_ALIGNED, SMALL_CENTERED], ids=["usual", "small", "centered"])
def test_filters_and_griffin_lim_are_librosas(config: AudioConfig):
    sizes = {"sr": config.sampling_rate, "n_fft": config.filter_length, "n_mels": config.n_mels}
    filters = librosa.filters.mel(**sizes, fmin=config.mel_fmin, fmax=config.mel_fmax)
    extractor = MelExtractor(config)
    np.testing.assert_allclose(
        extractor.mel_basis.numpy(), filters[:, : extractor.mel_basis.shape[1]], rtol=1e-6, atol=1e-9
    )
    mel = extractor(noise(1, 8 * config.filter_length))[0]
    frames = {"hop_length": config.hop_length, "win_length": config.win_length, "n_fft": config.filter_length}
    generator = {"rng" if librosa.__version__ >= "1" else "random_state": np.random.RandomState(3)}
    magnitude = linear_magnitude(mel.exp().numpy(), extractor)
    # Few rounds: rounding errors, which differ between processors, grow in each.
    theirs = librosa.griffinlim(magnitude, n_iter=3, center=False, **frames, **generator)[extractor.pad_left :]
    ours = griffin_lim(mel, config, n_iter=3, seed=3).numpy()
    n_samples = min(len(ours), len(theirs))
    np.testing.assert_allclose(ours[:n_samples], theirs[:n_samples], atol=1e-5)


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


@pytest.mark.parametrize("sampling_rate", [16000, 44100])
@pytest.mark.parametrize("n_frames", [1, 2, 9])
def test_sound_of_any_length_keeps_it(sampling_rate: int, n_frames: int):
    audio = audio_preset(sampling_rate)
    noise = 0.05 * torch.randn(BIAS_FRAMES * audio.hop_length, generator=torch.Generator().manual_seed(0))
    sound = Denoiser(noise, audio, strength=0.3)(noise[: n_frames * audio.hop_length])
    assert len(sound) == n_frames * audio.hop_length and torch.isfinite(sound).all()
