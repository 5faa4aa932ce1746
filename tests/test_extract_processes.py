"""Extraction over processes: what is written depends neither on their number nor on when they were killed."""

import multiprocessing
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from corpus import features, make_corpus
from kills import at_write, finish, started
from limits import HANG_LIMIT
from shell import ROOT

import extract_mels
from common.data.loader import end_loader_processes
from common.errors import OutputError
from common.extraction.batches import map_in_processes
from common.extraction.features import write_feature

N_CLIPS = 24


def command(folder: Path, *options: str, n_workers: int) -> list[str]:
    words = ["-d", folder, "--wav-text-filelist", folder / "train.txt", "--output-meta-file", folder / "train.meta"]
    what = ["--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char", "--num-workers", n_workers]
    return [str(word) for word in (ROOT / "extract_mels.py", *words, *what, *options)]


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Features made by one process without interruption."""
    folder = make_corpus(tmp_path_factory.mktemp("one"), N_CLIPS)
    assert extract_mels.main(command(folder, n_workers=1)[1:]) == 0
    made = features(folder)
    assert len([name for name in made if name.startswith("mels/") and name.endswith(".pt")]) == N_CLIPS
    return made


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_ctrl_c_and_a_kill_leave_no_process_and_resuming_gives_the_same_files(tmp_path: Path, wanted: dict[str, bytes]):
    make_corpus(tmp_path, N_CLIPS)
    mels = tmp_path / "mels"
    interrupt = at_write(signal.SIGINT, mels, count=3, group=True)  # as a terminal does: to the whole group
    status, out, err = finish(started(*command(tmp_path, n_workers=2), signal_at=interrupt))
    assert (status, out) == (130, "")
    assert "interrupted" in err and "Traceback" not in err
    assert not [name for name in features(tmp_path) if name.endswith(".tmp")]
    assert not (tmp_path / "train.meta").exists()

    impatient = at_write(signal.SIGINT, mels, count=2, group=True, times=2)
    status, out, err = finish(started(*command(tmp_path, "--resume", n_workers=2), signal_at=impatient))
    assert status in (130, -signal.SIGINT) and out == "", "which a shell calls 130 too"
    assert "Traceback" not in err

    made = sorted(mels.glob("[!.]*.pt"))
    assert len(made) >= 2
    for path in made[1:]:  # of which some are to be made again
        path.unlink()
    kill = at_write(signal.SIGKILL, mels, count=2)
    status, _, _ = finish(started(*command(tmp_path, "--resume", n_workers=2), signal_at=kill))
    assert status == -signal.SIGKILL, "and no worker outlives its parent"
    assert not (tmp_path / "train.meta").exists()

    assert extract_mels.main(command(tmp_path, "--resume", n_workers=2)[1:]) == 0
    assert features(tmp_path) == wanted


def double(item: int) -> int:
    return 2 * item


def left_to_the_parent(item: int) -> bool:
    return all(signal.getsignal(number) is signal.SIG_IGN for number in (signal.SIGINT, signal.SIGHUP))


def die(item: int) -> int:
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def write_below_a_file(item: int) -> None:
    write_feature(Path("/dev/null/mels/a.pt"), torch.zeros(3))


def test_a_worker_that_dies_or_cannot_write_is_reported():
    threads = torch.get_num_threads()
    work = partial(map_in_processes, n_workers=2, desc="work")
    assert list(work(double, range(100))) == [2 * item for item in range(100)]
    assert all(work(left_to_the_parent, range(4)))
    with pytest.raises(OutputError, match=r"mels/a\.pt: cannot be written \(Not a directory\); .*--resume"):
        list(work(write_below_a_file, [1, 2]))
    with pytest.raises(RuntimeError, match=r"DataLoader worker "):
        list(work(die, range(20)))
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_host_keeps_its_threads_and_its_processes(n_workers: int):
    host = multiprocessing.get_context("fork").Process(target=time.sleep, args=(HANG_LIMIT,), daemon=True)
    host.start()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        doubled = map_in_processes((2).__mul__, range(5), n_workers=n_workers, desc="")
        assert next(doubled) == 0
        doubled.close()
        end_loader_processes()
        assert torch.get_num_threads() == 3 and host.is_alive()
    finally:
        torch.set_num_threads(before)
        host.kill()
