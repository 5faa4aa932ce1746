"""The command line of train.py, and FastPitch trained by it: what is learned, kept, refused and said meanwhile."""

import csv
import json
import math
from functools import partial
from pathlib import Path

import pytest
import torch
from tiny import make_corpus, train_options
from tiny_models import MODELS, KilledError, Runs, assert_same_state, at_iteration, without_samples

import extract_mels
import train
from common.checkpoints.checkpoint import saved_checkpoints
from common.checkpoints.reading import load_checkpoint
from common.errors import CheckpointError, InputError
from common.logger import read_log
from common.training.trainer import Trainer
from common.training.verdict import Record, describe_training, find_figure
from fastpitch.loss_function import ALIGNED


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "data")


def run_train(corpus: Path, output: Path, *extra: str) -> int:
    with without_samples():
        return train.main(train_options(corpus, output, *extra))


@pytest.fixture
def trained(make_once, corpora: Path) -> Path:
    """A checkpoint of FastPitch."""
    return MODELS[0].checkpoint(Runs(make_once, corpora, MODELS[0]).plain, 3)


def test_fastpitch_learns_and_logs_the_weighted_sum_of_its_losses(corpus: Path, tmp_path: Path):
    run_train(corpus, tmp_path, "--epochs", "16", "--warmup-steps", "20", "--validation-interval", "8")
    records = read_log(tmp_path / "nvlog.json")
    epochs = [record["data"] for record in records if "avg_train_mel_loss" in record.get("data", {})]
    means = [data["avg_train_mel_loss"] for data in epochs]
    assert means[-1] < 0.35 * means[0]
    first = next(record["data"] for record in records if record.get("step") == [1, 1, 5])
    total = first["train_mel_loss"] + 0.1 * first["train_duration_predictor_loss"] + 0.1 * first["train_pitch_loss"]
    assert first["train_loss"] == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--checkpoint-path", "x.pt", "--resume"], "give one of them"),
        (["--cuda"], "no CUDA device") if not torch.cuda.is_available() else (["--in-fft-d-head", "0"], "at least 1"),
        (["--in-fft-output-size", "32"], "expected one even number for all"),
        (["--input-type", "phone"], "holds characters, but the input type is"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(extra: list[str], message: str, corpus: Path, tmp_path: Path):
    with pytest.raises((InputError, SystemExit), match=message):
        run_train(corpus, tmp_path, "--epochs", "1", *extra)


@pytest.mark.parametrize(
    ("kept", "after_5", "after_8"),
    [
        ("", {2, 3, 4, 5}, {2, 6, 7, 8}),
        ("--keep-checkpoints 1 --keep-milestones 1 7", {1, 2, 5}, {1, 2, 7, 8}),
        ("--keep-checkpoints all", {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6, 7, 8}),
    ],
)
def test_the_last_checkpoints_the_best_and_milestones_stay(
    kept: str,
    after_5: set[int],
    after_8: set[int],
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys,
):
    losses = {1: 3.0, 2: 1.0, 3: math.nan, 4: 2.0, 5: 1.5, 6: 1.0, 7: 1.2, 8: 4.0}  # of validation, by epoch
    monkeypatch.setattr(Trainer, "_validate", lambda self, *_: {"val_loss": losses[self._position.epoch]})

    def train_until(epoch: int, *words: str) -> set[int]:
        options = f"--epochs {epoch} -bs 16 --checkpoint-interval 1 --validation-interval 1".split()
        run_train(corpus, tmp_path, *options, *kept.split(), *words)
        return {int(path.stem.rpartition("_")[2]) for path in saved_checkpoints(tmp_path, "FastPitch")}

    assert train_until(5) == after_5
    assert train_until(8, "--resume") == after_8
    out = capsys.readouterr().out
    assert [epoch for epoch in losses if f"(epoch {epoch}, iteration {epoch}, the best validation so far)" in out] == [
        1,
        2,
    ]


def test_a_metric_is_a_figure_of_the_weights_that_infer():
    figures = {"val_loss": 1.0, "val_ema_loss": 2.0, "val_wer": 9.0}
    assert [find_figure(figures, name) for name in ("loss", "val_loss", "wer", "x")] == [2.0, 1.0, 9.0, None]


def validated_as(losses: dict[int, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the EMA weights have these losses by epoch; those of the raw weights only fall."""

    def validate(trainer: Trainer, step: tuple[int, ...]) -> dict[str, float]:
        return {"val_loss": 9.0 - step[0], "val_ema_loss": losses[step[0]]}

    monkeypatch.setattr(Trainer, "_validate", validate)


def test_the_best_validation_is_saved_when_it_happens_and_patience_stops_early(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    validated_as({1: 5.0, 2: 3.0, 3: 4.0, 4: 3.5, 5: 3.1, 6: 1.0}, monkeypatch)
    words = "-bs 16 --epochs 9 --checkpoint-interval 50 --patience 3 --ema-decay 0.5 --keep-checkpoints 1".split()

    def kept(folder: str) -> set[int]:
        return {int(path.stem.rpartition("_")[2]) for path in saved_checkpoints(tmp_path / folder, "FastPitch")}

    run_train(corpus, tmp_path / "whole", *words)
    assert kept("whole") == {2, 5} and "stopping early: 3 validations without a better loss" in capsys.readouterr().out
    run_train(corpus, tmp_path / "parts", *words, "--epochs-this-job", "3")
    assert kept("parts") == {2, 3}
    run_train(corpus, tmp_path / "parts", *words, "--resume")
    assert kept("parts") == {2, 5}
    for epoch in (2, 5):
        whole, parts = (
            load_checkpoint(tmp_path / run / f"FastPitch_checkpoint_{epoch}.pt") for run in ("whole", "parts")
        )
        for kind in ("networks", "ema"):
            for name, value in getattr(whole, kind)["fastpitch"].items():
                assert torch.equal(value, getattr(parts, kind)["fastpitch"][name])
    run_train(corpus, tmp_path / "whole", *words, "--resume")
    assert kept("whole") == {2, 5}, "nothing more is trained"
    run_train(corpus, tmp_path / "whole", *words, "--resume", "--patience", "4", "--epochs", "6")
    assert kept("whole") == {6}, "the best and the last"


def test_a_training_of_one_phase_hears_nothing_of_discriminators(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    validated_as(dict.fromkeys(range(1, 13), 1.0), monkeypatch)
    run_train(corpus, tmp_path, *"-bs 16 --epochs 12 --checkpoint-interval 50 --ema-decay 0.5".split())
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch 12: ")]
    assert len(said) == 1 and "since epoch 1" in said[0] and "discriminators" not in said[0]


def test_a_run_resumed_within_an_epoch_keeps_its_order_on_a_device_with_another_default(corpus: Path, tmp_path: Path):
    def die() -> None:
        raise KilledError

    words = "-bs 2 --epochs 1 --steps-per-checkpoint 2 --ema-decay 0.9".split()
    run_train(corpus, tmp_path / "whole", *words, "--sorted-updates", "3")
    with at_iteration(5, die), pytest.raises(KilledError):
        run_train(corpus, tmp_path / "parts", *words, "--sorted-updates", "3")
    run_train(corpus, tmp_path / "parts", *words, "--resume")
    whole, parts = (tmp_path / run / "FastPitch_checkpoint_1.pt" for run in ("whole", "parts"))
    assert load_checkpoint(parts).training["sorted_updates"] == 3
    assert_same_state(whole, parts)


def test_a_checkpoint_of_other_audio_lists_what_differs(trained: Path, tmp_path: Path):
    other = make_corpus(tmp_path / "data")
    audio = json.loads((other / "mels" / "audio.json").read_text())
    (other / "mels" / "audio.json").write_text(json.dumps(audio | {"sampling_rate": 16000}))
    with pytest.raises(CheckpointError, match=r"sampling_rate: 22050 .*16000"):
        run_train(other, tmp_path / "out", "--epochs", "5", "--checkpoint-path", str(trained))


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda c: (c / "mels" / "u7.pt").unlink(), r"u7\.pt.*train\.txt:4"),
        (lambda c: (c / "pitch_char" / "u7.pt").write_bytes(b"nonsense"), r"pitch_char/u7\.pt.*train\.txt:4"),
        (lambda c: torch.save(torch.ones(3), c / "durations" / "u7.pt"), r"durations/u7\.pt: .*\b3\b.*train\.txt:4"),
        (lambda c: torch.save(torch.full((80, 9), torch.nan), c / "mels" / "u7.pt"), r"non-finite .*train\.txt:4"),
        (lambda c: _edit(c, lambda text: text.replace("|", ",", 1)), r"train\.txt"),
        (lambda c: _edit(c, lambda text: ""), r"train\.txt"),
        (lambda c: _edit(c, lambda text: text.replace("small", "sm\u03b1ll")), r"train\.txt:\d+"),
        (lambda c: (c / "pitch_char_stats__train.json").unlink(), "--pitch-mean-std-file"),
        (lambda c: (c / "mels" / "audio.json").write_text("{}x"), "audio.json"),
    ],
)
def test_bad_data_is_named_by_file_and_line(break_it, message: str, tmp_path: Path):
    corpus = make_corpus(tmp_path / "data")
    break_it(corpus)
    with pytest.raises(InputError, match=message):
        run_train(corpus, tmp_path / "out", "--epochs", "1", "--text-cleaners", "basic_cleaners")


def _edit(corpus: Path, change) -> None:
    path = corpus / "train.txt"
    path.write_text(change(path.read_text()))


LOGS = Path(__file__).with_name("training_logs.tsv")  # of measured runs (docs/TRAINING.md)
describe = partial(describe_training, metric="loss", aligned=ALIGNED, best_kept=None)


@pytest.fixture(scope="module")
def logs() -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for row in csv.DictReader(LOGS.read_text(encoding="utf-8").splitlines(), delimiter="\t"):
        found.setdefault(row.pop("case"), []).append({name: float(value) for name, value in row.items() if value})
    return found


# case -> the epoch of a validation, and all that is said from there on, or up to there
SAID = {
    "good": (6, None, "alignment found", "still improving"),
    "real": (25, None, "alignment found", "still improving"),  # 80 clips of LJSpeech, 8 of them with wrong texts
    "language": (8, None, "alignment found", "still improving"),  # learned as any other: no figure shows it
    "few": (90, None, "no alignment yet", "overfitting since epoch 40: too few clips, or transcripts that don't match"),
    "wrong": (26, None, "no alignment yet", "overfitting since epoch 14: too few clips, or transcripts"),
    "rate": (8, 10, "no alignment yet", "hardly any improvement since epoch 3, and the training loss has stalled"),
    "adversarial": (10, None, "", "still improving"),  # a HiFi-GAN
}


@pytest.mark.parametrize("case", SAID)
def test_each_measured_run_is_told_what_it_is(case: str, logs: dict[str, list[Record]]):
    (first, last, alignment, trend), history = SAID[case], logs[case]
    describe_run = partial(describe, adversarial="val_attention_diagonality" not in history[0])
    said = {record["epoch"]: describe_run(history[: n + 1]) for n, record in enumerate(history)}
    chosen = [line for epoch, line in said.items() if first <= epoch <= (last or math.inf)]
    assert chosen and all(alignment in line and trend in line for line in chosen)
    assert all("no alignment yet" in line for epoch, line in said.items() if epoch < min(first, 4))
    assert not any("lower" in line or "too few" in line for epoch, line in said.items() if epoch < first)
    assert "no improvement" not in "".join(said.values()), "the loss falls to the end of each"


def test_a_fine_tuned_voice_without_an_alignment_is_compared_with_the_initial_one():
    first = {"epoch": 0, "val_loss": 2.0, "val_attention_diagonality": -0.001, "val_unattended_tokens": 0.2}
    said = describe([first, first | {"epoch": 1, "val_attention_diagonality": 0.1}])
    assert said == "epoch 1: diagonality 0.10, initially 0.00, unattended phones 20 %; loss 2.00, initially 2.00"


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
