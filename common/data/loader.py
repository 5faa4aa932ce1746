"""The training data loader, whose worker processes read, collate and pin batches ahead of time."""

import atexit
import multiprocessing
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from common.data.batch import Dataset, Draw
from common.errors import InputError
from common.signals import STOPS


def build_loader(dataset: Dataset, sampler: Any, *, n_workers: int, pin_memory: bool, seed: int) -> DataLoader:
    """Make a loader for the batches that ``sampler`` selects from ``dataset``; iterate over it with `batches_of`.

    Each of ``n_workers`` processes lives as long as the loader and keeps two batches ready in shared memory. With
    ``pin_memory``, a thread copies them into page-locked memory. Without workers, batches are read on request.
    """
    drawn: Any = _DrawnUtterances(dataset)
    return DataLoader(
        drawn,
        batch_sampler=sampler,
        **loader_processes(n_workers),
        collate_fn=dataset.collate,
        pin_memory=pin_memory,
        persistent_workers=n_workers > 0,
        worker_init_fn=leave_to_the_parent,
        # A separate generator, since starting a loader must not advance the networks' random numbers.
        generator=torch.Generator().manual_seed(seed),
    )


@dataclass(frozen=True)
class _DrawnUtterances:
    """Utterances of a dataset, by a sampler's indices or draws."""

    dataset: Dataset

    def __getitem__(self, index: int | Draw) -> Any:
        if isinstance(index, Draw):
            return self.dataset.draw(index.index, epoch=index.epoch)
        return self.dataset[index]


# Loader processes end when their parent ends. Python 3.14 starts processes from a server by default, which would be the
# parent, so they would outlive a killed job. Forked processes don't.
_METHOD = "fork" if sys.platform == "linux" else "spawn"
_CONTEXT: Any = type(multiprocessing.get_context(_METHOD))
_PROCESS: Any = _CONTEXT.Process


class LoaderProcess(_PROCESS):
    """A loader process, distinguishable from other processes of a program that uses this package."""


class _LoaderContext(_CONTEXT):
    Process = LoaderProcess


def loader_processes(n_workers: int) -> dict[str, Any]:
    """Return a DataLoader's arguments for ``n_workers`` processes."""
    return {"num_workers": n_workers, "multiprocessing_context": _LoaderContext() if n_workers > 0 else None}


def leave_to_the_parent(worker: int) -> None:
    """Ignore signals that stop a job's whole process group, since the job needs batches to finish its update.

    A loader process ends when the job tells it to, or when the job is gone, which PyTorch checks every few seconds.
    """
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


@atexit.register  # runs before multiprocessing's handler, which sends SIGTERM and waits
def end_loader_processes() -> None:
    """Kill the loader processes of a job that an error or a signal has ended."""
    loaders = [process for process in multiprocessing.active_children() if isinstance(process, LoaderProcess)]
    if loaders:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else PyTorch's handler reports an error
    for process in loaders:
        process.kill()


def batches_of(loader: DataLoader) -> Iterator[Any]:
    """Yield the loader's batches.

    Raises:
        InputError: a file can't be used; the message is one line even if it comes from a loader process.
        RuntimeError: a loader process ended during a transfer; the message starts like PyTorch's.
    """
    try:
        batches = iter(loader)
        # With pinned memory, iter() registers handlers that wait five seconds per process; ours must run before them.
        atexit.unregister(end_loader_processes)
        atexit.register(end_loader_processes)
        yield from batches
    except InputError as error:
        # PyTorch puts the loader process's traceback before the message.
        raise type(error)(str(error).rpartition(f"{type(error).__name__}: ")[2].rstrip()) from error
    except ModuleNotFoundError as error:  # PyTorch drops its name
        raise ModuleNotFoundError(name=error.name or str(error).rstrip().rpartition(" ")[2].strip("'")) from error
    except (ConnectionError, EOFError) as error:  # before PyTorch gets the signal
        raise RuntimeError("DataLoader worker ended while transferring a batch. ") from error
