"""What an utterance's picture shows of a voice's prosody, and of sound that has none."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import torch

from common import plots
from common.config import AudioConfig
from common.synthesis.output_folder import draw_speech
from common.synthesis.speech import Speech
from common.synthesis.utterances import MelOutput, Phrase, SynthesisInput, SynthesisResult

AUDIO = AudioConfig(n_mels=8)
MEL = torch.randn(2, 8, 60)
LENGTHS = torch.tensor([40, 60])
FRAMES = torch.tensor([[30, 10, 0], [20, 0, 40]])
PITCH = torch.tensor([[100.0, 110.0, 0.0], [200.0, 210.0, 0.0]])
ENERGY = torch.tensor([[1.0, 2.0, 9.0], [3.0, 4.0, 5.0]])
SYMBOLS = ["_", "b", "i"]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is drawn and where, instead of drawing it."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(plots, "plot_utterance", lambda mels, **options: calls.append({"mels": mels, **options}))
    monkeypatch.setattr(plots, "save_png", lambda figure, path: calls[-1].update(path=path))
    return calls


def result(row: int, output: MelOutput | None, *, wave: torch.Tensor | None = None, text: str | None = "Bee?"):
    tokens = None if output is None else torch.tensor([[1, 2], [1, 0, 2]][row])
    mel = MEL[row, :, : int(LENGTHS[row])]
    names = () if tokens is None else tuple(SYMBOLS[index] for index in tokens)
    item = SynthesisInput(Phrase("list:1", PurePosixPath("x.wav"), text), tokens=tokens, symbols=names)
    return SynthesisResult(item, mel, wave, output, row)


def draw(*parts: SynthesisResult) -> None:
    draw_speech(Speech(parts, AUDIO), Path("x.png"))


def test_a_voices_pitch_and_energy_are_drawn_over_the_frames_of_each_symbol_of_its_own_utterance(shown):
    output = MelOutput(MEL, LENGTHS, frames=FRAMES, pitch_hz=PITCH, decoded_energy=ENERGY)
    for row in range(2):
        draw(result(row, output))
    first, second = shown
    assert (first["title"], first["symbols"], first["path"]) == ("Bee?", ["", "b", "i", ""], Path("x.png"))
    assert second["symbols"] == ["", "b", "_", "i", ""]
    assert second["durations"].tolist() == [0, 20, 0, 40, 0]
    assert torch.equal(first["curves"][plots.PITCH]["model"], torch.tensor([100.0] * 30 + [110.0] * 10))
    assert torch.equal(second["curves"][plots.PITCH]["model"], torch.tensor([200.0] * 20 + [0.0] * 40))
    assert torch.equal(second["curves"]["energy"]["model"], torch.tensor([3.0] * 20 + [5.0] * 40))
    assert first["alignment"] is None
    assert first["mels"][""].shape == (8, 40)


def test_attention_is_cut_to_the_utterance_and_says_itself_where_symbols_are(shown):
    output = MelOutput(MEL, LENGTHS, frames=FRAMES, alignments=torch.rand(2, 60, 3))
    draw(result(0, output))
    assert torch.equal(shown[0]["alignment"], output.alignments[0, :40, :2])
    assert shown[0]["durations"] is None, "counts of frames are not intervals where attention goes back"


def test_the_pitch_of_the_sound_is_measured_and_a_sound_too_short_has_none(shown):
    wave = 0.3 * torch.sign(torch.sin(2 * torch.pi * 150 * torch.arange(40 * 256) / 22050))
    draw(result(0, None, wave=wave, text=None))
    draw(result(0, None, wave=wave[:600]))
    measured = shown[0]["curves"][plots.PITCH]["measured"]
    assert measured.shape == (40,)
    assert float(measured[measured > 0].median()) == pytest.approx(150, abs=2)
    assert (shown[0]["title"], shown[0]["symbols"]) == ("x.wav", [])
    assert not shown[1]["curves"][plots.PITCH]
