"""Values of wrong types, ranges and sizes in files: each is refused in one line that names the file and the field."""

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from common.audio.arguments import read_audio_config
from common.errors import InputError, OptionError, shown
from common.files import read_json, read_yaml


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\x00\n\x1b[31m", r"'a\x00\n\x1b[31m'"),
        ("\udcff", r"'\udcff'"),
        (b"\xff", r"b'\xff'"),
        (22050.5, "22050.5"),
        (math.inf, "inf"),
        (True, "True"),
        (None, "None"),
        ((1, ("a", [])), "(1, ('a', []))"),
        ((1,), "(1,)"),
        (set(), "set()"),
        ({"a": [[[[1]]]]}, "{'a': [[a list of 1]]}"),
        (torch.zeros(3, 4), "a Tensor (3, 4) of float32"),
        (torch.zeros(3).numpy(), "a ndarray (3,) of float32"),
        (object(), "an object"),
    ],
)
def test_a_value_in_a_message_is_printable_and_says_its_type(value, expected):
    assert shown(value) == expected


def test_a_huge_value_in_a_message_is_short_and_takes_no_memory():
    recursive: list = []
    recursive.append(recursive)
    huge = ["x" * 10**7, b"\x00" * 10**7, [1] * 10**6, {"k" * 10**6: "v" * 10**6}, [["a" * 999] * 999] * 999, recursive]
    tracemalloc.start()
    assert all(len(shown(value)) < 350 for value in huge)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert shown(10**5000) == "a whole number of 16610 bits"
    assert shown("x" * 101).endswith("x...") and shown("x" * 100) == repr("x" * 100)
    assert shown("x" * 10**7, longest=4) == "'xxx..."


def refused(call: Callable[[], object], kind: type[InputError] = InputError) -> str:
    """The one line that a call is refused by."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert message.isprintable() and len(message) < 1000, "one short line"
    assert not isinstance(caught.value, OptionError), "a file is no option"
    return message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, ": nested too deeply, expected at most 50 levels"),
        ("[" * 51 + "]" * 51, ": nested too deeply, expected at most 50 levels"),
        ('{"a":' * 600 + "1" + "}" * 600, ": nested too deeply, expected at most 50 levels"),
        ('{"a": "NaN",\n "b": ' + "9" * 5000 + "}", ":2: not JSON (a number of 5000 digits)"),
        ('{"a": "NaN",\n "b": NaN}', ":2: not JSON (NaN is not a number in JSON)"),
        ("[-Infinity]", ":1: not JSON (-Infinity is not a number in JSON)"),
        ('{"a": 1, "a": 2}', ": not JSON (key 'a' twice in one object)"),
        (r'["\ud800"]', r": not JSON ('\ud800' is half a character, expected both halves)"),
        ('{\n"a": }', ":2: not JSON (Expecting value)"),
        ("", ":1: not JSON (Expecting value)"),
        ("\x00", ":1: not JSON (Expecting value)"),
        ('"' + "x" * 2**24 + '"', ": larger than 16777216 bytes, the most that such a file may have"),
    ],
    ids=range(12),
)
def test_json_that_is_too_large_or_none_is_one_line(tmp_path: Path, content: str, message: str):
    path = tmp_path / "a.json"
    path.write_text(content)
    assert refused(lambda: read_json(path)) == f"{path}{message}"


def test_json_of_fifty_levels_and_whole_characters_is_read(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_text("[" * 49 + r'{"a": "\ud83d\ude00", "b": 1e-5}' + "]" * 49)
    value = read_json(path)
    for _ in range(49):
        (value,) = value
    assert value == {"a": "😀", "b": 1e-5}


def doubled(first: str, form: str) -> str:
    """Twenty lines of YAML, each of which refers to the one before it twice: a million values."""
    lines = [form.format(name=f"a{n}", before=f"*a{n - 1}") for n in range(1, 21)]
    return "\n".join([f"a0: &a0 {first}", *lines])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (doubled("[x, y]", "{name}: &{name} [{before}, {before}]"), ":14: not YAML (more than 20000 values"),
        (doubled("{x: 1}", "{name}: &{name}\n  <<: [{before}, {before}]"), "not YAML (more than 20000 values"),
        ("a: &a [*a]", ":1: not YAML (alias 'a' within what it stands for)"),
        ("a:\n  b: &a {c: *a}", ":2: not YAML (alias 'a' within what it stands for)"),
        ("[" * 1000, ":1: not YAML (nested too deeply, expected at most 50 levels)"),
        ("- " * 1000, ":1: not YAML (nested too deeply, expected at most 50 levels)"),
        ("a: 1\nb: " + "9" * 5000, ":2: not YAML (a number of too many digits)"),
        ("a: 1\nb: 2001-99-99", ":2: not YAML (month must be in 1..12)"),
        ("a: !!python/object/apply:os.system [x]", ":1: not YAML (tag 'tag:yaml.org,2002:python/object/apply:os.sys"),
        ("a: !!int 3", ":1: not YAML (tag 'tag:yaml.org,2002:int', expected none)"),
        ("a: 1\nb: 2\na: 3", ":3: not YAML (key 'a' twice)"),
        ("a: *b", ":1: not YAML (found undefined alias 'b')"),
        ("? [a]\n: b", ":1: not YAML (found unhashable key)"),
        ("a\nb\x07", r":2: not YAML (character '\x07')"),
        ("a: 1\n- b", ":2: not YAML (expected <block end>, but found '-')"),
        ("#" * 65537, ": larger than 65536 bytes"),
    ],
    ids=range(16),
)
def test_yaml_that_is_too_large_or_none_is_one_line(tmp_path: Path, content: str, message: str):
    path = tmp_path / "a.yaml"
    path.write_text(content)
    line = refused(lambda: read_yaml(path))
    assert line.startswith(f"{path}:") and message in line


def test_aliases_and_merged_keys_of_yaml_are_read(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text("a: &a {x: 1, y: 1e-5}\nb:\n  <<: *a\n  x: 2\nc: [*a, *a]\n")
    value = read_yaml(path)
    assert value["b"] == {"x": 2, "y": 1e-5} and value["c"] == [{"x": 1, "y": 1e-5}] * 2


AUDIO_CASES = [
    ("[]", " []: expected keys with values"),
    ("null", " None: expected keys with values"),
    ('"22050"', " '22050': expected keys with values"),
    ("true", " True: expected keys with values"),
    ("22050.5", " 22050.5: expected keys with values"),
    ('{"sampling_rate": "22050"}', " sampling_rate '22050': expected a whole number"),
    ('{"sampling_rate": 22050.5}', " sampling_rate 22050.5: expected a whole number"),
    ('{"sampling_rate": 22050.0}', " sampling_rate 22050.0: expected a whole number"),
    ('{"sampling_rate": true}', " sampling_rate True: expected a whole number"),
    ('{"sampling_rate": null}', " sampling_rate None: expected a whole number"),
    ('{"sampling_rate": [22050]}', " sampling_rate [22050]: expected a whole number"),
    ('{"sampling_rate": {"a": 1}}', " sampling_rate {'a': 1}: expected a whole number"),
    ('{"sampling_rate": 0}', " sampling_rate 0: expected at least 1"),
    ('{"sampling_rate": -22050}', " sampling_rate -22050: expected at least 1"),
    ('{"sampling_rate": 1000001}', " sampling_rate 1000001: expected at most 1000000"),
    ('{"n_mels": 1' + "0" * 4000 + "}", " n_mels a whole number of 13288 bits: expected a whole number of at most"),
    ('{"mel_fmax": 1e999}', " mel_fmax inf: expected a number"),
    ('{"mel_fmin": 1e300}', " mel_fmin 1e+300: expected a number"),
    ('{"mel_fmin": "0"}', " mel_fmin '0': expected a number"),
    ('{"mel_fmin": false}', " mel_fmin False: expected a number"),
    ('{"mel_fmin": null}', " mel_fmin None: expected a number"),
    ('{"framing": 1}', " framing 1: expected a word"),
    ('{"framing": "left"}', " audio framing 'left': expected one of centered, aligned"),
    ('{"framing": "\\u001b[31m"}', r" audio framing '\x1b[31m': expected one of centered, aligned"),
    ('{"peak": -1}', " peak -1: expected a number above 0"),
    ('{"loudness": 1}', " unknown key loudness; expected one of filter_length, framing"),
    ('{"\\n": 1}', r" unknown key '\n'; expected one of filter_length, framing"),
]


@pytest.mark.parametrize(("content", "message"), AUDIO_CASES, ids=range(len(AUDIO_CASES)))
def test_a_wrong_value_in_audio_json_is_one_line_that_names_file_and_field(tmp_path: Path, content: str, message: str):
    path = tmp_path / "audio.json"
    path.write_text(content)
    line = refused(lambda: read_audio_config(path))
    assert line.startswith(f"{path}:{message}")
