"""Memory that runs out while training: one line that names the utterances and what to lower, no traceback."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from common.config import AudioConfig
from common.data.batch import Batch
from common.errors import InputError, is_out_of_memory
from common.training.options import RunOptions

_MOST_NAMED = 3


def remembered(batches: Iterable[Batch], current: list[Batch]) -> Iterator[Batch]:
    """Yield ``batches``; ``current`` holds the one that was yielded last."""
    for batch in batches:
        current[:] = [batch]
        yield batch


@contextmanager
def memory_errors_explained(batches: Sequence[Batch], *, run: RunOptions, audio: AudioConfig) -> Iterator[None]:
    """Raise InputError where memory runs out in the block: it names the longest utterances of ``batches``."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or not batches:
            raise
        seconds = audio.hop_length / audio.sampling_rate
        lengths = {name: n for one in batches for name, n in zip(one.names, one.frame_lengths.tolist())}
        longest = sorted(lengths, key=lambda name: -lengths[name])[:_MOST_NAMED]
        named = ", ".join(f"{name.rpartition(' (')[0] or name} ({lengths[name] * seconds:.1f} s)" for name in longest)
        lower = f"lower --batch-size (BS; now {run.batch_size}), or " if run.batch_size > 1 else ""
        raise InputError(f"out of memory with {named}; {lower}cut long clips (scripts/import_recordings.sh)") from error
