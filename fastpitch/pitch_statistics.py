"""A voice's pitch statistics, of each speaker where it has several, measured over a list."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from common.audio.pitch import PitchMoments, moments, statistics
from common.distributed import Gather, own_cores
from common.errors import InputError
from fastpitch.model import FastPitch

_CHUNK = 16  # utterances a task of a worker


class PitchSource(Protocol):
    """A dataset whose utterances have pitch."""

    speakers: list[int | None]

    def mel_and_pitch(self, index: int) -> tuple[Tensor, Tensor]: ...


class _Moments(Dataset):
    """The pitch moments of each utterance, or the error of one that cannot be read, for loader processes."""

    def __init__(self, source: PitchSource) -> None:
        self._source = source

    def __getitem__(self, index: int) -> PitchMoments | InputError:
        try:
            return moments(self._source.mel_and_pitch(index)[1].double().numpy())
        except InputError as error:
            return error


def measure_pitch(network: FastPitch, source: PitchSource, *, gather: Gather, n_workers: int | None) -> None:
    """Fill those of the network's statistics that are not known yet (a deviation of 0) from a list's utterances.

    A speaker without voiced pitch gets the statistics of all. ``n_workers`` None takes this process's share of the
    cores for a list that is worth it.

    Raises:
        InputError: an utterance cannot be read, or a speaker's pitch does not vary.
    """
    if (network.pitch_std > 0).all():
        return

    def compute(indices: Sequence[int]) -> Iterator[PitchMoments]:
        n_loaders = min(own_cores(), len(indices) // (4 * _CHUNK)) if n_workers is None else n_workers
        dataset = _Moments(source)
        loader = DataLoader(dataset, _CHUNK, sampler=indices, num_workers=n_loaders, collate_fn=list)
        for items in loader:
            for item in items:
                if isinstance(item, InputError):
                    raise item
                yield item

    measured = gather(len(source.speakers), compute, description="measuring pitch")
    overall = statistics(measured)
    for speaker in (network.pitch_std <= 0).nonzero().flatten().tolist():
        own = [part for part, of_speaker in zip(measured, source.speakers) if of_speaker == speaker and part.count]
        try:
            found = statistics(own) if own and len(network.pitch_std) > 1 else overall
        except InputError as error:
            raise InputError(f"speaker {speaker}: {error}") from error
        network.pitch_mean[speaker] = found.mean
        network.pitch_std[speaker] = found.std
