"""Published Tacotron 2 checkpoints: read with the numbers they were stored for."""

from pathlib import Path

import pytest
import torch
from golden_files import entries

from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.training.optim import OPTIMIZERS, load_state_by_name

FOLDER = "tacotron2"
CPU = torch.device("cpu")
LAYOUT = entries("tacotron2/checkpoints.json", "layout")
SMALL = [file for file in LAYOUT if "full_shapes" not in file]
PLAIN = next((file for file in SMALL if LAYOUT[file]["optimizer"]["state"]), "")
SCALED = next((file for file in SMALL if LAYOUT[file]["scaler"]), "")


@pytest.mark.parametrize("name", SMALL)
def test_a_published_checkpoint_loads_into_the_model_it_describes(folder: Path, name: str):
    checkpoint = load_checkpoint(folder / "checkpoints" / name)
    assert checkpoint.model == "Tacotron2"
    assert (checkpoint.text.symbol_set, checkpoint.text.cleaners) == ("english_basic", ("english_cleaners_tacotron2",))
    assert checkpoint.audio == AudioConfig(n_mels=LAYOUT[name]["config"]["n_mel_channels"])
    networks, config = load_networks(checkpoint, device=CPU)
    assert config.mask_convolutions  # an utterance does not depend on its batch, whoever trained the voice
    assert set(networks) == {"tacotron2"}


def test_optimizer_state_and_loss_scale_go_where_they_belong(folder: Path):
    path = folder / "checkpoints" / PLAIN
    checkpoint = load_checkpoint(path)
    networks, _ = load_networks(checkpoint, device=CPU)
    named = {f"tacotron2.{key}": parameter for key, parameter in networks["tacotron2"].named_parameters()}
    optimizer = OPTIMIZERS["adam"](named.values(), 1e-3, weight_decay=1e-6)
    saved = checkpoint.training["optimizers"]["tacotron2"]
    load_state_by_name(optimizer, saved, named, where=str(path))
    stored = torch.load(path, weights_only=True)["optimizer"]["state"]
    assert len(stored) == len(named)
    for number, parameter in enumerate(named.values()):
        assert torch.equal(optimizer.state[parameter]["exp_avg"], stored[number]["exp_avg"])
    assert optimizer.param_groups[0]["eps"] == 1e-8
    assert checkpoint.training["epoch"] == LAYOUT[PLAIN]["epoch"] + 1  # the original counts from 0

    scaled, stored = load_checkpoint(folder / "checkpoints" / SCALED).training["scaler"], LAYOUT[SCALED]["scaler"]
    finite_since = {"tacotron2": stored["_growth_tracker"]}
    assert scaled == {"scales": {"tacotron2": stored["scale"]}, "finite_since": finite_since}
