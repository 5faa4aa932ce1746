"""Worker processes that share a corpus: started once, and ended with their parent."""

import math
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import torch

from common.errors import InputError
from common.signals import leave_signals_to_the_pool

CHUNK = 16  # utterances a task at most: a task takes most of a second, a kill loses no more than that
_SECONDS_TO_SIGNAL = 0.2  # what has ended the workers may be a signal to all, which is about to reach this process
CHUNKS_PER_WORKER = 4  # at least, so that no worker waits long for the last


class WorkerPool:
    """``n_workers`` processes with one torch thread each; with one, the work is done in this process."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._executor: ProcessPoolExecutor | None = None
        if n_workers == 1:
            torch.set_num_threads(1)  # the same sums in the same order, whatever the number of workers
            return
        # children of a clean server process: they start in no time and inherit neither threads nor a CUDA context
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if context.get_start_method() == "forkserver":
            context.set_forkserver_preload([__name__, "librosa.filters", "parselmouth"])  # which the workers then share
            _start_server()
        others = multiprocessing.active_children()
        self._executor = ProcessPoolExecutor(n_workers, mp_context=context, initializer=_start_worker)
        wait([self._executor.submit(time.sleep, 0.01) for _ in range(n_workers)])  # until they have started
        self._workers = [process for process in multiprocessing.active_children() if process not in others]

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """``function(item)`` of every item, in the order in which they are finished.

        An InputError of the function, or a worker's death, ends it with an InputError.
        """
        size = max(1, min(CHUNK, math.ceil(len(items) / (self.n_workers * CHUNKS_PER_WORKER))))
        chunks = [items[start : start + size] for start in range(0, len(items), size)]
        if self._executor is None:
            for chunk in chunks:
                yield from _run_chunk(function, chunk)
            return
        try:
            tasks = (self._executor.submit(_run_chunk, function, chunk) for chunk in chunks)
            for done in as_completed(tasks):
                yield from done.result()
        except BrokenProcessPool as error:
            time.sleep(_SECONDS_TO_SIGNAL)
            ends = [(worker.pid, worker.exitcode) for worker in self._workers]  # of the others, the pool's SIGTERM
            died = [f" {pid} (exit code {code})" for pid, code in ends if code not in (None, 0, -signal.SIGTERM)]
            raise InputError(
                f"a worker process{','.join(died)} died (killed, or out of memory); "
                "run the same command again (extraction: with --resume), with fewer --num-workers if needed"
            ) from error

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *error: object) -> None:
        if self._executor is None:
            return
        try:
            self._executor.shutdown(wait=True, cancel_futures=True)
        except KeyboardInterrupt:  # asked again: what they hold is not waited for, or Python would wait forever
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _run_chunk(function: Callable[[Any], Any], chunk: Sequence[Any]) -> list:
    return [function(item) for item in chunk]


def _start_server() -> None:
    """Start the process that forks the workers; it ignores what they will from its first instruction on."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may change what a signal does
    ignored, path = (signal.SIGINT, signal.SIGHUP), os.environ.get("PYTHONPATH")
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    # Python before 3.12.8 does not pass sys.path to the server, and each worker would import our modules again
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *([path] if path else [])])
    try:
        multiprocessing.resource_tracker.ensure_running()  # which by itself ignores SIGINT and SIGTERM only
        multiprocessing.forkserver.ensure_running()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if path is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = path


def _start_worker() -> None:
    torch.set_num_threads(1)
    leave_signals_to_the_pool()
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """A killed parent cannot stop its workers, which would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
