"""Trainings and extractions that are killed again and again, at random moments, end as if nothing had stopped them."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from corpus import features, make_corpus
from kills import at_write, finish, started
from limits import Stopwatch, wait_at_most
from tiny_models import TinyModel, assert_same_state, of_every_model

from common.checkpoints.reading import load_checkpoint
from common.logger import read_log
from common.torch_file import load_tensor

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("KILLS", "6"))  # of each model, and of extraction; they decide nothing but how long it takes
SEED = int(os.environ.get("KILLS_SEED", "0"))
EPOCHS = 8
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MOMENTS = ("write", "time")


@dataclass(frozen=True)
class Job:
    """A command that a kill may stop at any moment, to be resumed by the same command."""

    name: str
    words: Callable[[Path], list[str]]  # for a folder
    n_writes: int  # by one of its processes, about
    check: Callable[[Path], None]  # whether every file is whole


def run_to_the_end(job: Job, folder: Path, printed: Path) -> float:
    """Run a job that nothing stops; its seconds."""
    with Stopwatch() as watch, printed.open("w") as file:
        process = started(*job.words(folder), output=file.fileno())
        finish(process)
    assert process.returncode == 0, printed.read_text()
    return watch.seconds


def run_and_kill(job: Job, folder: Path, printed: Path, draw: random.Random, *, seconds: float) -> tuple[str, int]:
    """Run a job, and kill it at a moment; how, and its exit status."""
    number, moment = draw.choice(SIGNALS), draw.choice(MOMENTS)
    group = number != signal.SIGKILL and draw.random() < 0.5  # as terminals and schedulers do
    event, count = draw.choice(("os.rename", "open")), draw.randint(1, job.n_writes)
    plan = at_write(number, folder, count=count, event=event, group=group) if moment == "write" else None
    with printed.open("w") as file:
        process = started(*job.words(folder), signal_at=plan, output=file.fileno())
    if moment == "time":
        wait_at_most(seconds * draw.random(), lambda: process.poll() is not None)
        if process.poll() is None:
            (os.killpg if group else os.kill)(process.pid, number)
    finish(process)  # and no process is left
    return f"{number.name}{' to the group' if group else ''} at a {moment}", process.returncode


def kill_and_resume(job: Job, tmp_path: Path, same: Callable[[Path, Path], None]) -> None:
    """Kill a job ``KILLS`` times; whenever it came to its end, its files are ``same`` as those of the first run."""
    draw, printed = random.Random(f"{job.name} {SEED}"), tmp_path / "printed.txt"
    whole, folders, kills = tmp_path / "whole", 0, Counter()
    seconds = run_to_the_end(job, whole, printed)
    folder = tmp_path / "killed0"
    while kills.total() < KILLS:
        how, status = run_and_kill(job, folder, printed, draw, seconds=seconds)
        text = printed.read_text()
        job.check(folder)
        if status == 0:  # it came too late
            same(folder, whole)
            folders += 1
            folder = tmp_path / f"killed{folders}"
            continue
        kills[how] += 1
        number = signal.Signals[how.split()[0]]
        assert status in (-number, 128 + number), f"{how}: {status}\n{text}"
        assert "Traceback" not in text or "<frozen importlib" in text, f"{how}\n{text}"
    run_to_the_end(job, folder, printed)
    same(folder, whole)
    job.check(folder)
    assert not list(folder.rglob(".*.tmp")), "of files that were being written"
    print(f"{job.name}: {kills.total()} kills, {folders + 1} runs to the end as the uninterrupted one; {dict(kills)}")


@of_every_model
def test_a_training_that_is_killed_again_and_again_ends_bit_for_bit_as_if_it_were_not(
    model: TinyModel, corpora: Path, tmp_path: Path
):
    words = f"--epochs {EPOCHS} --epochs-per-checkpoint 1 --keep-milestones {EPOCHS} --ema-decay 0.9 --num-workers 2"
    words += " --validation-interval 4 --minutes-per-checkpoint 1e-6 --resume"

    def check(folder: Path) -> None:
        for path in folder.glob("[!.]*.pt"):
            load_checkpoint(path)
        if (folder / "nvlog.json").exists():
            read_log(folder / "nvlog.json")

    def same(one: Path, other: Path) -> None:
        assert_same_state(model.checkpoint(one, EPOCHS), model.checkpoint(other, EPOCHS))

    def command(folder: Path) -> list[str]:
        return ["train.py", *model.words(corpora, folder, *words.split())]

    job = Job(model.name, command, n_writes=4 * EPOCHS, check=check)
    kill_and_resume(job, tmp_path, same)


def test_an_extraction_that_is_killed_again_and_again_leaves_the_same_files(tmp_path: Path):
    what = "--extract-mels --extract-durs-from-textgrids --extract-pitch-char --num-workers 3 --resume".split()

    def command(folder: Path) -> list[str]:
        if not folder.exists():
            make_corpus(folder, 48)
        lists = ["--wav-text-filelist", folder / "train.txt", "--output-meta-file", folder / "train.meta"]
        return ["extract_mels.py", "-d", str(folder), *map(str, lists), *what]

    def check(folder: Path) -> None:
        for path in folder.rglob("[!.]*.pt"):
            load_tensor(path)

    def same(one: Path, other: Path) -> None:
        assert features(one) == features(other)

    job = Job("extraction", command, n_writes=40, check=check)
    kill_and_resume(job, tmp_path, same)
