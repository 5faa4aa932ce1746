"""Tiny models of all packages, and how ``train.py`` trains them: the table of the tests of training."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import tiny
import tiny_tacotron2
import tiny_vocoder
import torch
from sung_words import make_sung_corpus

import train
from common.checkpoints.reading import load_checkpoint
from common.logger import read_log
from common.training.engine import Engine
from common.training.trainer import Trainer

EPOCHS = 3
KEPT = "--epochs-per-checkpoint 1 --keep-milestones 1 2 3"
RUN = f"--epochs {EPOCHS} --ema-decay 0.9 {KEPT} --validation-interval 2".split()
CUTS = {"whole": ("16", "1"), "accumulated": ("4", "4"), "processes": ("4", "2")}  # batch size and accumulation
DECAY = 0.9
RUN_OF_CUTS = f"--epochs 3 --ema-decay {DECAY} {KEPT} --validation-interval 1".split()
NUMBER = r"\d+\.\d+"


@dataclass(frozen=True)
class TinyModel:
    """A model small enough to train in a second, its corpus, and what is to be seen in its logs."""

    name: str  # as `train.py --model`
    corpus: str  # what `make_corpus` makes for it; models may share one
    architecture: str  # options of train.py
    other_architecture: str  # one option that a checkpoint of this architecture does not fit
    difference: str  # regular expression of the message that refuses it
    options: str  # of train.py, beyond the architecture
    without_dropout: str = ""  # options that turn dropout off
    dropout: tuple[str, ...] = ()  # constants of the package that no option turns off
    # Whether batch norm makes what an update learns depend on its micro-batches, though not on the process that
    # computes each of them.
    batch_norm: bool = False
    log_line: str = ""  # regular expression of an update's line after `iter  1/  4 | `
    logged: tuple[str, ...] = ()  # losses of training in nvlog.json that every update has, without `train_`
    validated: tuple[str, ...] = ()  # figures of validation in nvlog.json, without `val_`
    images: tuple[str, ...] = ("utterance",)  # kinds of images in TensorBoard
    sounds: tuple[str, ...] = ("audio_generated", "audio_recorded")  # kinds of audio
    texts: str = ""  # what stdout shows of an example
    bfloat16: float = 0.03  # how far losses of an update in bfloat16 may lie from those in float32
    variant: str = ""  # of a model that is here more than once

    @property
    def label(self) -> str:
        """What names its tests and runs."""
        return self.name + self.variant

    @property
    def followed_loss(self) -> str:
        """The loss that tests compare."""
        return f"train_{self.logged[0]}"

    def words(self, corpora: Path, output: Path, *extra: str) -> list[str]:
        """Words after ``train.py``; later options take precedence."""
        folder = corpora / self.corpus
        lists = ["--training-files", str(folder / "train.txt"), "--validation-files", str(folder / "val.txt")]
        config = ["--model-config", str(folder / "config.yaml")] if self.corpus == "sung" else []
        own = [*self.architecture.split(), *self.options.split()]
        return ["-m", self.name, "-o", str(output), "-d", str(folder), *lists, *config, *own, "-bs", "4", *extra]

    def train(self, corpora: Path, output: Path, *extra: str) -> int:
        """Train in this process; returns the exit status. ``output/stdout.txt`` gets what is printed."""
        output.mkdir(parents=True, exist_ok=True)
        with (output / "stdout.txt").open("a") as file, contextlib.redirect_stdout(file):
            return train.main(self.words(corpora, output, *extra))

    def checkpoint(self, output: Path, epoch: int) -> Path:
        """The checkpoint at the end of an epoch."""
        return output / f"{self.name}_checkpoint_{epoch}.pt"


def make_corpora(folder: Path) -> None:
    """The corpora of all tiny models: 16 utterances to train on, or 24, and 4 or 6 to validate on."""
    tiny.make_corpus(folder / "features", count=20)
    tiny_vocoder.make_recordings(folder / "recordings", count=20)
    make_sung_corpus(folder / "sung")


MODELS = (
    TinyModel(
        "FastPitch",
        corpus="features",
        architecture=" ".join(tiny.TINY_OPTIONS),
        other_architecture="--in-fft-n-layers 2",
        difference="in_fft_n_layers: 1",
        options="--warmup-steps 10 -lr 0.1",
        without_dropout=(
            "--p-in-fft-dropout 0 --p-in-fft-dropatt 0 --p-out-fft-dropout 0 --p-out-fft-dropatt 0 "
            "--p-dur-predictor-dropout 0 --p-pitch-predictor-dropout 0"
        ),
        log_line=(
            rf"loss +{NUMBER} \| mel loss +{NUMBER} \| dur loss +{NUMBER} \| pitch loss +{NUMBER} \| "
            rf"lrate 3\.16e-03 \| took {NUMBER} s"
        ),
        logged=("mel_loss", "duration_predictor_loss", "pitch_loss", "loss"),
        validated=("loss", "mel_loss"),
        sounds=("audio_predicted", "audio_target"),
    ),
    TinyModel(
        "HiFi-GAN",
        corpus="recordings",
        architecture=" ".join(tiny_vocoder.TINY_OPTIONS[2:-2]),
        other_architecture="--mpd-periods 2 5",
        difference=r"mpd_periods: \[2, 3\] .*\[2, 5\]",
        options="--segment-size 2048",
        log_line=(
            rf"d loss +{NUMBER} \| g loss +{NUMBER} \| mel loss +{NUMBER} \| {NUMBER} frames/s \| took {NUMBER} s \| "
            r"g lr 3\.00e-04 \| d lr 3\.00e-04"
        ),
        logged=("d_loss", "g_loss", "mel_loss", "adversarial_loss", "feature_loss"),
        validated=("mel_loss",),
    ),
    TinyModel(
        "WaveGlow",
        corpus="recordings",
        architecture="--n-mel-channels 8 --flows 4 --early-every 2 --wn-layers 2 --wn-channels 16",
        other_architecture="--wn-channels 8",
        difference="wn_channels: 16 .*, 8 ",
        options="--segment-length 1200",
        log_line=rf"loss +-?{NUMBER} \| {NUMBER} frames/s \| took {NUMBER} s \| lrate 1\.00e-04",
        logged=("loss", "likelihood_loss"),
        validated=("loss",),
    ),
    TinyModel(
        "Tacotron2",
        corpus="features",
        architecture=" ".join(tiny_tacotron2.TINY_OPTIONS[2:]),
        other_architecture="--prenet-dim 8",
        difference="prenet_dim: 16 .*, 8 ",
        options="--load-mel-from-disk --gradient-accumulation-steps 1",
        without_dropout="--p-attention-dropout 0 --p-decoder-dropout 0",
        dropout=("tacotron2.decoder.PRENET_DROPOUT", "tacotron2.layers._DROPOUT"),
        batch_norm=True,
        log_line=(
            rf"loss +{NUMBER} \| mel loss +{NUMBER} \| postnet loss +{NUMBER} \| gate loss +{NUMBER} \| "
            rf"lrate 1\.00e-03 \| took {NUMBER} s"
        ),
        logged=("mel_loss", "mel_postnet_loss", "gate_loss", "loss"),
        validated=("loss", "mel_loss", "mel_postnet_loss", "gate_loss", "attention_diagonality"),
        sounds=("audio_predicted", "audio_target"),
    ),
    TinyModel(
        "Jasper",
        corpus="sung",
        architecture="",
        other_architecture="--override-config jasper.encoder.blocks.0.filters=32",
        difference=r"blocks\[0\]\.filters: ",
        options="--gradient-accumulation-steps 1 --lr-policy polynomial --warmup-epochs 1 --hold-epochs 20 -bs 6",
        without_dropout=" ".join(f"--override-config jasper.encoder.blocks.{i}.dropout=0.0" for i in (0, 1)),
        batch_norm=True,
        log_line=rf"loss +{NUMBER} \| {NUMBER} frames/s \| took {NUMBER} s \| lrate 2\.86e-03",
        logged=("ctc_loss", "loss"),
        validated=("loss", "wer", "cer"),
        sounds=("audio_recorded",),
        texts=" recogni[sz]ed: ",
    ),
    TinyModel(
        "Harmonic",
        corpus="recordings",
        architecture="--n-mel-channels 8 --channels 8 --layers 1 --pitch-channels 8",
        other_architecture="--channels 16",
        difference="n_channels: 8 .*, 16 ",
        options="--segment-frames 16 -lr 0.02",
        log_line=(
            rf"loss +{NUMBER} \| stft loss +{NUMBER} \| mel loss +{NUMBER} \| cents +{NUMBER} \| "
            rf"{NUMBER} frames/s \| took {NUMBER} s \| lrate 4\.00e-04"
        ),
        logged=("loss", "stft_loss", "mel_loss", "pitch_loss", "voicing_loss"),
        validated=("loss", "stft_loss", "mel_loss", "pitch_loss", "voicing_loss"),
    ),
)
HARMONIC = MODELS[-1]
TRAININGS = (
    *MODELS,
    replace(
        HARMONIC,
        variant="_adversarial",
        architecture=f"{HARMONIC.architecture} --adversarial {' '.join(tiny_vocoder.TINY_DISCRIMINATORS)}",
        log_line=HARMONIC.log_line.replace(r"stft loss", rf"d loss +{NUMBER} \| stft loss"),
        logged=(*HARMONIC.logged, "d_loss", "adversarial_loss", "feature_loss"),
    ),
)
of_every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.label)
of_every_training = pytest.mark.parametrize("model", TRAININGS, ids=lambda model: model.label)


class Runs:
    """Runs of a model that nothing interrupts, each trained when a test first asks for it."""

    def __init__(
        self, make_once: Callable[[str, Callable[[Path], None]], Path], corpora: Path, model: TinyModel
    ) -> None:
        self._make_once, self._corpora, self._model = make_once, corpora, model

    def _train(self, name: str, *words: str, samples: bool = False) -> Path:
        def make(folder: Path) -> None:
            with without_samples(not samples):
                assert self._model.train(self._corpora, folder, *words) == 0

        return self._make_once(f"{self._model.label}_{name}", make)

    @property
    def plain(self) -> Path:
        """Three epochs, with a checkpoint each."""
        return self._train("plain", *RUN)

    @property
    def untrained(self) -> Path:
        """One update that changes nothing, and samples in TensorBoard."""
        words = "--epochs 1 -lr 1e-12 --min-lr 0" if self._model.name == "Jasper" else "--epochs 1 -lr 1e-12"
        return self._train("untrained", *words.split(), "--weight-decay", "0", "-bs", "16", samples=True)

    def cut(self, name: str, *words: str) -> Path:
        """Three updates of 16 utterances each, computed by one process in such micro-batches."""
        with without_dropout(self._model):
            return self._train("_".join([name, *words]), *words_of_cut(self._model, name), *words)


def words_of_cut(model: TinyModel, name: str) -> list[str]:
    """Options of one of ``CUTS``."""
    size, accumulation = CUTS[name]
    cut = ["-bs", size, "--gradient-accumulation-steps", accumulation]
    return [*RUN_OF_CUTS, *model.without_dropout.split(), *cut]


def logged(output: Path, name: str) -> list[float]:
    """Every value of a figure in a run's nvlog.json, in order."""
    records = [record for record in read_log(output / "nvlog.json") if record["type"] == "LOG"]
    return [record["data"][name] for record in records if name in record["data"]]


def state_of(path: Path) -> dict[str, object]:
    """Weights, buffers, EMA weights, and the state of optimizers and random numbers of a checkpoint, by name."""
    checkpoint = load_checkpoint(path)
    training = {key: checkpoint.training[key] for key in ("iteration", "epoch", "optimizers", "random", "sums")}
    training["scaler"] = checkpoint.training.get("scaler")
    return _flatten({"networks": checkpoint.networks, "ema": checkpoint.ema, "training": training})


def _flatten(value: object, name: str = "") -> dict[str, object]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else None
    if items is None:
        return {} if value is None or isinstance(value, str) else {name: value}
    return {key: leaf for part, inner in items for key, leaf in _flatten(inner, f"{name}.{part}").items()}


def assert_same_state(first: Path, second: Path) -> None:
    """Two checkpoints are equal bit for bit."""
    ours, theirs = state_of(first), state_of(second)
    assert set(ours) == set(theirs)
    assert any(key.startswith(".ema.") for key in ours) and any(".optimizers." in key for key in ours)
    for key, value in ours.items():
        assert torch.equal(torch.as_tensor(value), torch.as_tensor(theirs[key])), key


class KilledError(Exception):
    """Stands for the end of the process."""


@contextlib.contextmanager
def at_iteration(iteration: int, act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` before the update that follows so many."""
    step = Engine.step

    def step_or_act(engine: Engine, *args, **kwargs):
        if engine.iteration == iteration:
            act()
        return step(engine, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "step", step_or_act)
        yield


@contextlib.contextmanager
def without_dropout(model: TinyModel) -> Iterator[None]:
    """No dropout beyond what `TinyModel.without_dropout` turns off."""
    with pytest.MonkeyPatch.context() as patch:
        for name in model.dropout:
            patch.setattr(name, 0.0)
        yield


@contextlib.contextmanager
def without_samples(apply: bool = True) -> Iterator[None]:
    """Plots and Griffin-Lim take longer than all else in a tiny run; one run of each model keeps them."""
    with pytest.MonkeyPatch.context() as patch:
        if apply:
            patch.setattr(Trainer, "_show_examples", lambda *_: None)
        yield
