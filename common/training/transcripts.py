"""Which transcripts of a training list do not fit their recordings, by the aligner of the voice that learned them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import cast

from common.data import Dataset, TextMelBatch, build_loader, raise_errors
from common.distributed import Ranks
from common.files import write_text, writing
from common.pages import Recording, player_address, render_page, text_table
from common.progress import print_line
from common.training.engine import evaluation_mode
from common.training.objective import Networks, Objective

WORST = 10  # clips on stdout
MOST_LISTED = 100  # clips with a player
_BATCH_SIZE = 16


@dataclass(frozen=True)
class Fit:
    """How badly the transcript of a recording fits it."""

    misfit: float  # nats a frame, 0 at best
    wav: str  # in the dataset's folder, or a mel
    where: str  # "(list.txt:7)"
    text: str


def measure_misfits(objective: Objective, networks: Networks, dataset: Dataset, *, ranks: Ranks) -> list[Fit]:
    """The transcripts of a dataset, the worst first."""

    def compute(indices: Sequence[int]) -> Iterator[Fit]:
        batches = [indices[start : start + _BATCH_SIZE] for start in range(0, len(indices), _BATCH_SIZE)]
        for one in raise_errors(build_loader(dataset, batches, n_workers=0, pin_memory=False, seed=0)):
            batch = cast(TextMelBatch, one)
            found = objective.misfits(networks, batch.to(ranks.device)).tolist()
            for value, name, text in zip(found, batch.names, batch.texts):
                wav, _, where = name.rpartition(" ")
                yield Fit(value, wav, where, text)

    with evaluation_mode(networks):
        found = ranks.gather_over(len(dataset), compute, "comparing transcripts")
    return sorted(found, key=lambda fit: -fit.misfit)


def report_misfits(fits: Sequence[Fit], *, dataset_path: Path, output: Path) -> None:
    """Print the worst transcripts, and write all as ``transcripts.tsv`` and the worst with players as a page."""
    table, page = output / "transcripts.tsv", output / "transcripts.html"
    rows = [(f"{fit.misfit:.3f}", f"{fit.wav} {fit.where}", fit.text) for fit in fits]
    usual = median(fit.misfit for fit in fits)
    headline = f"{len(fits)} clips, the worst first; usual is a misfit of {usual:.2f}"
    clips = [
        Recording(name, text, f"misfit {score}", player_address(dataset_path, fit.wav, page=page))
        for fit, (score, name, text) in zip(fits[:MOST_LISTED], rows)
    ]
    html = render_page("training/transcripts.html", title=str(dataset_path), headline=headline, clips=clips)
    with writing(output, "; choose another --output"):
        write_text(table, "".join("\t".join(row) + "\n" for row in [("misfit", "recording", "transcript"), *rows]))
        write_text(page, html)
    print_line(f"transcripts that fit their recordings worst (usual: {usual:.2f}); all: {table}, to listen: {page}")
    print_line("\n".join(text_table(rows[:WORST])))
