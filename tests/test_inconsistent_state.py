"""Checkpoints whose parts do not fit together: what cannot go on as it was is said, the rest is one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import make_corpus, train_options
from tiny_voice import save_voice

import inference
import train
from common.errors import CheckpointError, InputError
from scripts import checkpoint_tools

RUN = "--epochs 2 --validation-interval 99 --samples-interval 99 --ema-decay 0.9".split()
NAME = "FastPitch_checkpoint_1.pt"
OPTIMIZER = ("training", "optimizers", "fastpitch")
BIAS = "fastpitch.proj.bias"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A corpus, and what the checkpoint of one epoch on it holds."""
    folder = tmp_path_factory.mktemp("trained")
    corpus = make_corpus(folder / "corpus", count=6, val=2)
    assert train.main(train_options(corpus, folder / "out", *RUN[2:], "--epochs", "1")) == 0
    return corpus, torch.load(folder / "out" / NAME, weights_only=True)


def resume(trained: tuple[Path, dict[str, Any]], folder: Path, payload: dict[str, Any], *words: str) -> int:
    """Continue the training of a payload in ``folder``."""
    folder.mkdir(exist_ok=True)
    torch.save(payload, folder / NAME)
    return train.main(train_options(trained[0], folder, *RUN, "--resume", *words))


def with_value(payload: Any, place: tuple[str, ...], change: Callable[[Any], Any]) -> Any:
    """A copy of nested dicts with another value at a place."""
    if not place:
        return change(payload)
    return {**payload, place[0]: with_value(payload[place[0]], place[1:], change)}


def with_huge_mels(payload: dict[str, Any], *place: str) -> dict[str, Any]:
    """A payload whose network at ``place`` makes mels that are not finite."""
    payload = with_value(payload, (*place, "proj.bias"), lambda value: torch.full_like(value, 3e38))
    return with_value(payload, (*place, "proj.weight"), lambda value: value * 1e38)


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (("ema", "fastpitch"), lambda state: dict([*state.items()][1:]), "EMA weights"),
        ((*OPTIMIZER, "states"), lambda states: dict([*states.items()][1:]), "optimizer state"),
        ((*OPTIMIZER, "states", BIAS), lambda one: {**one, "exp_avg": one["exp_avg"][:1]}, BIAS),
        ((*OPTIMIZER, "states", BIAS), lambda one: {**one, "step": torch.zeros(3)}, BIAS),
        ((*OPTIMIZER, "states", BIAS), lambda one: {"step": one["step"], "exp_avg": one["exp_avg"]}, BIAS),
        (OPTIMIZER[:2], lambda one: {**one, "mpd": one["fastpitch"]}, "has optimizers for mpd, expected fastpitch"),
        (("config", "text", "symbol_set"), lambda _: "english_extended", "symbol"),
        (("config", "audio", "n_mels"), lambda _: 40, "n_mel"),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(place, change, message: str, trained, tmp_path: Path):
    with pytest.raises(CheckpointError) as caught:
        resume(trained, tmp_path / "out", with_value(trained[1], place, change))
    line = str(caught.value)
    assert str(tmp_path / "out" / NAME) in line and message in line and line.isprintable()


def test_what_cannot_go_on_as_it_was_is_said(trained, tmp_path: Path, capsys: pytest.CaptureFixture):
    payload = trained[1]

    def lines(payload: dict[str, Any], *words: str) -> str:
        capsys.readouterr()
        assert resume(trained, tmp_path / "out", payload, *words) == 0
        (tmp_path / "out" / "FastPitch_checkpoint_2.pt").unlink()
        return capsys.readouterr().out

    assert "anew" not in (said := lines(payload)) and "EMA" not in said and "left out" not in said
    anew = with_value({**payload, "ema": None}, (*OPTIMIZER, "states"), lambda _: {})
    said = lines(with_value(anew, ("training", "random"), lambda _: []))
    assert f"{NAME} has no EMA weights: they start as a copy of its weights\n" in said
    assert "no optimizer state for fastpitch, so it is reinitialized\n" in said
    assert "random states for 0 processes, not 1" in said
    assert f"{NAME} are dropped, since --ema-decay is 0\n" in lines(payload, "--ema-decay", "0")


def test_a_voice_whose_configuration_is_not_that_of_its_weights_is_refused_by_every_command(tmp_path: Path):
    path = save_voice(tmp_path / "a.pt")
    torch.save(with_value(torch.load(path, weights_only=True), ("config", "audio", "n_mels"), lambda _: 20), path)
    speak = ["--fastpitch", str(path), "--text", "A.", "-o", str(tmp_path / "o"), "--no-audio", "--save-mels"]
    for main, words in (
        (inference.main, [*speak, "--speaker", "1"]),
        (checkpoint_tools.inspect, [str(path)]),
        (checkpoint_tools.strip, [str(path), str(tmp_path / "b.pt")]),
        (checkpoint_tools.convert, [str(path), str(tmp_path / "c.pt")]),
    ):
        with pytest.raises(CheckpointError, match=f"^{path}: "):
            main(words)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.pt"]


def test_a_voice_whose_mel_is_not_finite_is_named(tmp_path: Path):
    path = save_voice(tmp_path / "a.pt")
    torch.save(with_huge_mels(torch.load(path, weights_only=True), "networks", "fastpitch"), path)
    words = ["--fastpitch", str(path), "--text", "A.", "-o", str(tmp_path / "o"), "--no-audio", "--save-mels"]
    with pytest.raises(InputError, match=rf"text: the mel-spectrogram made for it is not finite; .* {path} is damaged"):
        inference.main(words)


def test_a_training_whose_examples_are_not_finite_says_what_to_do(trained, tmp_path: Path):
    payload = with_huge_mels(trained[1], "ema", "fastpitch")
    with pytest.raises(InputError, match=r"val_ema .*: its .* is not finite after update 2; .*--checkpoint-path"):
        resume(trained, tmp_path / "out", payload, "--samples-interval", "1")
