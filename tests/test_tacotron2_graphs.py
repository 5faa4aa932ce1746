"""Tacotron 2's steps as a GPU runs them, several at once and recorded, on the CPU against one at a time."""

from collections.abc import Callable
from functools import partial

import torch
from tiny_tacotron2 import tiny_network

from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.utterances import Controls
from tacotron2.decoder import DecoderStep
from tacotron2.inference import run_steps
from tacotron2.model import Tacotron2


class Recorder(GraphRecorder):
    """Runs again what a GPU would record."""

    def capture(self, work: Callable[[], object]) -> tuple[Callable[[], object], object]:
        """As `GraphRecorder.capture`, without a GPU: the outputs stay in the same tensors."""
        made = work()
        return lambda: [own.copy_(new) for own, new in zip(made, work())], made


def assert_same_speech(ours: Tacotron2, plain: Tacotron2, lengths: list[int], *, seed: int = 0) -> None:
    tokens = torch.randint(1, 20, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    first, second = (one.infer(tokens, torch.tensor(lengths), Controls(seed=seed)) for one in (plain, ours))
    assert torch.equal(first.lengths, second.lengths) and torch.equal(first.frames, second.frames)
    assert torch.equal(first.finished, second.finished)
    torch.testing.assert_close(second.mel, first.mel, atol=1e-5, rtol=0)
    torch.testing.assert_close(second.alignments, first.alignments, atol=1e-5, rtol=0)


def test_a_prepared_network_speaks_alike_whatever_it_spoke_before_and_recorded():
    plain, prepared, recorded = tiny_network(), tiny_network(), tiny_network()
    for network in (prepared, recorded):
        network.prepare_for_inference()
    step = partial(run_steps, DecoderStep(recorded.decoder, torch.float32))
    recorded._prepared[torch.float32] = Recorder("the decoder").by_shape(step)
    for seed, lengths in enumerate(([9, 3], [12, 12], [9, 3], [5, 31])):
        for ours in (prepared, recorded):
            assert_same_speech(ours, plain, lengths, seed=seed)
    with torch.inference_mode():  # whose tensors cannot be written outside it
        assert_same_speech(recorded, plain, [9, 3])
    assert_same_speech(recorded, plain, [9, 3])
