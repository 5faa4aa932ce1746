"""The Triton kernel: in its interpreter it gives what plain PyTorch does, and it compiles for GPUs."""

import importlib
import warnings
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

from common.nn import kernels
from common.nn.alignment_search import best_moves

triton = pytest.importorskip("triton")
SIZES = [(1, 3, 1), (12, 3, 5), (30, 2, 17), (5, 2, 8)]  # frames, utterances, tokens
DIMENSIONS = ("n_frames", "n_items", "n_tokens")


def reloaded() -> ModuleType:
    from common.nn import triton_kernels

    return importlib.reload(triton_kernels)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The kernels, run on the CPU."""
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of infinities
        patch.setenv("TRITON_INTERPRET", "1")
        yield reloaded()
    reloaded()


@pytest.mark.skipif(triton.__version__.startswith("3.6"), reason="its interpreter cannot loop with NumPy 2.5")
@pytest.mark.parametrize("sizes", SIZES)
def test_the_kernel_gives_what_plain_pytorch_gives(interpreted: ModuleType, sizes: tuple[int, int, int]):
    n_frames, n_items, n_tokens = sizes
    torch.manual_seed(0)
    log_probs = (3 * torch.randn(n_items, n_frames, n_tokens)).round(decimals=0)  # many ties
    log_probs[0, n_frames // 2 :] = -torch.inf  # padding
    assert torch.equal(interpreted.best_moves(log_probs), best_moves(log_probs))


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_the_kernel_compiles_for_gpus(capability: int):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    kernel = reloaded()._moves_kernel
    signature = {"log_probs": "*fp32", "moves": "*i8", **dict.fromkeys(DIMENSIONS, "i32"), "SIZE": "constexpr"}
    source = ASTSource(kernel, signature, {"SIZE": 256})
    assert compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"]


class OnGpu(torch.Tensor):
    """A tensor that claims to be on a GPU."""

    device = torch.device("cuda")


@pytest.mark.parametrize("outcome", ["the same", "something else", "an error", "an error later"])
def test_a_kernel_that_does_not_give_the_same_is_not_used(monkeypatch: pytest.MonkeyPatch, capsys, outcome: str):
    def plain(values: torch.Tensor) -> torch.Tensor:
        return calls.append("plain") or torch.ones(2)

    def kernel(values: torch.Tensor) -> torch.Tensor:
        calls.append("kernel")
        if outcome == "an error" or (outcome == "an error later" and calls.count("kernel") > 1):
            raise ImportError("no triton")
        return torch.ones(2) * (1.1 if outcome == "something else" else 1)

    calls: list[str] = []
    monkeypatch.setattr(kernels, "_usable", {})
    monkeypatch.setattr(kernels, "_kernel", lambda name: kernel)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for _ in range(3):
        assert kernels.by_kernel(plain, torch.zeros(2).as_subclass(OnGpu)).tolist() == [1, 1]
    later = {"the same": ["kernel", "kernel"], "an error later": ["kernel", "plain", "plain"]}
    assert calls == ["plain", "kernel", *later.get(outcome, ["plain", "plain"])]
    assert capsys.readouterr().err.count("warning: plain runs as many small kernels") == (outcome != "the same")
    kernels.by_kernel(plain, torch.zeros(2))
    assert calls[-1] == "plain"
