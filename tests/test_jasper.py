"""Jasper's features, network, losses, decoding, optimizer and error rates agree with the published ones."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path

import librosa
import numpy as np
import pytest
import soundfile
import torch
from golden_files import group, listed, read_case, read_golden, recordings
from safetensors.torch import load_file
from tiny_jasper import CASES, FORMS, golden_network, lively, small_network, targets, utterances
from torch import Tensor, nn

from common.audio.wav import load_wav
from common.recognition.recognizer import ErrorCounts, error_counts
from common.training.optim import Novograd
from jasper.arg_parser import TrainingOptions
from jasper.augmentation import Augmentation, CutoutAugment, SpecAugment
from jasper.config import LABELS, FeatureConfig
from jasper.features import FeatureExtractor
from jasper.loss_function import JasperObjective, transcript_losses
from jasper.model import Jasper, JasperOutput, greedy_decode
from jasper.text import decode, encode, normalize_transcript, spelled
from jasper.training_setup import jasper_schedule
from jasper.waveform import change_speed, perturb, shift, voiced_part
from jasper.yaml_config import CONFIGS, DatasetSettings, ShiftPerturbation, load_config

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


RATE = 16000


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


def test_trimming_agrees_with_librosa(goldens: Path):
    generator = torch.Generator().manual_seed(0)
    for lead, trail, level in ((3000, 700, 1e-5), (0, 9000, 0.0), (5000, 0, 1e-4), (100, 100, 3e-4)):
        noise = level * torch.randn(lead + 4000 + trail, generator=generator)
        noise[lead : lead + 4000] += 0.5 * torch.sin(2 * torch.pi * 440 * torch.arange(4000) / RATE)
        _, (start, end) = librosa.effects.trim(noise.numpy(), top_db=60)
        assert voiced_part(noise) == slice(start, end)
    paths = recordings("jasper/audio/*.flac")
    for path in paths:
        wave = load_wav(path, sampling_rate=RATE)
        _, (start, end) = librosa.effects.trim(wave.numpy(), top_db=60)
        assert voiced_part(wave) == slice(start, end)


FOLDER = "jasper"


@pytest.mark.parametrize(("form", "index"), CASES)
@pytest.mark.parametrize("masks", [True, False])
@torch.no_grad()
def test_log_probabilities_equal_the_published_ones(folder: Path, form: str, index: int, masks: bool):
    tensors = load_file(folder / f"{form}.safetensors")
    network = golden_network(folder, form, use_conv_masks=masks)
    out = network(tensors[f"input.x{index}"], tensors[f"input.lens{index}"])
    name = "output" if masks else "output_nomask"
    torch.testing.assert_close(out.log_probs, tensors[f"{name}.{index}.log_probs"], atol=3e-5, rtol=0)
    assert torch.equal(out.lengths, tensors[f"output.{index}.out_lens"])


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_every_block_gives_what_the_published_one_gives(folder: Path, form: str):
    tensors = load_file(folder / f"{form}.safetensors")
    network = golden_network(folder, form)
    found = []
    for block in network.encoder.layers:
        block.register_forward_hook(lambda _, __, out: found.append(out))
    network(tensors["input.x0"], tensors["input.lens0"])
    assert f"output.0.enc.{len(found)}" not in tensors
    for index, (x, lengths) in enumerate(found):
        torch.testing.assert_close(x.squeeze(2), tensors[f"output.0.enc.{index}"], atol=3e-5, rtol=0)
        assert torch.equal(lengths, tensors[f"output.0.enc_lens.{index}"])


@pytest.mark.parametrize("form", FORMS)
def test_in_training_batch_statistics_count_padding_as_published(folder: Path, form: str):
    tensors = load_file(folder / f"{form}.safetensors")
    network = golden_network(folder, form).train()
    for layer in network.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    out = network(tensors["input.x0"], tensors["input.lens0"])
    torch.testing.assert_close(out.log_probs, tensors["train.log_probs"], atol=3e-5, rtol=0)
    state = network.state_dict()
    for key, value in group(tensors, "train.bn_after").items():
        torch.testing.assert_close(state[key], value, atol=3e-5, rtol=0)


def test_the_full_size_network_has_the_published_names_shapes_and_order(folder: Path):
    published = read_golden(folder / "full_size_state_dict.json")
    config = load_config(CONFIGS / "jasper10x5dr_speca.yaml").model
    with torch.device("meta"):
        network = Jasper(config)
    own = [(key, list(value.shape)) for key, value in network.state_dict().items()]
    assert own == [(key, entry["shape"]) for key, entry in published["state_dict"].items()]
    assert sum(parameter.numel() for parameter in network.parameters()) == published["n_params"]


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_folding_batch_norm_changes_nothing_that_is_heard(folder: Path, form: str):
    tensors = load_file(folder / f"{form}.safetensors")
    network = lively(golden_network(folder, form))
    folded = copy.deepcopy(network)
    folded.prepare_for_inference()
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in folded.modules())
    expected = network.infer(tensors["input.x0"], tensors["input.lens0"])
    found = folded.infer(tensors["input.x0"], tensors["input.lens0"])
    torch.testing.assert_close(found.log_probs, expected.log_probs, atol=5e-5, rtol=0)


LENGTHS = [4000, 3200, 2411, 1701, 3900, 3000]
VARIED = Augmentation(
    spec_augment=SpecAugment(freq_masks=2, max_freq=4, time_masks=2, max_time=6),
    cutout_augment=CutoutAugment(masks=1, min_freq=1, max_freq=3),
)


@pytest.mark.parametrize(("form", "index"), CASES)
def test_the_losses_of_utterances_equal_the_published_ones(folder: Path, form: str, index: int):
    about, tensors = read_case(folder, form)
    case = about["cases"][index]
    out = golden_network(folder, form)(tensors[f"input.x{index}"], tensors[f"input.lens{index}"])
    batch = targets(tensors[f"input.targets{index}"], tensors[f"input.target_lens{index}"])
    losses = transcript_losses(out, batch, blank=about["blank"])
    assert losses.tolist() == pytest.approx(case["ctc_per_sample"], rel=1e-5)
    assert float(losses.detach().mean()) == pytest.approx(case["ctc_loss"], rel=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_gradients_have_the_published_norms(folder: Path, form: str):
    about, tensors = read_case(folder, form)
    network = golden_network(folder, form)
    out = network(tensors["input.x0"], tensors["input.lens0"])
    batch = targets(tensors["input.targets0"], tensors["input.target_lens0"])
    transcript_losses(out, batch, blank=about["blank"]).mean().backward()
    norms = {name: float(parameter.grad.norm()) for name, parameter in network.named_parameters()}
    assert norms == pytest.approx(about["grad_norms_eval_case0"], rel=1e-3)


def test_a_transcript_too_long_for_its_frames_has_the_published_infinite_loss(folder: Path):
    about, tensors = read_case(folder, "ctc_edge")
    blank = tensors["input.log_probs"].size(-1) - 1
    out = JasperOutput(tensors["input.log_probs"], tensors["input.input_lens"])
    losses = transcript_losses(out, targets(tensors["input.targets"], tensors["input.target_lens"]), blank=blank)
    assert losses.tolist() == pytest.approx([float(value) for value in about["per_sample"]], rel=1e-5)


def test_augmentation_varies_training_and_leaves_validation_alone():
    network, objective = small_network(), JasperObjective(VARIED)
    varied, plain = utterances(LENGTHS, augmentation=VARIED), utterances(LENGTHS)
    before = varied.waves.clone()
    masked = objective.features(network, varied)
    assert torch.equal(varied.waves, before)
    assert torch.equal(objective.features(network, varied).features, masked.features)
    whole = objective.features(network, plain)
    assert torch.equal(whole.features, network.features(plain.waves, plain.wave_lengths).features)
    n_masked = int(((masked.features == 0) & (whole.features != 0)).sum())
    assert 0 < n_masked < whole.features.numel() // 2 and torch.equal(masked.lengths, whole.lengths)


def test_sentences_are_normalised_and_encoded_as_published(folder: Path):
    published = read_golden(folder / "text.json")
    assert published["labels"] == list(LABELS) and published["sentences"]
    for sentence in published["sentences"]:
        text = normalize_transcript(sentence["text"], LABELS)
        assert (text, encode(text, LABELS)) == (sentence["normalized"], sentence["ids"])
    for sentence in published["without_normalization"]:
        assert encode(sentence["text"], LABELS) == sentence["ids_without_normalization"]


@pytest.mark.parametrize(
    ("letters", "text", "wanted"),
    [
        ("abcdefghijklmnopqrstuvwxyzäöüß'", "Die Gro\u0308ße – Café, geht’s?", "die größe cafe geht's"),
        ("абвгдежзийклмнопрстуфхцчшщъыьэюяё-", "Дверь: Ёжик-то!", "дверь ёжик-то"),
        ("ABCDEFGHIÄÖÜ", "ägid", "ÄGID"),
        ("abcçdefgğhıijklmnoöprsştuüvyz", "IŞIK İyi", "ışık iyi"),
        ("äab", "3 & д", "3 & д"),
    ],
)
def test_other_alphabets_are_spelled_in_their_own_letters(letters: str, text: str, wanted: str):
    labels = (" ", *letters)
    assert spelled(text, labels) == normalize_transcript(text, labels) == wanted


def test_greedy_decoding_equals_the_published_one(folder: Path):
    expected, tensors = read_case(folder, "greedy_decode")
    log_probs, lengths = tensors["input.log_probs"], tensors["input.lens"]
    for name, given in (("with_lens", lengths), ("without_lens", torch.full_like(lengths, log_probs.size(1)))):
        ids = greedy_decode(log_probs, given, blank=expected["blank"])
        assert [decode(row, LABELS) for row in ids] == expected[f"text_{name}"]


@pytest.mark.parametrize("name", listed("jasper/optimizers.json", "novograd"))
def test_every_step_equals_the_original_optimizer(folder: Path, name: str):
    about, tensors = read_case(folder, "optimizers")
    published = about["novograd"]
    weights = [nn.Parameter(tensors[f"param0.{index}"].clone()) for index in range(len(about["shapes"]))]
    optimizer = Novograd(weights, **published[name]["kwargs"])
    for step in range(published[name]["step"]):
        for index, weight in enumerate(weights):
            weight.grad = tensors[f"grad.{step}.{index}"].clone()
        optimizer.step()
        for index, weight in enumerate(weights):
            expected = tensors[f"novograd_{name.replace('.', 'p')}.{step}.{index}"]
            torch.testing.assert_close(weight.data, expected, atol=5e-6, rtol=0)
            assert torch.equal(weight.grad, tensors[f"grad.{step}.{index}"])
    norms = [float(optimizer.state[weight]["exp_avg_sq"]) for weight in weights]
    assert norms == pytest.approx(published[name]["final_exp_avg_sq"], rel=1e-5)


def test_the_rates_of_updates_are_the_published_tables_and_not_one_step_late(folder: Path):
    tables = read_golden(folder / "optimizers.json", "lr_policy")
    assert tables
    for table in tables:
        given = table["kwargs"]
        options = TrainingOptions(
            lr_policy=given["policy"],
            warmup_epochs=given["warmup_epochs"],
            hold_epochs=given["hold_epochs"],
            min_lr=given["min_lr"],
            lr_exp_gamma=given.get("exp_gamma", 1.0),
        )
        rate = jasper_schedule(options, given["initial_lr"], n_epochs=given["num_epochs"])
        for step, epoch, expected in table["rows"]:
            assert rate(step, epoch, given["steps_per_epoch"]) == pytest.approx(expected, rel=1e-12)


@pytest.fixture
def published_errors(goldens: Path) -> dict:
    return json.loads((goldens / "jasper" / "wer_cer.json").read_text())


def test_every_pair_has_the_published_errors(published_errors: dict):
    assert published_errors["pairs"]
    for pair in published_errors["pairs"]:
        counts = error_counts([pair["reference"]], [pair["hypothesis"]])
        assert counts == ErrorCounts(
            pair["word_errors"], pair["reference_words"], pair["char_errors"], pair["reference_chars"]
        )
        if pair["reference_words"]:
            assert (counts.wer, counts.cer) == (pair["wer"], pair["cer"])


def test_the_rates_of_a_corpus_are_those_of_its_sums(published_errors: dict):
    references = [pair["reference"] for pair in published_errors["pairs"]]
    hypotheses = [pair["hypothesis"] for pair in published_errors["pairs"]]
    whole = error_counts(references, hypotheses)
    assert (whole.wer, whole.cer) == (published_errors["corpus"]["wer"], published_errors["corpus"]["cer"])


def test_an_empty_reference_has_finite_rates():
    assert error_counts([""], ["the cat"]).wer == 2.0
    assert error_counts([""], [""]).wer == 0.0
    assert error_counts([], []) == ErrorCounts()
