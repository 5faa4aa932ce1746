"""Published checkpoints of FastPitch 1.0 and 1.1: they speak as stored, say how they were trained, and train on."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import checkpoint_layouts

from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint, read_published
from common.config import AudioConfig
from common.distributed import Ranks
from common.text.front_end import TextFrontEnd
from common.training.engine import Engine
from common.training.optim import Optimization
from common.training.options import RunOptions
from fastpitch.loss_function import FastPitchObjective

CPU, PATH = torch.device("cpu"), Path("voice.pt")
OLD, NEW = checkpoint_layouts("fastpitch_1_0"), checkpoint_layouts("fastpitch_1_1")
LAYOUTS = {f"fastpitch_1_0/{name}": layout for name, layout in OLD.items()}
LAYOUTS |= {f"fastpitch_1_1/{name}": layout for name, layout in NEW.items()}
FIRST_1_1 = f"fastpitch_1_1/{next(iter(NEW), '')}"


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_published_checkpoint_says_how_its_text_and_audio_are_made(goldens: Path, name: str):
    checkpoint, layout = load_checkpoint(goldens / f"{name}.pt"), LAYOUTS[name]["config"]
    is_new = name.startswith("fastpitch_1_1")
    assert (checkpoint.model, checkpoint.config.learned_alignment) == ("FastPitch", is_new)
    assert checkpoint.config.symbol_type == layout.get("symbol_type", "char")
    assert checkpoint.audio.n_mels == layout["n_mel_channels"]
    if checkpoint.text.input_type == "char":
        assert checkpoint.text.cleaners == (("english_cleaners_v2_1_1",) if is_new else ("english_cleaners",))


def test_a_checkpoint_of_1_1_says_how_its_mels_were_made(goldens: Path):
    payload = torch.load(goldens / f"{FIRST_1_1}.pt", weights_only=True)
    audio = read_published(payload, path=PATH, training=True).audio
    payload["train_setup"] |= {"sampling_rate": 44100, "hop_length": 512, "mel_fmax": 16000.0}
    found = read_published(payload, path=PATH, training=True).audio
    assert found == replace(audio, sampling_rate=44100, hop_length=512, mel_fmax=16000.0)
    del payload["train_setup"]
    assert read_published(payload, path=PATH, training=True).audio == AudioConfig(n_mels=audio.n_mels)


def test_a_checkpoint_of_1_1_says_how_it_reads(goldens: Path):
    payload = torch.load(goldens / f"{FIRST_1_1}.pt", weights_only=True)
    payload["train_setup"] |= {"text_cleaners": ["english_cleaners_v2"], "symbol_set": "english_basic"}
    text = read_published(payload, path=PATH, training=False).text
    assert (text.cleaners, text.symbol_set) == (("english_cleaners_v2_1_1",), "english_basic")
    assert TextFrontEnd(text).clean("Größe") == "groesse"
    payload["config"]["n_symbols"] = 175
    payload["train_setup"]["symbol_set"] = "english_expanded"
    text = read_published(payload, path=PATH, training=False).text
    assert TextFrontEnd(text).n_symbols == 175
    del payload["train_setup"]
    text = read_published(payload, path=PATH, training=False).text
    assert (text.cleaners, text.symbol_set) == (("english_cleaners_1_1",), "english_expanded_1_1")


@pytest.mark.parametrize("name", LAYOUTS)
def test_training_goes_on_from_a_published_checkpoint(goldens: Path, name: str):
    layout, checkpoint = LAYOUTS[name], load_checkpoint(goldens / f"{name}.pt")
    payload = torch.load(goldens / f"{name}.pt", weights_only=True)
    states = checkpoint.training["optimizers"]["fastpitch"]["states"]
    assert (checkpoint.training["epoch"], checkpoint.training["iteration"]) == (layout["epoch"], layout["iteration"])
    without = layout["optimizer"].get("params_without_state", [])
    order = [f"fastpitch.{key}" for key in layout["optimizer_param_order"]]
    assert list(states) == [key for index, key in enumerate(order) if index not in without]
    for index, key in enumerate(order):
        if index not in without:
            assert torch.equal(states[key]["exp_avg_sq"], payload["optimizer"]["state"][index]["exp_avg_sq"])
    networks, config = load_networks(checkpoint, device=CPU)
    kind = "lamb" if "trust_ratio" in layout["optimizer"].get("state_entry_0", {}) else "adam"
    engine = Engine(
        networks,
        FastPitchObjective(energy=config.energy_conditioning, alignment=config.learned_alignment),
        Optimization(lambda iteration, *_: 1e-3),
        RunOptions(optimizer=kind, learning_rate=1e-3),
        ranks=Ranks(),
    )
    engine.load_state(checkpoint.training, where="voice.pt")
    saved = engine.state()["optimizers"]["fastpitch"]["states"]
    assert engine.iteration == layout["iteration"] and list(saved) == list(states)
    for key, state in states.items():
        assert torch.equal(saved[key]["exp_avg"], state["exp_avg"])
        assert float(saved[key]["step"]) == float(state["step"])
