"""What scripts/train.sh does: the published training of a model, with what variables change of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from common.audio.options import AudioOptions
from common.cli import ComputingOptions
from common.errors import OptionError
from common.options import read_switch
from common.registry import get_model
from common.training.options import RunOptions
from scripts import launch
from scripts.datasets.make_filelists import audio_list_name
from scripts.launch import GPU, JASPER, MODELS, SPEAKING, given, script
from scripts.variables import Variables

LIBRISPEECH_FOLDER = Path("LibriSpeech")
# What the original scripts set in mixed precision: the batch is what 16 GB hold.
_BATCHES_OF_AMP = {"Tacotron2": 104, "WaveGlow": 10}


def command(environ: Mapping[str, str], words: Sequence[str | Path]) -> list[str | Path]:
    """The command that trains as variables and arguments say; notes on stderr say what was chosen.

    Raises:
        OptionError: a variable has a value that it cannot have.
    """
    own, found, arguments = train.prepare(environ, [str(word) for word in words])
    n_gpus = launch.number_of_gpus(own)
    if read_switch("AMP", found.get("AMP") or "false"):
        own = replace(own, bs=own.bs or _BATCHES_OF_AMP.get(own.model))
        found["GRAD_CLIP"] = found.get("GRAD_CLIP") or ("65504" if own.model == "WaveGlow" else "")
    if own.model == "WaveGlow" and n_gpus:
        found["CUDNN_BENCHMARK"] = found.get("CUDNN_BENCHMARK") or "true"  # all segments have one shape
    recipe = get_model(own.model).arg_parser.RECIPE
    batch, accumulation = own.bs or recipe.batch_size, own.accumulation or recipe.gradient_accumulation_steps
    if own.model == "Jasper" and found.get("BATCH_SIZE"):  # of an update, as published
        if batch % accumulation:
            raise OptionError(f"BATCH_SIZE={batch}: expected a multiple of GRAD_ACCUMULATION={accumulation}")
        batch //= accumulation
    processes, n_processes = launch.launcher(own, n_gpus)
    if own.num_gpus == "auto" and n_gpus == 0:
        launch.note("no GPU: training on the CPU; where memory is short, lower BS and raise GRAD_ACCUMULATION as much")
    options = _lists_of_librispeech(own, found) if own.model == "Jasper" else _lists(own, found, arguments)
    least, most = launch.GLOBAL_BATCHES[own.model]
    if "--from-checkpoint" not in arguments and not least <= n_processes * batch * accumulation <= most:
        launch.note(
            f"note: an update is of {n_processes} x {batch} x {accumulation} utterances (processes x BS x "
            f"GRAD_ACCUMULATION); the published settings are for {least}{f' to {most}' * (most > least)}"
        )
    options += [*given(batch_size=own.bs and batch), *["--cuda"] * min(n_gpus, 1), *train.passed_on(found)]
    return [
        *processes,
        "train.py",
        *given(model=own.model, output=own.output_dir or Path("output")),
        *options,
        *arguments,
    ]


def _lists_of_librispeech(own: Variables, environ: Mapping[str, str]) -> list[str | Path]:
    """Options that name the corpus and lists of Jasper."""
    corpus = own.dataset_path or LIBRISPEECH_FOLDER
    published = [librispeech_manifest(corpus, f"train-{name}") for name in ("clean-100", "clean-360", "other-500")]
    training = own.train_manifests or published
    validation = own.val_manifest or [librispeech_manifest(corpus, "dev-clean")]
    none = ["--keep-milestones"] if environ.get("KEEP_MILESTONES") == "" else []
    return [*given(dataset_path=corpus), "--training-files", *training, "--validation-files", *validation, *none]


def _lists(own: Variables, environ: dict[str, str], arguments: Sequence[str]) -> list[str | Path]:
    """Options that name corpus and lists; variables that follow from the lists are set in ``environ``."""
    corpus, columns, options = own.dataset_path or find_ljspeech(), "audio", given()
    if own.model == "FastPitch":
        columns = _choose_version(own, environ, arguments)
    elif own.model == "Tacotron2":
        columns = "mel_text" if read_switch("LOAD_MEL_FROM_DISK", environ["LOAD_MEL_FROM_DISK"]) else "audio_text"
    elif environ.get("INPUT_MELS_DIR") or environ.get("FINE_TUNE_DIR"):
        options = ["--fine-tuning"]  # on these mels
    training = own.train_filelist or list_path(own, columns, "train")
    validation = own.val_filelist or list_path(own, columns, "val")
    if own.val_filelist is None and training.is_file() and not validation.is_file():
        validation = training  # prepared with N_VAL=0
    if environ.get("INPUT_TYPE") == "char":
        environ.pop("LANGUAGE", None)  # which is of phones
    if environ.get("LANGUAGE") and own.model in ("FastPitch", "Tacotron2"):
        launch.note(f"LANGUAGE={environ['LANGUAGE']}: a voice of eSpeak NG's phones; INPUT_TYPE=char trains on letters")
    if environ.get("INPUT_TYPE") == "phone" and not (environ.get("SYMBOL_SET") or environ.get("LANGUAGE")):
        environ["SYMBOL_SET"] = "arpabet"
    if columns == "mel_dur_pitch_text" and not environ.get("PITCH_MEAN_STD"):
        # named after the list of recordings that the training list is made of
        recordings = training.stem.replace("mel_dur_pitch_text", "audio_text")
        environ["PITCH_MEAN_STD"] = str(corpus / f"pitch_char_stats__{recordings}.json")
    return given(dataset_path=corpus, training_files=training, validation_files=validation) + options


def librispeech_manifest(corpus: Path, subset: str) -> Path:
    """The manifest that scripts/preprocess_librispeech.sh writes of a subset of LibriSpeech."""
    return corpus / f"librispeech-{subset}-wav.json"


def list_path(own: Variables, columns: str, split: str) -> Path:
    """The list that scripts/prepare_dataset.sh makes of a split, by its columns."""
    if columns.endswith("_text"):
        return own.filelists / f"{own.name}_{columns}_{split}_filelist.txt"
    return own.filelists / audio_list_name(own.name, split)


def find_ljspeech() -> Path:
    """LJSpeech's folder; in ./data, where the original HiFi-GAN keeps it, if it is there alone."""
    path, other = Path("LJSpeech-1.1"), Path("data/LJSpeech-1.1")
    if path.is_dir() or not other.is_dir():
        return path
    launch.note(f"note: DATASET_PATH={other}, as there is no {path}")
    return other


def _choose_version(own: Variables, environ: dict[str, str], arguments: Sequence[str]) -> str:
    """The columns of FastPitch's lists; variables of its version are set in ``environ``."""
    path = own.train_filelist or list_path(own, "mel_dur_pitch_text", "train")
    learned = own.learned_alignment == "true"
    if own.learned_alignment == "auto":
        learned = not _gives_durations(path, named=own.train_filelist is not None)
        if learned:
            network = "" if "--from-checkpoint" in arguments else "true"  # of a voice to begin with, its own decides
            environ["ENERGY"] = environ.get("ENERGY") or network
            energy = environ["ENERGY"] or "false"
            launch.note(f"FastPitch 1.1, with learned alignment and ENERGY={energy}: {path} gives no durations")
        else:
            launch.note(f"FastPitch 1.0: {path} gives durations; LEARNED_ALIGNMENT=true trains 1.1 without them")
    environ["LEARNED_ALIGNMENT"] = str(learned).lower()
    return "audio_text" if learned else "mel_dur_pitch_text"


def _gives_durations(path: Path, *, named: bool) -> bool:
    """Whether a list has FastPitch's columns of mel, duration and pitch; the name says so of one that is not there."""
    if not path.is_file():
        return named and "_dur_" in path.name
    with path.open(encoding="utf-8", errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    return re.match(r"(?:[^|]*\.pt\s*\|){3}", first) is not None


@script(
    {
        f"{GPU} nnodes node_rank master_addr port run_id world_size output_dir bs name dataset_path accumulation": (),
        RunOptions: (),
        ComputingOptions: (),
        "filelists train_filelist val_filelist": SPEAKING,
        AudioOptions: SPEAKING,
        "train_manifests val_manifest": JASPER,
        "learned_alignment": ("FastPitch",),
        **{get_model(model).arg_parser.TrainingOptions: (model,) for model in MODELS},
    },
    models=MODELS,
    defaults="OUTPUT_DIR=./output",
    defaults_by_model={"FastPitch": "NUM_SPEAKERS=1", "Tacotron2": "LOAD_MEL_FROM_DISK=true", "Jasper": "SEED=0"},
    removed="DALI_DEVICE DISTRIBUTED PRE_ALLOCATE PAD_TO_MAX_DURATION EVAL_FREQUENCY PREDICTION_FREQUENCY "
    "SAMPLING_RATE",
    default_models={"BATCH_SIZE": "HiFi-GAN"},  # FastPitch 1.0 calls it BS
    names_model=True,
)
def train(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Train a model."""
    launch.exec_or_print(command(environ, words))
