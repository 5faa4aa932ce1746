"""A voice's pitch statistics, of each speaker where it has several: measured over a training list, and applied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn
from torch.utils.data import DataLoader

from common.audio.pitch import PitchMoments, moments, statistics
from common.audio.pitch_statistics import PitchStatistics
from common.data.batch import ErrorsAsItems
from common.distributed import Ranks, own_cores
from common.errors import InputError
from common.progress import progress
from fastpitch.frames import FrameSource

_CHUNK = 16  # utterances a task of a worker


@dataclass(frozen=True)
class VoicePitch:
    """What normalises pitch: one mean and standard deviation (Hz) for all speakers, or one for each."""

    mean: Tensor  # (1,) or (n_speakers,)
    std: Tensor  # (1,) or (n_speakers,)

    def normalise(self, pitch: Tensor, *, speaker: int | None) -> Tensor:
        """pitch (F,) in Hz -> normalised, 0 where unvoiced."""
        index = 0 if speaker is None or len(self.mean) == 1 else speaker
        return (pitch - self.mean[index]).div(self.std[index]).masked_fill(pitch == 0, 0.0)


class Surveyed(Protocol):
    """A dataset whose pitch can be measured."""

    source: FrameSource
    speakers: list[int | None]


class _Moments:
    """A dataset of the pitch moments of some utterances, for loader processes to compute."""

    def __init__(self, source: FrameSource, indices: Sequence[int]) -> None:
        self._source = source
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, position: int) -> tuple[int, PitchMoments]:
        index = self._indices[position]
        return index, moments(self._source.load(index).pitch.double().numpy())

    def collate(self, items: list[tuple[int, PitchMoments]]) -> list[tuple[int, PitchMoments]]:
        return items


def measure_voice(network: nn.Module, dataset: Surveyed, *, ranks: Ranks, n_workers: int | None) -> None:
    """Fill those of the network's statistics that are not known yet (a deviation of 0) from a training list.

    Each rank takes its share of the utterances. A speaker who says nothing in the list gets the statistics of all.
    ``n_workers`` None takes this rank's share of the cores for a list that is worth it.

    Raises:
        InputError: an utterance cannot be read, or a speaker's pitch does not vary.
    """
    own = range(len(dataset.speakers))[ranks.rank :: ranks.world_size]
    if n_workers is None:
        n_workers = min(own_cores(), len(own) // (4 * _CHUNK))
    watched = progress(
        _moments(dataset.source, own, n_workers=n_workers),
        total=len(own),
        desc="measuring pitch",
        unit="utterances",
        enabled=ranks.is_main,
    )
    by_index = dict(pair for part in ranks.gather(list(watched)) for pair in part)
    everything = [by_index[index] for index in sorted(by_index)]
    overall = statistics(everything)
    for place in range(len(network.pitch_std)):
        if network.pitch_std[place] > 0:
            continue
        parts = [by_index[index] for index, speaker in enumerate(dataset.speakers) if speaker == place]
        found = overall
        if len(network.pitch_std) > 1 and any(part.count for part in parts):
            found = _of_speaker(parts, place)
        network.pitch_mean[place] = found.mean
        network.pitch_std[place] = found.std


def _of_speaker(parts: list[PitchMoments], speaker: int) -> PitchStatistics:
    try:
        return statistics(parts)
    except InputError as error:
        raise InputError(f"speaker {speaker}: {error}") from error


def _moments(source: FrameSource, indices: Sequence[int], *, n_workers: int) -> Iterator[tuple[int, PitchMoments]]:
    safe = ErrorsAsItems(_Moments(source, indices))
    loader = DataLoader(safe, batch_size=_CHUNK, num_workers=n_workers, collate_fn=safe.collate)
    for items in loader:
        if isinstance(items, InputError):
            raise items
        yield from items
