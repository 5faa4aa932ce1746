"""What a training says of itself, and how transcripts that do not fit are found."""

import csv
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import extract_mels
from common.training.verdict import Record, describe_training
from fastpitch.loss_function import ALIGNED

LOGS = Path(__file__).with_name("training_logs.tsv")  # of measured runs (docs/TRAINING.md)
describe = partial(describe_training, metric="loss", aligned=ALIGNED, best_kept=None)


@pytest.fixture(scope="module")
def logs() -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    with LOGS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            found.setdefault(row.pop("case"), []).append({name: float(value) for name, value in row.items() if value})
    return found


def lines(history: list[Record]) -> Iterator[tuple[float, str]]:
    """The epoch of each validation, and what is said then."""
    said = partial(describe, adversarial="val_attention_diagonality" not in history[0])
    return ((history[n]["epoch"], said(history[: n + 1])) for n in range(len(history)))


# case -> the epoch of a validation, and all that is said from there on, or up to there
SAID = {
    "good": (6, None, "alignment found", "still improving"),
    "real": (25, None, "alignment found", "still improving"),  # 80 clips of LJSpeech, 8 of them with wrong texts
    "language": (8, None, "alignment found", "still improving"),  # learned as any other: no figure shows it
    "few": (90, None, "no alignment yet", "overfitting since epoch 40: too few clips, or transcripts that don't match"),
    "wrong": (
        26,
        None,
        "no alignment yet",
        "overfitting since epoch 14: too few clips, or transcripts that don't match",
    ),
    "rate": (8, 10, "no alignment yet", "hardly any improvement since epoch 3, and the training loss has stalled"),
    "adversarial": (10, None, "", "still improving"),  # a HiFi-GAN
}


@pytest.mark.parametrize("case", SAID)
def test_each_measured_run_is_told_what_it_is(case: str, logs: dict[str, list[Record]]):
    first, last, alignment, trend = SAID[case]
    said = dict(lines(logs[case]))
    chosen = [line for epoch, line in said.items() if first <= epoch <= (last or math.inf)]
    assert chosen and all(alignment in line and trend in line for line in chosen)
    assert all("no alignment yet" in line for epoch, line in said.items() if epoch < min(first, 4))
    assert not any("lower" in line or "too few" in line for epoch, line in said.items() if epoch < first)
    assert "no improvement" not in "".join(said.values()), "the loss falls to the end of each"


@pytest.mark.slow
def test_the_shipped_voice_finds_exchanged_transcripts_among_real_clips(shared_data: Path, tmp_path: Path, capsys):
    corpus = shared_data / "LJSpeech-sample"
    (tmp_path / "wavs").symlink_to(corpus / "wavs")
    rows = [line.split("|") for line in (corpus / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    exchanged = sorted(rows, key=lambda row: (corpus / "wavs" / f"{row[0]}.wav").stat().st_size)[36:44]  # of one length
    texts = {row[0]: row[-1] for row in rows}
    texts |= {row[0]: other[-1] for row, other in zip(exchanged, exchanged[1:] + exchanged[:1])}
    (tmp_path / "list.txt").write_text("".join(f"wavs/{clip}.wav|{text}\n" for clip, text in texts.items()))
    words = ["--report", "-d", str(tmp_path), "--wav-text-filelist", str(tmp_path / "list.txt"), "--num-workers", "1"]
    assert extract_mels.main([*words, "--report-checkpoint", "voices/en-small.pt"]) == 0
    worst = capsys.readouterr().out.partition("Transcripts to check first")[2].splitlines()[1:11]
    assert sum(any(row[0] in line for row in exchanged) for line in worst) == 8
