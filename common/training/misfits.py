"""Which transcripts of a training list do not fit their recordings, by the aligner of the voice that learned them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

from torch import Tensor

from common.data.batch import Dataset, join_batches
from common.data.text_mel import TextMelBatch, TextMelDataset
from common.distributed import Ranks
from common.files import write_text, writing
from common.pages.render import render_page
from common.pages.tables import Recording, player_address, text_table
from common.progress import print_line

WORST = 10  # clips on stdout
MOST_LISTED = 100  # clips with a player
LEARNED = 0.1  # median misfit of an aligner that tells tokens apart; new ones have 0.01, all of 10 epochs 0.3


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


def report_misfits(measured: Iterable[Fit], *, dataset_path: Path, output: Path) -> None:
    """Print the worst transcripts, and write all as ``transcripts.tsv`` and the worst with players as a page."""
    fits = sorted(measured, key=lambda fit: -fit.misfit)
    middle = median(fit.misfit for fit in fits)
    if middle < LEARNED:
        print_line(f"transcripts are not compared: the aligner has learned too little (median misfit {middle:.2f})")
        return
    table, page = output / "transcripts.tsv", output / "transcripts.html"
    rows = [(f"{fit.misfit:.3f}", fit.name, fit.text) for fit in fits]
    clips = [
        Recording(name, text, f"misfit {score}", player_address(dataset_path, name.rpartition(" (")[0], page=page))
        for score, name, text in rows[:MOST_LISTED]
    ]
    headline = f"{len(fits)} clips, the worst first; the median misfit is {middle:.2f}"
    html = render_page("training/transcripts.html", title=str(dataset_path), headline=headline, clips=clips)
    with writing(output):
        write_text(table, "".join("\t".join(row) + "\n" for row in [("misfit", "recording", "transcript"), *rows]))
        write_text(page, html)
    print_line(f"transcripts that fit worst (median misfit {middle:.2f}); all: {table}, to listen: {page}")
    print_line("\n".join(text_table(rows[:WORST])))
