"""Processes many utterances in worker processes, or in batches on a teacher's device."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader

from common.audio.mel import MelExtractor
from common.audio.options import AudioOptions
from common.checkpoints.command_line import check_ema
from common.checkpoints.loading import LoadedCheckpoint, open_checkpoint
from common.config import AudioConfig, differences
from common.data.loader import batches_of, leave_to_the_parent, loader_processes
from common.distributed import own_cores
from common.errors import InputError, OptionError
from common.extraction.features import Extraction, ExtractionPlan, load_item, with_durations, write_feature
from common.extraction.options import ExtractionOptions
from common.files import sha256
from common.precision import one_thread
from common.progress import progress
from common.synthesis.loading import with_front_end
from common.synthesis.utterances import MelOutput
from common.text.options import TextOverrides
from common.text.teacher import StoredTeacher

CHUNK = 16  # most utterances in a task, which takes under a second; a kill loses no more than that
CHUNKS_PER_WORKER = 4  # at least, so that no worker waits long for the last one
BATCH = 16  # utterances on a device at once; attention's memory grows with frames x symbols
READERS = 4  # processes

T = TypeVar("T")

# A teacher-forced text-to-mel network, on the device of its mels: tokens (L,) and mels (n_mels, F) of each utterance
# -> mel, frames and alignments, which don't depend on the other utterances.
TeacherModel = Callable[[Sequence[Tensor], Sequence[Tensor]], MelOutput]


def _results(items: list, function: Callable) -> list:
    """Return ``function(item)`` for each item, or the InputError that it raises."""
    results = []
    for item in items:
        try:
            results.append(function(item))
        except InputError as error:
            results.append(error)
    return results


def read_in_batches(function: Callable, items: Sequence, batches: Iterable[list[int]], *, n_workers: int) -> Iterator:
    """Yield a list of ``function(item)`` for each batch of indices; if it raises an InputError, that's the result."""
    loader: DataLoader = DataLoader(
        items,  # type: ignore[arg-type]  # only __getitem__ is used
        batch_sampler=batches,
        collate_fn=functools.partial(_results, function=function),
        **loader_processes(n_workers),
        worker_init_fn=leave_to_the_parent,
    )
    yield from batches_of(loader)


def map_in_processes(
    function: Callable[..., T], items: Sequence[Any], *, n_workers: int | None, desc: str
) -> Iterator[T]:
    """Yield ``function(item)`` for every item, in order, from ``n_workers`` processes with one torch thread each.

    None means a process per core, and 1 this process. Raises the first InputError of the function.
    """
    n_workers = max(1, min(n_workers or own_cores(), len(items)))
    size = max(1, min(CHUNK, math.ceil(len(items) / (n_workers * CHUNKS_PER_WORKER))))
    chunks = BatchSampler(range(len(items)), size, drop_last=False)
    done = read_in_batches(function, items, chunks, n_workers=n_workers if n_workers > 1 else 0)
    with one_thread():  # also without workers, so that sums don't depend on their number
        for result in progress(chain.from_iterable(done), total=len(items), desc=desc, unit="utterances"):
            if isinstance(result, InputError):
                raise result
            yield result


@torch.inference_mode()
def run_teacher(
    items: Sequence[Extraction], plan: ExtractionPlan, *, teacher: TeacherModel, device: torch.device | str, desc: str
) -> list[Extraction]:
    """Write the teacher's features that items lack; returns all items, with what was made or refused."""
    extractor, folders = MelExtractor(plan.audio).to(device), {*plan.options.taught}
    lacking = [item for item in items if item.refusal is None and not folders <= {*item.kept}]
    lacking.sort(key=lambda item: item.n_samples)  # little padding
    batches = list(BatchSampler(range(len(lacking)), BATCH, drop_last=False))
    done = {item.utterance.index: item for item in items}
    load = functools.partial(load_item, plan=plan)
    waves = read_in_batches(load, lacking, batches, n_workers=min(READERS, own_cores()))
    bar = progress(total=len(lacking), desc=desc, unit="utterances")
    with bar:
        for batch, loaded in zip(batches, waves):
            good, mels = [], []
            for index, wave in zip(batch, loaded):
                if isinstance(wave, InputError):
                    done[lacking[index].utterance.index] = replace(lacking[index], refusal=str(wave))
                else:
                    good.append(lacking[index])
                    mels.append(extractor(wave[None].to(device))[0])
            if good:
                output = teacher([torch.tensor(item.tokens) for item in good], mels)
                done |= {item.utterance.index: _taught(item, row, output, plan) for row, item in enumerate(good)}
            bar.update(len(batch))
    return list(done.values())


def _taught(item: Extraction, row: int, output: MelOutput, plan: ExtractionPlan) -> Extraction:
    """Write an item's missing features, a ``row`` of ``output``; returns the item, refused if they aren't finite."""
    assert output.frames is not None and output.alignments is not None
    n_tokens, n_frames = len(item.tokens), int(output.lengths[row])
    features = {
        "durations": output.frames[row, :n_tokens],
        "attentions": output.alignments[row, :n_frames, :n_tokens],
        "mels_teacher": output.mel[row, :, :n_frames],
    }
    features = {folder: tensor.float().cpu() for folder, tensor in features.items()}
    if not all(bool(torch.isfinite(tensor).all()) for tensor in features.values()):
        return replace(item, refusal=f"{item.utterance.wav}: the teacher's output is not finite")
    features["durations"] = features["durations"].long()
    missing = tuple(folder for folder in plan.options.taught if folder not in item.kept)
    for folder in missing:
        write_feature(plan.path(folder, item.utterance.name), features[folder])
    item = replace(item, made=missing)
    return with_durations(item, features["durations"].numpy()) if "durations" in missing else item


def open_teacher(path: Path, text: TextOverrides, *, ema: bool | None, model: str | None = None) -> LoadedCheckpoint:
    """Open the checkpoint of a generator, or of ``model``, for teacher forcing, with ``text`` for its front end.

    Raises OptionError if it's an exported file; CheckpointError if it can't be read or lacks requested EMA weights.
    """
    loaded = open_checkpoint(path, model=model, role="generator", ema=ema)
    if loaded.exported is not None:
        raise OptionError(f"{path}: an exported file, which has no teacher forcing; give the checkpoint")
    if ema:
        check_ema([loaded])
    return with_front_end(loaded, text)


def stored_teacher(loaded: LoadedCheckpoint, options: ExtractionOptions) -> StoredTeacher:
    """Return the description of a teacher that is stored with its features."""
    text = loaded.checkpoint.text
    assert text is not None
    return StoredTeacher(loaded.spec.name, sha256(loaded.path), text, loaded.ema, options.unknown_symbols)


def mel_settings(options: AudioOptions, *, corpus: Path, teacher: LoadedCheckpoint | None = None) -> AudioConfig:
    """Return the options' mel settings; a teacher's checkpoint supplies missing ones, and must agree with the rest."""
    base = None if teacher is None or options.audio_config is not None else teacher.checkpoint.audio
    audio = options.config(corpus=corpus, base=base)
    try:
        MelExtractor(audio)  # refuses invalid settings
    except InputError as error:
        raise OptionError(str(error)) from error
    if teacher is not None:
        made, names = teacher.checkpoint, ("options", str(teacher.path))
        if lines := differences(audio, made.audio, names=names, ignored=made.assumed):
            raise OptionError(f"the teacher's mel-spectrograms differ: {'; '.join(lines)}; leave these options out")
    return audio
