"""The training data loader: samples the utterances of each update, which worker processes read, collate and pin."""

import atexit
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from common.data.batch import Dataset, Draw
from common.distributed import Ranks
from common.errors import InputError
from common.signals import STOPS


class GlobalBatchSampler:
    """Samples the utterances of each update from seed and epoch only, independent of the number of processes.

    Each global batch (processes x accumulation steps x batch size) is sampled, sorted by length, and split into
    micro-batches. In each accumulation step, all processes get neighboring pieces, so that none waits for a longer one.
    An incomplete last global batch is dropped from the epoch. With ``sorted_updates``, the utterances of that many
    updates are sorted together, then split into global batches, which are shuffled.

    Iterating yields this process's micro-batches, ``accumulation`` of them per update.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        batch_size: int,
        accumulation: int,
        seed: int,
        ranks: Ranks,
        sorted_updates: int | None = None,
    ) -> None:
        self.global_batch = batch_size * accumulation * ranks.world_size
        self.steps_per_epoch = len(lengths) // self.global_batch
        if self.steps_per_epoch == 0:
            raise InputError(
                f"the training list has {len(lengths)} utterances, fewer than one update takes: {self.global_batch} = "
                f"{ranks.world_size} processes x {accumulation} accumulation steps x batch size {batch_size}"
            )
        self._lengths = lengths
        self._batch_size = batch_size
        self._sorted_updates = sorted_updates or 1
        self._seed = seed
        self._ranks = ranks
        self._epoch = 1
        self._first_step = 0

    def set_position(self, *, epoch: int, step: int = 0) -> None:
        """Set where the next iteration starts: the epoch (from 1) and the number of its updates already done."""
        self._epoch = epoch
        self._first_step = step

    def __iter__(self) -> Iterator[list[Draw]]:
        epoch = self._epoch
        generator = torch.Generator().manual_seed((self._seed * 1_000_003 + epoch) % 2**63)
        order = torch.randperm(len(self._lengths), generator=generator).tolist()
        size, world = self._batch_size, self._ranks.world_size
        steps = list(range(self.steps_per_epoch))

        def by_length(index: int) -> tuple[int, int]:
            return self._lengths[index], index  # break ties by index, independent of the sample

        if self._sorted_updates > 1:
            drawn, window = order[: len(steps) * self.global_batch], self._sorted_updates * self.global_batch
            windows = (drawn[start : start + window] for start in range(0, len(drawn), window))
            order = [index for one in windows for index in sorted(one, key=by_length)]
            steps = torch.randperm(len(steps), generator=generator).tolist()
        for step in steps[self._first_step :]:
            drawn = sorted(order[step * self.global_batch : (step + 1) * self.global_batch], key=by_length)
            pieces = [drawn[start : start + size] for start in range(0, self.global_batch, size)]
            for piece in pieces[self._ranks.rank :: world]:
                yield [Draw(index, epoch) for index in piece]


def validation_batches(lengths: Sequence[int], *, batch_size: int, ranks: Ranks) -> list[list[int]]:
    """Return this process's share of a validation set in length-bucketed batches, with each utterance once."""
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    own = order[ranks.rank :: ranks.world_size]
    return [own[start : start + batch_size] for start in range(0, len(own), batch_size)]


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

    An InputError's message is one line even if it comes from a loader process. If such a process ends during a
    transfer, raises a RuntimeError whose message starts like PyTorch's.
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
