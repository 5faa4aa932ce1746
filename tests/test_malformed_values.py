"""Values of wrong types, ranges and sizes in files: each is refused in one line that names the file and the field."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from common.audio.options import read_audio_config
from common.config import from_plain, to_plain
from common.data.features import frames_of_tokens, load_fractions
from common.errors import CheckpointError, InputError, OptionError, shown
from common.files import parse_yaml, read_json, read_text
from common.options import check_options, option
from common.torch_file import load_tensor, read_plain_tensor, tensor_shape


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\x00\n\x1b[31m", r"'a\x00\n\x1b[31m'"),
        ((1, ("a", [])), "(1, ('a', []))"),
        (torch.zeros(3, 4), "a Tensor (3, 4) of float32"),
    ],
)
def test_a_value_in_a_message_is_printable_and_says_its_type(value, expected):
    assert shown(value) == expected


def test_a_huge_value_in_a_message_is_short():
    assert all(len(shown(value)) < 350 for value in ("x" * 10**6, [1] * 10**6, {"k" * 10**6: 1}))


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
    for content in ("[" * 10**5, "9" * 5000):
        path.write_text(content)
        assert refused(lambda: read_json(path)).startswith(f"{path}: not JSON")
    for content in ("a: !!python/object/apply:os.system [x]", "a: 1\n- b", "[" * 10**4, "9" * 5000):
        path.write_text(content)
        assert refused(lambda: parse_yaml(read_text(path), where=str(path))).startswith(f"{path}: not YAML (")


def test_aliases_and_merged_keys_of_yaml_are_read(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text("a: &a {x: 1, y: 1e-5}\nb:\n  <<: *a\n  x: 2\nc: [*a, *a]\n")
    value = parse_yaml(read_text(path), where=str(path))
    assert value["b"] == {"x": 2, "y": 1e-5} and value["c"] == [{"x": 1, "y": 1e-5}] * 2


AUDIO_CASES = [
    ("[]", " Input should be an object, got []"),
    ('{"sampling_rate": "22050"}', " sampling_rate: Input should be a valid integer, got '22050'"),
    ('{"sampling_rate": 0}', " sampling_rate 0: expected a whole number of at least 1 and at most 1e+06"),
    ('{"framing": "left"}', " framing 'left': expected one of centered, aligned"),
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
        ({"inner": 3}, "inner: Input should be an object, got 3"),
        ({"inner": {"sise": 3}}, "inner.sise: unknown key, got 3"),
        ({"inner": {"size": 0}}, "size 0: expected a whole number of at least 1"),
        ({"inner": {}, "row": [{}, {"size": 0}]}, "size 0: expected a whole number of at least 1"),
        ({"inner": {}, "pairs": [[1], [2.5]]}, "pairs.1.0: Input should be a valid integer, got 2.5"),
        ({"inner": {}, "sizes": {"a": "1"}}, "sizes.a: Input should be a valid number, got '1'"),
        ({"inner": {"size": torch.ones(1)}}, "inner.size: Input should be a valid integer, got 'tensor([1.])'"),
    ],
)
def test_a_value_deep_in_a_file_is_named_by_its_path(values: dict, message: str):
    assert refused(lambda: from_plain(Outer, values, where="a.json")).startswith(f"a.json: {message}")
    refused(lambda: from_plain(Outer, values, where="a.json", error=CheckpointError), CheckpointError)


MEL = torch.arange(24.0).reshape(4, 6) / 10
TENSORS = {  # what is no mel -> why
    "overflow": (lambda: MEL.double() * 1e300, "holds values that are not finite"),
    "NaN": (lambda: MEL / 0 * 0, "holds values that are not finite"),
    "dict": (lambda: {"mel": MEL}, "holds a dict, expected one tensor"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_a_tensor_that_is_no_mel_is_one_line_that_names_file_and_place(tmp_path: Path, case: str):
    make, message = TENSORS[case]
    path = tmp_path / "a.pt"
    torch.save(make(), path)
    line = refused(lambda: load_fractions(path, where="list.txt:7"))
    assert line.startswith(f"{path}: {message}") and line.endswith(" (list.txt:7)")


VIEWS = (MEL.t(), MEL[:, 2:4], MEL.expand(2, 4, 6), torch.nn.Parameter(MEL), torch.empty(0), torch.tensor(3.5))
DTYPES = (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_feature_is_read_as_torch_reads_it(tmp_path: Path, zipped: bool):
    path = tmp_path / "a.pt"
    short = zipped and hasattr(torch._C.PyTorchFileReader, "get_record_size")  # which PyTorch 2.11 lacks
    for tensor in (MEL, *VIEWS, *(MEL.to(dtype) for dtype in DTYPES)):
        torch.save(tensor, path, _use_new_zipfile_serialization=zipped)
        assert (read_plain_tensor(path) is not None) == short, "today's files are read the short way"
        read = load_tensor(path)
        assert torch.equal(read, tensor) and (read.dtype, read.stride()) == (tensor.dtype, tensor.stride())
        assert not read.requires_grad and tensor_shape(path) == tuple(tensor.shape)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"cut off")
    assert read_plain_tensor(path) is None


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_a_mel_of_any_usual_type_is_read_as_float32(tmp_path: Path, kind: torch.dtype):
    torch.save(torch.nn.Parameter(MEL.to(kind)), tmp_path / "a.pt")
    mel = load_fractions(tmp_path / "a.pt", where="list.txt:7")
    assert mel.dtype == torch.float32 and not mel.requires_grad
    torch.testing.assert_close(mel, MEL, atol=0.01, rtol=0.01)


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        (torch.tensor([2, 2.5]), "expected a row of whole numbers of frames"),
        (torch.tensor([[5]]), "expected a row of whole numbers of frames"),
        (torch.zeros(0), "0 frames in all, but mel.pt has 5"),
    ],
)
def test_durations_that_are_none_are_one_line(durations: torch.Tensor, message: str):
    line = refused(lambda: frames_of_tokens(durations, 5, name="d.pt", frames_of="mel.pt", where="list.txt:7"))
    assert line == f"d.pt: {message} (list.txt:7)"


@pytest.mark.parametrize("kind", [torch.uint8, torch.int64, torch.float32, torch.bfloat16])
def test_durations_of_any_usual_type_are_read_as_whole_numbers(kind: torch.dtype):
    durations = frames_of_tokens(torch.tensor([2, 3], dtype=kind), 5, name="d.pt", frames_of="mel.pt")
    assert durations.dtype == torch.int64 and durations.tolist() == [2, 3]
