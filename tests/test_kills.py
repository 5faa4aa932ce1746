"""Trainings, imports and extractions that are killed at random moments end as if nothing had stopped them."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import soundfile
from corpus import features, make_corpus
from kills import Forked, at_write, finish
from limits import Stopwatch, wait_at_most
from tiny_models import HARMONIC, TinyModel, assert_same_state, of_every_model

from common.checkpoints.reading import load_checkpoint
from common.logger import read_log
from common.torch_file import load_tensor

KILLS = int(os.environ.get("KILLS", "6"))  # of each slow job; they decide nothing but how long it takes
SEED = int(os.environ.get("KILLS_SEED", "138"))  # the ten kills are by all signals, also of groups
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Job:
    """A command that a kill may stop at any moment, to be resumed by the same command."""

    module: str
    words: Callable[[Path], list[str]]  # for a folder
    n_writes: int  # by one of its processes, about
    check: Callable[[Path], None]  # whether every file is whole
    same: Callable[[Path, Path], None]  # whether the results in two folders are equal

    def run_to_the_end(self, folder: Path) -> float:
        """Run it, with nothing to stop it; its seconds."""
        with Stopwatch() as watch:
            status, *printed = finish(Forked(self.module, *self.words(folder)))
        assert status == 0, printed
        return watch.seconds


def run_and_kill(job: Job, folder: Path, draw: random.Random, *, seconds: float | None):
    """Run a job, and kill it at a write or, within ``seconds``, at any time; how, its status, and what it printed."""
    number, at_any_time = draw.choice(SIGNALS), seconds is not None and draw.random() < 0.5
    group = number != signal.SIGKILL and draw.random() < 0.5  # as terminals and schedulers do
    event, count = draw.choice(("os.rename", "open")), draw.randint(1, job.n_writes)
    plan = None if at_any_time else at_write(number, folder, count=count, event=event, group=group)
    process = Forked(job.module, *job.words(folder), signal_at=plan)
    if at_any_time:
        wait_at_most(seconds * draw.random(), lambda: process.poll() is not None)
        if process.poll() is None:
            (os.killpg if group else os.kill)(process.pid, number)
    status, *printed = finish(process)  # and no process is left
    return number, f"{event} {count}" if plan else "a time", status, "".join(printed)


def kill_and_resume(job: Job, tmp_path: Path, n_kills: int, *, at_any_time: bool = True) -> None:
    """Kill a job so often; whenever it came to its end, its results are those of the first run."""
    draw = random.Random(f"{job.module} {SEED}")
    whole, folders, kills = tmp_path / "whole", 0, Counter()
    seconds = job.run_to_the_end(whole)
    folder = tmp_path / "killed0"
    while kills.total() < n_kills:
        number, moment, status, text = run_and_kill(job, folder, draw, seconds=seconds if at_any_time else None)
        job.check(folder)
        if status == 0:  # it came too late
            job.same(folder, whole)
            folders += 1
            folder = tmp_path / f"killed{folders}"
            continue
        kills[f"{number.name} at {moment}"] += 1
        assert status in (-number, 128 + number), f"{number.name} at {moment}: {status}\n{text}"
        assert "Traceback" not in text, f"{number.name} at {moment}\n{text}"
    job.run_to_the_end(folder)
    job.same(folder, whole)
    job.check(folder)
    assert not list(folder.rglob(".*.tmp")), "of files that were being written"
    print(f"{job.module}: {kills.total()} kills, {folders + 1} runs to the end; {dict(kills)}")


def training(model: TinyModel, corpora: Path, *, n_epochs: int, n_workers: int) -> Job:
    words = f"--epochs {n_epochs} --epochs-per-checkpoint 1 --keep-milestones {n_epochs} --validation-interval 4"
    words += f" --ema-decay 0.9 --num-workers {n_workers} --minutes-per-checkpoint 1e-6 --samples-interval 9 --resume"

    def check(folder: Path) -> None:
        for path in folder.glob("[!.]*.pt"):
            load_checkpoint(path)
        if (folder / "nvlog.json").exists():
            read_log(folder / "nvlog.json")

    def same(one: Path, other: Path) -> None:
        assert_same_state(model.checkpoint(one, n_epochs), model.checkpoint(other, n_epochs))

    def command(folder: Path) -> list[str]:
        return model.words(corpora, folder, *words.split())

    return Job("train", command, n_writes=2 * n_epochs, check=check, same=same)


def extraction(n_clips: int) -> Job:
    what = "--extract-mels --extract-durs-from-textgrids --extract-pitch-char --num-workers 3 --resume".split()

    def command(folder: Path) -> list[str]:
        if not folder.exists():
            make_corpus(folder, n_clips)
        lists = ["--wav-text-filelist", folder / "train.txt", "--output-meta-file", folder / "train.meta"]
        return ["-d", str(folder), *map(str, lists), *what]

    def check(folder: Path) -> None:
        for path in folder.rglob("[!.]*.pt"):
            load_tensor(path)

    def same(one: Path, other: Path) -> None:
        assert features(one) == features(other)

    return Job("extract_mels", command, n_writes=n_clips, check=check, same=same)


def importing(source: Path, n_clips: int, *, n_workers: int) -> Job:
    lines = (make_corpus(source, n_clips) / "train.txt").read_text().replace("wavs/", "").replace(".wav", "")
    (source / "metadata.csv").write_text(lines)

    def check(folder: Path) -> None:
        for path in folder.rglob("[!.]*.wav"):
            soundfile.read(path)

    def same(one: Path, other: Path) -> None:
        found = [{path.name: path.read_bytes() for path in folder.rglob("*.[wc]*v")} for folder in (one, other)]
        assert found[0] == found[1] and len(found[0]) == n_clips + 1

    def command(folder: Path) -> list[str]:
        return ["import", str(source), str(folder), "--num-workers", str(n_workers)]

    return Job("speech_toolkit.__main__", command, n_writes=n_clips // n_workers, check=check, same=same)


@pytest.mark.parametrize(("kind", "n_kills"), [("training", 4), ("import", 3), ("extraction", 3)])
def test_ten_kills_change_nothing_in_the_end(kind: str, n_kills: int, corpora: Path, tmp_path: Path):
    jobs = {
        "training": lambda: training(HARMONIC, corpora, n_epochs=3, n_workers=0),
        "import": lambda: importing(tmp_path / "source", 6, n_workers=1),
        "extraction": lambda: extraction(8),
    }
    kill_and_resume(jobs[kind](), tmp_path, n_kills, at_any_time=False)


@pytest.mark.slow
@of_every_model
def test_a_training_that_is_killed_again_and_again_ends_bit_for_bit_as_if_it_were_not(
    model: TinyModel, corpora: Path, tmp_path: Path
):
    kill_and_resume(training(model, corpora, n_epochs=8, n_workers=2), tmp_path, KILLS)


@pytest.mark.slow
def test_an_extraction_that_is_killed_again_and_again_leaves_the_same_files(tmp_path: Path):
    kill_and_resume(extraction(48), tmp_path, KILLS)


@pytest.mark.slow
def test_an_import_that_is_killed_again_and_again_leaves_the_same_clips(tmp_path: Path):
    kill_and_resume(importing(tmp_path / "source", 24, n_workers=2), tmp_path, KILLS)
