"""Checkpoints stripped for inference: what they hold and weigh; every command takes them, and none resumes them."""

from pathlib import Path

import pytest
import torch
from tiny_models import EPOCHS, Runs, TinyModel, of_every_model, of_every_training
from torch import Tensor

import train
from common.checkpoints.checkpoint import save_checkpoint, saved_checkpoints, strip_checkpoint
from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.errors import CheckpointError
from scripts.checkpoint_tools import strip

CPU = torch.device("cpu")


def weights(path: Path, *, ema: bool | None = None) -> dict[str, Tensor]:
    """Those of the network that infers, ready to."""
    return load_for_inference(open_checkpoint(path, ema=ema), device=CPU)[0].state_dict()


@of_every_training
def test_it_holds_the_averaged_network_alone_and_infers_as_the_whole_checkpoint(
    model: TinyModel, make_once, corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    whole = model.checkpoint(Runs(make_once, corpora, model).plain, EPOCHS)
    source = tmp_path / whole.name
    source.write_bytes(whole.read_bytes())
    strip([str(source)])
    path = tmp_path / f"{model.name}_inference_{EPOCHS}.pt"
    assert f"wrote {path}: {model.name}'s " in (out := capsys.readouterr().out)
    assert ", EMA weights in float32, " in out
    held = load_checkpoint(path)
    (state,) = held.networks.values()
    assert (held.ema, held.training) == (None, None)
    n_bytes = sum(value.numel() * value.element_size() for value in state.values())
    assert n_bytes < path.stat().st_size < n_bytes + 1000 * len(state) + 20_000 < source.stat().st_size
    expected = weights(source)
    for ema in (None, True):
        assert all(torch.equal(value, expected[key]) for key, value in weights(path, ema=ema).items())
    assert f"using the EMA weights of {path}\n" in capsys.readouterr().err
    with pytest.raises(CheckpointError, match="holds the EMA weights alone; leave out --no-ema"):
        open_checkpoint(path, ema=False)
    # Its name is none that a training resumes from, and its weights cannot be.
    assert saved_checkpoints(tmp_path, model.name) == [source]
    with pytest.raises(CheckpointError, match=rf"{path.name}: stripped for inference, so it can't be resumed"):
        train.main(model.words(corpora, tmp_path / "out", "--epochs", "9", "--checkpoint-path", str(path)))


@of_every_model
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_halves_the_matrices_alone_and_is_float32_when_it_is_read(
    model: TinyModel, dtype: str, make_once, corpora: Path, tmp_path: Path
):
    checkpoint = load_checkpoint(model.checkpoint(Runs(make_once, corpora, model).plain, EPOCHS))
    (whole,) = strip_checkpoint(checkpoint).networks.values()
    half = strip_checkpoint(checkpoint, dtype=dtype)
    (state,) = half.networks.values()
    sizes = [sum(value.numel() * value.element_size() for value in one.values()) for one in (state, whole)]
    assert sizes[0] < 0.8 * sizes[1]
    save_checkpoint(tmp_path / "half.pt", half)
    (read,) = load_checkpoint(tmp_path / "half.pt").networks.values()
    for key, value in read.items():
        assert value.dtype == whole[key].dtype
        if value.dim() > 1 and value.is_floating_point():
            torch.testing.assert_close(value, whole[key], rtol=2**-8, atol=1e-6)
        else:
            assert torch.equal(value, whole[key])
