"""HiFi-GAN: its networks, data, losses, options and training agree with the published ones."""

import copy
import json
import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile
import torch
from golden_files import audio_config, group, listed, read_case, read_golden, series
from hifigan_goldens import GENERATORS, formula_weights, generator_case, model_config
from safetensors.torch import load_file
from tiny_models import logged
from tiny_vocoder import ALIGNED, DEFAULTS, cut, hifigan_objective, segments, tiny_networks, vocoder_engine
from torch import Tensor, nn
from toy import weights
from training_setup import set_up, values

import train
from common.audio.mel import MelExtractor
from common.config import AudioConfig, to_plain
from common.data.recordings import input_mel_extractor
from common.errors import InputError, OptionError
from common.nn.discriminators import (
    DiscriminatorOutput,
    MultiPeriodDiscriminator,
    MultiScaleDiscriminator,
    SpectralNormConv1d,
)
from common.training.adversarial import discriminator_loss, feature_loss, generator_loss
from common.training.engine import StepResult
from common.training.objective import Networks, Objective
from common.training.settings import TrainingSetup
from hifigan import training_setup
from hifigan.config import PRESETS, ModelConfig
from hifigan.data_function import HifiganBatch, HifiganDataset
from hifigan.loss_function import HifiganObjective
from hifigan.model import Generator, RowConvTranspose, build_networks

FOLDER = "hifigan"


def record(generator: Generator, mel: Tensor) -> dict[str, Tensor]:
    """Intermediate results of a forward pass, by the goldens' names."""
    found = {}

    def keep(name: str) -> Callable:
        return lambda module, inputs, output: found.update({name: output[:1, :, 0].clone()})

    modules = {"conv_pre": generator.conv_pre, "conv_post": generator.conv_post}
    modules |= {f"up{index}": module for index, module in enumerate(generator.ups)}
    modules |= {f"stage{index}": module for index, module in enumerate(generator.resblocks)}
    hooks = [module.register_forward_hook(keep(name)) for name, module in modules.items()]
    generator(mel)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("form", ["state_dict", "state_dict_removed"])
@pytest.mark.parametrize("name", GENERATORS)
@torch.inference_mode()
def test_the_generator_equals_the_published_one(folder: Path, name: str, form: str):
    generator, tensors = generator_case(folder, name)
    if form == "state_dict_removed":  # weights as they are published for inference, into a network made for it
        generator = Generator(model_config(read_golden(folder / f"{name}.json", "config")))
        generator.prepare_for_inference()
        generator.load_state_dict(group(tensors, form))
    for mel, expected in zip(series(tensors, "input.mel"), series(tensors, "output.wav"), strict=True):
        wave = generator(mel)
        torch.testing.assert_close(wave, expected.squeeze(1), atol=2e-5, rtol=0)
        assert torch.equal(generator.infer(mel), wave)
    steps = group(tensors, "inter")
    assert len(steps) == 2 + 2 * len(generator.ups)
    n_stored = max(step.size(-1) for step in steps.values())  # longer ones are cut
    found = {key: step[..., :n_stored] for key, step in record(generator, tensors["input.mel0"]).items()}
    torch.testing.assert_close(found, steps, atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", GENERATORS)
@torch.inference_mode()
def test_a_trained_generator_prepared_for_inference_has_the_published_folded_weights(folder: Path, name: str):
    generator, tensors = generator_case(folder, name)
    before = generator(tensors["input.mel0"])
    generator.prepare_for_inference()
    torch.testing.assert_close(generator(tensors["input.mel0"]), before, atol=1e-6, rtol=0)
    expected = group(tensors, "state_dict_removed")
    assert set(generator.state_dict()) == set(expected)
    torch.testing.assert_close(dict(generator.state_dict()), expected, atol=1e-6, rtol=1e-5)
    generator.prepare_for_inference()
    torch.testing.assert_close(dict(generator.state_dict()), expected, atol=1e-6, rtol=1e-5)


def listing(network: nn.Module) -> list[tuple[str, list[int]]]:
    return [(key, list(value.shape)) for key, value in network.state_dict().items()]


def expected_listing(entries: dict[str, dict]) -> list[tuple[str, list[int]]]:
    return [(key, entry["shape"]) for key, entry in entries.items()]


def n_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


FULL_SIZE = listed("hifigan/full_size_state_dicts.json")


@pytest.mark.parametrize("name", [name for name in FULL_SIZE if name.startswith("generator_")])
def test_full_size_generators_have_the_published_names_shapes_and_order(folder: Path, name: str):
    published = read_golden(folder / "full_size_state_dicts.json", name)
    config = model_config(published["config"])
    preset = PRESETS.get(name.removeprefix("generator_"))
    assert preset in (None, config)
    with torch.device("meta"):
        generator = Generator(config)
    assert listing(generator) == expected_listing(published["nvidia_training"])
    assert n_parameters(generator) == published["n_params_training"]
    generator.prepare_for_inference()
    assert listing(generator) == expected_listing(published["nvidia_removed"])
    assert n_parameters(generator) == published["n_params_removed"]


@pytest.mark.parametrize("name", ["mpd", "msd"])
def test_full_size_discriminators_have_the_published_names_shapes_and_order(folder: Path, name: str):
    published = read_golden(folder / "full_size_state_dicts.json", name)
    with torch.device("meta"):
        network = build_networks(ModelConfig(), AudioConfig(), None)[name]
    assert listing(network) == expected_listing(published["state_dict"])
    assert n_parameters(network) == published["n_params"]
    assert [key for key, _ in network.named_buffers()] == published["buffers"]


def narrow(
    pooling_padding: int, *, channel_divisor: int = 32, group_divisor: int = 4
) -> tuple[MultiPeriodDiscriminator, MultiScaleDiscriminator]:
    """Discriminators of fewer channels and groups, with at least one."""
    full = ModelConfig(msd_pooling_padding=pooling_padding)
    divisors = {"mpd_channels": channel_divisor, "msd_channels": channel_divisor, "msd_groups": group_divisor}
    divided = {key: tuple(max(n // by, 1) for n in getattr(full, key)) for key, by in divisors.items()}
    config = replace(full, **divided)
    networks = build_networks(config, AudioConfig(), None)
    return networks["mpd"].eval(), networks["msd"].eval()


@torch.inference_mode()
def test_small_discriminators_equal_the_published_ones(folder: Path):
    about, tensors = read_case(folder, "discriminators_small_and_losses")
    divisors = {key: about[key] for key in ("channel_divisor", "group_divisor")}
    for name, network in zip(("mpd", "msd"), narrow(1, **divisors)):
        network.load_state_dict(group(tensors, f"{name}_state_dict"))
        for wave, suffix in (("y", "r"), ("y_hat", "g")):
            output = network(tensors[f"input.{wave}"])
            expected = group(tensors, f"output.{name}")
            scores = {f"y_d_{suffix}.{part}": value for part, value in enumerate(output.scores)}
            features = {
                f"fmap_{suffix}.{part}.{layer}": value
                for part, values in enumerate(output.features)
                for layer, value in enumerate(values)
            }
            found = scores | features
            assert set(found) == {key for key in expected if f"_{suffix}." in key}
            torch.testing.assert_close(found, {key: expected[key] for key in found}, atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def full_msd(goldens: Path) -> tuple[MultiScaleDiscriminator, dict, dict[str, Tensor]]:
    """The multi-scale discriminator of full size, and its published numbers."""
    network, published, tensors = load_full(goldens / "hifigan", "msd", "msd_nvidia")
    return network, published, tensors


def load_full(folder: Path, name: str, case: str) -> tuple[nn.Module, dict, dict[str, Tensor]]:
    about, tensors = read_case(folder, "discriminators_full")
    published = about["models"]
    with torch.device("meta"):
        network = build_networks(ModelConfig(), AudioConfig(), None)[name]
    weights = formula_weights(published[case]["parameters"])
    if name == "msd":
        weights |= group(tensors, "spectral")
    network.load_state_dict(weights, assign=True)
    return network.eval(), published, tensors


def check_full(network: nn.Module, tensors: dict[str, Tensor], case: str) -> None:
    for wave, suffix in (("y", "r"), ("y_hat", "g")):
        output = network(tensors[f"input.{wave}"])
        expected = group(tensors, f"output.{case}.y_d_{suffix}")
        assert len(output.scores) == len(expected)
        for part, scores in enumerate(output.scores):
            torch.testing.assert_close(scores, expected[str(part)], atol=1e-5, rtol=0)


@torch.inference_mode()
def test_the_full_size_multi_period_discriminator_equals_the_published_one(folder: Path):
    network, _, tensors = load_full(folder, "mpd", "mpd")
    check_full(network, tensors, "mpd")


@pytest.mark.parametrize(("case", "pooling_padding"), [("msd_nvidia", 1), ("msd_jik876", 2)])
@torch.inference_mode()
def test_the_full_size_multi_scale_discriminator_equals_both_published_ones(full_msd, case: str, pooling_padding: int):
    network, _, tensors = full_msd
    network.pooling_padding = pooling_padding
    check_full(network, tensors, case)


@torch.inference_mode()
def test_advancing_spectral_norm_equals_what_the_published_one_does_in_its_forward_passes(full_msd):
    network, published, tensors = full_msd
    network = copy.deepcopy(network).train()
    network.pooling_padding = 1
    expected = published["msd_nvidia"]["train_mode_one_forward"]
    for wave, name in (("y", "y_d_r0_stats"), ("y_hat", "y_d_g0_stats")):  # the original made an iteration a pass
        network.advance_spectral_norm()
        scores = network(tensors[f"input.{wave}"]).scores[0]
        torch.testing.assert_close(scores.flatten()[:16], torch.tensor(expected[name]["first"]), atol=1e-5, rtol=0)
        assert scores.mean().item() == pytest.approx(expected[name]["mean"], abs=1e-6)
    buffers = dict(network.named_buffers())
    torch.testing.assert_close(buffers, group(tensors, "spectral_after_train_forward"), atol=1e-5, rtol=0)


def loud(generator: Generator) -> Generator:
    """The same with weights that make sound about as loud as speech: fresh ones hardly make any."""
    with torch.no_grad():
        for name, parameter in generator.named_parameters():
            if name.endswith("weight_g"):
                parameter.mul_(1.55)
    return generator


@pytest.mark.parametrize("rate", [2, 4, 8])
@pytest.mark.parametrize("width", [1, 4, 8, 12, 16, 32])
def test_gradients_of_upsampling_in_bfloat16_are_those_of_float32(width: int, rate: int):
    """On processors with AMX, oneDNN's bfloat16 gives noise in place of the gradient of narrow layers' input."""
    torch.manual_seed(0)
    layer = RowConvTranspose(2 * width, width, 2 * rate, rate, rate // 2)
    x = torch.randn(2, 2 * width, 1, 16).contiguous(memory_format=torch.channels_last).requires_grad_()
    target = torch.randn(2, width, 1, 16 * rate)
    gradients = {}
    for half in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = (layer(x.bfloat16() if half else x).float() * target).sum()
        (gradients[half],) = torch.autograd.grad(loss, [x])
    difference = gradients[True] - gradients[False]
    assert difference.norm() < 0.02 * gradients[False].norm()  # roundings of 2**-9 each


RAW = replace(ALIGNED, peak=None)
CENTERED = AudioConfig()


class Golden(NamedTuple):
    """The published items, and how they were made."""

    clips: list[str]  # their files in order
    rules: dict
    tensors: dict[str, Tensor]
    audio: AudioConfig
    full_band: MelExtractor

    @property
    def segment_size(self) -> int:
        return self.rules["segment_size"]


@pytest.fixture
def golden(goldens: Path, tmp_path: Path) -> Golden:
    """The published items; their recordings are in the folder ``audio``."""
    (tmp_path / "audio").symlink_to(goldens / "hifigan" / "audio")
    about, tensors = read_case(goldens / "hifigan", "mel_spectrogram")
    audio = audio_config(about["parameters"], framing="aligned", peak=0.95)
    full_band = MelExtractor(replace(audio, peak=None, mel_fmax=about["parameters"]["fmax_loss"]))
    clips = [f"audio/{clip}.flac" for clip in about["clip_order"]]
    return Golden(clips, about["dataset"], tensors, audio, full_band)


def assert_same_mel(mel: Tensor, expected: Tensor) -> None:
    """As near as float32 comes to the original: quiet bins differ most, since their logarithm does."""
    assert mel.shape == expected.shape
    error = (mel - expected).abs()
    assert error.max() < 5e-3
    assert error.mean() < 1e-5


def dataset(folder: Path, lines: list[str], *, audio: AudioConfig = ALIGNED, **others) -> HifiganDataset:
    filelist = folder / "list.txt"
    filelist.write_text("".join(f"{line}\n" for line in lines))
    options = replace(DEFAULTS, dataset_path=folder, **{"segment_size": 2048, "seed": 1} | others)
    return HifiganDataset(options, filelist, audio=audio)


def test_items_equal_the_originals(golden: Golden, tmp_path: Path):
    data = dataset(tmp_path, golden.clips, audio=golden.audio, segment_size=golden.segment_size)
    extract = input_mel_extractor(golden.audio)
    items = [item for item in golden.rules["items"] if f"dataset.{item['index']}_mel" in golden.tensors]
    assert items
    for item in items:
        start, index = item["audio_start"], item["index"]
        clip = golden.clips.index(f"audio/{item['clip']}.flac")
        segment = data[clip].audio[0, start : start + golden.segment_size]  # scaled as the whole recording
        assert_same_mel(extract(segment[None])[0], golden.tensors[f"dataset.{index}_mel"])
        assert_same_mel(golden.full_band(segment[None])[0], golden.tensors[f"dataset.{index}_mel_loss"])


def test_a_short_item_equals_the_originals(golden: Golden, tmp_path: Path):
    n_samples = int(re.search(r"first (\d+) samples of the first clip", golden.rules["stored"])[1])
    samples, rate = soundfile.read(tmp_path / golden.clips[0], dtype="int16")
    soundfile.write(tmp_path / "short.wav", samples[:n_samples], rate)
    data = dataset(tmp_path, ["short.wav"], audio=golden.audio, segment_size=golden.segment_size)
    segment = data.draw(0, epoch=1).audio[0]
    assert segment.shape == (golden.segment_size,) and not segment[n_samples:].any()
    assert_same_mel(input_mel_extractor(golden.audio)(segment[None])[0], golden.tensors["dataset.short_mel"])
    assert_same_mel(golden.full_band(segment[None])[0], golden.tensors["dataset.short_mel_loss"])


def test_an_item_of_fine_tuning_equals_the_originals(golden: Golden, tmp_path: Path):
    """As recorded, from where the mel's frames were taken."""
    name, raw = Path(golden.clips[-1]).stem, replace(golden.audio, peak=None)
    (tmp_path / "mels").mkdir()
    (stored,) = (mel + 0.01 for key, mel in golden.tensors.items() if key.startswith(f"output.{name}_raw_"))
    torch.save(stored, tmp_path / "mels" / f"{name}.pt")
    options = {"segment_size": golden.segment_size, "input_mels_dir": tmp_path / "mels"}
    data = dataset(tmp_path, [golden.clips[-1]], audio=raw, **options)
    first, n_frames = golden.rules["finetune_mel_start"], golden.segment_size // raw.hop_length
    for epoch in range(1, 4000):
        item = data.draw(0, epoch=epoch)
        if torch.equal(item.mels[0], stored[:, first : first + n_frames]):
            break
    else:
        pytest.fail("the golden's place was never drawn")
    assert_same_mel(golden.full_band(item.audio)[0], golden.tensors["dataset.finetune_mel_loss"])


def write_ramp(path: Path, n_samples: int, *, top: int | None = None) -> np.ndarray:
    """A recording whose samples say where they stand; the last one is the largest."""
    samples = np.arange(1, n_samples + 1, dtype=np.int16)
    if top is not None:
        samples[-1] = top
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, 22050)
    return samples


def first_sample(segment: Tensor) -> int:
    """Where in a ramp as recorded a segment begins."""
    return round(segment[0].item() * 32768) - 1


def test_segments_begin_anywhere_the_last_place_included(tmp_path: Path):
    write_ramp(tmp_path / "a.wav", 2053)
    data = dataset(tmp_path, ["a.wav"], audio=RAW)
    starts = [first_sample(data.draw(0, epoch=epoch).audio[0]) for epoch in range(1, 101)]
    assert set(starts) == set(range(6))  # 0 and 2053 - 2048 both count


def test_a_segment_is_scaled_as_the_complete_recording(tmp_path: Path):
    samples = write_ramp(tmp_path / "a.wav", 9001, top=20000)
    data = dataset(tmp_path, ["a.wav"])
    scaled = torch.from_numpy(samples / 20000 * 0.95).float()
    for epoch in (1, 2, 3):  # the first reads the peak, the others know it
        segment = data.draw(0, epoch=epoch).audio[0]
        start = round(segment[0].item() / 0.95 * 20000) - 1
        torch.testing.assert_close(segment, scaled[start : start + 2048], atol=1e-6, rtol=0)
    torch.testing.assert_close(data[0].audio[0], scaled[: 9001 // 256 * 256], atol=1e-6, rtol=0)


def counted_mels(folder: Path, name: str, n_frames: int, *, audio: AudioConfig = RAW) -> Tensor:
    """A stored mel whose values say which frame they are of."""
    mel = torch.arange(n_frames, dtype=torch.float32).expand(80, -1).contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(mel, folder / f"{name}.pt")
    (folder / "audio.json").write_text(json.dumps(to_plain(audio)))
    return mel


@pytest.mark.parametrize("audio", [RAW, CENTERED])
def test_mels_from_the_disk_are_cut_where_their_samples_are(audio: AudioConfig, tmp_path: Path):
    """A centered mel has a frame more than the recording has whole hops; it is never asked for samples."""
    write_ramp(tmp_path / "wavs" / "a.wav", 5000)  # 19 hops and a bit
    counted_mels(tmp_path / "mels", "a", 19 + (audio is CENTERED), audio=audio)
    data = dataset(tmp_path, ["wavs/a.wav"], audio=audio, input_mels_dir=tmp_path / "mels")
    firsts = set()
    for epoch in range(1, 100):
        item = data.draw(0, epoch=epoch)
        assert item.mels.shape == (1, 80, 8)
        frames = item.mels[0, 0].tolist()
        assert frames == [frames[0] + offset for offset in range(8)]
        assert first_sample(item.audio[0]) == 256 * frames[0]
        firsts.add(int(frames[0]))
    assert firsts == set(range(12))  # 0 and 19 - 8 both count
    whole = data[0]
    assert whole.mels[0, 0].tolist() == list(range(19)) and whole.audio.size(1) == 19 * 256


@pytest.fixture
def with_mels(tmp_path: Path) -> Path:
    write_ramp(tmp_path / "wavs" / "a.wav", 5000)
    counted_mels(tmp_path / "mels", "a", 19)
    return tmp_path


def open_mels(folder: Path, audio: AudioConfig = RAW) -> HifiganDataset:
    return dataset(folder, ["wavs/a.wav"], audio=audio, input_mels_dir=folder / "mels")


@pytest.mark.parametrize("n_frames", [18, 20])
def test_frames_that_do_not_belong_to_the_samples_are_refused(n_frames: int, with_mels: Path):
    counted_mels(with_mels / "mels", "a", n_frames)
    data = open_mels(with_mels)
    for read in (lambda: data[0], lambda: data.draw(0, epoch=1)):
        with pytest.raises(
            InputError, match=rf"mels/a\.pt: shape \(80, {n_frames}\), expected \(80, 19\) .*list\.txt:1"
        ):
            read()


def test_mels_that_are_missing_or_made_with_other_settings_are_named(with_mels: Path):
    counted_mels(with_mels / "mels", "a", 19, audio=replace(RAW, mel_fmax=7600.0, hop_length=200))
    with pytest.raises(InputError, match=r"mel_fmax: 7600\.0 \(the mels\), 8000\.0 .*") as caught:
        open_mels(with_mels)
    assert "hop_length: 200 (the mels), 256 (the options)" in str(caught.value)
    (with_mels / "mels" / "audio.json").unlink()
    assert open_mels(with_mels)[0].mels.shape == (1, 80, 19)  # the original's tools leave no description
    (with_mels / "mels" / "a.pt").unlink()
    with pytest.raises(InputError, match=r"mels/a\.pt: no such file, for wavs/a\.wav .*list\.txt:1.*extract"):
        open_mels(with_mels)


@pytest.mark.parametrize(("audio", "least"), [(ALIGNED, 512), (CENTERED, 768)])
def test_a_recording_too_short_to_validate_on_is_named(audio: AudioConfig, least: int, tmp_path: Path):
    """Too short is what has no mel after it is cut to whole hops."""
    for n_samples in (200, least - 1):
        write_ramp(tmp_path / "a.wav", n_samples)
        data = dataset(tmp_path, ["a.wav"], audio=audio)
        with pytest.raises(InputError, match=rf"a\.wav: {n_samples} samples, too short .* least {least} .*list\.txt:1"):
            data[0]
        segment = data.draw(0, epoch=1).audio[0]  # in training silence follows it
        assert segment[n_samples - 1] > 0 and not segment[n_samples:].any()
    write_ramp(tmp_path / "a.wav", least)
    shortest = dataset(tmp_path, ["a.wav"], audio=audio)
    batch = shortest.collate([shortest[0]])
    assert input_mel_extractor(audio)(batch.audio, batch.audio_lengths).isfinite().all()


@pytest.mark.parametrize("name", ["mpd", "msd"])
def test_losses_equal_the_originals(name: str, goldens: Path):
    folder = goldens / "hifigan"
    about, tensors = read_case(folder, "discriminators_small_and_losses")
    expected = about["losses"][name]
    parts = range(len(expected["generator_losses"]))
    real = [tensors[f"output.{name}.y_d_r.{part}"] for part in parts]
    made = [tensors[f"output.{name}.y_d_g.{part}"] for part in parts]
    of_generator = [generator_loss(scores).item() for scores in made]
    assert of_generator == pytest.approx(expected["generator_losses"], rel=1e-5)
    assert sum(of_generator) == pytest.approx(expected["generator_loss"], rel=1e-5)
    of_discriminator = [discriminator_loss(*pair).item() for pair in zip(real, made)]
    halves = zip(expected["discriminator_real_losses"], expected["discriminator_generated_losses"])
    assert of_discriminator == pytest.approx([sum(pair) for pair in halves], rel=1e-5)
    assert sum(of_discriminator) == pytest.approx(expected["discriminator_loss"], rel=1e-5)
    distance = 0.0
    for part in parts:
        layers = range(len(group(tensors, f"output.{name}.fmap_r.{part}")))
        maps = [[tensors[f"output.{name}.{kind}.{part}.{layer}"] for layer in layers] for kind in ("fmap_r", "fmap_g")]
        distance += feature_loss(*maps).item()
    assert 2 * distance == pytest.approx(expected["feature_loss"], rel=1e-5)


class AdvancingMsd(MultiScaleDiscriminator):
    """Makes a power iteration in every forward pass of training, as the original does."""

    def forward(self, wave: Tensor) -> DiscriminatorOutput:
        for module in self.modules():
            if isinstance(module, SpectralNormConv1d):
                # New buffers: the graph of the pass before still needs the old ones.
                module.weight_u, module.weight_v = module.weight_u.clone(), module.weight_v.clone()
        super().advance_spectral_norm()
        return super().forward(wave)

    def advance_spectral_norm(self) -> None:
        """Nothing: the passes do it."""


class Steps(NamedTuple):
    """What some updates did."""

    results: list[StepResult]
    norms: list[dict[str, float]]  # of the gradients of each network and of each of the generator's parameters
    generator: dict[str, Tensor]


def golden_start(folder: Path) -> Networks:
    """The networks that the golden's iterations begin with."""
    published = read_golden(folder / "discriminators_full.json", "models")
    with torch.device("meta"):
        networks = build_networks(ModelConfig(msd_pooling_padding=1), ALIGNED, None)
    name = read_golden(folder / "train_step.json", "generator_initial").split(".")[0]
    networks["generator"] = generator_case(folder, name)[0]
    networks["mpd"].load_state_dict(formula_weights(published["mpd"]["parameters"]), assign=True)
    spectral = group(load_file(folder / "discriminators_full.safetensors"), "spectral")
    weights = formula_weights(published["msd_nvidia"]["parameters"]) | spectral
    networks["msd"].load_state_dict(weights, assign=True)
    return networks


@pytest.fixture(scope="module")
def as_published(goldens: Path) -> Steps:
    """The golden's two iterations by our engine, with power iterations of spectral norm as often as the original."""
    folder = goldens / "hifigan"
    networks = golden_start(folder)
    networks["msd"].__class__ = AdvancingMsd
    about, inputs = read_case(folder, "train_step")
    settings = re.search(r"lr (\S+) betas \((\S+), (\S+)\) eps (\S+) weight_decay (\S+)", about["optimizer"])
    rate, *betas, eps, decay = map(float, settings.groups())
    recipe = {"learning_rate": rate, "betas": tuple(betas), "eps": eps, "weight_decay": decay}
    engine = vocoder_engine({name: network.train() for name, network in networks.items()}, **recipe)
    norms: list[dict[str, float]] = []

    def note(*names: str) -> None:
        for name in names:
            gradients = {key: p.grad for key, p in networks[name].named_parameters()}
            norms[-1][name] = torch.nn.utils.get_total_norm(gradients.values()).item()
            if name == "generator":
                norms[-1] |= {key: gradient.norm().item() for key, gradient in gradients.items()}

    engine.optimizers["discriminator"].register_step_pre_hook(lambda *_: note("mpd", "msd"))
    engine.optimizers["generator"].register_step_pre_hook(lambda *_: note("generator"))
    results = []
    for audio, mels in zip(series(inputs, "input.audio"), series(inputs, "input.mel"), strict=True):
        norms.append({})
        lengths = torch.full((len(audio),), audio.size(2))
        batch = HifiganBatch(("",) * len(audio), audio[:, 0], lengths, ALIGNED.hop_length, mels)
        results.append(engine.step([batch], epoch=1))
    return Steps(results, norms, dict(networks["generator"].state_dict()))


def expected_terms(step: dict[str, float]) -> dict[str, float]:
    return {
        "d_loss": step["loss_disc_all"],
        "g_loss": step["loss_gen_all"],
        "adversarial_loss": step["loss_gen_mpd"] + step["loss_gen_msd"],
        "feature_loss": step["loss_fm_mpd"] + step["loss_fm_msd"],
        "mel_loss": step["loss_mel_x45"],
    }


def test_two_adversarial_updates_equal_the_originals(as_published: Steps, goldens: Path):
    steps = read_golden(goldens / "hifigan" / "train_step.json", "steps")
    for step, result, norms in zip(steps, as_published.results, as_published.norms, strict=True):
        assert result.terms == pytest.approx(expected_terms(step), rel=1e-4)
        assert norms["mpd"] == pytest.approx(step["grad_norm_mpd"], rel=5e-3)
        assert norms["msd"] == pytest.approx(step["grad_norm_msd"], rel=5e-3)
        assert norms["generator"] == pytest.approx(step["grad_norm_gen"], rel=5e-3)
        assert result.grad_norms["generator"] == pytest.approx(step["grad_norm_gen"], rel=5e-3)
        both = (step["grad_norm_mpd"] ** 2 + step["grad_norm_msd"] ** 2) ** 0.5
        assert result.grad_norms["discriminator"] == pytest.approx(both, rel=5e-3)
        assert set(step["gen_grad_norms"]) == set(as_published.generator)
        for key, norm in step["gen_grad_norms"].items():
            assert norms[key] == pytest.approx(norm, rel=5e-3), key


def test_the_generator_after_two_updates_is_the_originals(as_published: Steps, goldens: Path):
    expected = group(load_file(goldens / "hifigan" / "train_step.safetensors"), "generator_after")
    assert set(expected) == set(as_published.generator)
    errors = torch.cat([(as_published.generator[key] - value).abs().flatten() for key, value in expected.items()])
    # AdamW makes a whole step of even the smallest gradient, so a few elements may differ by one.
    assert errors.mean() < 1e-6
    assert (errors > 2e-5).float().mean() < 1e-3


def trained(objective: HifiganObjective, sizes: tuple[int, ...], *, steps: int = 3, **options):
    """Weights and terms after some updates on 8 segments, cut into micro-batches of these sizes."""
    networks = tiny_networks()
    engine = vocoder_engine(networks, objective, **options)
    terms = [engine.step(cut(segments(8, seed=step), sizes), epoch=1).terms for step in range(steps)]
    return weights(networks), terms


def test_discriminators_can_score_both_sounds_in_one_pass():
    apart, together = (trained(hifigan_objective(concat_fwd=concat), (8,)) for concat in (False, True))
    for ours, theirs in zip(apart[1], together[1]):
        assert ours == pytest.approx(theirs, rel=1e-4)
    for key, value in apart[0].items():
        torch.testing.assert_close(together[0][key], value, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("sizes", [(8,), (2, 2, 2, 2)])
def test_spectral_norm_makes_one_power_iteration_an_update(sizes: tuple[int, ...]):
    networks, other = tiny_networks(), tiny_networks()
    engine = vocoder_engine(networks)
    other["msd"].advance_spectral_norm()
    engine.step(cut(segments(8), sizes), epoch=1)
    assert len(list(networks["msd"].buffers())) == 16
    for key, value in other["msd"].named_buffers():
        assert torch.equal(value, networks["msd"].get_buffer(key))
    other["msd"].load_state_dict(networks["msd"].state_dict())
    other["msd"].advance_spectral_norm()
    engine.step(cut(segments(8, seed=1), sizes), epoch=1)
    for key, value in other["msd"].named_buffers():
        assert torch.equal(value, networks["msd"].get_buffer(key))


@pytest.mark.parametrize("in_amp", [True, False])
def test_the_engine_computes_grouped_convolutions_in_float32_where_asked(in_amp: bool):
    networks = tiny_networks()
    networks["msd"].amp_grouped_conv = in_amp
    kinds: dict[bool, set[torch.dtype]] = {False: set(), True: set()}
    for module in networks["msd"].modules():
        if isinstance(module, nn.Conv1d):
            module.register_forward_hook(lambda m, _, out: kinds[m.groups > 1].add(out.dtype))
    engine = vocoder_engine(networks, amp_dtype=torch.bfloat16)
    result = engine.step([segments(4)], epoch=1)
    assert not result.skipped
    assert kinds == {True: {torch.bfloat16 if in_amp else torch.float32}, False: {torch.bfloat16}}


REQUIRED = ("-m HiFi-GAN -o out --training-files a.txt --validation-files b.txt").split()


def parse(*argv: str) -> Namespace:
    return Namespace(**values(*REQUIRED, *argv))


def settings(*argv: str) -> TrainingSetup:
    return set_up(*REQUIRED, *argv)


def config(*argv: str) -> ModelConfig:
    setup = settings(*argv)
    return training_setup.model_config(setup.options, setup.audio, None, base=None)


def objective(*argv: str) -> Objective:
    setup = settings(*argv)
    return HifiganObjective(setup.options, setup.audio)


def test_without_options_training_is_as_published():
    args, found = parse(), settings()
    assert (args.optimizer, args.weight_decay, args.batch_size) == ("adamw", 0.01, 16)
    assert found.options.segment_size == 8192
    assert (args.epochs, args.gradient_accumulation_steps, args.seed, args.ema_decay) == (6500, 1, 1234, 0.0)
    assert args.grad_clip_thresh == float("inf")
    assert (args.epochs_per_checkpoint, args.validation_interval, args.samples_interval) == (10, 10, 100)
    assert {1000, 6500 // 1000 * 1000, 10000} <= set(args.keep_milestones)
    assert (found.optimization.betas, found.optimization.eps) == ((0.8, 0.99), 1e-8)
    assert [found.optimization.schedule(iteration, 1) for iteration in (1, 900)] == [3e-4, 3e-4]
    assert found.optimization.schedule(5, 11) == pytest.approx(3e-4 * 0.9998**10, rel=1e-12)
    assert found.audio == AudioConfig(22050, 1024, 256, 1024, 80, 0.0, 8000.0)  # as published voices'
    assert (found.text, found.adaptable) == (None, ())
    assert config() == PRESETS["v1"] == ModelConfig()
    assert objective()._loss_mel.config == replace(found.audio, framing="aligned", mel_fmax=None)


def test_the_authors_configuration_describes_their_model_and_recipe(goldens: Path):
    path = goldens / "hifigan" / "checkpoints" / "jik876_full_shapes" / "config.json"
    args, found = parse("--hifigan-config", str(path)), settings("--hifigan-config", str(path))
    values = read_golden(path)
    assert training_setup.model_config(found.options, found.audio, None, base=None) in PRESETS.values()
    given = [values[name] for name in ("batch_size", "segment_size", "seed", "fmax_for_loss")]
    assert [args.batch_size, args.segment_size, args.seed, args.mel_fmax_loss] == given
    assert found.optimization.betas == (values["adam_b1"], values["adam_b2"])
    expected = values["learning_rate"] * values["lr_decay"]
    assert found.optimization.schedule(7, 2) == pytest.approx(expected, rel=1e-12)
    assert found.audio == audio_config(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"resblock": "1", "n_ftt": 1024}', "unknown key 'n_ftt'; expected"),
        ('{"learning_rate": "fast"}', "learning_rate fast: expected a number above 0"),
        ('{"upsample_rates": [8, 2.5]}', r"upsample_rates 2\.5: expected a whole number"),
    ],
)
def test_a_configuration_that_is_none_is_one_line(text: str, message: str, tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        parse("--hifigan-config", str(path))
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--fine-tuning", "--fine-tuning needs --input-mels-dir"),
        ("--segment-size 8000", "--segment-size 8000: expected a multiple of the hop length, 256"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: str, message: str):
    with pytest.raises(OptionError, match=message):
        settings(*words.split())


@pytest.fixture(scope="module", autouse=True)
def without_pictures() -> Iterator[None]:
    """Drawing takes longer than all else here; the test of the pictures takes it up again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HifiganObjective, "examples", lambda *_: [])
        yield


# A few channels, segments of a fifth of a second, and a rate that falls soon: what a few hundred updates make of them.
_REAL = (
    "-m HiFi-GAN --preset v3 --upsample-initial-channel 32 --mpd-periods 2 5 --mpd-channels 4 8 8 8 8 "
    "--msd-channels 4 4 8 8 8 8 8 --msd-groups 1 1 2 2 2 2 1 --segment-size 4096 -bs 4 --adam-betas 0.5 0.9 "
    "--validation-interval 99"
).split()


@pytest.mark.parametrize(  # epochs of 19 updates
    ("n_epochs", "lr_decay", "left"), [(3, 0.6, 0.8), pytest.param(20, 0.88, 0.5, marks=pytest.mark.slow)]
)
def test_a_small_vocoder_learns_real_speech_and_its_discriminators_stay_awake(
    n_epochs: int, lr_decay: float, left: float, shared_data: Path, tmp_path: Path
):
    """80 clips: the validation mel loss falls to a part of the untrained network's."""
    folder = shared_data / "LJSpeech-sample"
    clips = [f"wavs/{path.name}\n" for path in sorted((folder / "wavs").glob("*.wav"))]
    assert len(clips) == 80
    lists = {"val": clips[::20], "train": [clip for index, clip in enumerate(clips) if index % 20], "few": clips[1:5]}
    for name, lines in lists.items():
        (tmp_path / f"{name}.txt").write_text("".join(lines))

    def run(name: str, training: str, *extra: str) -> Path:
        words = [*_REAL, "-d", str(folder), "--validation-files", str(tmp_path / "val.txt"), "-o", str(tmp_path / name)]
        assert train.main([*words, "--training-files", str(tmp_path / f"{training}.txt"), *extra]) == 0
        return tmp_path / name

    untrained = run("untrained", "few", "--epochs", "1", "-lr", "1e-12")  # one update that changes nothing
    trained = run("trained", "train", "--epochs", str(n_epochs), "-lr", "5e-3", "--lr-decay", str(lr_decay))
    before, after = (logged(path, "val_mel_loss")[0] for path in (untrained, trained))
    assert after < left * before

    # Of five discriminators that cannot tell, each loses 0.5 and makes the generator lose 0.25; of five that always
    # can, 0 and 1.
    of_discriminators = logged(trained, "avg_train_d_loss")
    of_generator = logged(trained, "avg_train_adversarial_loss")
    assert len(of_discriminators) == n_epochs
    assert all(1.0 < loss < 3.0 for loss in of_discriminators[1:])
    assert all(1.0 < loss < 3.5 for loss in of_generator[1:])
