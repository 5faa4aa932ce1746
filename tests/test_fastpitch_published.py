"""Published checkpoints of FastPitch 1.0 and 1.1: they speak as stored, say how they were trained, and train on."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden_files import checkpoint_layouts
from safetensors.torch import load_file

from common.checkpoints import load_checkpoint, load_networks, save_checkpoint
from common.checkpoints.reading import read_published
from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import CheckpointError
from common.text import TextFrontEnd
from common.training import Engine, Optimization
from common.training.options import RunOptions
from fastpitch.aligner import padded_priors
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import FastPitchBatch

CPU, PATH = torch.device("cpu"), Path("voice.pt")
OLD, NEW = checkpoint_layouts("fastpitch_1_0"), checkpoint_layouts("fastpitch_1_1")
LAYOUTS = {f"fastpitch_1_0/{name}": layout for name, layout in OLD.items()}
LAYOUTS |= {f"fastpitch_1_1/{name}": layout for name, layout in NEW.items()}
WITH_EMA = next((name for name, layout in LAYOUTS.items() if layout["ema_state_dict"]), "")
WITHOUT_EMA = next((name for name, layout in LAYOUTS.items() if not layout.get("ema_state_dict", True)), "")
FIRST_1_1 = f"fastpitch_1_1/{next(iter(NEW), '')}"
WEIGHTS = [
    (name, key)
    for name, layout in LAYOUTS.items()
    for key in ("state_dict", "ema_state_dict")
    if key in layout["top_level_keys"] and layout.get(key, True)
]


@pytest.mark.parametrize(("name", "weights"), WEIGHTS)
def test_a_published_checkpoint_speaks_as_its_authors_code(goldens: Path, tmp_path: Path, name: str, weights: str):
    expected = load_file(goldens / f"{name}_expected.safetensors")
    published = load_checkpoint(goldens / f"{name}.pt")
    save_checkpoint(tmp_path / "ours.pt", published)
    for checkpoint in (published, load_checkpoint(tmp_path / "ours.pt")):
        networks, _ = load_networks(checkpoint, ema=weights == "ema_state_dict", device=CPU)
        text = expected["in.text"]
        out = networks["fastpitch"].infer(text, torch.tensor([text.size(1)]))
        assert torch.equal(out.lengths, expected[f"{weights}.dec_lens"])
        torch.testing.assert_close(out.mel, expected[f"{weights}.mel_out"], atol=1e-5, rtol=0)
        torch.testing.assert_close(out.pitch, expected[f"{weights}.pitch_pred"].flatten(1), atol=1e-5, rtol=0)
        torch.testing.assert_close(out.durations, expected[f"{weights}.dur_pred"], atol=2e-5, rtol=1e-5)
        if published.config.get("energy_conditioning"):
            torch.testing.assert_close(out.energy, expected[f"{weights}.energy_pred"], atol=1e-5, rtol=0)
        else:
            assert out.energy is None


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_published_checkpoint_says_how_its_text_and_audio_are_made(goldens: Path, name: str):
    checkpoint, layout = load_checkpoint(goldens / f"{name}.pt"), LAYOUTS[name]["config"]
    is_new = name.startswith("fastpitch_1_1")
    assert (checkpoint.model, checkpoint.config["learned_alignment"]) == ("FastPitch", is_new)
    assert checkpoint.config["symbol_type"] == layout.get("symbol_type", "char")
    assert checkpoint.audio.n_mels == layout["n_mel_channels"]
    if checkpoint.text.input_type == "char":
        assert checkpoint.text.cleaners == (("english_cleaners_v2_1_1",) if is_new else ("english_cleaners",))


def test_a_checkpoint_of_1_1_says_how_its_mels_were_made(goldens: Path):
    payload, audio = (
        torch.load(goldens / f"{FIRST_1_1}.pt", weights_only=True),
        load_checkpoint(goldens / f"{FIRST_1_1}.pt").audio,
    )
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
        Optimization(lambda iteration, epoch: 1e-3),
        RunOptions(optimizer=kind, learning_rate=1e-3),
        ranks=Ranks(),
    )
    engine.load_state(checkpoint.training, where="voice.pt")
    generator = torch.Generator().manual_seed(0)
    learned = {"pitch_frames": torch.randn(2, 30, generator=generator), "prior": padded_priors([30, 22], [9, 5])}
    durations = torch.tensor([[3, 3, 3, 3, 3, 3, 4, 4, 4], [4, 4, 4, 5, 5, 0, 0, 0, 0]])
    given = {"durations": durations, "pitch": torch.randn(2, 9, generator=generator)}
    batch = FastPitchBatch(
        names=("a", "b"),
        tokens=torch.randint(1, config.n_symbols, (2, 9), generator=generator),
        token_lengths=torch.tensor([9, 5]),
        mels=torch.randn(2, config.n_mel_channels, 30, generator=generator),
        mel_lengths=torch.tensor([30, 22]),
        speakers=torch.tensor([0, 1]) if config.n_speakers > 1 else None,
        **(learned if config.learned_alignment else given),
    )
    before = {key: value.clone() for key, value in networks["fastpitch"].named_parameters()}
    assert engine.step([batch], epoch=layout["epoch"] + 1).skipped == ()
    assert engine.iteration == layout["iteration"] + 1
    still = [key for key, value in networks["fastpitch"].named_parameters() if torch.equal(value, before[key])]
    assert all(key.startswith("attention.attn_proj") for key in still)
    saved = engine.state()["optimizers"]["fastpitch"]["states"]
    assert float(saved["fastpitch.proj.bias"]["step"]) == float(states["fastpitch.proj.bias"]["step"]) + 1


def test_ema_weights_that_are_absent_are_an_error_when_asked_for(goldens: Path):
    with pytest.raises(CheckpointError, match="holds no EMA weights; leave out --ema"):
        load_networks(load_checkpoint(goldens / f"{WITHOUT_EMA}.pt"), ema=True, device=CPU, where="voice.pt")


def test_weights_that_do_not_fit_are_listed_and_only_a_prefix_is_stripped(goldens: Path):
    payload = torch.load(goldens / f"{WITH_EMA}.pt", weights_only=True)
    weights, prefix = payload["state_dict"], LAYOUTS[WITH_EMA]["state_dict_first_keys"][0].removesuffix("pitch_mean")
    del payload["optimizer"], weights[f"{prefix}proj.bias"]
    weights |= {f"{prefix}pitch_emb.bias": torch.zeros(7), "encoder.module.weight": torch.zeros(1)}
    with pytest.raises(CheckpointError) as caught:
        load_networks(read_published(payload, path=PATH, training=True), device=CPU, where="voice.pt")
    message = str(caught.value)
    assert message.startswith('voice.pt: its weights do not fit the model: Missing key(s) in state_dict: "proj.bias". ')
    assert (
        '"encoder.module.weight"' in message and "pitch_emb.bias: copying a param with shape torch.Size([7])" in message
    )
