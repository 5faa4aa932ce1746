"""Figures show what they should: every symbol, gaps where there is no voice, whole files."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from common.config import AudioConfig
from common.plots import PITCH, plot_utterance, to_image

AUDIO = AudioConfig(n_mels=8)
PHONES = ["h", "ə", "l", "oʊ", " ", "$"]
DURATIONS = torch.tensor([3, 4, 0, 5, 2, 6])
N_FRAMES = 20


def speech(**given) -> Figure:
    """An utterance of 20 frames with everything that can be drawn, or with ``given`` instead."""
    path = torch.repeat_interleave(torch.arange(len(PHONES)), DURATIONS)
    pitch = torch.cat([torch.zeros(5), torch.linspace(180, 220, 10), torch.zeros(5)])
    parts = {
        "mels": {"target": torch.randn(8, N_FRAMES), "predicted": torch.randn(8, N_FRAMES)},
        "title": "hello $",
        "symbols": PHONES,
        "durations": DURATIONS,
        "alignment": torch.nn.functional.one_hot(path, len(PHONES)).float(),
        "curves": {
            PITCH: {"target": pitch, "predicted": pitch + 10 * (pitch > 0)},
            "energy": {"target": torch.rand(N_FRAMES)},
        },
    } | given
    return plot_utterance(parts.pop("mels"), audio=AUDIO, **parts)


def drawn(axis: Axes) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata()) for line in axis.lines]


@pytest.mark.parametrize("n_symbols", [130, 400])
def test_every_symbol_of_a_long_text_has_a_label_and_none_overlap(n_symbols: int):
    text = ("A short rhyme, memorized well in its form; " * 12)[:n_symbols]
    durations = torch.full((n_symbols,), 860 // n_symbols)
    weights = torch.eye(n_symbols).repeat_interleave(durations, 0)
    mels = {"": torch.randn(8, len(weights))}
    given = {"durations": durations, "alignment": weights, "curves": None}
    figure = speech(mels=mels, title=text, symbols=text, **given)
    mel, attention = figure.axes
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    below, beside = mel.get_xticklabels(minor=True), attention.get_yticklabels()
    for labels, space, near, far in ((below, "\n", "x0", "x1"), (beside, " ", "y0", "y1")):
        rows: dict[int, list] = {}
        for label in labels:
            rows.setdefault(label.get_text().count(space), []).append(label.get_window_extent(renderer))
        assert sum(map(len, rows.values())) == n_symbols
        for row in rows.values():
            assert all(getattr(one, far) <= getattr(other, near) + 1 for one, other in pairwise(row))
    assert min(label.get_window_extent(renderer).x0 for label in beside) >= 0
    assert figure._suptitle.get_window_extent(renderer).x1 <= figure.bbox.width
    assert figure.get_size_inches().max() <= 20


@pytest.mark.parametrize("text", ["今天天气很好", "मौसम", "오늘 날씨", "a\u0e01\U0001f600\U000e0100"])
@pytest.mark.filterwarnings("error")
def test_a_text_without_a_font_is_drawn_as_its_symbols(text: str):
    figure = plot_utterance({"mel": torch.zeros(8, 20)}, audio=AUDIO, title=f"a.wav: {text}", symbols=PHONES)
    to_image(figure)
    title = figure.get_suptitle()
    assert title.startswith("a.wav: ") and (text in title or "həl" in title)


def test_unvoiced_pitch_is_left_out():
    pitch = torch.tensor([0.0, 200.0, 210.0, 0.0, 190.0, 180.0])
    figure = plot_utterance({"": torch.randn(8, 6)}, audio=AUDIO, curves={PITCH: {"a": pitch, "b": torch.zeros(6)}})
    axis = figure.axes[1]
    (values,) = drawn(axis)
    assert np.isnan(values[[0, 3]]).all()
    assert values[[1, 2, 4, 5]] == pytest.approx([200, 210, 190, 180])
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["a"], "no entry for what is not drawn"
