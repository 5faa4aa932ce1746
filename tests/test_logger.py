"""The run's log survives kills and is strict JSON; stdout reads like the original's; progress stays out of its way."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from shell import ROOT

from common.errors import InputError
from common.logger import Logger, read_log

DATE = re.compile(r"^DLL \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} - ")


def without_date(line: str) -> str:
    assert DATE.match(line)
    return DATE.sub("", line)


def test_an_iteration_reads_as_in_the_original_fastpitch(capsys: pytest.CaptureFixture[str]):
    logger = Logger(None)
    for metric, name in (("loss", "loss"), ("mel", "mel loss"), ("dur", "dur loss"), ("pitch", "pitch loss")):
        logger.metadata(metric, name=name)
    logger.metadata("lrate", name="lrate", format="{:>3.2e}")
    logger.metadata("took", name="took", format="{:>3.2f}", unit="s")
    figures = {"loss": 38.334, "mel": torch.tensor(37.89), "dur": 2.98, "pitch": np.float32(1.37)}
    logger.log((1, 1, 281), figures | {"lrate": 3.16e-06, "frames/s": 3092.314, "took": 0.58})
    assert without_date(capsys.readouterr().out) == (
        "epoch    1 | iter   1/281 | loss 38.33 | mel loss 37.89 | dur loss  2.98 | pitch loss  1.37 | "
        "lrate 3.16e-06 | took 0.58 s\n"
    )


def test_the_stream_holds_steps_options_and_metadata_in_order(tmp_path: Path):
    path = tmp_path / "new" / "nvlog.json"
    logger = Logger(path, stdout=False)
    logger.parameter(batch_size=32, output=Path("out"), cleaners=("a", "b"))
    logger.metadata("loss", name="loss", unit="nat")
    logger.log((3, 7, 281), {"loss": 1.5})
    logger.log((3,), {"loss": 2})
    logger.log((), {"loss": None})
    lines = path.read_text().splitlines()
    assert all(line.startswith("DLLL {") for line in lines)
    records = [json.loads(line[5:]) for line in lines]
    times = [float(record["elapsedtime"]) for record in records]
    assert times == sorted(times)
    assert all(set(record) >= {"timestamp", "datetime", "elapsedtime", "type"} for record in records)
    assert records[0]["step"] == "PARAMETER"
    assert records[0]["data"] == {"batch_size": 32, "output": "out", "cleaners": ["a", "b"]}
    assert (records[1]["type"], records[1]["metric"], records[1]["metadata"]["unit"]) == ("METADATA", "loss", "nat")
    assert [(r["type"], r["step"], r["data"]) for r in records[2:]] == [
        ("LOG", [3, 7, 281], {"loss": 1.5}),
        ("LOG", [3], {"loss": 2}),
        ("LOG", [], {"loss": None}),
    ]


def test_numbers_that_are_not_finite_are_strict_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "nvlog.json"
    logger = Logger(path)
    logger.metadata("loss", name="loss")
    logger.log((1, 1, 1), {"loss": float("nan"), "a": float("inf"), "b": [torch.tensor(-float("inf"))]})

    def refuse(constant: str):
        raise AssertionError(f"{constant} is not JSON")

    last = json.loads(path.read_text().splitlines()[-1][5:], parse_constant=refuse)
    assert last["data"] == {"loss": "NaN", "a": "Infinity", "b": ["-Infinity"]}
    assert "loss   nan" in capsys.readouterr().out


def test_a_resumed_log_appends(tmp_path: Path):
    path = tmp_path / "nvlog.json"
    for epoch in (1, 2):
        Logger(path, stdout=False).log((epoch,), {"loss": 1.0})
    with path.open("a") as file:
        file.write('DLLL {"timestamp": "1.0", "da')
    assert [record["step"] for record in read_log(path)] == [[1], [2]]


def test_a_log_that_cannot_be_written_or_read_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("x\n")
    with pytest.raises(InputError, match=r"file: cannot be written \(File exists\); .*--log-file"):
        Logger(tmp_path / "file" / "nvlog.json")
    with pytest.raises(InputError, match=r"file: exists, and is not a run's log"):
        Logger(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x\n"
    with pytest.raises(InputError, match=r"absent\.json: no such file"):
        read_log(tmp_path / "absent.json")


def test_a_terminal_sees_a_bar_and_whole_log_lines():
    pty = pytest.importorskip("pty")
    code = (
        "from common.progress import progress; from common.logger import Logger\n"
        "logger = Logger(None); logger.metadata('loss', name='loss', format='{:.1f}')\n"
        "for i in progress(range(3), desc='mels', unit='clips'): logger.log((i,), {'loss': 0.5})\n"
    )
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    while True:
        try:
            block = os.read(leader, 65536)
        except OSError:  # Linux reports the closed other side so
            break
        if not block:
            break
        seen += block
    os.close(leader)
    assert process.wait() == 0
    text = seen.decode()
    assert "3/3" in text
    for i in range(3):
        # A line of the log begins where the bar was wiped: after a carriage return or a line break.
        assert re.search(rf"[\r\n]DLL [^\r\n]* - epoch    {i} \| loss 0\.5\r\n", text)
