"""Updates are timed, with the longest kernels."""

from pathlib import Path

import pytest
from tiny import TINY_OPTIONS

from scripts.benchmarks import updates


def test_updates_are_timed_with_the_longest_kernels(tmp_path: Path, capsys):
    words = "--model FastPitch -bs 2 --accumulation 2 --steps 2 --settings full"
    updates.main([str(tmp_path), *words.split(), *TINY_OPTIONS])
    out = capsys.readouterr().out
    assert "Self CPU" in out
    rows = [line.strip("|").split("|") for line in out.splitlines() if line.startswith("|")]
    assert rows[2][:3] == ["FastPitch", "full", "2 x 2"]
    figures = dict(zip(rows[0], rows[2]))
    assert float(figures["sequences/s"]) * float(figures["seconds"]) == pytest.approx(4, rel=0.01)
