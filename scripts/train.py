"""What scripts/train.sh does: the published training of a model, with what variables change of it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.audio.options import AudioOptions
from common.errors import OptionError
from common.options import option, options_of, read_variables, variables_of, words_of_variables
from common.precision import ComputingOptions
from common.registry import get_model
from common.training.options import RunOptions, build_training_parser
from scripts.launch import (
    GLOBAL_BATCHES,
    JASPER,
    MODELS,
    REMOVED_EVERYWHERE,
    SPEAKING,
    TORCHRUN,
    Gpus,
    Script,
    check_removed,
    choose_model,
    exec_or_print,
    models_of_variables,
    note,
    python,
    require_gpus,
    take_positions,
    variable,
)

REMOVED = {
    "PRE_ALLOCATE": "memory is allocated as needed; leave it out",
    "PAD_TO_MAX_DURATION": "batches are padded to their longest recording; leave it out",
    "EVAL_FREQUENCY": "it counted updates; set VALIDATION_INTERVAL, in epochs",
    "PREDICTION_FREQUENCY": "transcripts of some utterances are printed with each validation; leave it out",
    "SAMPLING_RATE": "audio.json of the corpus, which scripts/prepare_dataset.sh writes, holds it; leave it out",
    **REMOVED_EVERYWHERE,
}
# Options that the functions below set.
_OWN = "output dataset_path training_files validation_files batch_size learned_alignment n_speakers".split()
_OWN += "load_mel_from_disk cudnn_benchmark pitch_mean_std_file symbol_set".split()

# Options whose defaults the models' recipes say.
_OF_RECIPES = (
    "epochs batch_size gradient_accumulation_steps optimizer learning_rate weight_decay grad_clip_thresh".split()
)
_OF_RECIPES += "ema_decay epochs_per_checkpoint validation_interval samples_interval keep_best keep_milestones".split()


@dataclass(frozen=True)
class TrainVariables(Gpus):
    """Variables of scripts/train.sh for all models, beside those of the options of train.py."""

    model: str = variable("MODEL", MODELS[0], "what is trained", choices=MODELS)
    nnodes: int = variable("NNODES", 1, "machines", least=1, most=9999)
    node_rank: int | None = variable(
        "NODE_RANK", None, "number of this machine, from 0; agreed on where it is empty", least=0
    )
    master_addr: str | None = variable("MASTER_ADDR", None, "host name of the first machine")
    port: int | None = variable("PORT", None, "where the processes meet on the first machine", least=1, most=65535)
    run_id: str | None = variable("RUN_ID", None, "name that several machines of a run share")
    world_size: int | None = variable("WORLD_SIZE", None, "processes, where they are started from outside", least=1)
    output_dir: Path = variable("OUTPUT_DIR", Path("./output"), "folder for the results")
    bs: int | None = variable(
        "BS", None, "utterances, or a vocoder's segments, in a micro-batch of one process", least=1, most=99999
    )
    batch_size: int | None = variable(
        "BATCH_SIZE",
        None,
        "the same as BS; of Jasper, as published, utterances of an update, which GRAD_ACCUMULATION divides",
        least=1,
        most=99999,
    )
    accumulation: int | None = variable(
        "GRAD_ACCUMULATION",
        None,
        "micro-batches in an update",
        least=1,
        most=99999,
        published=("GRAD_ACCUMULATION_STEPS",),
    )
    name: str = variable(
        "NAME", "ljs", "first part of the lists' names, as of scripts/prepare_dataset.sh; not for Jasper"
    )
    dataset_path: Path | None = variable(
        "DATASET_PATH",
        None,
        "folder of the corpus: LJSpeech-1.1, or LibriSpeech of Jasper",
        published=("DATASET_DIR", "DATA_DIR"),
    )


@dataclass(frozen=True)
class ListVariables:
    """Lists of other models than Jasper."""

    filelists: Path = variable("FILELISTS", Path("filelists"), "folder of the lists")
    train_filelist: Path | None = variable("TRAIN_FILELIST", None, "list to train on")
    val_filelist: Path | None = variable("VAL_FILELIST", None, "list to validate on")


@dataclass(frozen=True)
class ManifestVariables:
    """Lists of Jasper."""

    train_manifests: tuple[Path, ...] = variable("TRAIN_MANIFESTS", (), "manifests, lists or folders to train on")
    val_manifest: tuple[Path, ...] = variable(
        "VAL_MANIFEST", (), "manifests, lists or folders to validate on", published=("VAL_MANIFESTS",)
    )


@dataclass(frozen=True)
class AlignmentVariables:
    """The version of FastPitch."""

    learned_alignment: str = option(
        "auto",
        "true: from recordings and transcripts alone (1.1); false: from a list of durations (1.0); auto: "
        "1.0 where the training list gives durations, else 1.1",
        choices=("auto", "true", "false"),
        variable="LEARNED_ALIGNMENT",
    )


@dataclass(frozen=True)
class AllVariables(TrainVariables, ListVariables, ManifestVariables, AlignmentVariables):
    """Variables of scripts/train.sh of every model, beside those of the options of train.py."""


VARIABLES: dict[type, Sequence[str]] = {
    TrainVariables: (),
    RunOptions: (),
    ComputingOptions: (),
    ListVariables: SPEAKING,
    AudioOptions: SPEAKING,
    ManifestVariables: JASPER,
    AlignmentVariables: ("FastPitch",),
    **{get_model(model).training.options: (model,) for model in MODELS},
}


def command(environ: dict[str, str], arguments: Sequence[str]) -> list[str | Path]:
    """The command that trains as variables and arguments say; notes on stderr say what was chosen.

    Raises:
        OptionError: a variable has a value that it cannot have, or does nothing.
    """
    environ, arguments = dict(environ), list(arguments)
    owners = models_of_variables(VARIABLES)
    model = choose_model(environ, MODELS, owners)
    chosen = "" if model else ", as BATCH_SIZE is set" if environ.get("BATCH_SIZE") else None
    model = model or ("FastPitch" if chosen is None else "HiFi-GAN")  # FastPitch 1.0 calls it BS
    given = bool(environ.get("MODEL"))
    environ["MODEL"] = model
    while arguments and arguments[0].partition("=")[0].isupper() and "=" in arguments[0]:
        name, _, value = arguments.pop(0).partition("=")  # defaults, as platform/*.sh pass them
        if not _has_variable(name, model):
            raise OptionError(f"{name}={value}: scripts/train.sh has no variable {name}; its --help lists them")
        others = {"BS": "BATCH_SIZE", "GRAD_ACCUMULATION": "GRAD_ACCUMULATION_STEPS"}  # the originals' own names
        if not environ.get(name) and not environ.get(others.get(name, "")):
            environ[name] = value
    arguments = take_positions(environ, arguments)
    check_removed(environ, REMOVED)
    if environ.get("BS") and environ.get("BATCH_SIZE"):
        raise OptionError(f"BS={environ['BS']}: BATCH_SIZE={environ['BATCH_SIZE']} is set too; leave one out")
    _set_defaults(environ, model)
    own: AllVariables = read_variables(AllVariables, environ)
    parser = build_training_parser(get_model(model))
    from_variables = words_of_variables(parser, environ, without=_OWN)
    benchmark = words_of_variables(parser, {"CUDNN_BENCHMARK": environ.get("CUDNN_BENCHMARK", "")})
    n_gpus = own.number()
    if not given:
        other = "HiFi-GAN" if model == "FastPitch" else "FastPitch"
        note(
            f"note: training {model}{chosen or ''}; MODEL={other} (or Tacotron2, WaveGlow, Harmonic, Jasper) trains "
            "another model"
        )
    batch, accumulation = _batch(own, model)
    launcher, n_processes = _launcher(own, n_gpus, name=model.lower())
    if own.num_gpus == "auto" and n_gpus == 0:
        least = GLOBAL_BATCHES[model][0]
        small = 1 if least < 128 else 8
        advice = (
            f"; where memory does not suffice, BS={small} GRAD_ACCUMULATION={least // small} makes the published batch"
        )
        note(f"no GPU: training on the CPU{advice if own.bs is own.batch_size is None else ''}")
    require_gpus(n_gpus)
    words = [*launcher, "train.py", "--model", model, "--output", own.output_dir]
    lists, further = _data(own, environ, model, arguments)
    words += [*lists, *from_variables, *further]
    if batch is not None:
        words += ["--batch-size", str(batch)]
    if "--from-checkpoint" not in arguments:  # a new voice from another one has no published batch
        recipe = get_model(model).training.recipe
        _note_global_batch(
            n_processes, batch or recipe.batch_size, accumulation or recipe.gradient_accumulation_steps, model
        )
    if n_gpus:
        words.append("--cuda")
    if not environ.get("CUDNN_BENCHMARK") and model == "WaveGlow" and n_gpus:
        benchmark = ["--cudnn-benchmark"]  # all segments have one shape
    return [*words, *benchmark, *arguments]


def _has_variable(name: str, model: str) -> bool:
    parser = build_training_parser(get_model(model))
    kinds = [known for _, _, known in options_of(AllVariables)]
    kinds += [action.declared for action in parser._actions if hasattr(action, "declared")]
    return any(name in variables_of(known) for known in kinds)


def _set_defaults(environ: dict[str, str], model: str) -> None:
    """What the scripts of the originals set besides the recipe; the batch is what 16 GB hold."""
    amp = environ.get("AMP", "").lower() in ("1", "true", "yes", "on")
    defaults = {
        "Tacotron2": {"LOAD_MEL_FROM_DISK": "true"} | ({"BS": "104"} if amp else {}),
        "WaveGlow": {"BS": "10", "GRAD_CLIP": "65504"} if amp else {},
        "Jasper": {"SEED": "0"},
    }
    for name, value in defaults.get(model, {}).items():
        if not environ.get(name) and not (name == "BS" and environ.get("BATCH_SIZE")):
            environ[name] = value


def _batch(own: AllVariables, model: str) -> tuple[int | None, int | None]:
    """Utterances of a micro-batch, and micro-batches of an update, as far as they are given."""
    if model != "Jasper" or own.batch_size is None:
        return own.batch_size or own.bs, own.accumulation
    number = own.accumulation or get_model(model).training.recipe.gradient_accumulation_steps
    if own.batch_size % number:
        raise OptionError(
            f"BATCH_SIZE={own.batch_size}: expected a multiple of GRAD_ACCUMULATION={number}, which divides it"
        )
    return own.batch_size // number, own.accumulation


def _launcher(own: AllVariables, n_gpus: int, *, name: str) -> tuple[list[str], int]:
    """The words that start train.py in as many processes as are asked for, and their number."""
    processes = max(n_gpus, 1)
    words = [python()]
    if own.world_size is not None:  # one process a GPU is started from outside, as scripts/slurm_train.sh does
        return words, own.world_size
    if processes > 1:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun sets it, with a warning
    if own.nnodes > 1:
        if own.master_addr is None:
            raise OptionError(f"NNODES={own.nnodes} needs MASTER_ADDR, the host name of the first machine")
        port = own.port or 29500
        words += [*TORCHRUN, "--nnodes", str(own.nnodes), "--nproc-per-node", str(processes)]
        if own.node_rank is not None:
            if own.node_rank >= own.nnodes:
                raise OptionError(f"NODE_RANK={own.node_rank}: expected a whole number from 0 to {own.nnodes - 1}")
            words += ["--node-rank", str(own.node_rank), "--master-addr", own.master_addr, "--master-port", str(port)]
        else:
            words += ["--rdzv-backend", "c10d", "--rdzv-id", own.run_id or name]
            words += ["--rdzv-endpoint", f"{own.master_addr}:{port}"]
    elif own.node_rank:
        raise OptionError(f"NODE_RANK={own.node_rank}: expected 0, as NNODES=1")
    elif processes > 1:
        where = ["--standalone"] if own.port is None else ["--master-port", str(own.port)]  # else it finds a free port
        words += [*TORCHRUN, "--nproc-per-node", str(processes), *where]
    return words, processes * own.nnodes


def _note_global_batch(n_processes: int, batch: int, accumulation: int, model: str) -> None:
    """Note when the global batch is not as published."""
    least, most = GLOBAL_BATCHES[model]
    if not least <= n_processes * batch * accumulation <= most:
        several = least != most and model != "Jasper"
        note(
            f"note: the global batch is {n_processes * batch * accumulation} utterances (processes x batch x "
            f"accumulated: {n_processes} x {batch} x {accumulation}); the published settings are for "
            f"{f'{least} to {most}' if several else least}"
        )


def _data(
    own: AllVariables, environ: Mapping[str, str], model: str, arguments: Sequence[str]
) -> tuple[list[str | Path], list[str | Path]]:
    """Options that name corpus and lists, and those that follow from the lists."""
    if model == "Jasper":
        corpus = own.dataset_path or Path("LibriSpeech")
        training = own.train_manifests or [
            corpus / f"librispeech-{subset}-wav.json"
            for subset in ("train-clean-100", "train-clean-360", "train-other-500")
        ]
        validation = own.val_manifest or [corpus / "librispeech-dev-clean-wav.json"]
        empty = ["--keep-milestones"] if environ.get("KEEP_MILESTONES") == "" else []
        return _lists(corpus, training, validation), empty
    corpus = own.dataset_path or find_ljspeech()
    further: list[str | Path] = []
    if model == "FastPitch":
        columns, further = _version(own, environ, arguments)
    elif model == "Tacotron2":
        columns = "mel_text" if environ["LOAD_MEL_FROM_DISK"] == "true" else "audio_text"
        further += ["--load-mel-from-disk"] * (columns == "mel_text")
    else:
        columns = "audio"
        further += ["--fine-tuning"] * bool(environ.get("FINE_TUNE_DIR"))  # whose mels it fine-tunes on
    training_list = own.train_filelist or list_path(own, columns, "train")
    validation_list = own.val_filelist or list_path(own, columns, "val")
    if own.val_filelist is None and training_list.is_file() and not validation_list.is_file():
        validation_list = training_list  # prepared with N_VAL=0
    if environ.get("INPUT_TYPE") == "phone" or environ.get("SYMBOL_SET"):
        further += ["--symbol-set", environ.get("SYMBOL_SET") or "arpabet"]
    if columns == "mel_dur_pitch_text":
        # named after the list of recordings that the training list is made of
        recordings = training_list.stem.replace("mel_dur_pitch_text", "audio_text")
        default = corpus / f"pitch_char_stats__{recordings}.json"
        further += ["--pitch-mean-std-file", environ.get("PITCH_MEAN_STD") or default]
    elif environ.get("PITCH_MEAN_STD"):
        further += ["--pitch-mean-std-file", environ["PITCH_MEAN_STD"]]
    return _lists(corpus, [training_list], [validation_list]), further


def _lists(corpus: Path, training: Sequence[Path], validation: Sequence[Path]) -> list[str | Path]:
    words: list[str | Path] = ["--dataset-path", corpus, "--training-files", *training]
    return [*words, "--validation-files", *validation]


def list_path(own: AllVariables, columns: str, split: str) -> Path:
    """The list that scripts/prepare_dataset.sh makes of a split, by its columns."""
    if columns.endswith("_text"):
        return own.filelists / f"{own.name}_{columns}_{split}_filelist.txt"
    published = (own.name, split) == ("ljs", "train")
    return own.filelists / ("ljs_audio_train_v3.txt" if published else f"{own.name}_audio_{split}.txt")


def find_ljspeech() -> Path:
    """LJSpeech's folder; in ./data, where the original HiFi-GAN keeps it, if it is there alone."""
    path, other = Path("LJSpeech-1.1"), Path("data/LJSpeech-1.1")
    if path.is_dir() or not other.is_dir():
        return path
    note(f"note: DATASET_PATH={other}, as there is no {path}")
    return other


def _version(own: AllVariables, environ: Mapping[str, str], arguments: Sequence[str]) -> tuple[str, list[str | Path]]:
    """The columns of FastPitch's lists, and the options of its version."""
    speakers = environ.get("NUM_SPEAKERS") or environ.get("NSPEAKERS") or "1"
    further: list[str | Path] = [] if speakers == "auto" else ["--n-speakers", speakers]
    learned, energy = own.learned_alignment == "true", environ.get("ENERGY")
    if own.learned_alignment == "auto":
        path = own.train_filelist or list_path(own, "mel_dur_pitch_text", "train")
        learned = not (own.train_filelist is not None or path.is_file()) or not _gives_durations(path)
        if learned:
            reason = f"{path} gives no durations" if own.train_filelist else f"there is no list of durations ({path})"
            if not energy and "--from-checkpoint" not in arguments:  # another voice's network decides
                further.append("--energy-conditioning")
                energy = "true"
            note(f"FastPitch 1.1, with learned alignment and ENERGY={energy or 'false'}: {reason}")
        else:
            note(f"FastPitch 1.0: {path} gives durations; LEARNED_ALIGNMENT=true trains 1.1 without them")
    if learned:
        return "audio_text", ["--learned-alignment", *further]
    return "mel_dur_pitch_text", further


def _gives_durations(path: Path) -> bool:
    """Whether a list has FastPitch's columns of mel, duration and pitch; of one that is not there its name says so."""
    if not path.is_file():
        return "_dur_" in path.name
    with path.open(encoding="utf-8", errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    fields = first.split("|")
    return len(fields) > 3 and all(field.strip().endswith(".pt") for field in fields[:3])


SCRIPTS = {
    "train": Script(
        lambda environ, words: exec_or_print(command(environ, words)), VARIABLES, removed=REMOVED, of_model=_OF_RECIPES
    )
}
