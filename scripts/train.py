"""scripts/train.sh: the published training of a model, adjusted by settings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.audio.options import AudioOptions
from common.cli import ComputingOptions
from common.errors import OptionError
from common.files import read_text
from common.registry import get_model
from common.training.options import RunOptions
from scripts import launch
from scripts.datasets.make_filelists import audio_list_name
from scripts.launch import MODELS, Given, GpuSettings, Script, count, options, setting

LIBRISPEECH_FOLDER = Path("LibriSpeech")
# What the original scripts set in mixed precision: the batch is what 16 GB hold.
_BATCHES_OF_AMP = {"Tacotron2": 104, "WaveGlow": 10}
DATASET_PATH = "DATASET_PATH DATASET_DIR DATA_DIR"


@dataclass(frozen=True)
class CorpusSettings(GpuSettings):
    """A corpus, and the lists that scripts/prepare_dataset.sh makes of it."""

    dataset_path: Path | None = setting(DATASET_PATH, None, "corpus; empty: the published one")
    name: str = setting("NAME", "ljs", "of the voice, its lists and its folder in ./output; ljs: of LJSpeech-1.1")
    filelists: Path = setting("FILELISTS", Path("filelists"), "folder of the lists")
    output_dir: Path | None = setting("OUTPUT_DIR", None, "folder for the results; empty: output/NAME, else ./output")
    train_filelist: Path | None = setting("TRAIN_FILELIST DATASET_FILELIST", None, "training list, instead of NAME's")
    val_filelist: Path | None = setting("VAL_FILELIST", None, "list to validate on")

    @property
    def trained(self) -> Path:
        """The folder of what is trained: that of NAME in ./output, or ./output itself."""
        return Path("output") if self.name == "ljs" else Path("output", self.name)


@dataclass(frozen=True)
class TrainSettings(CorpusSettings):
    """Where and on what a model is trained."""

    nnodes: int = count("NNODES", 1, "machines")
    master_addr: str | None = setting("MASTER_ADDR", None, "host name of the first machine")
    port: int | None = count("PORT", None, "where the processes meet on the first machine", most=65535)
    run_id: str | None = setting("RUN_ID", None, "name that several machines of a run share")
    bs: int | None = count("BS BATCH_SIZE", None, "utterances of a micro-batch; BATCH_SIZE of Jasper: of an update")
    accumulation: int | None = count(
        "GRAD_ACCUMULATION GRAD_ACCUMULATION_STEPS", None, "micro-batches in an update, by default as published"
    )
    train_manifests: tuple[Path, ...] = setting("TRAIN_MANIFESTS TRAIN_MANIFEST", (), "Jasper's lists or folders")
    val_manifest: tuple[Path, ...] = setting("VAL_MANIFEST VAL_MANIFESTS", (), "lists or folders that it validates on")
    learned: str = setting(
        "LEARNED_ALIGNMENT",
        "auto",
        "true: FastPitch 1.1; false: 1.0, from a list of durations; auto: 1.0 where the list gives durations",
        choices=("auto", "true", "false"),
    )


def training_options(model: str) -> Sequence[type]:
    """The dataclasses of the options of train.py for a model."""
    audio = [AudioOptions] if model != "Jasper" else []
    return [RunOptions, ComputingOptions, *audio, get_model(model).arg_parser.TrainingOptions]


def command(own: TrainSettings, given: Given, *defaults: str | Path) -> list[str | Path]:
    """Return the training command, in which variables and arguments override the options ``defaults``."""
    n_gpus, words = launch.number_of_gpus(own), [*map(str, defaults), *given.options]
    is_mixed, bs, chosen = "--amp" in words, own.bs, options()
    if is_mixed:
        bs = bs or _BATCHES_OF_AMP.get(own.model)
        chosen += options(grad_clip_thresh=65504 if own.model == "WaveGlow" else None)
    if own.model == "WaveGlow" and n_gpus:
        chosen += ["--cudnn-benchmark"]  # all segments have one shape
    accumulation = own.accumulation or get_model(own.model).arg_parser.RECIPE.gradient_accumulation_steps
    if own.model == "Jasper" and given.environ.get("BATCH_SIZE") and bs:  # of an update, as published
        if bs % accumulation:
            raise OptionError(f"BATCH_SIZE={bs}: expected a multiple of GRAD_ACCUMULATION={accumulation}")
        bs //= accumulation
    processes, n_processes = launch.launcher(own, n_gpus)
    if bs is None and n_gpus and own.model == "HiFi-GAN" and not {"--from-checkpoint", "--input-mels-dir"} & {*words}:
        # Casts, weight norm and launches of a micro-batch take as long for few of the short segments as for many.
        bs = max(1, launch.GLOBAL_BATCHES[own.model] // (n_processes * accumulation))
    if own.num_gpus == "auto" and n_gpus == 0:
        launch.note("no GPU: training on the CPU; where memory is short, lower BS and raise GRAD_ACCUMULATION as much")
    chosen += _lists_of_librispeech(own, given) if own.model == "Jasper" else _lists(own, words)
    chosen += options(batch_size=bs, gradient_accumulation_steps=own.accumulation) + ["--cuda"] * min(n_gpus, 1)
    output = options(model=own.model, output=own.output_dir or own.trained)
    return [*processes, launch.shipped("train.py"), *output, *chosen, *words]


def _lists_of_librispeech(own: TrainSettings, given: Given) -> list[str | Path]:
    """Options that name the corpus and lists of Jasper."""
    corpus = own.dataset_path or LIBRISPEECH_FOLDER
    published = [librispeech_manifest(corpus, f"train-{name}") for name in ("clean-100", "clean-360", "other-500")]
    training = own.train_manifests or published
    validation = own.val_manifest or [librispeech_manifest(corpus, "dev-clean")]
    none = ["--keep-milestones"] if given.environ.get("KEEP_MILESTONES") == "" else []
    return [*options(dataset_path=corpus), "--training-files", *training, "--validation-files", *validation, *none]


def _lists(own: TrainSettings, words: list[str]) -> list[str | Path]:
    """Options that name corpus and lists, and those that follow from the lists and the other ``words``."""
    corpus, columns, chosen = own.dataset_path or find_ljspeech(), "audio", options()
    if own.model == "FastPitch":
        columns, chosen = _choose_version(own, words)
    elif own.model == "Tacotron2":
        columns = "mel_text" if "--load-mel-from-disk" in words else "audio_text"
    elif "--input-mels-dir" in words:
        chosen = ["--fine-tuning"]  # on these mels
    training = own.train_filelist or list_path(own, columns, "train")
    validation = own.val_filelist or list_path(own, columns, "val")
    if own.val_filelist is None and training.is_file() and not validation.is_file():
        validation = training  # prepared with N_VAL=0
    if "--g2p-language" in words and value_of(words, "--input-type") == "char":  # which has no phones
        place = words.index("--g2p-language")
        del words[place : place + 2]
    if language := value_of(words, "--g2p-language"):
        launch.note(f"LANGUAGE={language}: a voice of eSpeak NG's phones; INPUT_TYPE=char trains on letters")
    elif value_of(words, "--input-type") == "phone":
        chosen += ["--symbol-set", "arpabet"]
    if columns == "mel_dur_pitch_text":
        # named after the list of recordings that the training list is made of
        recordings = training.stem.replace("mel_dur_pitch_text", "audio_text")
        chosen += options(pitch_mean_std_file=corpus / f"pitch_char_stats__{recordings}.json")
    return options(dataset_path=corpus, training_files=training, validation_files=validation) + chosen


def value_of(words: Sequence[str], name: str) -> str:
    """The value that an option has in a command line, "" where it has none."""
    return next((value for one, value in zip(words[-2::-1], words[:0:-1]) if one == name), "")


def librispeech_manifest(corpus: Path, subset: str) -> Path:
    """The manifest that scripts/preprocess_librispeech.sh writes of a subset of LibriSpeech."""
    return corpus / f"librispeech-{subset}-wav.json"


def list_path(own: CorpusSettings, columns: str, split: str) -> Path:
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


def _choose_version(own: TrainSettings, words: Sequence[str]) -> tuple[str, list[str]]:
    """The columns of FastPitch's lists, and options of its version."""
    path = own.train_filelist or list_path(own, "mel_dur_pitch_text", "train")
    learned, chosen = own.learned == "true", []
    if own.learned == "auto":
        learned = own.train_filelist is None or "_dur_" not in path.name  # as its name says until it is there
        if path.is_file():
            learned = re.match(r"(?:[^|]*\.pt\s*\|){3}", read_text(path)) is None
        if not learned:
            launch.note(f"FastPitch 1.0: {path} gives durations; LEARNED_ALIGNMENT=true trains 1.1 without them")
        else:
            chosen = [] if "--from-checkpoint" in words else ["--energy-conditioning"]  # a checkpoint's own decides
            launch.note(f"FastPitch 1.1, with learned alignment: {path} gives no durations")
    return ("audio_text", ["--learned-alignment", *chosen]) if learned else ("mel_dur_pitch_text", chosen)


@Script(
    TrainSettings,
    training_options,
    models=MODELS,
    model_of={"BATCH_SIZE": "HiFi-GAN"},  # FastPitch 1.0 calls it BS
    defaults={"FastPitch": "NUM_SPEAKERS=1", "Tacotron2": "LOAD_MEL_FROM_DISK=true", "Jasper": "SEED=0"},
)
def train(own: TrainSettings, given: Given) -> None:
    """Train a model."""
    launch.exec_or_print(command(own, given))
