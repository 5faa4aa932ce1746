"""The engine on CUDA tensors that need no GPU: an update launches its work and waits for none of it.

`FakeTensorMode` knows devices, shapes and types of tensors, and no values: whatever asks for one raises.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fake_cuda import device_guard
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from toy import ToyObjective, toy_collate, toy_engine, toy_networks, toy_utterances

from common.data import Batch
from common.distributed import Ranks
from common.training import Engine, Networks, optim, step_graphs
from common.training.optim import OPTIMIZERS

CUDA = torch.device("cuda", 0)


class Watch(TorchDispatchMode):
    """Notes each copy from the GPU to the CPU and from the CPU to the GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.to_cpu: list[bool] = []  # whether each is asynchronous
        self.to_gpu = 0
        self.n_kernels = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        self.n_kernels += function.namespace == "aten" and not function.is_view
        if function in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default):
            target, source = (result, args[0]) if "_to_copy" in str(function) else args[:2]
            copies = (source.device.type, target.device.type)
            waits = not kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
            self.to_cpu += [not waits] if copies == ("cuda", "cpu") else []
            self.to_gpu += copies == ("cpu", "cuda")
        return result


class OnTheDevice(ToyObjective):
    """Its counts are made on the batch's device, as the models' are."""

    def counts(self, phase: str, batch: Batch) -> dict[str, torch.Tensor]:
        frames, items = batch.lengths.sum(), torch.ones_like(batch.lengths).sum()
        return {"d_loss": frames} if phase == "discriminator" else {"g_loss": frames, "l1": frames, "bias": items}


class WithStatistics(torch.nn.Module):
    """A network with running statistics, a counter among them."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network
        self.norm = torch.nn.BatchNorm1d(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.network(x).unsqueeze(1)).squeeze(1)


class FakeEvent:
    """Stands for `torch.cuda.Event`, which needs a driver."""

    waited = 0

    def record(self) -> None:
        """Nothing is recorded."""

    def synchronize(self) -> None:
        """Count who waits."""
        FakeEvent.waited += 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    # Fake tensors cannot be copied with their mode.
    monkeypatch.setattr(optim, "copy", SimpleNamespace(deepcopy=lambda network: fake_networks()["generator"]))
    monkeypatch.setattr(torch.nn.Module, "to", lambda network, device: network)  # they are there already
    monkeypatch.setattr(FakeEvent, "waited", 0)
    monkeypatch.setattr("torch.cuda.amp.common.amp_definitely_not_available", lambda: False)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda *_, **__: True)
    with device_guard(), FakeTensorMode(), torch.random.fork_rng(devices=[]):
        yield


def fake_networks() -> Networks:
    with CUDA:
        networks = toy_networks()
        return {"generator": WithStatistics(networks["generator"]), "critic": networks["critic"]}


_BATCH = toy_collate(toy_utterances(4))


def fake_batch() -> Batch:
    """As ``_BATCH``, on the GPU."""
    return _BATCH._with_tensors(lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype, device=CUDA))


def launch_only(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what needs values or a GPU's streams: reading figures, and the backward pass itself."""

    def backward(loss: torch.Tensor) -> None:
        assert loss.device == CUDA
        for network in engine.networks.values():
            for parameter in network.parameters():
                if parameter.requires_grad:
                    parameter.grad = torch.empty_like(parameter)

    monkeypatch.setattr(torch.Tensor, "backward", backward)


@pytest.mark.parametrize("amp_dtype", [None, torch.float16], ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_update_waits_for_nothing_and_fetches_its_figures_once(
    fake: None, optimizer: str, amp_dtype: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
):
    options = {"grad_clip_thresh": 1.0, "ema_decay": 0.9, "amp_dtype": amp_dtype}
    engine = toy_engine(
        fake_networks(), objective=OnTheDevice(), ranks=Ranks(device=CUDA), optimizer=optimizer, **options
    )
    launch_only(engine, monkeypatch)
    batches = [fake_batch(), fake_batch()]
    for _ in range(2):  # the optimizers' states are made in the first
        with Watch() as watch:
            result = engine.step(batches, epoch=1, stop=True)
        assert watch.to_cpu == [True], "one asynchronous copy of all figures"
        assert watch.to_gpu == 0, "what comes from the host waits too, unless it lies in pinned memory"
        assert FakeEvent.waited == 0
    assert result.learning_rate == 0.01


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_launches_as_much_for_many_parameters_as_for_one(fake: None, optimizer: str):
    """Per-parameter operations are at most those that make its state."""
    counts = []
    for n_weights in (1, 30):
        weights = [torch.nn.Parameter(torch.empty(3, 4, device=CUDA)) for _ in range(n_weights)]
        built = OPTIMIZERS[optimizer](weights, 0.01, weight_decay=0.01)
        built.found_inf = torch.zeros((), device=CUDA)
        for _ in range(2):
            for weight in weights:
                weight.grad = torch.empty_like(weight)
            with Watch() as watch:
                built.step()
        counts.append(watch.n_kernels)
        assert watch.to_gpu == 0 and watch.to_cpu == []
    assert counts[0] == counts[1]


@pytest.mark.parametrize("amp_dtype", [None, torch.float16], ids=str)
@pytest.mark.parametrize("optimizer", ["lamb", "novograd"])  # torch's own have no fake form with a rate on the device
def test_an_update_that_is_recorded_waits_for_nothing_either(
    fake: None, optimizer: str, amp_dtype: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(step_graphs, "GraphRecorder", step_graphs.NoRecorder)
    options = {"grad_clip_thresh": 1.0, "ema_decay": 0.9, "amp_dtype": amp_dtype, "cuda_graphs": True}
    engine = toy_engine(
        fake_networks(), objective=OnTheDevice(), ranks=Ranks(device=CUDA), optimizer=optimizer, **options
    )
    launch_only(engine, monkeypatch)
    for _ in range(step_graphs.WARMUP_UPDATES + 2):
        with Watch() as watch:
            engine.step([fake_batch()], epoch=1, save=True)
        assert (watch.to_cpu, watch.to_gpu, FakeEvent.waited) == ([True], 0, 0)
    rate = engine.optimizers["generator"].param_groups[0]["lr"]
    assert rate.device == CUDA and rate.dtype == torch.float32
