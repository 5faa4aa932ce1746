"""The shell entry points of inference, and the table that the benchmark prints."""

import os
import subprocess
from pathlib import Path

import pytest

from common.errors import InputError
from common.logger import Logger
from scripts.inference_table import HEADER, read_run, table

ROOT = Path(__file__).resolve().parents[1]


def shell(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "CPU": "true", "PYTHON": "python", **variables}
    command = ["bash", f"scripts/{script}", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_example_passes_its_variables_and_arguments_on():
    done = shell("inference_example.sh", "--pace", "0.9", DRY_RUN="1", FASTPITCH="a b.pt", AMP="true", EMA="true")
    assert done.returncode == 0
    words = done.stdout.split(" ")
    assert words[:2] == ["python", "inference.py"]
    for part in ("--fastpitch a\\ b.pt", "--amp --ema --pace 0.9", "--output output/audio_devset10_amp"):
        assert part in done.stdout
    assert "--cuda" not in words


def test_the_benchmark_runs_every_batch_size_in_every_precision():
    done = shell("inference_benchmark.sh", DRY_RUN="1", FASTPITCH="v.pt", AMP="both", BS_SEQUENCE="1 4", REPEATS="7")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [("--batch-size 4" in line, "--amp" in line) for line in lines] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]
    assert all("--repeats 7" in line and "phrases/benchmark_8_128.tsv" in line for line in lines)
    assert shell("inference_benchmark.sh", DRY_RUN="1", FASTPITCH="v.pt", AMP="perhaps").returncode == 1


def write_log(path: Path, *, amp: bool, latency: float, audio: bool = True) -> Path:
    """A log as inference.py leaves it after an earlier, slower run of the same name."""
    for factor in (9, 1):
        logger = Logger(path, stdout=False)
        logger.parameter(batch_size=4, amp=amp, precision="BF16" if amp else "FP32")
        figures = {"avg_generator_frames/s": 5000.0, "avg_samples/s": 1280000.4}
        for stage in ("", "generator_"):
            figures |= {f"avg_{stage}latency": factor * latency, f"avg_{stage}RTF": 2.5}
            figures |= {f"{name}_{stage}latency": factor * (latency + 0.1) for name in ("90%", "95%", "99%")}
        if not audio:
            figures = {key: value for key, value in figures.items() if "generator" in key}
        for name, value in figures.items():
            logger.log((), {name: value})
        logger.close()
    return path


def test_the_table_has_a_line_for_each_run_with_the_speed_up_of_mixed_precision(tmp_path):
    runs = [
        read_run(write_log(tmp_path / "fp32.json", amp=False, latency=0.6)),
        read_run(write_log(tmp_path / "amp.json", amp=True, latency=0.2)),
        read_run(write_log(tmp_path / "mels.json", amp=True, latency=0.2, audio=False)),
    ]
    lines = [line.strip("|").split("|") for line in table(runs)]
    assert tuple(lines[0]) == HEADER
    assert lines[2] == ["4", "FP32", "0.600", "0.700", "0.700", "0.700", "5,000", "1,280,000", "-", "2.50"]
    assert lines[3] == ["4", "BF16", "0.200", "0.300", "0.300", "0.300", "5,000", "1,280,000", "3.00", "2.50"]
    assert lines[4][7] == "-"


def test_the_log_of_a_run_that_was_cut_short_is_named(tmp_path):
    logger = Logger(tmp_path / "log.json", stdout=False)
    logger.parameter(batch_size=4)
    logger.close()
    with pytest.raises(InputError, match=r"log\.json: no averages .* cut short"):
        read_run(tmp_path / "log.json")
