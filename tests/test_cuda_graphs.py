"""Recorded work by shape: the same sound, and a way on where it cannot be recorded."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import tiny_voice
import torch
from test_vocoder import AUDIO, Counting, alone, close, on_gpu_terms, ready
from torch import Tensor

import inference
from common.checkpoints.loading import open_checkpoint
from common.precision import Precision
from common.synthesis import loading
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.loading import make_voice
from common.synthesis.options import AccelerationOptions, VoiceOptions

RECORDED = VoiceOptions(acceleration=AccelerationOptions(cuda_graphs=True))


class OnCpu(Precision):
    """As on a GPU, but for the device."""

    device = torch.device("cpu")


class Recorder(GraphRecorder):
    """Does recorded work again on the same tensors, as a GPU does, and counts how often."""

    def __init__(self, what: str = "--cuda-graphs") -> None:
        super().__init__(what)
        self.replays: list[int] = []  # of each graph

    def capture(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        """As `GraphRecorder.capture`, without a GPU."""
        index, output = len(self.replays), work()
        self.replays.append(0)

        def replay() -> None:
            self.replays[index] += 1
            for kept, made in zip(parts(output), parts(work())):
                kept.copy_(made)

        return replay, output


def parts(output: Any) -> list[Tensor]:
    """What work makes: a tensor, or some."""
    made = output if isinstance(output, tuple) else (output,)
    return [part for part in made if part is not None]


def mels(*lengths: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(8, n, generator=generator) - 4 for n in lengths]


def test_recorded_work_gives_the_sound_of_the_exact_length_and_is_recorded_once_a_bucket():
    recorder = Recorder()
    vocoder = on_gpu_terms(ready(0), graph_recorder=recorder)
    given = mels(70, 100, 65, 128, 9, 64, 100)
    waves = [vocoder.speak(part[None], [part.size(1)])[0] for part in given]
    for part, wave in zip(given, waves):  # only now: no replay may change an earlier wave
        assert len(wave) == part.size(1) * AUDIO.hop_length
        close(wave, alone(ready(0), part), 1e-6)
    assert recorder.replays == [5, 2]  # 65 to 128 frames, and 9 to 64
    for lengths in ((70, 100, 3), (66, 66, 66)):
        some = mels(*lengths)
        batch = torch.nn.utils.rnn.pad_sequence([part.t() for part in some], batch_first=True).transpose(1, 2)
        for part, wave in zip(some, vocoder.speak(batch, list(lengths))):
            close(wave, alone(ready(0), part), 1e-6)
    assert recorder.replays == [5, 2, 2]


@pytest.mark.parametrize("energy", [True, False])
def test_a_recorded_voice_speaks_as_it_does_without_graphs(energy: bool, tmp_path, monkeypatch):
    model = replace(tiny_voice.MODEL, energy_conditioning=energy)
    opened = open_checkpoint(tiny_voice.save_voice(tmp_path / "voice.pt", model=model))
    recorders: list[Recorder] = []
    monkeypatch.setattr(loading, "GraphRecorder", lambda what: recorders.append(Recorder(what)) or recorders[-1])
    voices = [make_voice(opened, None, options, precision=OnCpu(True)) for options in (VoiceOptions(), RECORDED)]
    texts = ["Two words.", "One more.", "These are a few words more than those before.", "Two words."]
    spoken = [[[one.mel for one in voice.synthesizer.generate(voice.plan(text))] for text in texts] for voice in voices]
    for plain, recorded in zip(*spoken):  # only now: no replay may change an earlier mel
        for one, other in zip(plain, recorded, strict=True):
            close(other, one, 1e-5)
    ((replays),) = [recorder.replays for recorder in recorders]
    assert len(replays) < sum(replays) == 3 * len(texts)  # encode, add_pitch, decode_frames


def test_a_voice_whose_sound_depends_on_padding_and_one_on_a_cpu_are_not_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loading, "GraphRecorder", None)
    model = replace(tiny_voice.MODEL, mask_convolutions=False)
    voice = tiny_voice.save_voice(tmp_path / "voice.pt", model=model)
    assert not make_voice(open_checkpoint(voice), None, RECORDED, precision=OnCpu(True)).synthesizer.has_graphs
    words = ["--fastpitch", str(voice), "--text", "Two words.", "-o", str(tmp_path / "a.wav"), "--cuda-graphs"]
    assert inference.main(words) == 0
    assert capsys.readouterr().err.count("warning: --cuda-graphs does nothing on the CPU") == 1


def test_work_that_cannot_be_recorded_is_done_after_one_warning(capsys):
    class Failing(Recorder):
        def capture(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
            super().capture(work)
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    recorder = Failing()
    vocoder = on_gpu_terms(Counting(ready(0)), graph_recorder=recorder)
    for part in mels(10, 70):
        close(vocoder.speak(part[None], [part.size(1)])[0], alone(ready(0), part), 1e-6)
    assert len(recorder.replays) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: --cuda-graphs ") and "operation not permitted" in line
