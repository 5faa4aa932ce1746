"""Recorded work by length bucket and compiled networks: the same sound, and a way on where they fail."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import tiny_voice
import torch
from test_vocoder import AUDIO, Counting, alone, close, on_gpu_terms, ready
from torch import Tensor
from torch._dynamo.exc import TorchDynamoException

import inference
from common.checkpoints.loading import open_checkpoint
from common.nn.layers import never_compiled
from common.precision import Precision
from common.synthesis import cuda_graphs, loading
from common.synthesis.acceleration import compiled
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.loading import make_voice
from common.synthesis.options import AccelerationOptions, VoiceOptions


class OnCpu(Precision):
    """As on a GPU, but for the device."""

    device = torch.device("cpu")


def parts(output: Any) -> list[Tensor]:
    """What work makes: a tensor, or some."""
    made = output if isinstance(output, tuple) else (output,)
    return [part for part in made if part is not None]


class FakeGraph:
    """Work that is done again on the same tensors, as a GPU does it: its output stays where it is."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.output = work()
        self.replays = 0

    def replay(self) -> None:
        """Do the work again."""
        self.replays += 1
        for kept, made in zip(parts(self.output), parts(self.work())):
            kept.copy_(made)


class Recorder(GraphRecorder):
    """Keeps the graphs that it recorded."""

    def __init__(self, what: str = "--cuda-graphs") -> None:
        super().__init__(what)
        self.graphs: list[FakeGraph] = []

    def capture(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        """As `GraphRecorder.capture`, without a GPU."""
        self.graphs.append(FakeGraph(work))
        return self.graphs[-1].replay, self.graphs[-1].output


def mels(*lengths: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(8, n, generator=generator) - 4 for n in lengths]


def batched(parts: list[Tensor]) -> tuple[Tensor, list[int]]:
    rows = [part.t() for part in parts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).transpose(1, 2), [len(row) for row in rows]


def test_recorded_work_gives_the_sound_of_the_exact_length_and_is_recorded_once_a_bucket():
    recorder = Recorder()
    vocoder = on_gpu_terms(ready(0), graph_recorder=recorder)
    parts = mels(70, 100, 65, 128, 9, 64, 100)
    waves = [vocoder.speak(part[None], [part.size(1)])[0] for part in parts]
    for part, wave in zip(parts, waves):  # only now: no replay may change an earlier wave
        assert len(wave) == part.size(1) * AUDIO.hop_length
        close(wave, alone(ready(0), part), 1e-6)
    assert [graph.replays for graph in recorder.graphs] == [5, 2]  # 65 to 128 frames, and 9 to 64


def test_recorded_batches_of_several_lengths_equal_each_utterance_alone():
    recorder = Recorder()
    vocoder = on_gpu_terms(ready(0), graph_recorder=recorder)
    for lengths in ((70, 100, 3), (66, 66, 66), (120, 64, 1)):
        parts = mels(*lengths)
        for part, wave in zip(parts, vocoder.speak(*batched(parts))):
            close(wave, alone(ready(0), part), 1e-6)
    assert [graph.replays for graph in recorder.graphs] == [3]


@pytest.mark.parametrize("energy", [True, False])
def test_a_recorded_voice_speaks_as_it_does_without_graphs(energy: bool, tmp_path, monkeypatch):
    model = replace(tiny_voice.MODEL, energy_conditioning=energy)
    opened = open_checkpoint(tiny_voice.save_voice(tmp_path / "voice.pt", model=model))
    recorders: list[Recorder] = []
    monkeypatch.setattr(loading, "GraphRecorder", lambda what: recorders.append(Recorder(what)) or recorders[-1])
    voices = [
        make_voice(
            opened, None, VoiceOptions(acceleration=AccelerationOptions(cuda_graphs=graphs)), precision=OnCpu(True)
        )
        for graphs in (False, True)
    ]
    texts = ["Two words.", "One more.", "These are a few words more than those before.", "Two words."]
    spoken = [[[one.mel for one in voice.synthesizer.generate(voice.plan(text))] for text in texts] for voice in voices]
    for plain, recorded in zip(*spoken):  # only now: no replay may change an earlier mel
        for one, other in zip(plain, recorded, strict=True):
            close(other, one, 1e-5)
    (recorder,) = recorders
    replays = [graph.replays for graph in recorder.graphs]
    assert len(replays) < sum(replays) == 3 * len(texts)  # encode, add_pitch, decode_frames


def test_a_voice_whose_sound_depends_on_padding_is_not_recorded(tmp_path, monkeypatch):
    model = replace(tiny_voice.MODEL, mask_convolutions=False)
    opened = open_checkpoint(tiny_voice.save_voice(tmp_path / "voice.pt", model=model))
    monkeypatch.setattr(loading, "GraphRecorder", None)
    options = VoiceOptions(acceleration=AccelerationOptions(cuda_graphs=True))
    voice = make_voice(opened, None, options, precision=OnCpu(True))
    assert voice.synthesizer.shapes is None


def test_on_a_cpu_one_line_says_that_nothing_is_recorded(tmp_path, capsys):
    voice = tiny_voice.save_voice(tmp_path / "voice.pt")
    words = ["--fastpitch", str(voice), "--text", "Two words.", "-o", str(tmp_path / "a.wav")]
    assert inference.main([*words, "--cuda-graphs"]) == 0
    assert capsys.readouterr().err.count("warning: --cuda-graphs does nothing on the CPU") == 1
    assert inference.main(words) == 0
    assert "--cuda-graphs" not in capsys.readouterr().err


def test_longer_mels_and_larger_batches_run_without_graphs_after_one_warning(monkeypatch, capsys):
    monkeypatch.setattr(cuda_graphs, "LONGEST_FRAMES", 64)
    monkeypatch.setattr(cuda_graphs, "LARGEST_BATCH", 2)
    recorder = Recorder()
    vocoder = on_gpu_terms(ready(0), graph_recorder=recorder)
    for parts in (mels(80), mels(5, 6, 7), mels(64, 9)):
        for part, wave in zip(parts, vocoder.speak(*batched(parts))):
            close(wave, alone(ready(0), part), 1e-6)
    assert len(recorder.graphs) == 1
    assert capsys.readouterr().err.count("warning: --cuda-graphs: batches of more than 2 phrases or 64 frames") == 1


def test_the_number_of_recorded_sizes_is_bounded(monkeypatch, capsys):
    monkeypatch.setattr(cuda_graphs, "MAX_GRAPHS", 2)
    recorder = Recorder()
    vocoder = on_gpu_terms(ready(0), graph_recorder=recorder)
    for part in mels(10, 70, 130, 200, 12):
        close(vocoder.speak(part[None], [part.size(1)])[0], alone(ready(0), part), 1e-6)
    assert [graph.replays for graph in recorder.graphs] == [2, 1]
    assert capsys.readouterr().err.count("warning") == 1


def test_work_that_cannot_be_recorded_is_done_after_one_warning(capsys):
    class Failing(Recorder):
        def capture(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
            super().capture(work)
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    recorder = Failing()
    vocoder = on_gpu_terms(Counting(ready(0)), graph_recorder=recorder)
    for part in mels(10, 70):
        close(vocoder.speak(part[None], [part.size(1)])[0], alone(ready(0), part), 1e-6)
    assert len(recorder.graphs) == 1
    assert capsys.readouterr().err == (
        "warning: --cuda-graphs: the work cannot be recorded and runs without graphs "
        "(operation not permitted when stream is capturing)\n"
    )


def test_a_network_that_cannot_be_compiled_runs_as_it_is_after_one_warning(monkeypatch, capsys):
    def compile_later(infer: Callable, *, dynamic: bool) -> Callable:
        def fail(*args):
            raise TorchDynamoException("\nno C++ compiler is here\nmore")

        return fail

    monkeypatch.setattr(torch, "compile", compile_later)
    vocoder = on_gpu_terms(network := ready(0))
    network.infer = compiled(network.infer, name="HiFi-GAN")
    for part in mels(10, 12):
        close(vocoder.speak(part[None], [part.size(1)])[0], alone(ready(0), part), 1e-6)
    assert capsys.readouterr().err == "warning: --compile: HiFi-GAN runs uncompiled (no C++ compiler is here)\n"


def test_a_traced_network_gives_the_same_sound_for_every_length(monkeypatch):
    # Without code generation, which takes half a minute; tests/test_gpu_vocoder.py has it.
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    vocoder = on_gpu_terms(network := ready(0))
    network.infer = compiled(network.infer, name="x")
    for lengths in ((20, 11), (7, 30), (9,), (40,)):
        parts = mels(*lengths)
        for part, wave in zip(parts, vocoder.speak(*batched(parts))):
            close(wave, alone(ready(0), part), 1e-6)


def test_a_function_that_is_never_compiled_stays_out_of_the_graphs():
    graphs: list[str] = []

    def record(graph: torch.fx.GraphModule, _: list) -> Callable:
        graphs.append(graph.code)
        return graph.forward

    @never_compiled
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.cos()

    compiled = torch.compile(lambda x: inner(x.sin()).exp(), backend=record)
    x = torch.randn(4)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), x.sin().cos().exp())
    code = "\n".join(graphs)
    assert ".sin()" in code and ".exp()" in code and ".cos()" not in code
