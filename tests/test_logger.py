"""A run's JSON log, its lines on stdout, and its event files for TensorBoard can be read back."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from toy import ToyObjective

from common import plots
from common.checkpoints.checkpoint import Checkpoint
from common.config import AudioConfig
from common.errors import InputError
from common.logger import Logger, read_log
from common.text.config import TextConfig
from common.training.objective import Example
from common.training.reporter import Reporter


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


AUDIO = AudioConfig(8000, hop_length=200, mel_fmax=None)


def reporter(folder: Path, *, is_main: bool = True) -> Reporter:
    template = Checkpoint("FastPitch", None, AUDIO, TextConfig(), networks={})
    return Reporter(Logger(None, enabled=False), folder, ToyObjective(), template, is_main=is_main)


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "audio": 0})
    events.Reload()
    return events


def test_figures_are_read_back_by_subset_and_iteration(tmp_path: Path):
    logs = reporter(tmp_path)
    for iteration in (1, 2, 3):
        logs.log((1, iteration), "train", {"loss": 1.0 / iteration, "lrate": 0.1}, iteration=iteration)
    logs.log((1,), "val_ema", {"loss": 0.25}, iteration=3)
    logs.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train", "val_ema"]
    train = read(tmp_path / "train")
    assert [event.step for event in train.Scalars("loss")] == [1, 2, 3]
    assert [event.value for event in train.Scalars("loss")] == pytest.approx([1, 1 / 2, 1 / 3])
    assert [event.value for event in read(tmp_path / "val_ema").Scalars("loss")] == [0.25]


def test_an_example_becomes_a_picture_and_sound_under_one_name_over_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wave = torch.sin(torch.arange(8000) / 10)
    wave[100], wave[200] = 3.0, float("nan")
    logs, drawn, plot = reporter(tmp_path), [], plots.plot_utterance
    monkeypatch.setattr(
        plots, "plot_utterance", lambda *args, **kwargs: drawn.append(plot(*args, **kwargs)) or drawn[-1]
    )
    example = Example(
        name="wavs/LJ001 0001.wav (val.txt:7)",
        mels={"target": torch.randn(80, 6), "predicted": torch.randn(80, 6).bfloat16()},
        text="A bee.",
        tokens=torch.tensor([39, 0, 40, 40]),
        durations=torch.tensor([2, 1, 2, 1]),
        pitch={"target": torch.rand(6)},
        curves={"energy": {"target": torch.ones(6, dtype=torch.long)}},
        audio={"predicted": wave},
    )
    for iteration in (10, 20):
        logs.examples("val", [example], iteration=iteration)
    # Mels of another kind, and features of speech that are no symbols.
    other = Example("a", {"": torch.randn(40, 4)}, AudioConfig(n_mels=40), tokens=torch.rand(3, 22), audio={"": wave})
    logs.examples("val", [other], iteration=20)
    logs.wait_for_plots()
    events = read(tmp_path / "val")  # before close: a kill must not lose them
    logs.close()
    name = "wavs_LJ001_0001"
    assert events.Tags()["images"] == [f"utterance/{name}", "utterance/a"]
    assert [event.step for event in events.Images(f"utterance/{name}")] == [10, 20]
    figure = drawn[0]
    assert figure.get_suptitle() == "wavs/LJ001 0001.wav: A bee."
    symbols = [label.get_text().strip() for axis in figure.axes for label in axis.get_xticklabels(minor=True)]
    assert symbols == ["b", "_", "c", "c"]
    assert {"frequency (Hz)", "pitch (Hz)", "energy"} <= {axis.get_ylabel() for axis in figure.axes}
    sound = events.Audio(f"audio_predicted/{name}")[1]
    samples, rate = soundfile.read(io.BytesIO(sound.encoded_audio_string))
    assert rate == 8000
    expected = wave.nan_to_num(0).clamp(-1, 1).numpy()
    assert np.abs(samples - expected).max() < 2 / 32768
