"""Published checkpoints of FastPitch 1.1: they speak as stored, say how they were trained, and train on."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import checkpoint_layouts
from safetensors.torch import load_file

from common.checkpoints import Checkpoint, load_checkpoint, load_networks, save_checkpoint
from common.config import AudioConfig
from common.distributed import Ranks
from common.text import TextFrontEnd
from common.training import Engine, EngineOptions
from common.training.optim import build_optimizer
from fastpitch.aligner import padded_priors
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import FastPitchBatch
from fastpitch.published_checkpoints import read_published

CPU = torch.device("cpu")
LAYOUTS = checkpoint_layouts("fastpitch_1_1")
FIRST = next(iter(LAYOUTS), "")


@pytest.fixture
def folder(goldens: Path) -> Path:
    return goldens / "fastpitch_1_1"


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        (name, key)
        for name in LAYOUTS
        for key in ("state_dict", "ema_state_dict")
        if key in LAYOUTS[name]["top_level_keys"]
    ],
)
def test_a_published_checkpoint_speaks_as_its_authors_code(folder: Path, tmp_path: Path, name: str, weights: str):
    expected = load_file(folder / f"{name}_expected.safetensors")
    published = load_checkpoint(folder / f"{name}.pt")
    save_checkpoint(tmp_path / "ours.pt", published)
    for checkpoint in (published, load_checkpoint(tmp_path / "ours.pt")):
        networks, _ = load_networks(checkpoint, ema=weights == "ema_state_dict", device=CPU)
        text = expected["in.text"]
        out = networks["fastpitch"].infer(text, torch.tensor([text.size(1)]))
        assert torch.equal(out.lengths, expected[f"{weights}.dec_lens"])
        torch.testing.assert_close(out.mel, expected[f"{weights}.mel_out"], atol=1e-5, rtol=0)
        torch.testing.assert_close(out.pitch, expected[f"{weights}.pitch_pred"][:, 0], atol=1e-5, rtol=0)
        torch.testing.assert_close(out.durations, expected[f"{weights}.dur_pred"], atol=2e-5, rtol=1e-5)
        if LAYOUTS[name]["config"]["energy_conditioning"]:
            torch.testing.assert_close(out.energy, expected[f"{weights}.energy_pred"], atol=1e-5, rtol=0)
        else:
            assert out.energy is None


def test_a_published_checkpoint_says_how_its_mels_were_made(folder: Path):
    payload, n_mels = torch.load(folder / f"{FIRST}.pt", weights_only=True), LAYOUTS[FIRST]["config"]["n_mel_channels"]
    payload["train_setup"] |= {"sampling_rate": 44100, "hop_length": 512, "mel_fmax": 16000.0}
    audio = read_published(payload, path=Path("voice.pt"), training=True).audio
    assert audio == replace(AudioConfig(n_mels=n_mels), sampling_rate=44100, hop_length=512, mel_fmax=16000.0)
    del payload["train_setup"]
    assert read_published(payload, path=Path("voice.pt"), training=True).audio == AudioConfig(n_mels=n_mels)


def test_a_published_checkpoint_reads_as_1_1_does(folder: Path):
    payload = torch.load(folder / f"{FIRST}.pt", weights_only=True)
    payload["train_setup"] |= {"text_cleaners": ["english_cleaners_v2"], "symbol_set": "english_basic"}
    text = read_published(payload, path=Path("voice.pt"), training=False).text
    assert (text.cleaners, text.symbol_set) == (("english_cleaners_v2_1_1",), "english_basic")
    assert TextFrontEnd(text).clean("Größe") == "groesse"
    payload["config"]["n_symbols"] = 175
    payload["train_setup"]["symbol_set"] = "english_expanded"
    text = read_published(payload, path=Path("voice.pt"), training=False).text
    assert TextFrontEnd(text).n_symbols == 175
    del payload["train_setup"]
    text = read_published(payload, path=Path("voice.pt"), training=False).text
    assert (text.cleaners, text.symbol_set) == (("english_cleaners_1_1",), "english_expanded_1_1")


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_published_checkpoint_is_known_by_its_parts(folder: Path, name: str):
    config = load_checkpoint(folder / f"{name}.pt").config
    assert config["learned_alignment"] is True
    assert config["energy_conditioning"] is LAYOUTS[name]["config"]["energy_conditioning"]
    assert config["symbol_type"] == "char"


def _resumed(checkpoint: Checkpoint, *, energy: bool) -> Engine:
    networks, _ = load_networks(checkpoint, device=CPU)
    network = networks["fastpitch"].train()
    engine = Engine(
        networks,
        FastPitchObjective(energy=energy, alignment=True),
        {"fastpitch": build_optimizer("adam", network.parameters(), learning_rate=1e-3, weight_decay=0.0)},
        schedules={"fastpitch": lambda iteration, epoch: 1e-3},
        ranks=Ranks(),
        options=EngineOptions(),
    )
    engine.load_state(checkpoint.training, where="voice.pt")
    return engine


@pytest.mark.parametrize("name", LAYOUTS)
def test_training_goes_on_from_a_published_checkpoint(folder: Path, name: str):
    layout = LAYOUTS[name]
    payload = torch.load(folder / f"{name}.pt", weights_only=True)
    checkpoint = load_checkpoint(folder / f"{name}.pt")
    states = checkpoint.training["optimizers"]["fastpitch"]["states"]
    assert (checkpoint.training["epoch"], checkpoint.training["iteration"]) == (layout["epoch"], layout["iteration"])
    order = [f"fastpitch.{key}" for key in layout["optimizer_param_order"]]
    for index, key in enumerate(order):
        if index not in layout["optimizer"]["params_without_state"]:
            assert torch.equal(states[key]["exp_avg_sq"], payload["optimizer"]["state"][index]["exp_avg_sq"])
    assert len(states) == layout["optimizer"]["n_state"]
    engine = _resumed(checkpoint, energy=layout["config"]["energy_conditioning"])
    generator = torch.Generator().manual_seed(0)
    batch = FastPitchBatch(
        names=("a", "b"),
        tokens=torch.randint(1, layout["config"]["n_symbols"], (2, 9), generator=generator),
        token_lengths=torch.tensor([9, 5]),
        mels=torch.randn(2, layout["config"]["n_mel_channels"], 30, generator=generator),
        mel_lengths=torch.tensor([30, 22]),
        pitch_frames=torch.randn(2, 30, generator=generator),
        prior=padded_priors([30, 22], [9, 5]),
        speakers=torch.tensor([0, 1]) if checkpoint.config["n_speakers"] > 1 else None,
    )
    network = engine.networks["fastpitch"]
    before = {key: value.clone() for key, value in network.named_parameters()}
    result = engine.step([batch], epoch=layout["epoch"] + 1)
    assert result.skipped == ()
    assert engine.iteration == layout["iteration"] + 1
    still = [key for key, value in network.named_parameters() if torch.equal(value, before[key])]
    assert still == ["attention.attn_proj.weight", "attention.attn_proj.bias"]
    saved = engine.state()["optimizers"]["fastpitch"]["states"]
    assert float(saved["fastpitch.proj.bias"]["step"]) == float(states["fastpitch.proj.bias"]["step"]) + 1
