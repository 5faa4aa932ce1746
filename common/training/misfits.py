"""Which transcripts of a training list do not fit their recordings, by the aligner of the voice that learned them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from scipy.stats import median_abs_deviation
from torch import Tensor

from common.data.batch import Dataset, join_batches
from common.data.text_mel import TextMelBatch, TextMelDataset
from common.distributed import Ranks
from common.files import write_text, writing
from common.pages.tables import text_table
from common.progress import print_line
from common.training.options import RunOptions

WORST = 10  # clips on stdout
OUTLIER, LEAST_DEVIATION = 5.0, 0.1  # robust standard deviations, and nats a frame, as the data report has them


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


def list_misfits(score: Callable[[Any], Tensor], dataset: Dataset, *, ranks: Ranks, run: RunOptions) -> None:
    """Print the transcripts that stand out, and write all of them to ``transcripts.tsv``, the worst first."""
    fits = measure_misfits(score, dataset, ranks=ranks, batch_size=run.batch_size)
    if not ranks.is_main:
        return
    fits.sort(key=lambda fit: -fit.misfit)
    values = [fit.misfit for fit in fits]
    table, middle = run.output / "transcripts.tsv", median(values)
    rows = [(f"{fit.misfit:.3f}", fit.name, fit.text) for fit in fits]
    with writing(run.output):
        write_text(table, "".join("\t".join(row) + "\n" for row in [("misfit", "recording", "transcript"), *rows]))
    limit = middle + OUTLIER * max(LEAST_DEVIATION, median_abs_deviation(values, scale="normal"))
    n_found = sum(value > limit for value in values)
    found = f"{n_found} may not be what is said, to listen: extract_mels.py --report --report-checkpoint"
    print_line(f"transcripts (median misfit {middle:.2f}): {found if n_found else 'none stands out'}; all: {table}")
    if n_found:
        print_line("\n".join(text_table(rows[: min(n_found, WORST)])))
