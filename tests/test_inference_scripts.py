"""The shell entry points of inference, and the table that the benchmark prints."""

import os
import subprocess
from pathlib import Path

import pytest

import inference
from common.errors import InputError, OptionError
from common.logger import Logger
from scripts.benchmarks import random_vocoder
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
    assert not {"--cuda", "--hifigan", "--denoising-strength"} & set(words)


def test_the_example_speaks_through_a_vocoder_with_a_little_denoising():
    done = shell("inference_example.sh", DRY_RUN="1", FASTPITCH="f.pt", HIFIGAN="h.pt")
    assert "--hifigan h.pt --denoising-strength 0.005" in done.stdout


def test_the_example_speaks_with_a_tacotron_2_through_waveglow():
    done = shell("inference_example.sh", DRY_RUN="1", TACOTRON2="t.pt", WAVEGLOW="w.pt")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--tacotron2 t.pt --waveglow w.pt --sigma-infer 0.9 --denoising-strength 0.01" in done.stdout
    assert "--fastpitch" not in done.stdout and "--speaker" not in done.stdout
    options = {"TACOTRON2": "t.pt", "WAVEGLOW": "w.pt", "BATCH_SIZE": "2"}
    (line,) = shell("inference_benchmark.sh", DRY_RUN="1", **options).stdout.splitlines()
    assert "--tacotron2 t.pt --waveglow w.pt --denoising-strength 0" in line and "--fastpitch" not in line


@pytest.mark.parametrize("header", ["mel\toutput", "output|wav", "wav\r"])
def test_a_list_of_mels_or_recordings_needs_no_voice(tmp_path, header):
    (tmp_path / "list.tsv").write_text(f"{header}\n")
    for script in ("inference_example.sh", "inference_benchmark.sh"):
        done = shell(script, DRY_RUN="1", HIFIGAN="h.pt", PHRASES=str(tmp_path / "list.tsv"))
        assert (done.returncode, done.stderr) == (0, "")
        assert "--hifigan h.pt" in done.stdout
        assert "--fastpitch" not in done.stdout and "--speaker" not in done.stdout


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
    assert shell("inference_benchmark.sh", DRY_RUN="1", FASTPITCH="v.pt", AMP="perhaps").returncode == 2


def test_the_benchmark_takes_one_batch_size_and_a_vocoder():
    options = {"FASTPITCH": "v.pt", "HIFIGAN": "h.pt", "BATCH_SIZE": "2", "DENOISING": "0.1"}
    (line,) = shell("inference_benchmark.sh", DRY_RUN="1", **options).stdout.splitlines()
    assert "--batch-size 2" in line and "--hifigan h.pt --denoising-strength 0.1" in line
    (line,) = shell("inference_benchmark.sh", DRY_RUN="1", AUDIO="false", **options).stdout.splitlines()
    assert "--no-audio" in line and "--hifigan" not in line and "--denoising" not in line


def test_the_benchmark_of_a_random_vocoder_makes_it_and_speaks_random_mels(tmp_path):
    options = {"HIFIGAN": "random-v3", "AMP": "both", "BS_SEQUENCE": "1 3", "OUTPUT_DIR": str(tmp_path)}
    made, *runs = shell("inference_benchmark.sh", DRY_RUN="1", **options).stdout.splitlines()
    assert made.strip() == f"python -m scripts.benchmarks.random_vocoder v3 {tmp_path} --model HiFi-GAN --count 3"
    assert len(runs) == 4
    for line in runs:
        assert f"--hifigan {tmp_path}/HiFi-GAN_v3.pt" in line and f"--input {tmp_path}/random_mels.tsv" in line
        assert "--fastpitch" not in line
    options |= {"HIFIGAN": "", "WAVEGLOW": "random-256", "AMP": "false"}
    made, *runs = shell("inference_benchmark.sh", DRY_RUN="1", **options).stdout.splitlines()
    assert made.strip() == f"python -m scripts.benchmarks.random_vocoder 256 {tmp_path} --model WaveGlow --count 3"
    assert all(f"--waveglow {tmp_path}/WaveGlow_256.pt" in line and "random_mels.tsv" in line for line in runs)


def test_a_random_vocoder_speaks_its_mels_and_the_table_shows_how_fast(tmp_path):
    random_vocoder.make("v3", tmp_path, count=1)
    options = ["-i", str(tmp_path / "random_mels.tsv"), "--hifigan", str(tmp_path / "HiFi-GAN_v3.pt"), "-bs", "1"]
    runs = []
    for name, precision in (("fp32", []), ("amp", ["--amp"])):
        inference.main([*options, "--log-file", str(tmp_path / name), *precision])
        runs.append(read_run(tmp_path / name))
    first, second = (dict(zip(HEADER, line.strip("|").split("|"))) for line in table(runs)[2:])
    assert (first["Precision"], second["Precision"]) == ("FP32", "BF16")
    assert first["Frames/s of the text-to-mel model"] == first["Vocoder's speed-up"] == "-"
    frames = [float(row["Vocoder's frames/s"].replace(",", "")) for row in (first, second)]
    assert frames[0] == pytest.approx(693 / runs[0].latency, abs=1)
    assert float(second["Vocoder's speed-up"]) == pytest.approx(frames[1] / frames[0], abs=0.01)
    assert float(first["Vocoder's RTF"]) == pytest.approx(693 * 256 / 22050 / runs[0].latency, abs=0.01)
    assert first["Avg latency (s)"] == first["Vocoder's latency (s)"]


def test_a_random_vocoder_is_of_a_kind_that_was_published(tmp_path):
    assert {key: config.wn_channels for key, config in random_vocoder.kinds("WaveGlow").items()} == {
        "256": 256,
        "512": 512,
    }
    with pytest.raises(OptionError, match="WaveGlow 'v1': expected one of 256, 512"):
        random_vocoder.make("v1", tmp_path, count=1, model="WaveGlow")
    assert list(tmp_path.iterdir()) == []


def write_log(path: Path, *, amp: bool, latency: float, audio: bool = True) -> Path:
    """A log as inference.py leaves it after an earlier, slower run of the same name."""
    for factor in (9, 1):
        logger = Logger(path, stdout=False)
        logger.parameter(batch_size=4, amp=amp, precision="BF16" if amp else "FP32")
        figures = {"avg_generator_frames/s": 5000.0, "avg_samples/s": 1280000.4}
        figures |= {"avg_hifigan_frames/s": 1200.0 / latency, "avg_hifigan_samples/s": 999.0}
        for stage in ("", "generator_", "hifigan_"):
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
    assert lines[2] == [
        "4",
        "FP32",
        "0.600",
        "0.700",
        "0.700",
        "0.700",
        "5,000",
        "1,280,000",
        "-",
        "2.50",
        "2,000",
        "0.600",
        "2.50",
        "-",
    ]
    assert lines[3] == [
        "4",
        "BF16",
        "0.200",
        "0.300",
        "0.300",
        "0.300",
        "5,000",
        "1,280,000",
        "3.00",
        "2.50",
        "6,000",
        "0.200",
        "2.50",
        "3.00",
    ]
    assert lines[4][7] == "-" and lines[4][10:] == ["-"] * 4


def test_the_log_of_a_run_that_was_cut_short_is_named(tmp_path):
    logger = Logger(tmp_path / "log.json", stdout=False)
    logger.parameter(batch_size=4)
    logger.close()
    with pytest.raises(InputError, match=r"log\.json: no averages .* cut short"):
        read_run(tmp_path / "log.json")
