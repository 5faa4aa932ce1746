"""A GPU that computes nothing: PyTorch's fake CUDA tensors, and a record of what would hold up a real one.

Fake tensors have a shape, a dtype and a device but no values, so that code for a GPU runs where there is none. They
stand for what is on the device; real tensors stand for what is on the host. A value that the host asks the device for
is a wait, a copy of the host's pageable memory to the device is an upload, and both are recorded with their place.
"""

import ctypes
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
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
# What autocast computes in float32, or our code does.
_FULL_PRECISION = {
    aten._softmax,
    aten._log_softmax,
    aten.native_layer_norm,
    aten.binary_cross_entropy_with_logits,
    aten.exp,
    aten.log,
    aten.log1p,
    aten.norm,
    aten.linalg_vector_norm,
}
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
# Operations that compute nothing; views, which `is_view` tells, are others.
_FREE = {
    aten.detach,
    aten.empty,
    aten.empty_like,
    aten.empty_strided,
    aten.lift_fresh,
    aten.new_empty,
    aten.new_empty_strided,
    aten._unsafe_view,
    aten._reshape_alias,
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
        self.launches: Counter[str] = Counter()  # operations that the device computes; most are a kernel, some a few
        self.products: dict[torch.dtype, Counter[str]] = {}  # where matrix products and convolutions are, by dtype
        self.rounded: set[str] = set()  # operations of `_FULL_PRECISION` with a result of less than 32 bits

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
        if func.namespace != "prim" and not func.is_view and packet not in _FREE:
            self.launches[f"{packet.__name__} in {_place()}"] += 1
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
        packet = func.overloadpacket
        if packet in _PRODUCTS:
            self.products.setdefault(tensors[0].dtype, Counter())[_place()] += 1
        if packet in _FULL_PRECISION and tensors[0].dtype.itemsize < 4:
            self.rounded.add(f"{packet.__name__} in {_place()}")


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
            return f"{name}:{_qualified_name(frame)}"
        frame = frame.f_back
    return "the test"


def _qualified_name(frame: FrameType) -> str:
    """The name of the function that runs with its class's, which code knows from Python 3.11 on."""
    code = frame.f_code
    if hasattr(code, "co_qualname"):
        return code.co_qualname
    for owner in filter(inspect.isclass, frame.f_globals.values()):
        method = vars(owner).get(code.co_name)
        if getattr(inspect.unwrap(method) if method else None, "__code__", None) is code:
            return f"{owner.__qualname__}.{code.co_name}"
    return code.co_name


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

    def make(self, make: Callable[[], Any]) -> Any:
        """What is made there: networks of any size take no memory."""
        with self._fakes, DEVICE:
            return make()

    @contextmanager
    def watch(self) -> Iterator[Watch]:
        """Run code on the device."""
        with self._fakes, Watch(self._fakes) as seen:
            yield seen


@torch.no_grad()
def backward(loss: Tensor) -> None:
    """`Tensor.backward` of a fake loss, whose device has no streams for PyTorch's engine to run on."""
    assert loss.grad_fn is not None
    order: list[Any] = []  # every node after those that give it gradients
    seen, stack = set(), [(loss.grad_fn, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(following, False) for following, _ in node.next_functions if following is not None]
    given: dict[Any, dict[int, Tensor]] = {loss.grad_fn: {0: torch.ones_like(loss)}}
    for node in reversed(order):
        like, received = node._input_metadata, given.pop(node, {})
        gradients = [_as_expected(received.get(index), one) for index, one in enumerate(like)]
        if hasattr(node, "variable"):
            held = node.variable.grad
            node.variable.grad = gradients[0] if held is None else held + gradients[0]
            continue
        following, needed = list(node.next_functions), getattr(node, "needs_input_grad", None)
        made = node(*gradients) if needed is None else node.apply(*gradients)
        made = made if isinstance(made, tuple) else (made,)
        if needed is not None:  # of our own functions, whose arguments need not be tensors
            following = [one for one in following if one[0] is not None]
            made = tuple(gradient for gradient, need in zip(made, needed) if need)
        for (target, index), gradient in zip(following, made, strict=True):
            if target is not None and gradient is not None:
                slots = given.setdefault(target, {})
                slots[index] = slots[index] + gradient if index in slots else gradient


def _as_expected(gradient: Tensor | None, like: Any) -> Tensor | None:
    """The gradient in a node's shape and dtype, as PyTorch's engine gives it."""
    return None if gradient is None else gradient.sum_to_size(like.shape).to(like.dtype)


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
