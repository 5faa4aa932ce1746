"""HiFi-GAN's published checkpoints: every layout speaks as stored, and training can go on from it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import group, read_case, read_golden
from hifigan_goldens import (
    AUTHORS,
    AUTHORS_DISCRIMINATORS,
    GENERATORS,
    LAYOUT,
    NVIDIA,
    NVIDIA_DISCRIMINATORS,
    checkpoint_with,
)
from safetensors.torch import load_file
from torch import Tensor, nn

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.loading import load_networks, load_weights
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.errors import CheckpointError, InputError
from hifigan.config import PRESETS
from hifigan.model import build_networks

FOLDER = "hifigan/checkpoints"
NVIDIA_FULL = checkpoint_with("nvidia_full_shapes", "generator")
AUTHORS_FULL = checkpoint_with("jik876_full_shapes", "generator")
PAIRS = {NVIDIA_DISCRIMINATORS: NVIDIA, AUTHORS_DISCRIMINATORS: AUTHORS}
DISCRIMINATORS = {file: generator for file, generator in PAIRS.items() if file in LAYOUT}


@pytest.fixture
def expected(goldens: Path) -> dict[str, Tensor]:
    return load_file(goldens / "hifigan" / "checkpoints_expected.safetensors")


def _payload(path: Path) -> dict:
    return torch.load(path, weights_only=True)


def _networks(checkpoint: Checkpoint, **changes) -> dict[str, nn.Module]:
    config = replace(checkpoint.config, **changes)
    alone = set(checkpoint.networks) == {"generator"}
    networks = build_networks(config, checkpoint.audio, None, inference=alone)
    load_weights(networks, checkpoint.networks, where="checkpoint")
    return {name: network.eval() for name, network in networks.items()}


@torch.no_grad()
def _assert_speaks(checkpoint: Checkpoint, expected: dict[str, Tensor], name: str, *, ema: bool = False) -> None:
    networks, _ = load_networks(checkpoint, ema=ema, device=torch.device("cpu"))
    wave = networks["generator"](expected["input.mel"])
    torch.testing.assert_close(wave, expected[f"output.{name}"].squeeze(1), atol=2e-5, rtol=0)


def _layer(key: str) -> str:
    """A parameter's name without its own part."""
    return key.rpartition(".")[0]


def _same(first: object, second: object) -> bool:
    """Whether two nested structures of plain types and tensors are equal in type, order, values and shapes."""
    if isinstance(first, Tensor):
        return isinstance(second, Tensor) and first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        alike = isinstance(second, dict) and list(first) == list(second)
        return alike and all(_same(value, second[key]) for key, value in first.items())
    return type(first) is type(second) and first == second


@pytest.mark.parametrize(("file", "layout"), [(NVIDIA, "nvidia"), (AUTHORS, "jik876")])
@torch.no_grad()
def test_published_discriminators_score_as_their_authors_code(
    goldens: Path, folder: Path, expected, file: str, layout: str
):
    if file not in DISCRIMINATORS.values() or "input.y" not in expected:
        pytest.skip(f"the recording or the discriminators of {file} are not in {goldens}")
    check = read_golden(goldens / "hifigan" / "checkpoints.json", f"{layout}_discriminator_check")
    # Both checks were made with NVIDIA's classes, which pad pooling by 1; the weights are interchangeable.
    networks = _networks(load_checkpoint(folder / file), msd_pooling_padding=1)
    for name in ("mpd", "msd"):
        means = [scores.mean().item() for scores in networks[name](expected["input.y"]).scores]
        assert means == pytest.approx(check[name], abs=1e-5)


def test_full_size_checkpoints_are_of_the_published_models(folder: Path):
    authors, nvidia = load_checkpoint(folder / AUTHORS_FULL), load_checkpoint(folder / NVIDIA_FULL)
    assert authors.config in PRESETS.values()
    ordered = replace(PRESETS["v1"], resblock_kernel_sizes=(11, 7, 3), msd_pooling_padding=1)
    assert nvidia.config == ordered
    for checkpoint in (authors, nvidia):
        with torch.device("meta"):  # shapes alone: no memory, no random numbers
            networks = build_networks(checkpoint.config, checkpoint.audio, None)
        for phase, names in (("discriminator", ("msd", "mpd")), ("generator", ("generator",))):
            shapes = {f"{name}.{key}": p.shape for name in names for key, p in networks[name].named_parameters()}
            states = checkpoint.training["optimizers"][phase]["states"]
            assert {key: state["exp_avg"].shape for key, state in states.items()} == shapes


def test_what_a_checkpoint_for_inference_does_not_record_is_assumed(folder: Path, expected, tmp_path: Path):
    payload = _payload(folder / NVIDIA)
    torch.save({"generator": payload["generator"], "config": payload["config"]}, tmp_path / "hub.pt")
    checkpoint = load_checkpoint(tmp_path / "hub.pt")
    assert checkpoint.audio == AudioConfig(framing="aligned", peak=0.95)
    assert set(checkpoint.assumed) == {
        "sampling_rate",
        "filter_length",
        "win_length",
        "mel_fmin",
        "mel_fmax",
        "framing",
        "peak",
    }
    _assert_speaks(checkpoint, expected, "nvidia_generator")


@pytest.mark.parametrize("file", DISCRIMINATORS)
def test_training_resumes_where_the_original_would(folder: Path, file: str):
    # NVIDIA saves at the end of an epoch counted from 1; the authors repeat theirs, which they count from 0.
    training = load_checkpoint(folder / DISCRIMINATORS[file]).training
    assert (training["epoch"], training["iteration"]) == (LAYOUT[file]["epoch"], LAYOUT[file]["steps"])


@pytest.mark.parametrize("file", [NVIDIA, AUTHORS])
def test_optimizer_state_goes_to_the_parameters_it_was_of(goldens: Path, folder: Path, file: str):
    full = read_golden(goldens / "hifigan" / "full_size_state_dicts.json")
    paths = dict(zip(PAIRS.values(), PAIRS, strict=True))
    payload, checkpoint = _payload(folder / paths[file]), load_checkpoint(folder / file)
    optimizers = checkpoint.training["optimizers"]
    order = [f"generator.{key}" for key in checkpoint.networks["generator"]]
    assert list(optimizers["generator"]["states"]) == order
    order = []
    for name in ("msd", "mpd"):
        order += [f"{name}.{key}" for key in full[name]["state_dict"] if key not in full[name]["buffers"]]
    assert list(optimizers["discriminator"]["states"]) == order
    assert order[1] == "msd.discriminators.0.convs.0.weight_orig"
    for phase in ("generator", "discriminator"):
        stored = payload[f"optim_{phase[0]}"]["state"]
        for index, state in enumerate(optimizers[phase]["states"].values()):
            assert _same(state, stored[index])


@pytest.mark.parametrize("case", GENERATORS)
@pytest.mark.parametrize("naming", ["nvidia", "jik876"])
@torch.no_grad()
def test_a_generator_without_weight_norm_is_the_same_under_it(goldens: Path, tmp_path: Path, case: str, naming: str):
    golden, tensors = read_case(goldens / "hifigan", case)
    ours, folded = group(tensors, "state_dict"), group(tensors, "state_dict_removed")
    if naming == "jik876":
        flat = {_layer(nvidia): _layer(authors) for authors, nvidia in golden["jik876_to_nvidia_keys"].items()}
        folded = {
            f"{flat.get(_layer(key), _layer(key))}.{key.rpartition('.')[2]}": value for key, value in folded.items()
        }
    torch.save({"generator": folded, "config": golden["config"]}, tmp_path / "a.pt")
    checkpoint = load_checkpoint(tmp_path / "a.pt")
    assert set(checkpoint.networks["generator"]) == set(ours)
    generator = _networks(checkpoint)["generator"]
    wave = generator(tensors["input.mel0"])
    torch.testing.assert_close(wave, tensors["output.wav0"].squeeze(1), atol=2e-5, rtol=0)
    generator.prepare_for_inference()
    originals = {key: value for key, value in folded.items() if key.startswith(("conv", "ups"))}
    for key, value in originals.items():
        torch.testing.assert_close(generator.state_dict()[key], value, atol=0, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, r"generator without its config\.json, expected \S+json$"),
        ("{", r"config\.json:1: not JSON "),
        ("{}", r"config\.json: its HiFi-GAN configuration lacks resblock, upsample_initial_channel"),
        ({"fmin": 9000}, r"config\.json: its audio: mel_fmin 9000"),
        ({"resblock_kernel_sizes": 3}, r"config\.json: resblock_kernel_sizes: .*, got 3$"),
        (
            {"upsample_initial_channel": 512},
            r"its weights do not fit the model: size mismatch for conv_pre\.bias: .*\[16\].*\[512\]",
        ),
    ],
)
def test_a_configuration_that_will_not_do_is_one_clear_line(folder: Path, tmp_path: Path, change, message: str):
    path = Path(shutil.copyfile(folder / AUTHORS, tmp_path / "g_1"))
    if isinstance(change, dict):
        change = json.dumps(read_golden(folder / "jik876/config.json") | change)
    if change is not None:
        (tmp_path / "config.json").write_text(change)
    with pytest.raises(InputError, match=message) as caught:
        _networks(load_checkpoint(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", DISCRIMINATORS)
def test_discriminators_given_as_a_vocoder_are_refused(folder: Path, file: str):
    with pytest.raises(CheckpointError, match=r"holds only HiFi-GAN's discriminators; give the generator's file$"):
        load_checkpoint(folder / file)
