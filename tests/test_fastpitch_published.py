"""Published checkpoint layouts: read with the numbers they were stored for, or named in an error."""

from pathlib import Path

import pytest
import torch
from golden_files import checkpoint_layouts
from safetensors.torch import load_file

from common.checkpoints import load_checkpoint, load_networks
from common.errors import CheckpointError
from common.training.optim import build_optimizer, load_state_by_name
from fastpitch.published_checkpoints import read_published

CPU = torch.device("cpu")
LAYOUTS = checkpoint_layouts("fastpitch_1_0")
WITH_EMA = next((name for name, layout in LAYOUTS.items() if layout["ema_state_dict"]), "")
WITHOUT_EMA = next((name for name, layout in LAYOUTS.items() if not layout["ema_state_dict"]), "")


@pytest.fixture
def folder(goldens: Path) -> Path:
    return goldens / "fastpitch_1_0"


def _assert_speaks_as_stored(folder: Path, name: str, weights: str) -> None:
    checkpoint = load_checkpoint(folder / f"{name}.pt")
    expected = load_file(folder / f"{name}_expected.safetensors")
    networks, _ = load_networks(checkpoint, ema=weights == "ema_state_dict", device=CPU)
    text = expected["in.text"]
    out = networks["fastpitch"].infer(text, torch.tensor([text.size(1)]))
    assert torch.equal(out.lengths, expected[f"{weights}.dec_lens"])
    torch.testing.assert_close(out.mel, expected[f"{weights}.mel_out"], atol=1e-5, rtol=0)
    torch.testing.assert_close(out.pitch, expected[f"{weights}.pitch_pred"], atol=1e-5, rtol=0)
    torch.testing.assert_close(out.durations, expected[f"{weights}.dur_pred"], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "weights"),
    [(name, key) for name in LAYOUTS for key in ("state_dict", "ema_state_dict") if LAYOUTS[name].get(key, True)],
)
def test_a_published_fastpitch_checkpoint_speaks_as_its_authors_code(folder: Path, name: str, weights: str):
    _assert_speaks_as_stored(folder, name, weights)


def test_a_published_checkpoint_says_how_its_text_and_audio_are_made(folder: Path):
    checkpoint = load_checkpoint(folder / f"{WITH_EMA}.pt")
    assert checkpoint.model == "FastPitch"
    assert checkpoint.text.symbol_set == "english_basic"
    assert checkpoint.text.cleaners == ("english_cleaners",)
    assert checkpoint.audio.n_mels == LAYOUTS[WITH_EMA]["config"]["n_mel_channels"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_optimizer_state_of_a_published_checkpoint_goes_to_the_parameters_it_was_of(folder: Path, name: str):
    layout = LAYOUTS[name]
    payload = torch.load(folder / f"{name}.pt", weights_only=True)
    training = load_checkpoint(folder / f"{name}.pt").training
    states = training["optimizers"]["fastpitch"]["states"]
    assert (training["epoch"], training["iteration"]) == (layout["epoch"], layout["iteration"])
    assert list(states) == [f"fastpitch.{key}" for key in layout["optimizer_param_order"]]
    for index, state in enumerate(states.values()):
        assert torch.equal(state["exp_avg_sq"], payload["optimizer"]["state"][index]["exp_avg_sq"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_training_can_go_on_from_a_published_checkpoint(folder: Path, name: str):
    optimizer = "lamb" if "trust_ratio" in LAYOUTS[name]["optimizer"]["state_entry_0"] else "adam"
    checkpoint = load_checkpoint(folder / f"{name}.pt")
    networks, _ = load_networks(checkpoint, device=CPU)
    named = {f"fastpitch.{key}": value for key, value in networks["fastpitch"].named_parameters()}
    own = build_optimizer(optimizer, named.values(), learning_rate=0.1, weight_decay=0.0)
    load_state_by_name(own, checkpoint.training["optimizers"]["fastpitch"], named, where=name)
    before = named["fastpitch.proj.weight"].clone()
    for parameter in named.values():
        parameter.grad = torch.ones_like(parameter)
    own.step()
    assert (
        own.state[named["fastpitch.proj.weight"]]["step"]
        == checkpoint.training["optimizers"]["fastpitch"]["states"]["fastpitch.proj.weight"]["step"] + 1
    )
    assert not torch.equal(before, named["fastpitch.proj.weight"])


def test_ema_weights_that_are_absent_are_an_error_when_asked_for(folder: Path):
    checkpoint = load_checkpoint(folder / f"{WITHOUT_EMA}.pt")
    with pytest.raises(CheckpointError, match="holds no EMA weights; leave out --ema"):
        load_networks(checkpoint, ema=True, device=CPU, where="voice.pt")


def test_only_a_prefix_is_stripped_from_keys(folder: Path):
    payload = torch.load(folder / f"{WITHOUT_EMA}.pt", weights_only=True)
    del payload["optimizer"]
    payload["state_dict"]["encoder.module.weight"] = torch.zeros(1)
    with pytest.raises(CheckpointError, match=r"unexpected encoder\.module\.weight"):
        load_networks(read_published(payload, path=Path("voice.pt"), training=True), device=CPU)


def test_weights_that_do_not_fit_are_listed(folder: Path):
    payload = torch.load(folder / f"{WITH_EMA}.pt", weights_only=True)
    weights, prefix = payload["state_dict"], LAYOUTS[WITH_EMA]["state_dict_first_keys"][0].removesuffix("pitch_mean")
    shape = tuple(weights[f"{prefix}pitch_emb.bias"].shape)
    del payload["optimizer"], weights[f"{prefix}proj.bias"]
    weights[f"{prefix}pitch_emb.bias"] = torch.zeros(7)
    with pytest.raises(CheckpointError) as caught:
        load_networks(read_published(payload, path=Path("voice.pt"), training=True), device=CPU, where="voice.pt")
    assert str(caught.value) == (
        f"voice.pt: its weights do not fit the model: missing proj.bias; pitch_emb.bias is (7,), expected {shape}"
    )


def test_a_checkpoint_without_an_input_type_reads_characters(folder: Path):
    payload = torch.load(folder / f"{WITH_EMA}.pt", weights_only=True)
    del payload["config"]["symbol_type"]
    assert read_published(payload, path=Path("voice.pt"), training=True).config["symbol_type"] == "char"


def test_an_unknown_layout_is_left_to_the_caller():
    assert read_published({"weights": {}}, path=Path("x.pt"), training=True) is None
    assert read_published({"state_dict": {"layer.weight": torch.zeros(1)}}, path=Path("x.pt"), training=True) is None


def test_a_damaged_published_checkpoint_is_one_clear_line(folder: Path):
    payload = torch.load(folder / f"{WITH_EMA}.pt", weights_only=True)
    del payload["config"]["n_symbols"]
    with pytest.raises(
        CheckpointError, match=r"^voice.pt: a damaged checkpoint of FastPitch \(KeyError: 'n_symbols'\)$"
    ):
        read_published(payload, path=Path("voice.pt"), training=True)
