"""Training from the command line: what is logged, saved and refused, and that a killed run goes on exactly."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from test_engine import run_ranks
from tiny import make_corpus, train_options

import train
from common.checkpoints.checkpoint import load_checkpoint
from common.errors import CheckpointError, InputError, OptionError
from common.logger import read_log

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "data")


def run_train(corpus: Path, output: Path, *extra: str) -> int:
    return train.main(train_options(corpus, output, *extra))


def start_train(corpus: Path, output: Path, *extra: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *train_options(corpus, output, *extra)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def assert_same_weights(first: Path, second: Path) -> None:
    ours, theirs = load_checkpoint(first), load_checkpoint(second)
    assert ours.training["iteration"] == theirs.training["iteration"]
    for part in ("networks", "ema"):
        states = getattr(ours, part), getattr(theirs, part)
        if states != (None, None):
            for key, value in states[0]["fastpitch"].items():
                assert torch.equal(value, states[1]["fastpitch"][key]), key


def test_log_lines_and_json_read_as_documented(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture):
    assert run_train(corpus, tmp_path, "--epochs", "2", "--ema-decay", "0.9") == 0
    lines = capsys.readouterr().out.splitlines()
    iterations = [line for line in lines if "| iter " in line]
    pattern = (
        r"DLL \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} - epoch    1 \| iter   1/  5 \| loss +\d+\.\d\d \| "
        r"mel loss +\d+\.\d\d \| dur loss +\d+\.\d\d \| pitch loss +\d+\.\d\d \| lrate 3\.16e-03 \| took \d+\.\d\d s"
    )
    assert re.fullmatch(pattern, iterations[0])
    assert len(iterations) == 10
    records = read_log(tmp_path / "nvlog.json")
    steps = [record["step"] for record in records if record["type"] == "LOG" and len(record["step"]) == 3]
    assert steps == [[epoch, step, 5] for epoch in (1, 2) for step in range(1, 6)]
    epoch = [record["data"] for record in records if record.get("step") == [2]]
    assert {key for data in epoch for key in data} >= {
        "avg_train_loss",
        "avg_train_mel_loss",
        "avg_train_frames/s",
        "val_loss",
        "val_mel_loss",
        "val_ema_mel_loss",
    }
    first = next(record["data"] for record in records if record.get("step") == [1, 1, 5])
    total = first["train_mel_loss"] + 0.1 * first["train_duration_predictor_loss"] + 0.1 * first["train_pitch_loss"]
    assert first["train_loss"] == pytest.approx(total, rel=1e-6)


def test_training_overfits_and_speaks_of_it_in_tensorboard(corpus: Path, tmp_path: Path):
    run_train(corpus, tmp_path, "--epochs", "16", "--warmup-steps", "20", "--validation-interval", "8")
    records = read_log(tmp_path / "nvlog.json")
    epochs = [record["data"] for record in records if "avg_train_mel_loss" in record.get("data", {})]
    means = [data["avg_train_mel_loss"] for data in epochs]
    assert means[-1] < 0.35 * means[0]
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(tmp_path / "val"))
    board.Reload()
    tags = board.Tags()
    assert "mel_loss" in {tag.split("/")[-1] for tag in tags["scalars"]}
    assert len(tags["images"]) >= 3  # spectrograms, pitch, durations
    assert len(tags["audio"]) >= 2  # target and predicted
    assert len(board.Scalars(next(tag for tag in tags["scalars"] if tag.endswith("mel_loss")))) == 2


RUN = ("--epochs", "4", "--ema-decay", "0.9", "--steps-per-checkpoint", "3", "--validation-interval", "2")


@pytest.fixture(scope="module")
def whole_run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4 epochs that nothing interrupts."""
    output = tmp_path_factory.mktemp("whole")
    assert run_train(corpus, output, *RUN) == 0
    return output / "FastPitch_checkpoint_4.pt"


def _wait_for_line(process: subprocess.Popen, text: str) -> None:
    for line in process.stdout:
        if text in line:
            return
    pytest.fail(f"the run ended before {text!r}: {process.stderr.read()}")


def test_a_killed_run_goes_on_bit_for_bit(corpus: Path, whole_run: Path, tmp_path: Path):
    process = start_train(corpus, tmp_path, *RUN)
    _wait_for_line(process, "epoch    2 | iter   3")  # saved after iteration 6, within the epoch
    process.kill()
    process.communicate()
    assert [path.name for path in tmp_path.glob("*.pt")] != []
    assert run_train(corpus, tmp_path, *RUN, "--resume") == 0
    assert_same_weights(whole_run, tmp_path / "FastPitch_checkpoint_4.pt")


def test_sigterm_saves_and_the_run_goes_on_bit_for_bit(corpus: Path, whole_run: Path, tmp_path: Path):
    options = ("--epochs", "4", "--ema-decay", "0.9", "--validation-interval", "2")
    process = start_train(corpus, tmp_path, *options)
    _wait_for_line(process, "epoch    1 | iter   2")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "stopped by SIGTERM; add --resume to go on" in out
    assert err == ""
    assert run_train(corpus, tmp_path, *options, "--resume") == 0
    assert_same_weights(whole_run, tmp_path / "FastPitch_checkpoint_4.pt")


def test_epoch_averages_of_a_resumed_run_are_those_of_the_whole(corpus: Path, whole_run: Path, tmp_path: Path):
    process = start_train(corpus, tmp_path, *RUN)
    _wait_for_line(process, "epoch    2 | iter   3")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    run_train(corpus, tmp_path, *RUN, "--resume")

    def averages(folder: Path) -> dict[int, float]:
        records = read_log(folder / "nvlog.json")
        kept = [r for r in records if r["type"] == "LOG" and "avg_train_mel_loss" in r["data"]]
        return {record["step"][0]: record["data"]["avg_train_mel_loss"] for record in kept}

    assert averages(tmp_path) == averages(whole_run.parent)


def test_a_corrupt_last_checkpoint_falls_back_to_the_one_before(
    corpus: Path, whole_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    options = ("--epochs-per-checkpoint", "1", "--ema-decay", "0.9", "--validation-interval", "2")
    run_train(corpus, tmp_path, "--epochs", "3", *options)
    last = tmp_path / "FastPitch_checkpoint_3.pt"
    last.write_bytes(last.read_bytes()[:5000])
    capsys.readouterr()
    run_train(corpus, tmp_path, "--epochs", "4", *options, "--resume")
    out = capsys.readouterr().out
    assert "FastPitch_checkpoint_3.pt" in out and "trying the one before it" in out
    assert "going on from" in out and "FastPitch_checkpoint_2.pt: epoch 2" in out


_TRAIN_RANK = """
import sys
import torch
torch.set_num_threads(1)
import train
sys.exit(train.main(OPTIONS))
"""
NO_DROPOUT = (
    "--p-in-fft-dropout 0 --p-in-fft-dropatt 0 --p-out-fft-dropout 0 --p-out-fft-dropatt 0 "
    "--p-dur-predictor-dropout 0 --p-pitch-predictor-dropout 0"
).split()


def test_one_global_batch_is_one_update_however_it_is_cut(corpus: Path, tmp_path: Path):
    common = [*NO_DROPOUT, "--epochs", "3", "--validation-interval", "3"]
    for name, cut in (("whole", ("16", "1")), ("accumulated", ("4", "4"))):
        options = [*common, "-bs", cut[0], "--gradient-accumulation-steps", cut[1]]
        assert run_train(corpus, tmp_path / name, *options) == 0
    options = train_options(corpus, tmp_path / "ranks", *common, "-bs", "4", "--gradient-accumulation-steps", "2")
    run_ranks(_TRAIN_RANK.replace("OPTIONS", repr(options)), tmp_path)
    states = {
        name: load_checkpoint(tmp_path / name / "FastPitch_checkpoint_3.pt").networks["fastpitch"]
        for name in ("whole", "accumulated", "ranks")
    }
    logs = {name: _losses(tmp_path / name) for name in states}
    for name in ("accumulated", "ranks"):
        assert logs[name] == pytest.approx(logs["whole"], rel=2e-5)
        for key, value in states["whole"].items():
            other = states[name][key]
            if key.endswith("qkv_net.bias"):
                # Softmax does not see the keys' bias: its gradient is rounding alone, which LAMB scales up to a step.
                value, other = (torch.cat([b.chunk(3)[0], b.chunk(3)[2]]) for b in (value, other))
            torch.testing.assert_close(other, value, atol=2e-5, rtol=1e-4)


def _losses(folder: Path) -> list[float]:
    records = [record for record in read_log(folder / "nvlog.json") if record["type"] == "LOG"]
    keys = ("train_loss", "train_mel_loss", "val_loss", "val_mel_loss")
    return [record["data"][key] for record in records for key in keys if key in record["data"]]


def test_underscores_and_hyphens_in_options_are_the_same():
    words = ["-o", "x", "--epochs", "1", "--training-files", "a", "--validation-files", "b"]
    hyphens = train.parse_args([*words, "--batch-size", "3", "--pitch-predictor-loss-scale=0.5"])
    underscores = train.parse_args([*words, "--batch_size", "3", "--pitch_predictor_loss_scale=0.5"])
    assert vars(hyphens) == vars(underscores)
    assert hyphens.batch_size == 3


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--bogus", "1"], "unrecognized arguments: --bogus"),
        (["-bs", "0"], "expected a whole number of at least 1"),
        (["-lr", "fast"], "-lr/--learning-rate: fast: expected a number above 0"),
        (["-bs", "2.5"], "2.5: expected a whole number of at least 1"),
        (["-m", "Nothing"], "invalid choice: 'Nothing'"),
        (["--optimizer", "sgd"], "invalid choice: 'sgd'"),
        (["--grad-clip-thresh", "0"], "0: expected a number above 0, or inf"),
    ],
)
def test_wrong_options_are_one_line_and_status_2(
    extra: list[str], message: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    with pytest.raises(SystemExit) as caught:
        run_train(corpus, tmp_path, "--epochs", "1", *extra)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("model", ["FastPitch", "HiFi-GAN"])
def test_gradients_that_are_not_clipped_are_asked_for_by_inf(model: str):
    words = f"-m {model} -o o --training-files t --validation-files v --epochs 1 --grad-clip-thresh inf".split()
    assert train.parse_args(words).grad_clip_thresh == float("inf")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--checkpoint-path", "x.pt", "--resume"], "give one of them"),
        (["--amp-dtype", "bfloat16"], "add --amp"),
        (["--cuda"], "no CUDA device") if not torch.cuda.is_available() else (["--in-fft-d-head", "0"], "at least 1"),
        (["--in-fft-output-size", "32"], "expected three equal numbers"),
        (["--input-type", "phone"], "does not fit --input-type phone"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(extra: list[str], message: str, corpus: Path, tmp_path: Path):
    with pytest.raises((OptionError, SystemExit), match=message):
        run_train(corpus, tmp_path, "--epochs", "1", *extra)


def test_jobs_of_a_few_epochs_make_one_run(corpus: Path, whole_run: Path, tmp_path: Path):
    jobs = ("--epochs", "4", "--ema-decay", "0.9", "--validation-interval", "2", "--epochs-this-job", "2")
    assert run_train(corpus, tmp_path, *jobs) == 0
    assert [path.name for path in tmp_path.glob("*.pt")] == ["FastPitch_checkpoint_2.pt"]
    assert run_train(corpus, tmp_path, *jobs, "--resume") == 0
    assert_same_weights(whole_run, tmp_path / "FastPitch_checkpoint_4.pt")


@pytest.mark.parametrize(("extra", "kept"), [((), (1, 2, 3, 4)), (("--keep-milestones", "1", "9"), (1, 3, 4))])
def test_checkpoints_stay_unless_milestones_say_which(
    extra: tuple[str, ...], kept: tuple[int, ...], corpus: Path, tmp_path: Path
):
    run_train(corpus, tmp_path, "--epochs", "4", "--checkpoint-interval", "1", "--validation-interval", "9", *extra)
    assert {path.name for path in tmp_path.glob("*.pt")} == {f"FastPitch_checkpoint_{n}.pt" for n in kept}


def test_a_folder_with_checkpoints_is_not_overwritten(corpus: Path, whole_run: Path):
    with pytest.raises(OptionError, match=r"already holds checkpoints of FastPitch.*_4\.pt; add --resume"):
        run_train(corpus, whole_run.parent, "--epochs", "1")


def test_a_checkpoint_of_another_shape_lists_what_differs(corpus: Path, whole_run: Path, tmp_path: Path):
    options = ["--epochs", "5", "--checkpoint-path", str(whole_run), "--in-fft-n-layers", "2"]
    with pytest.raises(CheckpointError, match="in_fft_n_layers: 1"):
        run_train(corpus, tmp_path, *options)


def test_a_checkpoint_of_other_audio_lists_what_differs(whole_run: Path, tmp_path: Path):
    other = make_corpus(tmp_path / "data")
    audio = json.loads((other / "mels" / "audio.json").read_text())
    (other / "mels" / "audio.json").write_text(json.dumps(audio | {"sampling_rate": 16000}))
    with pytest.raises(CheckpointError, match=r"sampling_rate: 22050 .*16000"):
        run_train(other, tmp_path / "out", "--epochs", "5", "--checkpoint-path", str(whole_run))


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda c: (c / "mels" / "u7.pt").unlink(), r"u7\.pt.*train\.txt:4"),
        (lambda c: (c / "pitch_char" / "u7.pt").write_bytes(b"nonsense"), r"pitch_char/u7\.pt.*train\.txt:4"),
        (lambda c: torch.save(torch.ones(3), c / "durations" / "u7.pt"), r"u7\.pt: shape \(3,\).*train\.txt:4"),
        (lambda c: torch.save(torch.full((80, 9), torch.nan), c / "mels" / "u7.pt"), r"not finite \(.*train\.txt:4"),
        (lambda c: _edit(c, lambda text: text.replace("|", ",", 1)), r"train\.txt:1"),
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


def test_bad_data_met_by_a_loader_process_is_one_line_without_traceback(tmp_path: Path):
    corpus = make_corpus(tmp_path / "data")
    torch.save(torch.ones(3), corpus / "durations" / "u9.pt")
    process = start_train(corpus, tmp_path / "out", "--epochs", "1", "--num-workers", "2")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert len(err.strip().splitlines()) == 1
    assert "durations/u9.pt" in err and "train.txt:6" in err


def test_the_only_pitch_statistics_of_a_dataset_are_taken_and_several_are_not_guessed_from(tmp_path: Path):
    corpus = make_corpus(tmp_path / "data")
    (corpus / "pitch_char_stats__train.json").rename(corpus / "pitch_char_stats__wavs.json")
    run_train(corpus, tmp_path / "one", "--epochs", "1")
    weights = load_checkpoint(tmp_path / "one" / "FastPitch_checkpoint_1.pt").networks["fastpitch"]
    assert (weights["pitch_mean"].item(), weights["pitch_std"].item()) == (200.0, 50.0)
    (corpus / "pitch_char_stats__more.json").write_text('{"mean": 100.0, "std": 10.0}')
    with pytest.raises(InputError, match=r"pitch_char_stats__more\.json.*--pitch-mean-std-file"):
        run_train(corpus, tmp_path / "two", "--epochs", "1")


def test_too_few_utterances_for_one_update_says_what_to_lower(corpus: Path, tmp_path: Path):
    with pytest.raises(InputError, match=r"20 utterances, fewer than one update takes: 64 .*lower --batch-size"):
        run_train(corpus, tmp_path, "--epochs", "1", "-bs", "16", "--grad-accumulation", "4")


def test_loader_processes_change_nothing(corpus: Path, whole_run: Path, tmp_path: Path):
    assert run_train(corpus, tmp_path, *RUN, "--num-workers", "2") == 0
    assert_same_weights(whole_run, tmp_path / "FastPitch_checkpoint_4.pt")


def test_a_kill_while_a_checkpoint_is_written_leaves_the_previous_one(corpus: Path, tmp_path: Path):
    process = start_train(corpus, tmp_path, "--epochs", "400", "--steps-per-checkpoint", "1")
    _wait_for_line(process, "saved")
    time.sleep(0.5)
    process.kill()
    process.communicate()
    readable = [path for path in tmp_path.glob("FastPitch_checkpoint_*.pt") if load_checkpoint(path)]
    assert 1 <= len(readable) <= 4
