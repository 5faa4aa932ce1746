"""Values of wrong types, ranges and sizes in files: each is refused in one line that names the file and the field."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from common.audio.options import read_audio_config
from common.config import from_plain, to_plain
from common.data.features import frames_of_tokens, load_fractions
from common.errors import CheckpointError, InputError, OptionError
from common.files import parse_yaml, read_json, read_text
from common.options import check_options, option


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
TENSORS = {  # what is no mel -> why
    "overflow": (lambda: MEL.double() * 1e300, "contains non-finite values"),
    "NaN": (lambda: MEL / 0 * 0, "contains non-finite values"),
    "dict": (lambda: {"mel": MEL}, "holds a dict, expected one tensor"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_a_tensor_that_is_no_mel_is_one_line_that_names_file_and_place(tmp_path: Path, case: str):
    make, message = TENSORS[case]
    path = tmp_path / "a.pt"
    torch.save(make(), path)
    line = refused(lambda: load_fractions(path, where="list.txt:7"))
    assert line.startswith(f"{path}: {message}") and line.endswith(" (list.txt:7)")


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        (torch.tensor([2, 2.5]), "expected a row of whole numbers of frames"),
        (torch.tensor([[5]]), "expected a row of whole numbers of frames"),
        (torch.zeros(0), "0 frames in total, but mel.pt has 5"),
    ],
)
def test_durations_that_are_none_are_one_line(durations: torch.Tensor, message: str):
    line = refused(lambda: frames_of_tokens(durations, 5, name="d.pt", frames_of="mel.pt", where="list.txt:7"))
    assert line == f"d.pt: {message} (list.txt:7)"
