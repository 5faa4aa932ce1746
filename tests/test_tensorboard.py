"""What was logged can be read back from the event files: curves, pictures and sound, in a folder a subset."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common import plots
from common.config import AudioConfig
from common.errors import InputError
from common.training import Example
from common.training.tensorboard import TensorBoardLogs


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "audio": 0})
    events.Reload()
    return events


def test_scalars_are_read_back_by_subset_and_iteration(tmp_path: Path):
    logs = TensorBoardLogs(tmp_path)
    for iteration in (1, 2, 3):
        logs.scalars("train", iteration, {"loss": 1.0 / iteration, "lrate": 0.1})
    logs.scalars("val_ema", 3, {"loss": 0.25})
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
    logs, audio, drawn = TensorBoardLogs(tmp_path), AudioConfig(8000, hop_length=200, mel_fmax=None), []
    plot = plots.plot_utterance
    monkeypatch.setattr(
        plots, "plot_utterance", lambda *args, **kwargs: drawn.append(plot(*args, **kwargs)) or drawn[-1]
    )
    for iteration in (10, 20):
        example = Example(
            name="wavs/LJ001 0001.wav (val.txt:7)",
            mels={"target": torch.randn(80, 6), "predicted": torch.randn(80, 6).bfloat16()},
            text="A bee.",
            tokens=torch.tensor([1, 0, 2, 2]),
            durations=torch.tensor([2, 1, 2, 1]),
            pitch={"target": torch.rand(6)},
            curves={"energy": {"target": torch.ones(6, dtype=torch.long)}},
            audio={"predicted": wave},
        )
        logs.examples("val", iteration, [example], audio=audio, symbols=["_", "b", "i"])
    events = read(tmp_path / "val")  # before close: a kill must not lose them
    logs.close()
    name = "wavs_LJ001_0001"
    assert events.Tags()["images"] == [f"utterance/{name}"]
    assert [event.step for event in events.Images(f"utterance/{name}")] == [10, 20]
    figure = drawn[0]
    assert figure.get_suptitle() == "wavs/LJ001 0001.wav: A bee."
    symbols = [label.get_text().strip() for axis in figure.axes for label in axis.get_xticklabels(minor=True)]
    assert symbols == ["b", "_", "i", "i"]
    assert {"frequency (Hz)", "pitch (Hz)", "energy"} <= {axis.get_ylabel() for axis in figure.axes}
    sound = events.Audio(f"audio_predicted/{name}")[1]
    samples, rate = soundfile.read(io.BytesIO(sound.encoded_audio_string))
    assert rate == 8000
    expected = wave.nan_to_num(0).clamp(-1, 1).numpy()
    assert np.abs(samples - expected).max() < 2 / 32768


def test_mels_of_another_kind_and_features_of_speech_that_are_no_symbols_are_drawn(tmp_path: Path):
    logs = TensorBoardLogs(tmp_path)
    example = Example("a", {"": torch.randn(40, 4)}, AudioConfig(n_mels=40), tokens=torch.rand(3, 22))
    logs.examples("val", 1, [example], audio=AudioConfig(), symbols=["_", "b", "i"])
    logs.close()
    assert read(tmp_path / "val").Tags()["images"] == ["utterance/a"]


def test_logs_that_are_not_enabled_make_no_folder(tmp_path: Path):
    logs = TensorBoardLogs(tmp_path / "output", enabled=False)
    logs.scalars("train", 1, {"loss": 1.0})
    logs.examples("val", 1, [Example("a", {"mel": torch.randn(8, 4)})], audio=AudioConfig())
    logs.close()
    assert not (tmp_path / "output").exists()


def test_a_file_in_the_way_is_an_error(tmp_path: Path):
    (tmp_path / "train").touch()
    with pytest.raises(InputError, match="train: cannot be written"):
        TensorBoardLogs(tmp_path).scalars("train", 1, {"loss": 1.0})
