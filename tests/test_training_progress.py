"""What a training says of itself, and how transcripts that do not fit are found."""

import csv
import math
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import torch

import extract_mels
from common.nn.alignment_search import durations_of_path, find_path
from common.training.verdict import Aligned, Record, describe_training, has_alignment
from fastpitch.aligner import Alignment, misfits
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
    "few": (90, None, "no alignment yet", "overfitting since epoch 40: too few clips, or transcripts that do not fit"),
    "wrong": (
        26,
        None,
        "no alignment yet",
        "overfitting since epoch 14: too few clips, or transcripts that do not fit",
    ),
    "rate": (8, 10, "no alignment yet", "hardly improving since epoch 3, in training either: lower --learning-rate"),
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
    assert "no longer improving" not in "".join(said.values()), "the loss falls to the end of each"


@pytest.mark.parametrize("noise", [0.0, 0.005, 0.01, 0.02])
@pytest.mark.parametrize("decay", [20, 100, 300])  # epochs
def test_noise_does_not_make_the_words_flip(noise: float, decay: int):
    random, history, said = Random(1), [], []
    for epoch in range(1, 200):
        loss = 3 + 4 * math.exp(-epoch / decay)
        drawn = {name: loss * (1 + random.gauss(0, noise * share)) for name, share in (("train", 0.3), ("val", 1))}
        figures = {"val_attention_diagonality": 0.4, **{f"{name}_loss": value for name, value in drawn.items()}}
        history.append({"epoch": epoch, **figures})
        said.append(describe(history).partition("); ")[2].partition(" since")[0])
    assert sum(one != other for one, other in pairwise(said)) <= 7


def test_a_voice_that_is_fine_tuned_is_compared_with_what_it_starts_from():
    def record(epoch: int, loss: float, diagonality: float, unattended: float) -> Record:
        figures = {"val_attention_diagonality": diagonality, "val_unattended_tokens": unattended}
        return {"epoch": epoch, "train_loss": loss, "val_loss": loss} | figures

    started, tuned = record(0, 4.0, 0.38, 0.08), record(1, 3.0, 0.37, 0.09)
    assert "no alignment yet" in describe([tuned]), "too many phones of few clips are unattended"
    figures = "alignment found (diagonality 0.37, unattended phones 9 %)"
    assert describe([started, tuned]) == f"epoch 1: {figures}; loss 3.00, at the start 4.00; still improving"
    worse = [record(epoch, 4.0 + epoch, 0.37, 0.09) for epoch in range(1, 12)]
    assert "no longer improving since epoch 0, in training either: lower" in describe([started, *worse])
    assert "no alignment yet" in describe([record(0, 4.0, 0.05, 0.3), tuned]), "nothing to go by"
    lost = record(2, 3.0, 0.08, 0.09)
    assert [has_alignment([started, tuned, *more], ALIGNED) for more in ([], [lost])] == [True, False]


def test_a_model_without_attention_only_says_what_becomes_of_the_figure_to_select_by():
    history = [{"epoch": n, "train_loss": 1 - n / 50, "val_wer": 50 + abs(n - 9)} for n in range(1, 20)]
    said = partial(describe, aligned=None, metric="wer")
    assert [said(history[:n]) for n in (1, 2, 9)] == ["", "epoch 2: still improving", "epoch 9: still improving"]
    assert said(history) == "epoch 19: overfitting since epoch 9"
    assert said(history, best_kept=9) == "epoch 19: overfitting since epoch 9, the best is kept (epoch 9)"
    stuck = [record | {"train_loss": 1.0} for record in history]
    assert said(stuck).endswith("no longer improving since epoch 9, in training either: lower --learning-rate")
    unread = [record | {"val_wer": 100.0, "val_loss": record["train_loss"]} for record in history]
    assert said(unread) == "epoch 19: still improving"
    flat = [record | {"val_wer": 50.0} for record in history]
    assert said(flat) == "epoch 19: validation is no better since epoch 1, while the training loss falls"
    sound = [record | {"val_loss": 50.0} for record in flat]
    assert "loss no longer improves since epoch 1: dis" in describe(sound, aligned=None, adversarial=True)
    words = describe([{"epoch": 1, "val_attention_diagonality": 0.9}], aligned=Aligned(0.7))
    assert words == "epoch 1: alignment found (diagonality 0.90)"


def test_a_misfit_is_how_far_the_path_is_behind_the_best_token_of_each_frame():
    generator = torch.Generator().manual_seed(2)
    lengths, frames = torch.tensor([4, 3]), torch.tensor([9, 6])
    is_token = torch.arange(4) < lengths.view(-1, 1, 1)
    log_probs = torch.randn(2, 9, 4, generator=generator).masked_fill(~is_token, -torch.inf).log_softmax(2)
    path = find_path(log_probs, lengths, frames)
    found = misfits(Alignment(log_probs, log_probs, path, durations_of_path(path, frames, 4)), frames)
    for item in range(2):
        rows = [log_probs[item, frame] for frame in range(frames[item])]
        behind = [float(row.max() - row[path[item, frame]]) for frame, row in enumerate(rows)]
        assert found[item] == pytest.approx(sum(behind) / len(behind), rel=1e-6)


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
