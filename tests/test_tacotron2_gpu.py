"""What of Tacotron 2 only shows on a GPU: the decoder's step as a CUDA graph."""

import pytest
import torch
from tiny_tacotron2 import tiny_batch, tiny_network, without_dropout

from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.utterances import Controls, MelOutput
from tacotron2.arg_parser import InferenceOptions

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")]


@pytest.fixture(autouse=True)
def full_precision():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def spoken(device: str, *, stop_early: bool) -> MelOutput:
    """A hundred steps, which is more than one draw of the prenet's masks."""
    network = tiny_network(decoder_no_early_stopping=not stop_early).to(device)
    network.prepare_for_inference()
    batch = tiny_batch([(5, 1), (11, 1), (3, 1)]).to(torch.device(device))
    return network.infer(batch.tokens, batch.token_lengths, Controls(options=InferenceOptions(max_decoder_steps=100)))


@pytest.mark.parametrize("stop_early", [True, False])
def test_the_gpu_speaks_as_the_cpu(stop_early: bool):
    expected, ours = (spoken(device, stop_early=stop_early) for device in ("cpu", "cuda"))
    assert ours.lengths.tolist() == expected.lengths.tolist()
    assert ours.finished.tolist() == expected.finished.tolist()
    torch.testing.assert_close(ours.mel.cpu(), expected.mel, atol=1e-3, rtol=0)
    torch.testing.assert_close(ours.alignments.cpu(), expected.alignments, atol=1e-3, rtol=0)


def test_batches_of_a_shape_share_a_graph(capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    ours, expected, recorded = tiny_network().to("cuda"), tiny_network(), []
    ours.prepare_for_inference()
    capture = GraphRecorder.capture
    monkeypatch.setattr(GraphRecorder, "capture", lambda self, work: recorded.append(work) or capture(self, work))
    for seed in range(3):
        torch.manual_seed(seed)
        tokens, lengths = torch.randint(1, 20, (2, 9 + seed)), torch.tensor([9 + seed, 4])
        first, second = expected.infer(tokens, lengths), ours.infer(*(one.to("cuda") for one in (tokens, lengths)))
        torch.testing.assert_close(second.mel.cpu(), first.mel, atol=1e-3, rtol=0)
    assert len(recorded) == 1
    assert "warning" not in capfd.readouterr().err


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_captured_step_computes_in_mixed_precision(dtype: torch.dtype):
    network, batch = tiny_network().to("cuda"), tiny_batch([(5, 1), (11, 1)]).to(torch.device("cuda"))
    network.prepare_for_inference()
    with torch.inference_mode(), torch.autocast("cuda", dtype=dtype):
        out = network.infer(batch.tokens, batch.token_lengths)
    assert bool(torch.isfinite(out.mel).all())
    assert out.frames.sum(1).tolist() == out.lengths.tolist()


def test_the_decoder_is_trained_as_on_the_cpu():
    decoder = without_dropout(tiny_network()).decoder.train()
    torch.manual_seed(0)
    padding = torch.arange(7) >= torch.tensor([[7], [4], [1]])
    memory, frames = torch.randn(3, 7, 8), torch.randn(3, 6, 40)
    results = []
    for device in ("cpu", "cuda"):
        decoder.to(device).zero_grad()
        out = decoder(memory.to(device), padding.to(device), frames.to(device), None)
        (out.mel.square().sum() + out.gate_logits.sum() + out.alignments.square().sum()).backward()
        gradients = {name: weight.grad.cpu() for name, weight in decoder.named_parameters() if weight.grad is not None}
        results.append(gradients | {"mel": out.mel.detach().cpu(), "alignments": out.alignments.detach().cpu()})
    for name, expected in results[0].items():
        torch.testing.assert_close(results[1][name], expected, atol=1e-3, rtol=1e-3, msg=lambda m, n=name: f"{n}: {m}")
