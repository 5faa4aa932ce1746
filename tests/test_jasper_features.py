"""Jasper's features agree with the published ones, clip by clip, and its masks are as frequent."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from golden_files import read_case, read_golden
from torch import Tensor

from jasper.augmentation import Augmentation, CutoutAugment, SpecAugment
from jasper.config import FeatureConfig
from jasper.features import FeatureExtractor

OTHER = FeatureConfig(
    window_size=0.025, window="hamming", n_fft=None, preemph=None, n_filt=40, lowfreq=20, highfreq=7600, pad_align=0
)


@pytest.fixture(scope="module")
def golden(goldens: Path) -> tuple[dict, dict[str, Tensor]]:
    return read_case(goldens / "jasper", "features")


@pytest.fixture(scope="module")
def published(golden) -> dict[str, Tensor]:
    return golden[1]


@pytest.fixture(scope="module")
def config(golden) -> FeatureConfig:
    """The settings of the published features."""
    known = set(FeatureConfig.__dataclass_fields__)
    return FeatureConfig(**{key: value for key, value in golden[0]["parameters"].items() if key in known})


@pytest.fixture(scope="module")
def clips(goldens: Path, golden) -> dict[str, Tensor]:
    """The recordings by their names, in the order of the published batch."""
    files = {name: goldens / "jasper" / f"audio/{name}_16k.flac" for name in golden[0]["clip_order"]}
    return {name: torch.from_numpy(soundfile.read(file, dtype="float32")[0]) for name, file in files.items()}


def assert_agrees(found: Tensor, expected: Tensor) -> None:
    difference = (found - expected).abs()
    assert float(difference.max()) < 1e-2 and float(difference.mean()) < 2e-5


def test_the_features_of_real_clips_equal_the_published_ones(golden, clips: dict[str, Tensor], config: FeatureConfig):
    about, published = golden
    assert set(clips) == set(about["clips"])
    for name, wave in clips.items():
        out = FeatureExtractor(config)(wave[None], torch.tensor([len(wave)]))
        assert int(out.lengths) == about["clips"][name]["feat_len"]
        assert out.features.shape == (1, config.n_filt, about["clips"][name]["padded_frames"])
        assert_agrees(out.features[0], published[f"output.{name}"])


def test_a_clip_in_a_padded_batch_has_the_features_it_has_alone(golden, clips, config: FeatureConfig):
    about, published = golden
    lengths = torch.tensor([len(wave) for wave in clips.values()])
    out = FeatureExtractor(config)(torch.nn.utils.rnn.pad_sequence([*clips.values()], batch_first=True), lengths)
    assert out.features.size(2) == max(clip["padded_frames"] for clip in about["clips"].values())
    assert torch.equal(out.lengths, published["lens.batch"])
    for index, name in enumerate(clips):
        expected = published[f"output.{name}"]
        assert_agrees(out.features[index, :, : expected.size(1)], expected)
        assert not out.features[index, :, expected.size(1) :].any()


@pytest.mark.parametrize("normalize", ["per_feature", "all_features", "none"])
@pytest.mark.parametrize("log", [True, False])
def test_other_normalisations_equal_the_published_ones(published, config: FeatureConfig, normalize: str, log: bool):
    extractor = FeatureExtractor(replace(config, normalize=normalize, log=log))
    out = extractor(published["input.short"], published["input.short_lens"])
    expected = published[f"output.short_{normalize}_{'log' if log else 'nolog'}"]
    assert torch.equal(out.lengths, published["lens.short"]) and out.features.shape == expected.shape
    # Of the shorter ones the original reflects what is no part of them; the second's end is the batch's by chance.
    assert_agrees(out.features[0], expected[0])


def test_other_windows_bands_and_sizes_equal_the_published_ones(golden):
    about, published = golden
    out = FeatureExtractor(OTHER)(published["input.short"], published["input.short_lens"])
    expected = published["output.short_other_params"]
    sizes = about["short"]["other_params_n_fft"], about["short"]["other_params_win_length"]
    assert (OTHER.fft_length, OTHER.win_length, out.features.shape) == (*sizes, expected.shape)
    assert_agrees(out.features[0], expected[0])


def test_waves_padded_to_the_longest_duration_have_the_published_shape(published, config: FeatureConfig):
    waves = published["input.short"]
    waves = torch.nn.functional.pad(waves, (0, config.sample_rate // 2 - waves.size(1)))  # half a second
    out = FeatureExtractor(config)(waves, published["input.short_lens"])
    expected = published["output.short_pad_to_max_0p5s"]
    assert out.features.shape == expected.shape
    assert_agrees(out.features[0], expected[0])


def test_the_filters_and_the_window_are_the_published_ones(published, config: FeatureConfig):
    extractor = FeatureExtractor(config)
    torch.testing.assert_close(extractor.mel_basis, published["buffers.fb"], atol=1e-7, rtol=0)
    torch.testing.assert_close(extractor.window, published["buffers.window"], atol=1e-7, rtol=0)
    assert not extractor.state_dict()


def slow_features(wave: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """The definition, a frame at a time, in float64."""
    extractor = FeatureExtractor(config)
    wave = np.concatenate([wave[:1], wave[1:] - config.preemph * wave[:-1]])
    padded = np.pad(wave, config.fft_length // 2, mode="reflect")
    window = np.zeros(config.fft_length)
    start = (config.fft_length - config.win_length) // 2
    window[start : start + config.win_length] = extractor.window.numpy()
    columns = []
    for frame in range(-(-len(wave) // config.hop_length)):
        piece = padded[frame * config.hop_length : frame * config.hop_length + config.fft_length] * window
        columns.append(np.log(extractor.mel_basis.double().numpy() @ np.abs(np.fft.rfft(piece)) ** 2 + 1e-20))
    out = np.stack(columns, axis=1)
    return (out - out.mean(axis=1, keepdims=True)) / (out.std(axis=1, ddof=1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("n_samples", [1601, 1600, 900])
@pytest.mark.parametrize("changes", [{}, {"sample_rate": 8000, "n_fft": 256}, {"window_size": 0.0255}])
def test_the_features_are_what_their_definition_says(n_samples: int, changes: dict):
    config = FeatureConfig(n_filt=20, **changes)
    wave = 0.1 * torch.randn(n_samples, generator=torch.Generator().manual_seed(0))
    padded = torch.cat([wave, torch.full((777,), 0.3)])[None]
    out = FeatureExtractor(config)(padded, torch.tensor([n_samples]))
    expected = torch.from_numpy(slow_features(wave.double().numpy(), config)).float()
    torch.testing.assert_close(out.features[0, :, : expected.size(1)], expected, atol=2e-3, rtol=0)


def masks_of(count: int, n_bands: int, n_frames: int, **kinds: SpecAugment | CutoutAugment) -> Tensor:
    augmentation = Augmentation(**kinds)
    draws = torch.rand(count, augmentation.n_draws, generator=torch.Generator().manual_seed(0))
    ones = torch.ones(count, n_bands, n_frames)
    return augmentation.masked(ones, torch.full((count,), n_frames), draws) == 0


def assert_masked(found: Tensor, facts: dict, name: str) -> None:
    """The shares of masked bands or frames are the published ones, of which the key may say ``_every_N``."""
    (key,) = (key for key in facts if key.startswith(name))
    step = int(key.rpartition("_every_")[2]) if "_every_" in key else 1
    torch.testing.assert_close(found[::step], torch.tensor(facts[key]), atol=0.03, rtol=0)


def test_masks_are_as_often_where_they_are_in_the_original(goldens: Path):
    facts = read_golden(goldens / "jasper/augmentation.json")
    spec = facts["spec_augment"]
    n_masks, n_bands, n_frames = spec["input_shape"]
    mask = masks_of(n_masks, n_bands, n_frames, spec_augment=SpecAugment(**spec["parameters"]))
    assert float(mask.float().mean()) == pytest.approx(spec["masked_fraction"], abs=0.01)
    assert_masked(mask.all(dim=2).float().mean(dim=0), spec, "freq_bin_mask_probability")
    assert_masked(mask.all(dim=1).float().mean(dim=0), spec, "time_frame_mask_probability")
    cutout = facts["cutout_augment"]
    mask = masks_of(2000, n_bands, n_frames, cutout_augment=CutoutAugment(**cutout["parameters"])).float()
    assert float(mask.mean()) == pytest.approx(cutout["masked_fraction"], abs=0.01)
    assert_masked(mask.mean(dim=(0, 2)), cutout, "freq_bin_mask_probability")


def test_a_masks_width_is_any_with_equal_chance_and_the_last_band_stays(goldens: Path):
    facts = read_golden(goldens / "jasper/augmentation.json", "spec_augment")
    (histogram,) = (v for key, v in facts["single_freq_mask"].items() if key.startswith("width_histogram_0_to_"))
    n_masks, n_bands, _ = facts["input_shape"]
    one = SpecAugment(freq_masks=1, max_freq=len(histogram) - 1)
    mask = masks_of(n_masks, n_bands, 3, spec_augment=one)[:, :, 0]
    found = torch.bincount(mask.sum(dim=1), minlength=len(histogram))
    assert len(found) == len(histogram)
    expected = n_masks / len(histogram)
    assert float((found - expected).abs().max()) < 5 * expected**0.5
    assert not mask[:, -1].any() and mask[:, -2].any() and mask[:, 0].any()


def test_masks_of_an_utterance_do_not_depend_on_its_batch():
    spec = SpecAugment(freq_masks=2, max_freq=20, time_masks=2, max_time=75)
    augmentation = Augmentation(spec_augment=spec, cutout_augment=CutoutAugment(masks=2))
    draws = torch.rand(3, augmentation.n_draws, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([120, 80, 40])
    together = augmentation.masked(torch.ones(3, 64, 120), lengths, draws)
    for index, length in enumerate(lengths.tolist()):
        row = slice(index, index + 1)
        alone = augmentation.masked(torch.ones(1, 64, length), lengths[row], draws[row])
        assert torch.equal(alone[0], together[index, :, :length])
