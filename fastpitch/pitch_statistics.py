"""A voice's pitch statistics, of each speaker where it has several: measured over a training list, and applied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.utils.data import DataLoader

from common.audio.pitch import PitchMoments, moments, statistics
from common.distributed import Gather, own_cores
from common.errors import InputError
from fastpitch.features import FeatureSource
from fastpitch.model import FastPitch

_CHUNK = 16  # utterances a task of a worker


@dataclass(frozen=True)
class PitchNormalizer:
    """Normalizes pitch by one mean and standard deviation (Hz) for all speakers, or one for each."""

    mean: Tensor  # (1,) or (n_speakers,)
    std: Tensor  # (1,) or (n_speakers,)

    @classmethod
    def of(cls, network: FastPitch) -> "PitchNormalizer":
        """By a network's statistics."""
        return cls(network.pitch_mean.cpu().clone(), network.pitch_std.cpu().clone())

    def __call__(self, pitch: Tensor, *, speaker: int | None) -> Tensor:
        """pitch (F,) in Hz -> normalized, 0 where unvoiced."""
        index = 0 if speaker is None or len(self.mean) == 1 else speaker
        return (pitch - self.mean[index]).div(self.std[index]).masked_fill(pitch == 0, 0.0)


class _MomentsDataset:
    """The pitch moments of each utterance, or the error of one that cannot be read, for loader processes."""

    def __init__(self, source: FeatureSource) -> None:
        self._source = source

    def __getitem__(self, index: int) -> PitchMoments | InputError:
        try:
            return moments(self._source.load(index).pitch.double().numpy())
        except InputError as error:
            return error


def measure_pitch(
    network: FastPitch,
    source: FeatureSource,
    speakers: Sequence[int | None],
    *,
    gather: Gather,
    n_workers: int | None,
) -> None:
    """Fill those of the network's statistics that are not known yet (a deviation of 0) from a list's utterances.

    A speaker without voiced pitch gets the statistics of all. ``n_workers`` None takes this process's share of the
    cores for a list that is worth it.

    Raises:
        InputError: an utterance cannot be read, or a speaker's pitch does not vary.
    """
    if (network.pitch_std > 0).all():
        return

    def compute(indices: Sequence[int]) -> Iterator[PitchMoments]:
        loaders = min(own_cores(), len(indices) // (4 * _CHUNK)) if n_workers is None else n_workers
        dataset = _MomentsDataset(source)
        for items in DataLoader(dataset, batch_size=_CHUNK, sampler=indices, num_workers=loaders, collate_fn=list):
            for item in items:
                if isinstance(item, InputError):
                    raise item
                yield item

    measured = gather(len(speakers), compute, description="measuring pitch")
    overall = statistics(measured)
    for speaker in (network.pitch_std <= 0).nonzero().flatten().tolist():
        found = overall
        own = [part for part, of_speaker in zip(measured, speakers) if of_speaker == speaker]
        if len(network.pitch_std) > 1 and any(part.count for part in own):
            try:
                found = statistics(own)
            except InputError as error:
                raise InputError(f"speaker {speaker}: {error}") from error
        network.pitch_mean[speaker] = found.mean
        network.pitch_std[speaker] = found.std
