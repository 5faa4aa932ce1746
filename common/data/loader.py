"""The data loader of training: utterances are read, collated and pinned ahead, by processes of its own."""

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
    """Batches of ``dataset`` as ``sampler`` draws them; `batches_of` iterates over them.

    ``n_workers`` processes, which live as long as the loader, keep two batches each ready in shared memory; a thread
    of this process copies them into page-locked memory where they are for a GPU. 0 reads them when they are asked for.
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
        # Its own generator: starting a loader must not advance the networks' random numbers.
        generator=torch.Generator().manual_seed(seed),
    )


@dataclass(frozen=True)
class _DrawnUtterances:
    """Utterances of a dataset as a sampler asks for them."""

    dataset: Dataset

    def __getitem__(self, index: int | Draw) -> Any:
        if isinstance(index, Draw):
            return self.dataset.draw(index.index, epoch=index.epoch)
        return self.dataset[index]


# How loader processes are started: forked where that is possible. Python 3.14 starts them from a server process by
# default: they would outlive a job that is killed, as they look whether their parent is there, and that is the server.
_METHOD = "fork" if sys.platform == "linux" else "spawn"
_CONTEXT: Any = type(multiprocessing.get_context(_METHOD))
_PROCESS: Any = _CONTEXT.Process


class LoaderProcess(_PROCESS):
    """A loader process of ours; a program that uses this package may have other processes."""


class _LoaderContext(_CONTEXT):
    Process = LoaderProcess


def loader_processes(n_workers: int) -> dict[str, Any]:
    """Arguments of a DataLoader with so many processes."""
    return {"num_workers": n_workers, "multiprocessing_context": _LoaderContext() if n_workers > 0 else None}


def leave_to_the_parent(worker: int) -> None:
    """Ignore the signals that stop a job and are sent to its whole group: it still needs batches to finish its update.

    A loader process ends when the job says so or, as PyTorch looks every few seconds, when the job is gone.
    """
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


@atexit.register  # before multiprocessing's own, which waits for daemons that it has sent SIGTERM
def end_loader_processes() -> None:
    """End the loader processes of a job that an error or a signal has ended: they have nothing to save."""
    loaders = [process for process in multiprocessing.active_children() if isinstance(process, LoaderProcess)]
    if loaders:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # PyTorch's handler would call it an error
    for process in loaders:
        process.kill()


def batches_of(loader: DataLoader) -> Iterator[Any]:
    """The loader's batches.

    Raises:
        InputError: a file cannot be used; in one line, also where a loader process found it.
        RuntimeError: a loader process has ended while it handed a batch over; PyTorch's own begins in the same way.
    """
    try:
        yield from loader
    except InputError as error:
        # PyTorch puts the traceback of a loader process before the message.
        raise type(error)(str(error).rpartition(f"{type(error).__name__}: ")[2].rstrip()) from error
    except (ConnectionError, EOFError) as error:  # sooner than the signal by which PyTorch learns of it
        raise RuntimeError("DataLoader worker has ended while it handed a batch over. ") from error
