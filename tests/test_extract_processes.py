"""Extraction over processes: what is written depends neither on their number nor on when they were killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from corpus import features, make_corpus

from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import FailedElsewhereError, InputError, OutputError
from common.extraction import ExtractionPlan, WorkerPool, extract_corpus
from common.extraction.features import write_feature

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
N_CLIPS = 64


def command(folder: Path, *options: str, n_workers: int) -> list[str]:
    words = ["-d", folder, "--wav-text-filelist", folder / "train.txt", "--output-meta-file", folder / "train.meta"]
    what = ["--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char", "--num-workers", n_workers]
    return [str(word) for word in (ROOT / "extract_mels.py", *words, *what, *options)]


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Features made by one process without interruption."""
    folder = make_corpus(tmp_path_factory.mktemp("one"), N_CLIPS, seconds=3.0)
    result = run(sys.executable, *command(folder, n_workers=1))
    assert result.returncode == 0, result.stderr
    made = features(folder)
    assert len([name for name in made if name.startswith("mels/") and name.endswith(".pt")]) == N_CLIPS
    return made


def processes_of(folder: Path) -> list[int]:
    """Processes whose command line names ``folder``, and their children."""
    parents, named = {}, set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_text()
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if str(folder) in words:
            named.add(int(path.name))
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in named} - named
        named |= children
        grown = bool(children)
    return sorted(named)


def count_mels(folder: Path) -> int:
    return len(list((folder / "mels").glob("[!.]*.pt")))


def start_and_wait_for_mels(folder: Path, n_mels: int, *options: str) -> subprocess.Popen:
    """The command with two workers, once ``n_mels`` mels are there; it gives way to us, who must see them in time."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # children of background jobs ignore it
    process = subprocess.Popen(
        ["nice", "-n", "15", sys.executable, *command(folder, *options, n_workers=2)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 240
    while count_mels(folder) < n_mels:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    return process


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_ctrl_c_and_a_kill_leave_no_process_and_resuming_gives_the_same_files(tmp_path: Path, wanted: dict[str, bytes]):
    for _ in range(10):  # on a busy machine the command may end before this process sees that it has begun
        shutil.rmtree(tmp_path)
        make_corpus(tmp_path, N_CLIPS, seconds=3.0)
        process = start_and_wait_for_mels(tmp_path, 3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        out, err = process.communicate(timeout=120)
        if process.returncode != 0:
            break
    assert process.returncode == 130 and out == ""
    assert "interrupted" in err and "Traceback" not in err
    assert not [name for name in features(tmp_path) if name.endswith(".tmp")]

    n_before = count_mels(tmp_path)
    process = start_and_wait_for_mels(tmp_path, n_before + 1, "--resume")
    workers = processes_of(tmp_path)
    assert len(workers) >= 3
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert n_before < count_mels(tmp_path) < N_CLIPS and not (tmp_path / "train.meta").exists()
    deadline = time.monotonic() + 60
    while (alive := [pid for pid in workers if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    assert not alive, "workers outlive their parent"

    result = run(sys.executable, *command(tmp_path, "--resume", n_workers=2))
    assert result.returncode == 0, result.stderr
    assert features(tmp_path) == wanted


def test_two_ranks_of_torchrun_write_what_one_process_writes(tmp_path: Path, wanted: dict[str, bytes]):
    make_corpus(tmp_path, N_CLIPS, seconds=3.0)
    with (tmp_path / "train.txt").open("a") as file:
        file.write("wavs/missing.wav|refused on the first rank\nwavs/gone.wav|refused on the second\n")
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    result = run(*launcher, *command(tmp_path, n_workers=1))
    assert result.returncode != 0
    assert result.stdout.count("refused: 2 of 66 utterances") == 1, result.stderr
    assert "train.txt:65" in result.stdout and "train.txt:66" in result.stdout
    assert features(tmp_path) == wanted


class TwoRanks(Ranks):
    """The first of two ranks, whose neighbor has failed."""

    def gather(self, value):
        return [value, (None, True)]


def test_a_rank_ends_quietly_when_another_has_failed_and_says_its_own_error(tmp_path: Path):
    make_corpus(tmp_path, 2)
    plan = ExtractionPlan(dataset_path=tmp_path, audio=AudioConfig(), mels=True)
    with pytest.raises(FailedElsewhereError):
        extract_corpus(plan, lists=[tmp_path / "train.txt"], ranks=TwoRanks(world_size=2), n_workers=1)
    with pytest.raises(InputError, match=r"val\.txt: no such filelist"):
        extract_corpus(plan, lists=[tmp_path / "val.txt"], ranks=TwoRanks(world_size=2), n_workers=1)


def double(item: int, plan: ExtractionPlan) -> int:
    return 2 * item


def die(item: int, plan: ExtractionPlan) -> int:
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def write_below_a_file(item: int, plan: ExtractionPlan) -> int:
    write_feature(Path("/dev/null/mels/a.pt"), torch.zeros(3))


def test_a_worker_that_dies_or_cannot_write_is_reported(tmp_path: Path):
    plan = ExtractionPlan(dataset_path=tmp_path, audio=AudioConfig(), mels=True)
    threads = torch.get_num_threads()
    with WorkerPool(plan, n_workers=2) as pool:
        assert sorted(pool.map(double, range(100))) == [2 * item for item in range(100)]
        with pytest.raises(OutputError, match=r"mels/a\.pt: cannot be written \(/dev/null is no folder\); .*--resume"):
            list(pool.map(write_below_a_file, [1, 2]))
        with pytest.raises(InputError, match=r"worker process \d+ \(exit code -9\) died, .* --resume"):
            list(pool.map(die, range(20)))
    assert torch.get_num_threads() == threads
