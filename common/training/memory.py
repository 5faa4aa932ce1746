"""Memory that runs out while training: one line that names the utterances and what to lower, no traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

from common.config import AudioConfig
from common.errors import InputError, is_out_of_memory
from common.training.engine import Engine

_MOST_NAMED = 3


@contextmanager
def memory_errors_explained(engine: Engine, *, batch_size: int, audio: AudioConfig) -> Iterator[None]:
    """Raise InputError where memory runs out in the block: it names the longest utterances that ``engine`` computes."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or not engine.batches:
            raise
        lengths = {name: n for one in engine.batches for name, n in zip(one.names, one.frame_lengths.tolist())}
        seconds = {name: n * audio.hop_length / audio.sampling_rate for name, n in lengths.items()}
        longest = sorted(seconds, key=lambda name: -seconds[name])[:_MOST_NAMED]
        named = ", ".join(f"{name.rpartition(' (')[0] or name} ({seconds[name]:.1f} s)" for name in longest)
        lower = f"lower --batch-size (BS; now {batch_size}), or " if batch_size > 1 else ""
        raise InputError(f"out of memory with {named}; {lower}cut long clips (scripts/import_recordings.sh)") from error
