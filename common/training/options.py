"""Options that all models' training shares (data, length, batches, output), and the parser for a model."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.audio.options import AudioOptions
from common.cli import ArgumentParser, ComputingOptions, names_given
from common.errors import OptionError
from common.files import read_lines
from common.options import add_options, option
from common.registry import ModelSpec, available_models, get_model

_computing = partial(option, section="computing")
_saving = partial(option, section="checkpoints, validation and logs")
_optimization = partial(option, section="optimization")


@dataclass(frozen=True)
class RunOptions:
    """The data, length, batches and output of a run.

    A model's recipe is an instance whose values are the defaults of the model's options.
    """

    output: Path = option(
        None, "folder for checkpoints and logs", names=("-o",), required=True, published=("--output-dir",)
    )
    training_files: tuple[Path, ...] = option(
        None, "lists of utterances to train on", required=True, metavar="FILE", published=("--train-manifests",)
    )
    validation_files: tuple[Path, ...] = option(
        None, "lists of utterances to validate on", required=True, metavar="FILE", published=("--val-manifests",)
    )
    dataset_path: Path = option(
        Path(), "folder that paths in the lists are relative to", names=("-d",), published=("--dataset-dir",)
    )
    resume: bool = option(
        False, "resume from the last checkpoint in --output", variable="RESUME", published=("--resume-from-last",)
    )
    epochs: int = option(1, "total number of epochs", least=1, variable="EPOCHS")
    batch_size: int = option(1, "utterances (or segments) per process and micro-batch", least=1, names=("-bs",))
    gradient_accumulation_steps: int = option(
        1,
        "micro-batches per update; only the product of processes, batch size and this number affects the result",
        least=1,
        variable="GRAD_ACCUMULATION",
        names=("--grad-accumulation",),
        published=("--grad-accumulation-steps", "GRAD_ACCUMULATION_STEPS"),
    )
    learning_rate: float = option(
        1e-3, "learning rate before scheduling", above=0, names=("-lr",), variable="LEARNING_RATE", published=("--lr",)
    )
    seed: int = option(1234, "seed of weights, dropout and data order", least=0, most=2**63 - 1, variable="SEED")
    compile: bool = _computing(False, "compile the networks with torch.compile")
    num_workers: int | None = _computing(None, "loader processes (default: 6 with --cuda, else 0)", least=0, most=1024)
    sorted_updates: int | None = _computing(
        None,
        "sort the utterances of N updates by length: less padding, but each update sees similar lengths (default: 4 "
        "with --cuda if batches are padded, else 1)",
        least=1,
        metavar="N",
    )
    checkpoint_path: Path | None = _saving(None, "checkpoint to resume", variable="CHECKPOINT", published=("--ckpt",))
    epochs_this_job: int = _saving(
        0, "stop after this many epochs, to continue with --resume; 0: no limit", least=0, variable="EPOCHS_THIS_JOB"
    )
    epochs_per_checkpoint: int = _saving(
        50,
        "epochs between checkpoints",
        least=1,
        variable="EPOCHS_PER_CHECKPOINT",
        names=("--checkpoint-interval",),
        published=("--save-frequency", "CHECKPOINT_INTERVAL", "SAVE_FREQUENCY"),
    )
    minutes_per_checkpoint: float = _saving(
        15.0, "maximum minutes between checkpoints, even mid-epoch; 0: off", least=0, variable="MINUTES_PER_CHECKPOINT"
    )
    steps_per_checkpoint: int = _saving(0, "updates between additional checkpoints; 0: none", least=0)
    keep_checkpoints: int | None = _saving(
        3,
        "keep the last N checkpoints of finished epochs, the best one and the milestones; all: keep all",
        least=1,
        words={"all": None},
        metavar="N",
        variable="KEEP_CHECKPOINTS",
    )
    keep_best: str = _saving("loss", "validation metric for the best checkpoint; lower is better", metavar="METRIC")
    patience: int = _saving(0, "stop after N validations without a new best; 0: never", least=0, metavar="N")
    keep_milestones: tuple[int, ...] = _saving(
        (), "keep the checkpoints of these epochs", least=1, empty=True, metavar="EPOCH", variable="KEEP_MILESTONES"
    )
    validation_interval: int = _saving(
        1,
        "epochs between validations",
        least=1,
        variable="VALIDATION_INTERVAL",
        published=("--validation-freq", "VAL_INTERVAL"),
    )
    validation_steps: int = _saving(
        0, "updates between additional validations; 0: none", least=0, published=("--eval-frequency",)
    )
    samples_interval: int | None = _saving(
        None, "epochs between plots and audio (default: at each validation)", least=1, variable="SAMPLES_INTERVAL"
    )
    log_file: Path | None = _saving(None, "JSON log (default: OUTPUT/nvlog.json)", writes=True, variable="LOG_FILE")
    from_checkpoint: Path | None = _saving(
        None, "checkpoint to start a new training from, ours or published", published=("--init-from-checkpoint",)
    )
    optimizer: str = _optimization("adam", "optimizer", choices=("adam", "adamw", "lamb", "novograd"))
    weight_decay: float = _optimization(0.0, "weight decay, for all parameters", least=0, variable="WEIGHT_DECAY")
    grad_clip_thresh: float = _optimization(
        float("inf"),
        "maximum gradient norm; inf or none: no clipping",
        above=0,
        words={"inf": float("inf"), "none": float("inf")},
        variable="GRAD_CLIP",
        published=("--grad-clip",),
    )
    ema_decay: float = _optimization(
        0.0, "decay of the EMA weights; 0: keep none", least=0, below=1, variable="EMA", published=("--ema",)
    )


@dataclass(frozen=True)
class ModelOptions:
    """Base class of the models' TrainingOptions; its values are those of RunOptions."""

    dataset_path: Path = Path()
    seed: int = 0


@dataclass(frozen=True)
class InputMelOptions(ModelOptions):
    """Mels to train a vocoder on instead of those computed from its recordings."""

    fine_tuning: bool = option(False, "train a vocoder on the mels in --input-mels-dir and on unscaled recordings")
    input_mels_dir: Path | None = option(
        None,
        "folder with each recording's mel (default: compute mels)",
        variable="INPUT_MELS_DIR",
        published=("FINE_TUNE_DIR",),
    )
    for_voice: Path | None = option(None, "checkpoint of the text-to-mel model to train for, ours or published")

    def check_fine_tuning(self) -> None:
        """Raise OptionError for fine-tuning without mels."""
        if self.fine_tuning and self.input_mels_dir is None:
            raise OptionError("--fine-tuning needs --input-mels-dir, with mels from scripts/extract_fine_tune_mels.sh")


def removed_options() -> dict[str, str]:
    """Return the published toolkits' options that no longer exist, each with the reason or what to do instead."""
    rows = read_lines(Path(__file__).with_name("removed_options.tsv"))
    return {name: answer for names, answer in (row.split("\t") for row in rows) for name in names.split()}


def _model_parser() -> ArgumentParser:
    parser = ArgumentParser(add_help=False)
    names, text = available_models(), "model to train"
    parser.add_argument("-m", "--model", "--model-name", default=names[0], choices=names, metavar="MODEL", help=text)
    return parser


def build_training_parser(spec: ModelSpec) -> ArgumentParser:
    """Build train.py's parser for a model: the common options, with its recipe as defaults, and its own."""
    epilog = f"These are the options for {spec.name}; --model MODEL --help shows those for another model."
    parser = ArgumentParser(description="Train a model.", parents=[_model_parser()], prog="train.py", epilog=epilog)
    add_options(parser, RunOptions, defaults=vars(spec.arg_parser.RECIPE))
    add_options(parser, ComputingOptions, title="computing")
    if spec.role != "recognizer":  # recognizers have their own features
        about = "mel-spectrogram settings (default: the value in brackets, or one that fits --sampling-rate)"
        add_options(parser, AudioOptions, title=f"audio: {about}")
    add_options(parser, spec.arg_parser.TrainingOptions, title=spec.name)
    parser.answer_published(removed_options())
    return parser


def parse_command_line(argv: Sequence[str] | None = None) -> tuple[argparse.Namespace, set[str]]:
    """Parse a command line of train.py with the options of its model; also return the names of the given options.

    Exits on --help and wrong options.
    """
    parser = build_training_parser(get_model(_model_parser().parse_known_args(argv)[0].model))
    args, actions = parser.parse_args(argv), parser._option_string_actions
    return args, {actions[name].dest for name in names_given(argv) if name in actions}
