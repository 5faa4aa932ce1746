"""Which transcripts of a training list do not fit their recordings, by the aligner of the voice that learned them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor

from common.data.batch import Dataset, join_batches
from common.data.text_mel import TextMelBatch, TextMelDataset
from common.distributed import Ranks


@dataclass(frozen=True)
class Fit:
    """How badly the transcript of a recording fits it."""

    misfit: float  # nats a frame, 0 at best
    name: str  # "wavs/a.wav (list.txt:7)"
    text: str


def measure_misfits(
    score: Callable[[Any], Tensor], dataset: Dataset, *, ranks: Ranks, batch_size: int = 16
) -> list[Fit]:
    """How badly each transcript of a text-to-mel dataset fits; ``score`` takes a batch, and returns misfits (B,)."""
    source = cast(TextMelDataset, dataset)

    def load(index: int) -> TextMelBatch:  # without pitch and priors, which take longer than all else
        tokens, text = source.transcripts.inputs(source.transcripts[index]), source.entries[index].fields["text"]
        return TextMelBatch.of_one(source.name(index), tokens, source.load_mel(index), text=text)

    def compute(indices: Sequence[int]) -> Iterator[Fit]:
        for start in range(0, len(indices), batch_size):
            batch = join_batches([load(index) for index in indices[start : start + batch_size]])
            for value, name, text in zip(score(batch.to(ranks.device)).tolist(), batch.names, batch.texts):
                yield Fit(value, name, " ".join(text.split()))

    return ranks.gather_over(len(dataset), compute, "comparing transcripts")
