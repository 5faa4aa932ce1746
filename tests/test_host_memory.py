"""Freed memory is kept for the next tensors where the C library allows it."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, resource, sys, torch
from common.precision import keep_freed_memory
keeps = os.fork() == 0  # the other process does not
if keeps and not keep_freed_memory():
    sys.exit(77)
for _ in range(15):
    torch.ones(2**24)  # until the heap has grown to what is needed
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    torch.ones(2**24)  # 64 MiB, 16384 pages
print(keeps, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, flush=True)
if not keeps:
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_tensors_reuse_the_pages_of_those_before_them():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this C library has no such setting")
    assert done.returncode == 0, done.stderr
    page_faults = dict(line.split() for line in done.stdout.splitlines())
    assert int(page_faults["True"]) < 500 < int(page_faults["False"])
