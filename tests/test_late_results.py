"""Figures of an update read while the next one runs, as on a GPU: nothing that is learned or logged changes."""

import signal
from pathlib import Path

import pytest
from tiny import make_corpus, train_options
from tiny_models import KilledError, assert_same_state, at_iteration, without_samples

import train
from common.logger import read_log
from common.training import trainer as trainer_module

WORDS = "-bs 2 --epochs 2 --ema-decay 0.9 --validation-interval 2 --epochs-per-checkpoint 1 --grad-clip-thresh 0.5"


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU's figures are read as late as a GPU's."""
    monkeypatch.setitem(trainer_module.PENDING_RESULTS, "cpu", 1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "data", count=16)


def run_train(corpus: Path, output: Path, *extra: str) -> int:
    with without_samples():
        return train.main(train_options(corpus, output, *WORDS.split(), *extra))


@pytest.fixture(scope="module")
def prompt(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose figures are read at once."""
    folder = tmp_path_factory.mktemp("prompt")
    assert run_train(corpus, folder, "--validation-steps", "4") == 0
    return folder


def log_of(folder: Path) -> list[tuple]:
    """Steps and figures in order, without times."""
    records = [record for record in read_log(folder / "nvlog.json") if isinstance(record.get("step"), list)]
    return [
        (record["step"], {k: v for k, v in record["data"].items() if not k.endswith(("took", "frames/s"))})
        for record in records
    ]


def test_a_late_run_logs_the_same_lines_in_the_same_order_and_learns_the_same(
    late: None, prompt: Path, corpus: Path, tmp_path: Path
):
    assert run_train(corpus, tmp_path, "--validation-steps", "4") == 0
    assert log_of(tmp_path) == log_of(prompt)
    assert_same_state(prompt / "FastPitch_checkpoint_2.pt", tmp_path / "FastPitch_checkpoint_2.pt")


def test_a_late_run_that_is_killed_and_stopped_is_the_uninterrupted_one(
    late: None, prompt: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    def die() -> None:
        raise KilledError

    words = ("--validation-steps", "4", "--steps-per-checkpoint", "2")
    with at_iteration(3, die), pytest.raises(KilledError):
        run_train(corpus, tmp_path, *words)
    assert [path.name for path in tmp_path.glob("*.pt")] == ["FastPitch_checkpoint_1_iter2.pt"]
    # Update 8 was under way when the signal came; 9 asks all processes, 10 is launched before its answer is read.
    with at_iteration(7, lambda: signal.raise_signal(signal.SIGTERM)):
        assert run_train(corpus, tmp_path, "--validation-steps", "4", "--resume") == 128 + signal.SIGTERM
    assert (tmp_path / "FastPitch_checkpoint_2_iter10.pt").is_file()
    steps = [step for step, data in log_of(tmp_path) if "train_loss" in data]
    assert steps == [[1, n, 6] for n in range(1, 7)] + [[2, n, 6] for n in range(1, 5)], "each once, none lost"
    assert run_train(corpus, tmp_path, "--validation-steps", "4", "--resume") == 0
    assert_same_state(prompt / "FastPitch_checkpoint_2.pt", tmp_path / "FastPitch_checkpoint_2.pt")
