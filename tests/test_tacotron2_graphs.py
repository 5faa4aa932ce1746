"""Tacotron 2's recorded steps on the CPU, where a recorder without graphs runs them again, against plain ones."""

import copy
from collections.abc import Callable

import pytest
import torch
from tiny_tacotron2 import tiny_network
from torch import Tensor

from common.synthesis import cuda_graphs
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.utterances import Controls
from tacotron2 import inference
from tacotron2.model import Tacotron2


class Recorder(GraphRecorder):
    """Notes what is recorded, as `GraphRecorder` after a first run."""

    works: list[Callable[[], object]]

    def capture(self, work: Callable[[], object]) -> tuple[Callable[[], object], object]:
        """As `GraphRecorder.capture`, without a GPU."""
        work()
        Recorder.works.append(work)
        return work, None


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Tacotron2:
    """A network whose steps are recorded."""
    monkeypatch.setattr(inference, "GraphRecorder", Recorder)
    network = tiny_network()
    graphs = network._graphs

    def begin(tokens: Tensor, lengths: Tensor, *, gate_threshold: float) -> inference.Steps:
        memory, _ = network.encode(tokens, lengths)
        return graphs.begin(network.decoder, memory, lengths, config=network.config, gate_threshold=gate_threshold)

    monkeypatch.setattr(Recorder, "works", [], raising=False)
    monkeypatch.setattr(network, "begin", begin)
    return network


def assert_same_speech(ours: Tacotron2, plain: Tacotron2, lengths: list[int], *, seed: int = 0) -> None:
    tokens = torch.randint(1, 20, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    first, second = (one.infer(tokens, torch.tensor(lengths), Controls(seed=seed)) for one in (plain, ours))
    assert torch.equal(first.lengths, second.lengths) and torch.equal(first.frames, second.frames)
    assert torch.equal(first.finished, second.finished)
    torch.testing.assert_close(second.mel, first.mel, atol=1e-5, rtol=0)
    torch.testing.assert_close(second.alignments, first.alignments, atol=1e-5, rtol=0)


def test_batches_whose_padded_shape_is_one_share_a_recording_and_speak_as_without(recorded: Tacotron2):
    plain = tiny_network()
    for seed, lengths in enumerate(([9, 3], [12, 12], [5, 31], [33, 2], [7, 7])):
        assert_same_speech(recorded, plain, lengths, seed=seed)
    assert len(Recorder.works) == 2
    with torch.inference_mode():  # whose tensors cannot be written outside it
        assert_same_speech(recorded, plain, [9, 3])
    assert_same_speech(recorded, plain, [9, 3])
    assert len(Recorder.works) == 3
    assert copy.deepcopy(recorded._graphs)._kept == {}


def test_what_is_kept_speaks_with_the_networks_weights_of_today(recorded: Tacotron2):
    assert_same_speech(recorded, plain := tiny_network(), [9, 3])
    with torch.no_grad():
        for network in (recorded, plain):
            for parameter in network.decoder.parameters():
                parameter.mul_(0.9)
    assert_same_speech(recorded, plain, [9, 3])
    assert len(Recorder.works) == 1


def test_the_number_of_recorded_shapes_is_bounded(
    recorded: Tacotron2, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setattr(cuda_graphs, "MAX_GRAPHS", 2)
    for n_batch in (1, 2, 3, 4, 1):
        assert_same_speech(recorded, tiny_network(), [4] * n_batch)
    assert (len(Recorder.works), len(recorded._graphs._kept)) == (2, 2)
    assert capsys.readouterr().err.count("warning: Tacotron 2's decoder") == 1


def test_steps_that_cannot_be_recorded_run_as_they_are_after_one_warning(
    recorded: Tacotron2, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    def fail(self: Recorder, work: Callable[[], object]) -> None:
        Recorder.works.append(work)
        raise RuntimeError("not permitted\nmore")

    monkeypatch.setattr(Recorder, "capture", fail)
    for lengths in ([9, 3], [40]):
        assert_same_speech(recorded, tiny_network(), lengths)
    assert len(Recorder.works) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: Tacotron 2's decoder") and "(not permitted)" in line
