"""Tacotron 2 from the command line: options and defaults, logs of attention, and errors in one line."""

from pathlib import Path

import pytest
from tiny import make_corpus, train_options
from tiny_models import logged
from tiny_tacotron2 import TINY_OPTIONS
from training_setup import parsed, set_up

import train
from common.config import AudioConfig
from tacotron2.model import ModelConfig, build_networks
from tacotron2.training_setup import annealing_schedule, model_config, set_up_networks


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "data", count=12)


def parse(*extra: str):
    lists = ["--training-files", "a", "--validation-files", "b"]
    """Arguments and what training takes of them."""
    words = ["-m", "Tacotron2", "-o", "out", *lists, *extra]
    return parsed(words), set_up(*words)


def test_options_default_to_the_published_model_and_recipe():
    args, setup = parse()
    assert model_config(setup.options, AudioConfig(), setup.text) == ModelConfig()
    assert (args.optimizer, args.learning_rate, args.weight_decay) == ("adam", 1e-3, 1e-6)
    assert (args.grad_clip_thresh, args.epochs, args.epochs_per_checkpoint, args.batch_size) == (1.0, 1501, 50, 48)
    optimization = setup.optimization
    assert (optimization.betas, optimization.eps) == ((0.9, 0.999), 1e-8)
    assert setup.audio == AudioConfig()


@pytest.mark.parametrize(
    ("factor", "rates"), [(0.1, [1.0, 0.1, 0.01, 0.001]), (0.3, [1.0, 0.3, 0.1, 0.03]), (0.5, [1.0, 0.5, 0.25, 0.125])]
)
def test_the_rate_falls_after_the_annealing_steps(factor: float, rates: list[float]):
    schedule = annealing_schedule(2.0, steps=[500, 1000, 1500], factor=factor)
    for epoch, rate in zip((1, 500, 501, 1000, 1001, 1500, 1501), [0, 0, 1, 1, 2, 2, 3]):
        assert schedule(1, epoch) == pytest.approx(2.0 * rates[rate])


def test_the_factor_follows_the_precision():
    def late(*extra: str) -> float:
        return parse(*extra)[1].optimization.schedule(1, 501)

    assert late() == pytest.approx(1e-4)
    assert late("--amp") == pytest.approx(3e-4)
    assert late("--amp", "--anneal-factor", "0.1") == pytest.approx(1e-4)
    assert late("--anneal-steps") == pytest.approx(1e-3)


def test_batch_norm_starts_between_0_and_1_unless_disabled():
    for extra, uniform in (([], True), (["--disable-uniform-initialize-bn-weight"], False)):
        setup = parse(*TINY_OPTIONS, *extra)[1]
        config = model_config(setup.options, setup.audio, setup.text)
        networks = build_networks(config, setup.audio, setup.text)
        set_up_networks(networks, setup.options, text=setup.text, new=True)
        weight = networks["tacotron2"].encoder.convolutions[0][1].weight.detach()
        assert bool(((weight >= 0) & (weight < 1)).all()) is uniform
        assert bool((weight == 1).all()) is not uniform


def test_attention_is_logged_and_drawn(corpus: Path, tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = ("--epochs", "6", "--samples-interval", "50", "-lr", "0.01")
    words = train_options(corpus, tmp_path)[:8]
    assert train.main([*words, "--load-mel-from-disk", "-bs", "4", *TINY_OPTIONS, *options]) == 0
    losses = logged(tmp_path, "avg_train_mel_loss")
    assert losses[-1] < 0.8 * losses[0]
    assert len(logged(tmp_path, "val_attention_diagonality")) == len(logged(tmp_path, "val_attention_focus")) == 6
    board = EventAccumulator(str(tmp_path / "val"))
    board.Reload()
    assert len([tag for tag in board.Tags()["images"] if tag.startswith("utterance/")]) == 2
