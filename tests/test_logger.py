"""The run's log survives kills and is strict JSON; stdout reads like the original's; progress stays out of its way."""

import json
from pathlib import Path

import pytest
import torch

from common.errors import InputError
from common.logger import Logger, read_log


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
