"""Checkpoints whose fields are right alone and wrong together are refused in one line that names the file."""

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
from scripts import convert_checkpoint, inspect_checkpoint, strip_checkpoint

RUN = "--epochs 2 --validation-interval 99 --samples-interval 99 --ema-decay 0.9".split()
NAME = "FastPitch_checkpoint_1.pt"
PROJ = "fastpitch.proj.bias"


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


def without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda values: {key: value for key, value in values.items() if key != name}


OPTIMIZER = ("training", "optimizers", "fastpitch")
STATE = (*OPTIMIZER, "states", PROJ)
INCONSISTENT = {
    "EMA of some weights": (("ema", "fastpitch"), without("proj.bias"), "missing proj.bias"),
    "a state less": ((*OPTIMIZER, "states"), without(PROJ), f"missing: {PROJ}"),
    "a state more": ((*OPTIMIZER, "states"), lambda states: {**states, "mpd.w": states[PROJ]}, "unknown: mpd.w"),
    "moments of another shape": ((*STATE, "exp_avg"), lambda value: value[1:], "another shape: fastpitch.proj.bias"),
    "an optimizer more": (
        OPTIMIZER[:2],
        lambda one: {**one, "mpd": one["fastpitch"]},
        "are of mpd, expected fastpitch",
    ),
    "more names than speakers": (("config", "text", "speakers"), lambda _: ["a", "b"], "names of 2 speakers"),
    "another symbol set": (("config", "text", "symbol_set"), lambda _: "english_extended", "symbol"),
    "other mel channels": (("config", "audio", "n_mels"), lambda _: 40, "n_mel"),
}


@pytest.mark.parametrize("case", INCONSISTENT)
def test_a_state_that_does_not_fit_together_is_refused(case: str, trained, tmp_path: Path):
    place, change, message = INCONSISTENT[case]
    with pytest.raises(CheckpointError) as caught:
        resume(trained, tmp_path / "out", with_value(trained[1], place, change))
    line = str(caught.value)
    assert str(tmp_path / "out" / NAME) in line and message in line and line.isprintable()
    assert "none of 1 checkpoints" not in line or line.startswith(f"{tmp_path / 'out'}: ")


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
    assert f"{NAME} holds no EMA weights: they begin as a copy of its weights\n" in said
    assert "no state of the optimizer of fastpitch, which begins anew\n" in said
    assert "random states of 0 processes, not 1" in said
    assert f"{NAME} are left out, as --ema-decay is 0\n" in lines(payload, "--ema-decay", "0")


def test_the_reason_of_the_last_checkpoint_that_cannot_be_read_is_in_the_error(trained, tmp_path: Path):
    (tmp_path / NAME).write_bytes(b"x")
    with pytest.raises(CheckpointError, match=f"none of 1 checkpoints of FastPitch can be read: .*{NAME}: "):
        train.main(train_options(trained[0], tmp_path, *RUN, "--resume"))


VOICES = {
    "more names than speakers": (("config", "text", "speakers"), lambda _: ["a", "b", "c"]),
    "fewer rows than speakers": (("networks", "fastpitch", "speaker_emb.weight"), lambda value: value[:1]),
    "other mel channels": (("config", "audio", "n_mels"), lambda _: 20),
    "window longer than the filter": (("config", "audio", "win_length"), lambda _: 4096),
    "hop longer than the window": (("config", "audio", "hop_length"), lambda _: 2000),
    "fmin above fmax": (("config", "audio", "mel_fmin"), lambda _: 9000.0),
    "another symbol set": (("config", "text", "symbol_set"), lambda _: "english_extended"),
}


@pytest.mark.parametrize("case", VOICES)
def test_a_voice_that_does_not_fit_together_is_refused_by_every_command(case: str, tmp_path: Path):
    path, (place, change) = tmp_path / "a.pt", VOICES[case]
    torch.save(with_value(torch.load(save_voice(path), weights_only=True), place, change), path)
    speak = ["--fastpitch", str(path), "--text", "A.", "-o", str(tmp_path / "o"), "--no-audio", "--save-mels"]
    commands = [
        lambda: inference.main([*speak, "--speaker", "1"]),
        lambda: inspect_checkpoint.main([str(path)]),
        lambda: strip_checkpoint.main([str(path), str(tmp_path / "b.pt")]),
        lambda: convert_checkpoint.main([str(path), str(tmp_path / "c.pt")]),
    ]
    for command in commands:
        with pytest.raises(CheckpointError) as caught:
            command()
        assert str(caught.value).startswith(f"{path}: ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.pt"]


def test_a_voice_whose_mel_is_not_finite_is_named(tmp_path: Path):
    path = save_voice(tmp_path / "a.pt")
    change = (("networks", "fastpitch", "proj.bias"), lambda value: torch.full_like(value, 3e38))
    payload = with_value(torch.load(path, weights_only=True), *change)
    payload = with_value(payload, ("networks", "fastpitch", "proj.weight"), lambda value: value * 1e38)
    torch.save(payload, path)
    with pytest.raises(InputError, match=rf"text: the mel-spectrogram made for it is not finite; .* {path} is damaged"):
        inference.main(
            ["--fastpitch", str(path), "--text", "A.", "-o", str(tmp_path / "o"), "--no-audio", "--save-mels"]
        )


def test_a_training_whose_examples_are_not_finite_says_what_to_do(trained, tmp_path: Path):
    payload = with_value(trained[1], ("ema", "fastpitch", "proj.bias"), lambda value: torch.full_like(value, 3e38))
    payload = with_value(payload, ("ema", "fastpitch", "proj.weight"), lambda value: value * 1e38)
    with pytest.raises(InputError, match=r"val_ema .*: its .* is not finite after update 2; .*--checkpoint-path"):
        resume(trained, tmp_path / "out", payload, "--samples-interval", "1")
