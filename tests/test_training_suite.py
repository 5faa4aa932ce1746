"""What `train.py` promises of every model: exact resume, one update however it is cut, precision, EMA and logs."""

import re
import signal
from pathlib import Path

import pytest
import torch
from kills import Forked, at_write, finish
from ranks import free_port, run_ranks
from tiny_models import (
    DECAY,
    EPOCHS,
    MODELS,
    RUN,
    TRAININGS,
    KilledError,
    Runs,
    TinyModel,
    assert_same_state,
    at_iteration,
    logged,
    of_every_model,
    of_every_training,
    without_dropout,
    without_samples,
    words_of_cut,
)

import train
from common.checkpoints.checkpoint import saved_checkpoints
from common.checkpoints.reading import load_checkpoint
from common.errors import InputError, OptionError
from common.logger import read_log


@pytest.fixture
def runs(make_once, corpora: Path, model: TinyModel) -> Runs:
    return Runs(make_once, corpora, model)


@of_every_training
def test_log_lines_and_the_json_log_read_as_documented(model: TinyModel, runs: Runs):
    lines = (runs.plain / "stdout.txt").read_text().splitlines()
    iterations = [line for line in lines if "| iter " in line]
    n_steps = len(iterations) // EPOCHS
    head = rf"DLL \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{{6}} - epoch    1 \| iter   1/  {n_steps} \| "
    assert re.fullmatch(head + model.log_line, iterations[0]), iterations[0]
    records = [record for record in read_log(runs.plain / "nvlog.json") if record["type"] == "LOG"]
    steps = [record["step"] for record in records if len(record["step"]) == 3]
    assert steps == [[epoch, step, n_steps] for epoch in range(1, EPOCHS + 1) for step in range(1, n_steps + 1)]
    for name in model.logged:
        of_updates = logged(runs.plain, f"train_{name}")
        assert len(of_updates) == EPOCHS * n_steps
        for epoch, average in enumerate(logged(runs.plain, f"avg_train_{name}")):
            of_epoch = of_updates[epoch * n_steps : (epoch + 1) * n_steps]
            assert average == pytest.approx(sum(of_epoch) / n_steps, rel=1e-6)
    for subset in ("val", "val_ema"):  # after epoch 2 and the last
        assert all(len(logged(runs.plain, f"{subset}_{name}")) == 2 for name in (*model.validated, "took"))
    assert all(value > 0 for value in logged(runs.plain, "avg_train_frames/s"))
    assert logged(runs.plain, "train_took")[0] > 0


@of_every_model
def test_examples_are_shown_in_tensorboard(model: TinyModel, runs: Runs):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(runs.untrained / "val"), size_guidance={"images": 0, "audio": 0})
    board.Reload()
    tags = board.Tags()
    assert {tag.split("/")[0] for tag in tags["images"]} == set(model.images)
    assert {tag.split("/")[0] for tag in tags["audio"]} == set(model.sounds)
    assert set(model.validated) <= set(tags["scalars"])
    assert re.search(model.texts, (runs.untrained / "stdout.txt").read_text())


@pytest.mark.parametrize("model", TRAININGS, ids=lambda model: model.label)
def test_a_run_that_is_killed_stopped_and_split_into_jobs_is_the_uninterrupted_one_bit_for_bit(
    model: TinyModel, runs: Runs, corpora: Path, tmp_path: Path
):
    def resume(*words: str) -> int:
        return model.train(corpora, tmp_path, *RUN, *words, "--resume")

    def die() -> None:
        raise KilledError

    n_steps = len(logged(runs.plain, model.followed_loss)) // EPOCHS
    stop = signal.SIGHUP if model is MODELS[0] else signal.SIGTERM
    with without_samples():
        with at_iteration(3, die), pytest.raises(KilledError):
            model.train(corpora, tmp_path, *RUN, "--steps-per-checkpoint", "2")
        assert [path.name for path in tmp_path.glob("*.pt")] == [f"{model.name}_checkpoint_1_iter2.pt"]
        assert resume("--epochs-this-job", "1") == 0
        assert model.checkpoint(tmp_path, 1).is_file() and not model.checkpoint(tmp_path, 2).exists()
        assert_same_state(model.checkpoint(runs.plain, 1), model.checkpoint(tmp_path, 1))
        # Loader processes change nothing.
        with at_iteration(n_steps + 1, lambda: signal.raise_signal(stop)):
            assert resume("--num-workers", "1") == 128 + stop
        assert (tmp_path / f"{model.name}_checkpoint_2_iter{n_steps + 3}.pt").is_file()
        assert f"stopped by {stop.name}; add --resume to " in (tmp_path / "stdout.txt").read_text()
        assert resume() == 0
        assert_same_state(model.checkpoint(runs.plain, EPOCHS), model.checkpoint(tmp_path, EPOCHS))
        assert resume() == 0
    assert f"nothing to train: {EPOCHS} epochs are done" in (tmp_path / "stdout.txt").read_text()
    for name in (f"avg_{model.followed_loss}", f"val_{model.validated[0]}", f"val_ema_{model.validated[0]}"):
        assert logged(tmp_path, name)[-2:] == logged(runs.plain, name)[-2:]


@pytest.mark.parametrize("model", MODELS[:1], ids=lambda model: model.name)
def test_a_process_killed_at_any_moment_leaves_checkpoints_to_resume_from(
    model: TinyModel, runs: Runs, corpora: Path, tmp_path: Path
):
    words = "--minutes-per-checkpoint 1e-6 --epochs-per-checkpoint 50 --num-workers 2"  # in every update, by the clock
    kill = at_write(signal.SIGKILL, tmp_path, count=6)
    run = Forked("train", *model.words(corpora, tmp_path, *RUN, *words.split()), signal_at=kill)
    assert finish(run)[0] == -signal.SIGKILL, "and no loader process outlives it"
    saved = [load_checkpoint(path).training["iteration"] for path in saved_checkpoints(tmp_path, model.name)]
    assert saved == [4, 5]
    assert len(list(tmp_path.glob(".*.tmp"))) == 1, "the one that was being written"
    with without_samples():
        assert model.train(corpora, tmp_path, *RUN, "--resume") == 0
    assert not list(tmp_path.glob(".*.tmp"))
    assert_same_state(model.checkpoint(runs.plain, EPOCHS), model.checkpoint(tmp_path, EPOCHS))


_PROGRAM = """
import os, sys
from pathlib import Path
import torch
from tiny_models import TRAININGS, without_dropout, without_samples, words_of_cut
import common.audio, common.data, common.text, train

torch.set_num_threads(1)
for model, port in zip(TRAININGS, PORTS):
    os.environ["MASTER_PORT"] = str(port)
    with without_samples(), without_dropout(model):
        folder = Path(sys.argv[1]) / model.label
        assert train.main(model.words(Path("CORPORA"), folder, *words_of_cut(model, "processes"))) == 0
# The second process's clock never asks for a checkpoint.
os.environ["MASTER_PORT"] = str(PORTS[-1])
minutes = "1e-6" if os.environ["RANK"] == "0" else "0"
words = f"--epochs 2 --epochs-per-checkpoint 9 --validation-interval 9 --minutes-per-checkpoint {minutes}".split()
with without_samples():
    assert TRAININGS[0].train(Path("CORPORA"), Path(sys.argv[1]) / "by_clock", *words) == 0
"""


@pytest.fixture(scope="session")
def processes(make_once, corpora: Path) -> Path:
    """A folder a model: its run of cut batches in two processes, which train all models one after the other."""
    program = _PROGRAM.replace("CORPORA", str(corpora)).replace("PORTS", str([free_port() for _ in (*TRAININGS, None)]))
    return make_once("processes", lambda folder: run_ranks(program, folder))


@of_every_training
def test_one_global_batch_is_one_update_however_it_is_cut(model: TinyModel, runs: Runs, processes: Path):
    accumulated = runs.cut("accumulated")
    # Batch norm's statistics are those of a micro-batch: it is the same one in whatever process, but not in a whole.
    others = [processes / model.label, *([] if model.batch_norm else [runs.cut("whole")])]
    expected = load_checkpoint(model.checkpoint(accumulated, 3))
    for folder in others:
        for name in model.logged:
            losses = logged(accumulated, f"train_{name}")
            assert len(losses) == 3
            assert logged(folder, f"train_{name}") == pytest.approx(losses, rel=5e-5, abs=1e-6)
        for name in () if model.batch_norm else model.validated:
            assert logged(folder, f"val_{name}") == pytest.approx(logged(accumulated, f"val_{name}"), rel=5e-5)
        found = load_checkpoint(model.checkpoint(folder, 3))
        assert found.training["iteration"] == expected.training["iteration"] == 3
        for network, state in expected.networks.items():
            for key, value in state.items():
                _assert_close(key, found.networks[network][key], value)
        for network, state in expected.ema.items():
            for key, value in state.items():
                _assert_close(key, found.ema[network][key], value)


def test_the_first_processes_clock_decides_when_all_write_a_checkpoint(processes: Path):
    out = (processes / "by_clock" / "stdout.txt").read_text()
    saved = re.findall(r"saved \S+/FastPitch_checkpoint_(\S+)\.pt", out)
    assert saved == ["1_iter1", "1_iter2", "2_iter3", "2"]
    assert [path.name for path in (processes / "by_clock").glob("*.pt")] == ["FastPitch_checkpoint_2.pt"]


def _assert_close(key: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    if "running_" in key or "num_batches" in key:
        return  # of the first process's micro-batches
    if key.endswith(("convolutions.0.0.conv.bias", "convolutions.1.0.conv.bias")):
        return  # batch norm subtracts it again: its gradient is rounding alone, which Adam scales up to a step
    if key.endswith("qkv_net.bias"):
        # Softmax does not see the keys' bias: its gradient is rounding alone, which LAMB scales up to a step.
        expected, found = (torch.cat([bias.chunk(3)[0], bias.chunk(3)[2]]) for bias in (expected, found))
    tolerance = {"atol": 5e-5, "rtol": 1e-4}
    if key.startswith("filter.end."):
        # The gradient of frequencies with next to no sound is rounding alone, which Adam scales up to a step.
        close = torch.isclose(found, expected, **tolerance)
        assert close.float().mean() > 0.99, key
        found, expected = found[close], expected[close]
    torch.testing.assert_close(found, expected, **tolerance, msg=lambda text: f"{key}: {text}")


@of_every_training
def test_ema_weights_start_as_a_copy_and_average_those_of_every_update(model: TinyModel, runs: Runs):
    run = runs.cut("accumulated")
    average = load_checkpoint(model.checkpoint(runs.untrained, 1)).networks
    for epoch in (1, 2, 3):  # of one update each
        checkpoint = load_checkpoint(model.checkpoint(run, epoch))
        assert set(checkpoint.ema) == set(list(checkpoint.networks)[:1]), "of the network that infers alone"
        for name in checkpoint.ema:
            for key, value in checkpoint.networks[name].items():
                if not value.is_floating_point() or "running_" in key or key.endswith(("_u", "_v")):
                    continue  # statistics of the untrained network are those of another forward pass
                expected = DECAY * average[name][key] + (1 - DECAY) * value
                torch.testing.assert_close(checkpoint.ema[name][key], expected, atol=1e-6, rtol=1e-5)
        average = checkpoint.ema
    figures = (f"val_{model.validated[0]}", f"val_ema_{model.validated[0]}")
    current, averaged = (logged(run, name) for name in figures)
    assert len(current) == len(averaged) == 3 and current != averaged


@of_every_training
def test_bfloat16_trains_nearly_as_float32_and_resumes_bit_for_bit(
    model: TinyModel, runs: Runs, corpora: Path, tmp_path: Path
):
    half = runs.cut("accumulated", "--amp", "--amp-dtype", "bfloat16")
    name = model.followed_loss
    full_losses, half_losses = logged(runs.cut("accumulated"), name), logged(half, name)
    assert half_losses == pytest.approx(full_losses, rel=model.bfloat16) and half_losses != full_losses
    words = [*words_of_cut(model, "accumulated"), "--amp", "--amp-dtype", "bfloat16", "--resume"]
    model.checkpoint(tmp_path, 2).write_bytes(model.checkpoint(half, 2).read_bytes())
    with without_samples(), without_dropout(model):
        assert model.train(corpora, tmp_path, *words) == 0
    assert_same_state(model.checkpoint(half, 3), model.checkpoint(tmp_path, 3))


@of_every_model
def test_a_folder_with_checkpoints_and_another_architecture_are_refused(
    model: TinyModel, runs: Runs, corpora: Path, tmp_path: Path
):
    message = rf"already contains checkpoints of {model.name}.*_{EPOCHS}\.pt; add --resume"
    with pytest.raises(OptionError, match=message):
        train.main(model.words(corpora, runs.plain, "--epochs", "9"))
    words = [*model.other_architecture.split(), "--checkpoint-path", str(model.checkpoint(runs.plain, EPOCHS))]
    with pytest.raises(InputError, match=model.difference):
        train.main(model.words(corpora, tmp_path, "--epochs", "9", *words))
