"""FastPitch 1.1 on a GPU: the search stays there, and losses are as on the CPU: `bash scripts/test.sh -m gpu`."""

from collections.abc import Iterator

import pytest
import torch
from test_fastpitch_1_1 import recordings, small
from test_fastpitch_1_1_loss import objective

from common.nn import kernels
from common.nn.alignment_search import best_moves, find_path
from common.nn.kernels import by_kernel
from common.precision import Precision

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("full_precision"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]
CUDA = torch.device("cuda")


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Waiting for the device is an error."""
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


def test_the_search_finds_the_cpus_paths_without_waiting_for_the_device(no_waiting: None):
    generator = torch.Generator().manual_seed(1)
    token_lengths = torch.tensor([150, 1, 17, 90])
    frame_lengths = torch.tensor([400, 5, 90, 300])
    log_probs = torch.randn(4, 400, 150, generator=generator).round(decimals=1)  # many ties
    on_gpu = [tensor.pin_memory().to(CUDA, non_blocking=True) for tensor in (log_probs, token_lengths, frame_lengths)]
    torch.cuda.set_sync_debug_mode("default")
    find_path(*on_gpu)  # the first use of a kernel compares it with plain PyTorch
    torch.cuda.set_sync_debug_mode("error")
    path = find_path(*on_gpu)
    assert path.device.type == "cuda"
    torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(path.cpu(), find_path(log_probs, token_lengths, frame_lengths))


@pytest.mark.parametrize("sizes", [(860, 16, 160), (300, 3, 500), (7, 2, 1)])
def test_the_kernel_is_used_and_gives_what_plain_pytorch_gives(sizes: tuple[int, int, int]):
    n_frames, n_items, n_tokens = sizes
    torch.manual_seed(0)
    log_probs = torch.randn(n_items, n_frames, n_tokens, device=CUDA).round(decimals=1)
    assert torch.equal(by_kernel(best_moves, log_probs), best_moves(log_probs))
    assert kernels._usable == {"best_moves": True}


def test_losses_and_gradients_are_the_cpus():
    batch = recordings((9, 1, 23, 4), (40, 7, 90, 4))
    results = []
    for device in (torch.device("cpu"), CUDA):
        network = small().to(device)
        sums = objective().numerators("fastpitch", {"fastpitch": network}, batch.to(device))
        sum(sums[name] for name in objective().weights("fastpitch", epoch=1)).backward()
        gradients = {key: value.grad.cpu() for key, value in network.named_parameters() if value.grad is not None}
        results.append(({name: float(value) for name, value in sums.items()}, gradients))
    (sums, gradients), (gpu_sums, gpu_gradients) = results
    assert gpu_sums == pytest.approx(sums, rel=1e-4)
    for key, gradient in gradients.items():
        scale = float(gradient.abs().max())
        torch.testing.assert_close(gpu_gradients[key], gradient, rtol=1e-3, atol=1e-4 * scale + 1e-5, msg=key)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_mixed_precision_gives_finite_float32_losses_near_those_in_full(dtype: torch.dtype):
    network, batch = {"fastpitch": small().to(CUDA)}, recordings((9, 23), (40, 90)).to(CUDA)
    in_full = objective().numerators("fastpitch", network, batch)
    with Precision(True, dtype).autocast():
        mixed = objective().numerators("fastpitch", network, batch)
    for name in ("attn_loss", "energy_loss", "mel_loss"):
        assert mixed[name].dtype == torch.float32
        assert float(mixed[name]) == pytest.approx(float(in_full[name]), rel=0.05)
