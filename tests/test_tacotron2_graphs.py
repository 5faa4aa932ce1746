"""Tacotron 2's recorded steps on the CPU, where a recorder without graphs runs them again, against plain ones."""

import copy
from collections.abc import Callable

import pytest
import torch
from tiny_tacotron2 import tiny_network
from torch import Tensor

from common.synthesis import Controls
from tacotron2 import inference
from tacotron2.model import Tacotron2


class Recorder:
    """Notes what is recorded, as `WarmGraphRecorder` after a first run, and how many recorders there were."""

    works: list[Callable[[], object]]
    recorders = 0

    def __init__(self) -> None:
        Recorder.recorders += 1

    def __call__(self, work: Callable[[], object]) -> tuple[Callable[[], object], object]:
        work()
        Recorder.works.append(work)
        return work, None


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Tacotron2:
    """A network whose steps are recorded."""
    network = tiny_network()
    graphs = network._graphs

    def begin(tokens: Tensor, lengths: Tensor, *, gate_threshold: float) -> inference.Steps:
        memory, _ = network.encode(tokens, lengths)
        return graphs.begin(network.decoder, memory, lengths, config=network.config, gate_threshold=gate_threshold)

    monkeypatch.setattr(inference, "WarmGraphRecorder", Recorder)
    monkeypatch.setattr(Recorder, "works", [], raising=False)
    monkeypatch.setattr(Recorder, "recorders", 0)
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


def test_beyond_so_many_shapes_all_graphs_go_with_their_recorder(recorded: Tacotron2, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inference, "MAX_GRAPHS", 2)
    for n_batch in (1, 2, 3, 1):
        assert_same_speech(recorded, tiny_network(), [4] * n_batch)
    assert (len(Recorder.works), Recorder.recorders, len(recorded._graphs._kept)) == (4, 2, 2)


def test_steps_that_cannot_be_recorded_run_as_they_are_after_one_warning(
    recorded: Tacotron2, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    class Failing(Recorder):
        def __call__(self, work: Callable[[], object]) -> tuple[Callable[[], object], object]:
            super().__call__(work)
            raise RuntimeError("not permitted\nmore")

    monkeypatch.setattr(inference, "WarmGraphRecorder", Failing)
    for lengths in ([9, 3], [40]):
        assert_same_speech(recorded, tiny_network(), lengths)
    assert len(Recorder.works) == 1
    expected = "warning: Tacotron 2's decoder cannot be recorded and runs without graphs (not permitted)\n"
    assert capsys.readouterr().err == expected
