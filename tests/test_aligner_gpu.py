"""FastPitch 1.1 on a GPU: its losses are as on the CPU: `bash scripts/test.sh -m gpu`."""

import pytest
import torch
from test_fastpitch_1_1 import recordings, small
from test_fastpitch_1_1_loss import objective

from common.precision import Precision

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("full_precision"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]
CUDA = torch.device("cuda")


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
