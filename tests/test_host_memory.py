"""Freed memory is kept for the next tensors where the C library allows it."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, torch
from common.precision import keep_freed_memory
if "keep" in sys.argv and not keep_freed_memory():
    sys.exit(77)
for _ in range(15):
    torch.ones(2**24)  # until the heap has grown to what is needed
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    torch.ones(2**24)  # 64 MiB, 16384 pages
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _page_faults(*argv: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this C library has no such setting")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_tensors_reuse_the_pages_of_those_before_them():
    assert _page_faults("keep") < 500 < _page_faults()
