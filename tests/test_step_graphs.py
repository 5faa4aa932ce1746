"""Updates run as recorded work from tensors of their own, on the CPU without a graph, against the plain ones."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from tiny_models import MODELS, TinyModel, aligned_words, assert_same_state, logged, without_samples
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from toy import ToyBatch, toy_collate, toy_engine, toy_networks, toy_utterances, weights

from common.distributed import Ranks
from common.errors import OptionError
from common.training import Engine, step_graphs

# The whole corpus is a batch, so that its shape recurs; HiFi-GAN's segments all have one.
WHOLE = "-bs 16 --epochs 5 --grad-clip-thresh 0.5"
WORDS = {"FastPitch": WHOLE, "HiFi-GAN": "-bs 4 --epochs 2", "Tacotron2": WHOLE}
RECORDABLE = pytest.mark.parametrize(
    "model", [model for model in MODELS if model.name in WORDS], ids=lambda model: model.label
)
COMMON = "--ema-decay 0.9 --validation-interval 9"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list:
    """What was recorded."""
    found, record = [], step_graphs.NoRecorder.record
    monkeypatch.setattr(
        step_graphs.NoRecorder, "record", lambda self, work: found.append(record(self, work)) or found[-1]
    )
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


def test_each_shape_is_recorded_at_its_fourth_update(recorded: list):
    engine = toy_engine(toy_networks(), cuda_graphs=True)
    for count in (4, 5, 4, 5, 4, 5):
        engine.step([batch_of(1, count=count)], epoch=1)
    assert not recorded
    for count, n_recorded in ((4, 1), (4, 1), (5, 2), (4, 2)):
        engine.step([batch_of(2, count=count)], epoch=1)
        assert len(recorded) == n_recorded


def test_weights_of_losses_change_without_another_recording(recorded: list):
    plain, graphs = toy_networks(), toy_networks()
    engines = [toy_engine(plain), toy_engine(graphs, cuda_graphs=True)]
    for engine in engines:
        engine.objective.weights = lambda phase, *, epoch: {
            ("d_loss" if phase == "discriminator" else "l1"): 0.1 * epoch
        }
    for epoch in range(1, 8):
        expected, found = (engine.step([batch_of(epoch)], epoch=epoch) for engine in engines)
        assert found.figures == expected.figures
    assert len(recorded) == 1
    assert all(torch.equal(weights(graphs)[key], value) for key, value in weights(plain).items())


KL = "--epochs 6 --kl-loss-start-epoch 2 --kl-loss-warmup-epochs 3".split()  # two updates an epoch


def test_fastpitch_1_1_is_recorded_once_whatever_the_weight_of_its_kl_loss(tmp_path: Path, recorded: list):
    words = [*aligned_words(tmp_path / "corpus"), "-bs", "4", *KL]
    with without_samples():
        for run, extra in (("plain", ()), ("graphs", ("--cuda-graphs",))):
            assert MODELS[0].train(tmp_path, tmp_path / run, *COMMON.split(), *words, *extra) == 0
    assert len(recorded) == 1
    plain, graphs = (logged(tmp_path / run, "train_loss") for run in ("plain", "graphs"))
    assert plain == graphs
    assert_same_state(*(MODELS[0].checkpoint(tmp_path / run, 6) for run in ("plain", "graphs")))


class NewMemory(TorchDispatchMode):
    """Notes the memory that operations make."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, StorageWeakRef]] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        before = {
            tensor.untyped_storage()._cdata for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)
        }
        results = function(*args, **kwargs or {})
        for tensor in tree_leaves(results):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in before:
                self.made.append((str(function), StorageWeakRef(tensor.untyped_storage())))
        return results


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What made the memory, besides the figures, that each recording leaves behind."""
    left: list[list[str]] = []

    def record(self, work: Callable[[], step_graphs.Figures]) -> tuple[Callable[[], object], step_graphs.Figures]:
        with NewMemory() as memory:
            figures = work()
        own = {figure.untyped_storage()._cdata for figure in figures.values()}
        left.append([name for name, storage in memory.made if not storage.expired() and storage.cdata not in own])
        return lambda: None, figures

    monkeypatch.setattr(step_graphs.NoRecorder, "record", record)
    return left


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "lamb", "novograd"])
@pytest.mark.parametrize("amp_dtype", [None, torch.float16], ids=str)
def test_nothing_that_a_recording_makes_is_kept_but_its_figures(
    optimizer: str, amp_dtype: torch.dtype | None, kept: list[list[str]]
):
    options = {"optimizer": optimizer, "grad_clip_thresh": 0.3, "ema_decay": 0.5, "amp_dtype": amp_dtype}
    engine = toy_engine(toy_networks(), cuda_graphs=True, **options)
    for seed in range(step_graphs.WARMUP_UPDATES + 1):
        engine.step([batch_of(seed), batch_of(seed, count=3)], epoch=1)
    assert kept == [[]]


@RECORDABLE
def test_nothing_that_a_models_recording_makes_is_kept(
    model: TinyModel, corpora: Path, tmp_path: Path, kept: list[list[str]]
):
    train(model, corpora, tmp_path, "--cuda-graphs")
    assert kept == [[]]


def test_nothing_that_fastpitch_1_1_makes_is_kept(tmp_path: Path, kept: list[list[str]]):
    with without_samples():
        words = [*COMMON.split(), *aligned_words(tmp_path / "corpus"), "-bs", "4", *KL, "--cuda-graphs"]
        assert MODELS[0].train(tmp_path, tmp_path / "out", *words) == 0
    assert kept == [[]]


@pytest.mark.parametrize("amp_dtype", [None, torch.float16], ids=str)
@pytest.mark.parametrize("breaks_at", ["_sum_counts", "unscale_", "_apply"])
def test_training_continues_without_graphs_where_an_update_cannot_be_recorded(
    breaks_at: str, amp_dtype: torch.dtype | None, monkeypatch: pytest.MonkeyPatch, capsys
):
    """As on a GPU, nothing of the update that is given up has run; the host has launched a part of it."""
    plain, graphs = toy_networks(), toy_networks()
    options = {"ema_decay": 0.5, "amp_dtype": amp_dtype}
    engines = [toy_engine(plain, **options), toy_engine(graphs, cuda_graphs=True, **options)]
    attempts = []

    class NothingRuns(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if not function._schema.is_mutable:
                return function(*args, **kwargs or {})
            return args[0] if len(function._schema.returns) else None

    def fail(self, work: Callable[[], object]) -> None:
        attempts.append(work)
        owner = torch.amp.GradScaler if breaks_at == "unscale_" else Engine
        whole, calls = getattr(owner, breaks_at), []

        def broken(*args, **kwargs):
            calls.append(whole(*args, **kwargs))
            if len(calls) == 2:
                raise RuntimeError("operation not permitted when stream is capturing\nmore")
            return calls[-1]

        with monkeypatch.context() as patched, NothingRuns():
            patched.setattr(owner, breaks_at, broken)
            work()

    monkeypatch.setattr(step_graphs.NoRecorder, "record", fail)
    for seed in range(step_graphs.WARMUP_UPDATES + 3):
        expected, found = (engine.step([batch_of(seed)], epoch=1) for engine in engines)
        assert found.figures == expected.figures
    assert len(attempts) == 1
    assert all(torch.equal(weights(graphs)[key], value) for key, value in weights(plain).items())
    assert str(engines[0].state()) == str(engines[1].state())
    assert capsys.readouterr().err == (
        "warning: --cuda-graphs: training cannot be recorded and runs without graphs "
        "(operation not permitted when stream is capturing)\n"
    )


@pytest.mark.parametrize("model", [one for one in MODELS if one.name not in WORDS], ids=lambda model: model.label)
def test_models_whose_updates_are_not_recorded_refuse(model: TinyModel, corpora: Path, tmp_path: Path):
    with pytest.raises(OptionError, match=r"--cuda-graphs: updates of this model .* are not recorded; leave it out"):
        model.train(corpora, tmp_path, "--epochs", "1", "--cuda-graphs")


def test_several_processes_are_refused(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("common.distributed.processes", lambda *, cuda: nullcontext(Ranks(world_size=2)))
    with pytest.raises(OptionError, match=r"--cuda-graphs: updates of .* several processes"):
        MODELS[1].train(corpora, tmp_path, "--epochs", "1", "--cuda-graphs")
