"""What of Tacotron 2 only shows on a GPU: the decoder's step as a CUDA graph."""

import pytest
import torch
from tiny_tacotron2 import tiny_batch, tiny_network

from tacotron2.decoder import PrenetMasks
from tacotron2.generation import Generated, generate

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")]


@pytest.fixture(autouse=True)
def full_precision():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def generated(device: str, *, use_graph: bool, stop_early: bool) -> Generated:
    """A hundred steps, which is more than one draw of the prenet's masks."""
    network, batch = tiny_network().to(device), tiny_batch([(5, 1), (11, 1), (3, 1)]).to(torch.device(device))
    masks = PrenetMasks(network.config.prenet_dim, seed=0)
    return generate(
        network.begin(batch.tokens, batch.token_lengths, gate_threshold=0.5),
        draw_masks=lambda: masks.draw(torch.device(device)),
        max_steps=100,
        stop_early=stop_early,
        use_graph=use_graph,
    )


@pytest.mark.parametrize("stop_early", [True, False])
@pytest.mark.parametrize("use_graph", [True, False])
def test_the_gpu_speaks_as_the_cpu_with_a_graph_and_without(use_graph: bool, stop_early: bool):
    expected = generated("cpu", use_graph=False, stop_early=stop_early)
    ours = generated("cuda", use_graph=use_graph, stop_early=stop_early)
    assert ours.lengths.tolist() == expected.lengths.tolist()
    assert ours.finished.tolist() == expected.finished.tolist()
    torch.testing.assert_close(ours.mel.cpu(), expected.mel, atol=1e-3, rtol=0)
    torch.testing.assert_close(ours.alignments.cpu(), expected.alignments, atol=1e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_captured_step_computes_in_mixed_precision(dtype: torch.dtype):
    network, batch = tiny_network().to("cuda"), tiny_batch([(5, 1), (11, 1)]).to(torch.device("cuda"))
    with torch.inference_mode(), torch.autocast("cuda", dtype=dtype):
        out = network.infer(batch.tokens, batch.token_lengths)
    assert bool(torch.isfinite(out.mel).all())
    assert out.frames.sum(1).tolist() == out.lengths.tolist()
