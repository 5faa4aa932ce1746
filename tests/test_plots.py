"""Figures show what they should: one colour range, seconds, gaps where there is no voice, whole files."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from common.errors import InputError
from common.plots import plot_curves, plot_mels, plot_utterance, save_png, to_image

HOP, RATE = 256, 22050


def lines_with_data(figure: Figure) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata()) for axis in figure.axes for line in axis.lines]


def test_target_and_prediction_share_colours_and_time():
    target, predicted = torch.linspace(-11, 1, 800).view(8, 100), torch.linspace(-5, 3, 640).view(8, 80)
    figure = plot_mels({"target": target, "predicted": predicted}, hop_length=HOP, sampling_rate=RATE)
    images = [axis.images[0] for axis in figure.axes if axis.images]
    assert [axis.get_title(loc="left") for axis in figure.axes[:2]] == ["target", "predicted"]
    assert len(images) == 2
    assert all(image.get_clim() == pytest.approx((-11, 3)) for image in images)
    assert images[0].get_extent() == pytest.approx([0, 100 * HOP / RATE, 0, 8])
    assert images[1].get_extent() == pytest.approx([0, 80 * HOP / RATE, 0, 8])
    assert all(axis.get_xlim() == pytest.approx((0, 100 * HOP / RATE)) for axis in figure.axes[:2])
    assert figure.axes[1].get_xlabel() == "time (s)"
    assert np.array_equal(images[0].get_array(), target.numpy())


def test_low_channels_are_drawn_at_the_bottom():
    mel = torch.full((8, 50), -10.0)
    mel[0] = 2.0  # one bright channel, the lowest
    picture = to_image(plot_mels({"mel": mel})).astype(int).sum(axis=2)
    row = picture[:, picture.shape[1] // 2]
    inside = np.flatnonzero(row < 700)  # the page is white, and so nearly is the brightest colour
    assert row[inside].argmax() > 0.7 * len(inside)


def test_a_mel_that_is_not_finite_still_gives_a_picture():
    mel = torch.randn(8, 20)
    mel[2, 3], mel[4, 5] = float("nan"), float("inf")
    figure = plot_mels({"a": mel, "b": torch.full((8, 4), float("nan"))})
    low, high = figure.axes[0].images[0].get_clim()
    finite = mel[torch.isfinite(mel)]
    assert (low, high) == pytest.approx((float(finite.min()), float(finite.max())))
    assert to_image(figure).ndim == 3


def test_unvoiced_pitch_is_left_out_not_drawn_as_zero():
    pitch = torch.tensor([0.0, 200.0, 210.0, 0.0, 190.0])
    utterance = plot_utterance(torch.randn(8, 5), pitch=pitch, hop_length=HOP, sampling_rate=RATE)
    curves = plot_curves({"target": pitch}, gaps=True)
    for drawn in lines_with_data(utterance) + lines_with_data(curves):
        assert np.isnan(drawn[[0, 3]]).all()
        assert drawn[[1, 2, 4]] == pytest.approx([200, 210, 190])
    assert lines_with_data(plot_curves({"target": pitch}))[0][0] == 0


def test_symbols_stand_above_the_middle_of_their_frames():
    durations = torch.tensor([4, 0, 6, 2])
    figure = plot_utterance(
        torch.randn(8, 12), durations=durations, labels=["h", "e", " ", "$"], hop_length=HOP, sampling_rate=RATE
    )
    top = figure.axes[0].child_axes[0]
    assert top.get_xticks() == pytest.approx(np.array([2, 7, 11]) * HOP / RATE)
    assert [label.get_text() for label in top.get_xticklabels()] == ["h", "\u2423", r"\$"]


def test_an_utterance_without_voice_or_with_bfloat16_is_drawn():
    mel = torch.randn(8, 6).bfloat16().requires_grad_()
    figure = plot_utterance(mel, pitch=torch.zeros(6), hop_length=HOP, sampling_rate=RATE, title="costs $5 or $6 \\x")
    assert to_image(figure).shape[2] == 3
    assert figure.axes[0].get_xlabel() == "time (s)"
    assert "pitch (Hz)" in [axis.get_ylabel() for axis in figure.axes]


def test_a_picture_is_written_whole_and_replaces_an_older_one(tmp_path: Path):
    path = tmp_path / "new" / "a.png"
    figure = plot_curves({"target": torch.rand(9), "predicted": torch.rand(9)}, labels=list("some text"), ylabel="Hz")
    save_png(figure, path)
    path.write_bytes(b"broken")
    save_png(figure, path)
    drawn = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(np.uint8)
    assert np.array_equal(drawn, to_image(figure))
    assert [file.name for file in path.parent.iterdir()] == ["a.png"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"b\.png: cannot write the picture"):
        save_png(figure, tmp_path / "file" / "b.png")
