"""Values of wrong types, ranges and sizes in files: each is refused in one line that names the file and the field."""

import math
import tracemalloc

import pytest
import torch

from common.errors import shown


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
