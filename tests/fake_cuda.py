"""A GPU that computes nothing: PyTorch's fake CUDA tensors, and a record of what would hold up a real one.

Fake tensors have a shape, a dtype and a device but no values, so that code for a GPU runs where there is none. They
stand for what is on the device; real tensors stand for what is on the host. A value that the host asks the device for
is a wait, a copy of the host's pageable memory to the device is an upload, and both are recorded with their place.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from common.data.batch import Batch

_ROOT = f"{Path(__file__).resolve().parents[1]}/"
DEVICE = torch.device("cuda", 0)
_CUDA, _META, _N_DEVICE_TYPES = 1, 14, 22  # c10/core/DeviceType.h
aten = torch.ops.aten
_PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.addmv, aten.dot, aten.convolution}
# Operations whose kernels wait for the device without a separate operation to show it.
_WAITING = {
    aten.nonzero,
    aten.masked_select,
    aten.equal,
    aten.bincount,
    aten.repeat_interleave,
    aten.unique_consecutive,
    aten.unique_dim,
    aten._unique2,
    aten._linalg_check_errors,
}
_BY_MASK = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index}


class Watch(TorchDispatchMode):
    """Runs operations on fake tensors, checks their devices, and records what is not done on the device alone."""

    def __init__(self, fakes: FakeTensorMode) -> None:
        super().__init__()
        self._fakes = fakes
        self.waits: list[str] = []  # where the host waits for the device
        self.uploads: list[str] = []  # where it copies pageable memory there, which waits too
        self.on_host: set[str] = set()  # where tensors of the host are computed
        self.products: dict[torch.dtype, set[str]] = {}  # where matrix products and convolutions are, by dtype

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, packet = kwargs or {}, func.overloadpacket
        tensors = list(_tensors((args, kwargs)))
        on_device = any(isinstance(tensor, FakeTensor) for tensor in tensors)
        target = kwargs.get("device")
        if packet is aten._local_scalar_dense and on_device:
            raise AssertionError(f"the host asks for a value of the device in {_place()}")
        if packet is aten._to_copy and on_device and target is not None and target.type == "cpu":
            self.waits.append(_place())
            return self._on_host(torch.zeros, args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        if not on_device and (target is None or target.type == "cpu"):
            if packet is not aten.lift_fresh:  # which gives a number its form
                self.on_host.add(_place())
            return self._on_host(func, *args, **kwargs)
        if not all(isinstance(tensor, FakeTensor) for tensor in tensors):
            args, kwargs = tree_map(self._number, (args, kwargs))
        if packet is aten._to_copy and not on_device:
            self.uploads.append(_place())
            return torch.empty(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype, device=target)
        if packet is aten.copy_ and not isinstance(args[1], FakeTensor):
            self.uploads.append(_place())
            return args[0]
        self._check_arguments(func, args, kwargs)
        result = func(*args, **kwargs)
        self._check_result(func, result)
        return result

    def _on_host(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        with unset_fake_temporarily():
            return call(*args, **kwargs)

    def _number(self, leaf: Any) -> Any:
        """A number of the host goes to the device with the work that reads it."""
        is_number = isinstance(leaf, Tensor) and not isinstance(leaf, FakeTensor) and leaf.dim() == 0
        return self._fakes.from_tensor(leaf) if is_number else leaf

    def _check_arguments(self, func: Any, args: Any, kwargs: Any) -> None:
        host = [tensor for tensor in _tensors((args, kwargs)) if tensor.device.type != "cuda" and tensor.dim() > 0]
        assert not host, f"{func} reads a tensor of the host, {tuple(host[0].shape)}, in {_place()}"
        indices = args[1] if func.overloadpacket in _BY_MASK else ()
        by_mask = any(index is not None and index.dtype == torch.bool for index in indices)
        assert func.overloadpacket not in _WAITING and not by_mask, f"{func} waits for the device in {_place()}"

    def _check_result(self, func: Any, result: Any) -> None:
        tensors = list(_tensors(result))
        for tensor in tensors:
            assert tensor.device.type == "cuda", f"{func} makes a tensor of the {tensor.device} in {_place()}"
        if func.overloadpacket in _PRODUCTS:
            self.products.setdefault(tensors[0].dtype, set()).add(_place())


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _place() -> str:
    """The function of the project that is running: ``fastpitch/prosody.py:regulate_length``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename.removeprefix(_ROOT)
        if not name.startswith(("/", ".venv/", "tests/", "<")):
            return f"{name}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "the test"


class FakeGpu:
    """Networks and batches on a GPU that is not there."""

    def __init__(self) -> None:
        self._fakes = FakeTensorMode()

    def on_device(self, value: Any) -> Any:
        """A tensor, a batch, or a module in place, on the device."""
        if isinstance(value, Batch):
            return value._with_tensors(self.on_device)
        if isinstance(value, Tensor):
            fake = self._fakes.from_tensor(value.detach())
            with self._fakes:
                moved = torch.empty_like(fake, device=DEVICE)
            return nn.Parameter(moved, requires_grad=value.requires_grad) if isinstance(value, nn.Parameter) else moved
        for module in value.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is not None:
                    setattr(module, name, self.on_device(parameter))
            for name, buffer in list(module._buffers.items()):
                if buffer is not None:
                    module._buffers[name] = self.on_device(buffer)
        return value

    @contextmanager
    def watch(self) -> Iterator[Watch]:
        """Run code on the device."""
        with self._fakes, Watch(self._fakes) as seen:
            yield seen


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """A GPU that computes nothing; autocast believes that it is there."""
    monkeypatch.setattr("torch.cuda.amp.common.amp_definitely_not_available", lambda: False)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda *_, **__: True)
    monkeypatch.setattr("torch.backends.cudnn.is_acceptable", lambda _: False)  # it warns where there is none
    monkeypatch.setattr(FakeTensor, "tolist", lambda tensor: tensor.cpu().tolist())  # one wait, not one a value
    # PyTorch's has no fake form; on a GPU it reads the lengths.
    monkeypatch.setattr("torch.nn.functional.ctc_loss", lambda log_probs, *_, **__: log_probs.sum((0, 2)))
    # PyTorch's fake form of a fused LSTM cell refuses one without biases.
    monkeypatch.setattr("torch._meta_registrations.rnn_cell_checkSizes", lambda *_: None)
    fake_gpu = FakeGpu()
    with device_guard(), torch.backends.cudnn.flags(enabled=False):  # it would ask a driver
        yield fake_gpu


@contextmanager
def device_guard() -> Iterator[None]:
    """Indexing and copies switch to their tensors' device, for which a PyTorch without CUDA has no code: the meta
    device's, which does nothing, takes its place.
    """
    if torch.cuda._is_compiled():
        yield
        return
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * _N_DEVICE_TYPES).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    guards[_CUDA] = guards[_META]
    try:
        yield
    finally:
        guards[_CUDA] = None
