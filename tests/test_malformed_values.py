"""Files with values of wrong types, ranges and sizes, or parts that do not fit together: one line that names them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import make_corpus, train_options
from tiny_models import without_samples
from tiny_voice import save_voice

import inference
import train
from common.audio.options import read_audio_config
from common.config import from_plain, to_plain
from common.data.features import frames_of_tokens, load_fractions
from common.errors import CheckpointError, InputError, OptionError
from common.files import parse_yaml, read_json, read_text
from common.options import check_options, option
from scripts import checkpoint_tools


def refused(call: Callable[[], object], kind: type[InputError] = InputError) -> str:
    """The one line that a call is refused by."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert message.isprintable() and len(message) < 1000, "one short line"
    assert not isinstance(caught.value, OptionError), "a file is no option"
    return message


def test_a_file_that_is_no_json_or_yaml_is_one_line(tmp_path: Path):
    path = tmp_path / "a"
    path.write_text('{\n"a": }')
    assert refused(lambda: read_json(path)).startswith(f"{path}:2: not JSON (Expecting value)")
    for content in ("a: !!python/object/apply:os.system [x]", "a: 1\n- b"):
        path.write_text(content)
        assert refused(lambda: parse_yaml(read_text(path), where=str(path))).startswith(f"{path}: not YAML (")


AUDIO_CASES = [
    ("[]", " Input should be an object, got []"),
    ('{"sampling_rate": 0}', " sampling_rate 0: expected a whole number of at least 1 and at most 1e+06"),
    ('{"peak": -1}', " peak -1.0: expected a number above 0 and at most 1"),
    ('{"hop_length": 2000}', " hop_length 2000 is longer than win_length 1024"),
    ('{"loudness": 1}', " loudness: unknown key, got 1"),
]


@pytest.mark.parametrize(("content", "message"), AUDIO_CASES)
def test_a_wrong_value_in_audio_json_is_one_line_that_names_file_and_field(tmp_path: Path, content: str, message: str):
    path = tmp_path / "audio.json"
    path.write_text(content)
    assert refused(lambda: read_audio_config(path)).startswith(f"{path}:{message}")


@dataclass(frozen=True)
class Inner:
    size: int = option(1, "a number", least=1)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class Outer:
    inner: Inner
    row: tuple[Inner, ...] = ()
    pairs: tuple[tuple[int, ...], ...] = ()
    sizes: dict[str, float] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)
    limit: float | None = None


def test_plain_values_become_the_dataclasses_that_they_were():
    whole = Outer(Inner(2, ("a",)), (Inner(), Inner(3)), ((1, 2), ()), {"a": 0.5}, {"b": [1, {}]}, 4.0)
    assert from_plain(Outer, to_plain(whole), where="a.json") == whole
    assert from_plain(Outer, {"inner": {}, "limit": 4}, where="a.json") == Outer(Inner(), limit=4.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "inner: Field required"),
        ({"inner": {"sise": 3}}, "inner.sise: unknown key, got 3"),
        ({"inner": {}, "row": [{}, {"size": 0}]}, "size 0: expected a whole number of at least 1"),
        ({"inner": {}, "pairs": [[1], [2.5]]}, "pairs.1.0: Input should be a valid integer, got 2.5"),
        ({"inner": {"size": torch.ones(1)}}, "inner.size: Input should be a valid integer, got 'tensor([1.])'"),
    ],
)
def test_a_value_deep_in_a_file_is_named_by_its_path(values: dict, message: str):
    assert refused(lambda: from_plain(Outer, values, where="a.json")).startswith(f"a.json: {message}")
    refused(lambda: from_plain(Outer, values, where="a.json", error=CheckpointError), CheckpointError)


MEL = torch.arange(24.0).reshape(4, 6) / 10


@pytest.mark.parametrize("values", [MEL.double() * 1e300, MEL / 0 * 0], ids=["overflow", "NaN"])
def test_a_tensor_that_is_no_mel_is_one_line_that_names_file_and_place(tmp_path: Path, values: torch.Tensor):
    path = tmp_path / "a.pt"
    torch.save(values, path)
    line = refused(lambda: load_fractions(path, where="list.txt:7"))
    assert line.startswith(f"{path}: contains non-finite values") and line.endswith(" (list.txt:7)")


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        (torch.tensor([2, 2.5]), "expected a row of whole numbers of frames"),
        (torch.tensor([[5]]), "expected a row of whole numbers of frames"),
    ],
)
def test_durations_that_are_none_are_one_line(durations: torch.Tensor, message: str):
    line = refused(lambda: frames_of_tokens(durations, 5, name="d.pt", frames_of="mel.pt", where="list.txt:7"))
    assert line == f"d.pt: {message} (list.txt:7)"


RUN = "--epochs 2 --validation-interval 99 --ema-decay 0.9".split()
NAME = "FastPitch_checkpoint_1.pt"
OPTIMIZER = ("training", "optimizers", "fastpitch")
BIAS = "fastpitch.proj.bias"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A corpus, and what the checkpoint of one epoch on it holds."""
    folder = tmp_path_factory.mktemp("trained")
    corpus = make_corpus(folder / "corpus", count=6, val=2)
    with without_samples():
        assert train.main(train_options(corpus, folder / "out", *RUN, "--epochs", "1")) == 0
    return corpus, torch.load(folder / "out" / NAME, weights_only=True)


def resume(trained: tuple[Path, dict[str, Any]], folder: Path, payload: dict[str, Any], *words: str) -> int:
    """Continue the training of a payload in ``folder``."""
    folder.mkdir(exist_ok=True)
    torch.save(payload, folder / NAME)
    with without_samples("--samples-interval" not in words):
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
