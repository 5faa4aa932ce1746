"""Shared fixtures: where the goldens and the real recordings lie, and one thread for repeatable numbers."""

import fcntl
import os
import re
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import soundfile
import torch
from golden_files import GOLDENS, SHARED
from shell import ROOT
from torch.utils.data import _utils as data_workers

from common.errors import InputError


def pytest_configure() -> None:
    torch.set_num_threads(1)
    data_workers.MP_STATUS_CHECK_INTERVAL = 0.2  # s, not 5: how long a loader that is garbage waits for each process
    # Jobs in the background ignore SIGINT, those under nohup SIGHUP, and so would the commands that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    return (yield from _skip_without_golden())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    return (yield from _skip_without_golden())


def _skip_without_golden() -> Generator[None, object, object]:
    """Skip a test that opens, itself or by a fixture, a golden which is not in the folder of goldens."""
    try:
        return (yield)
    except (OSError, InputError, soundfile.LibsndfileError) as error:
        named = re.search(rf"{re.escape(str(GOLDENS))}/[^\s:'\"]+", str(error))
        if named is None or Path(named[0]).exists():
            raise
        pytest.skip(f"{Path(named[0]).relative_to(GOLDENS)} is not in {GOLDENS}")


def _folder(path: Path) -> Path:
    if not path.is_dir():
        pytest.skip(f"{path} is absent")
    return path


@pytest.fixture(scope="session", autouse=True)
def clean_working_folder() -> Iterator[None]:
    """Tests neither find a user's ``output/`` in the working folder nor write there."""
    os.chdir(ROOT)
    yield
    assert not (ROOT / ".venv").exists(), "a test ran a script without PYTHON, which has installed all requirements"


@pytest.fixture(autouse=True)
def no_shipped_voices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not depend on whether voices/ holds weights."""
    monkeypatch.setattr("common.synthesis.loading.VOICES", Path("/nonexistent"))


@pytest.fixture(scope="session")
def goldens() -> Path:
    """Folder of numbers computed with the original implementations."""
    return GOLDENS


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, goldens: Path) -> Path:
    """The folder of those numbers that the file of tests names."""
    return goldens / request.module.FOLDER


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real recorded speech."""
    return _folder(SHARED / "data")


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """``make_once(name, make)``: the folder that ``make`` filled, once for all workers of this run of the tests."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def once(name: str, make: Callable[[Path], None]) -> Path:
        folder, done = root / f"shared_{name}", root / f"shared_{name}.done"
        with (root / f"shared_{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be making it
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of an attempt that failed
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return once


@pytest.fixture(scope="session")
def corpora(make_once) -> Path:
    """The corpora of all tiny models."""
    from tiny_models import make_corpora

    return make_once("corpora", make_corpora)


@pytest.fixture(scope="session")
def sung_run(make_once) -> Path:
    """A run in which a tiny Jasper learned three sung words; the corpus is its folder ``corpus``."""
    from sung_words import make_sung_corpus, training_options
    from tiny_models import without_samples

    import train

    def make(output: Path) -> None:
        corpus = make_sung_corpus(output / "corpus")
        words = "--epochs 40 --epochs-per-checkpoint 40 --validation-interval 40".split()
        with without_samples():
            assert train.main(training_options(corpus, output, *words)) == 0

    return make_once("sung_run", make)


@pytest.fixture(scope="module")
def no_samples() -> Iterator[None]:
    """Trainings in this process without plots and their sounds, which take longer than a tiny training."""
    from tiny_models import without_samples

    with without_samples():
        yield


@pytest.fixture
def full_precision() -> Iterator[None]:
    """No TF32 in what a GPU is compared with the CPU by."""
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.set_float32_matmul_precision(matmul)
    torch.backends.cudnn.allow_tf32 = cudnn
