"""Updates run as recorded work from tensors of their own, on the CPU without a graph, against the plain ones."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from tiny_models import MODELS, TinyModel, assert_same_state, logged, without_samples
from toy import ToyBatch, toy_collate, toy_engine, toy_networks, toy_utterances, weights

from common.distributed import Ranks
from common.errors import OptionError
from common.training import step_graphs

RECORDABLE = pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.name)
# The whole corpus is a batch of FastPitch's, so that its shape recurs; HiFi-GAN's segments all have one.
WORDS = {"FastPitch": "-bs 16 --epochs 5 --grad-clip-thresh 0.5", "HiFi-GAN": "-bs 4 --epochs 2"}
COMMON = "--ema-decay 0.9 --validation-interval 9"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list:
    """What was recorded."""
    found, repeat = [], step_graphs.repeat
    monkeypatch.setattr(step_graphs, "repeat", lambda work: found.append(repeat(work)) or found[-1])
    return found


def train(model: TinyModel, corpora: Path, output: Path, *extra: str) -> None:
    with without_samples():
        assert model.train(corpora, output, *COMMON.split(), *WORDS[model.name].split(), *extra) == 0


@RECORDABLE
def test_recorded_updates_learn_what_plain_ones_do_bit_for_bit_resumed_too(
    model: TinyModel, corpora: Path, tmp_path: Path, recorded: list
):
    train(model, corpora, tmp_path / "plain")
    assert not recorded
    train(model, corpora, tmp_path / "graphs", "--cuda-graphs")
    assert len(recorded) == 1
    for name in model.logged:
        plain = logged(tmp_path / "plain", f"train_{name}")
        assert len(plain) >= 5
        assert logged(tmp_path / "graphs", f"train_{name}") == plain
    epoch = int(WORDS[model.name].split()[3])
    train(model, corpora, tmp_path / "parts", "--cuda-graphs", "--epochs-this-job", str(epoch - 1))
    train(model, corpora, tmp_path / "parts", "--cuda-graphs", "--resume")
    for run in ("graphs", "parts"):
        assert_same_state(model.checkpoint(tmp_path / "plain", epoch), model.checkpoint(tmp_path / run, epoch))


def batch_of(seed: int, *, count: int = 4, bad: bool = False) -> ToyBatch:
    """Utterances of other values in tensors of one shape."""
    batch = toy_collate(toy_utterances(count, seed=0))
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(batch.inputs.shape, generator=generator) * (torch.nan if bad else 1.0)
    lengths = torch.randint(2, batch.inputs.size(1) + 1, (count,), generator=generator)
    return ToyBatch(tuple(f"{seed}-{i}" for i in range(count)), inputs, inputs.nan_to_num().sin(), lengths)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "lamb", "novograd"])
@pytest.mark.parametrize("amp_dtype", [None, torch.float16], ids=str)
def test_recorded_work_reads_each_updates_values_and_skips_on_its_own(
    optimizer: str, amp_dtype: torch.dtype | None, recorded: list
):
    plain, graphs = toy_networks(), toy_networks()
    options = {"optimizer": optimizer, "grad_clip_thresh": 0.3, "ema_decay": 0.5, "amp_dtype": amp_dtype}
    engines = [toy_engine(plain, **options), toy_engine(graphs, cuda_graphs=True, **options)]
    for engine in engines:
        engine._schedule = lambda iteration, *_: 0.01 / iteration
    for seed in range(9):
        batches = [batch_of(seed, bad=seed == 6), batch_of(seed + 100, count=3)]
        expected, found = (engine.step(batches, epoch=1, stop=seed == 7, save=seed == 8) for engine in engines)
        assert found.skipped == expected.skipped == (("discriminator", "generator") if seed == 6 else ())
        assert found.figures["step"] == expected.figures["step"]
        if seed != 6:
            assert found.figures == expected.figures
    assert found.figures["step"]["saves"] == 1
    assert len(recorded) == 1
    for key, value in weights(plain).items():
        assert torch.equal(weights(graphs)[key], value)
    assert engines[0].state()["scaler"] == engines[1].state()["scaler"]


def test_each_shape_is_recorded_at_its_fourth_update_and_again_when_the_losses_weights_change(recorded: list):
    engine = toy_engine(toy_networks(), cuda_graphs=True)
    for count in (4, 5, 4, 5, 4, 5):
        engine.step([batch_of(1, count=count)], epoch=1)
    assert not recorded
    for count, n_recorded in ((4, 1), (4, 1), (5, 2), (4, 2)):
        engine.step([batch_of(2, count=count)], epoch=1)
        assert len(recorded) == n_recorded
    engine.objective.weights = lambda phase, *, epoch: {"d_loss": 2.0} if phase == "discriminator" else {"l1": 1.0}
    engine.step([batch_of(3)], epoch=2)
    assert len(recorded) == 3


@pytest.mark.parametrize("model", MODELS[2:], ids=lambda model: model.name)
def test_models_whose_updates_are_not_recorded_refuse(model: TinyModel, corpora: Path, tmp_path: Path):
    with pytest.raises(OptionError, match=r"--cuda-graphs: updates of this model .* are not recorded; leave it out"):
        model.train(corpora, tmp_path, "--epochs", "1", "--cuda-graphs")


def test_several_processes_are_refused(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("common.distributed.processes", lambda *, cuda: nullcontext(Ranks(world_size=2)))
    with pytest.raises(OptionError, match=r"--cuda-graphs: updates of .* several processes"):
        MODELS[1].train(corpora, tmp_path, "--epochs", "1", "--cuda-graphs")
