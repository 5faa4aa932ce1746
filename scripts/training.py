"""Scripts that train: train, finetune_voice, finetune_vocoder and extract_fine_tune_mels."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.audio.options import AudioOptions
from common.checkpoints.command_line import EmaOptions
from common.cli import ComputingOptions
from common.errors import InputError, OptionError
from common.evaluation.options import GRIFFIN_LIM
from common.files import read_lines, read_text, write_text
from common.importing.options import SPEAKERS, name_import
from common.registry import get_model
from common.training.options import RunOptions
from scripts import launch
from scripts.datasets.make_filelists import SPLITS, ListOptions, list_name
from scripts.launch import DATASET_PATH, LIBRISPEECH_FOLDER, MODELS, Given, GpuSettings, Script, options, setting
from scripts.speaking import SHIPPED, find_newest

# Batch sizes of the original scripts in mixed precision: what fits into 16 GB.
_BATCHES_OF_AMP = {"Tacotron2": 104, "WaveGlow": 10}
# How Python starts torchrun. It doesn't handle SIGHUP, so that training under nohup survives a closed terminal.
_TORCHRUN = ["-m", "torch.distributed.run", "--signals-to-handle", "SIGINT,SIGTERM,SIGQUIT"]
_UPDATES = 300  # when a voice is fine-tuned: minutes on a CPU; with 16 clips, more updates raise the word error rate
_SET_APART = (6, 2, 20)  # clips of a new voice for validation: one in six, at least 2, at most 20


@dataclass(frozen=True)
class CorpusSettings(GpuSettings):
    """A corpus, and the lists that scripts/prepare_dataset.sh writes for it."""

    dataset_path: Path | None = setting(DATASET_PATH, None, "corpus; empty: the published one")
    name: str = setting("NAME", "ljs", "name of the voice, its lists and its folder in ./output; ljs: LJSpeech-1.1")
    filelists: Path = setting("FILELISTS", Path("filelists"), "folder of the lists")
    output_dir: Path | None = setting("OUTPUT_DIR", None, "folder for the results; empty: output/NAME, else ./output")
    train_filelist: Path | None = setting("TRAIN_FILELIST DATASET_FILELIST", None, "training list, instead of NAME's")
    val_filelist: Path | None = setting("VAL_FILELIST", None, "list to validate on")

    @property
    def trained(self) -> Path:
        """The folder of the trained checkpoints: that of NAME in ./output, or ./output itself."""
        return Path("output") if self.name == "ljs" else Path("output", self.name)


@dataclass(frozen=True)
class TrainSettings(CorpusSettings):
    """Where a model is trained, and on which data."""

    nnodes: int = setting("NNODES", 1, "machines", least=1)
    master_addr: str | None = setting("MASTER_ADDR", None, "host name of the first machine")
    port: int | None = setting("PORT", None, "port on the first machine where processes meet", least=1, most=65535)
    run_id: str | None = setting("RUN_ID", None, "name that several machines of a run share")
    bs: int | None = setting(
        "BS BATCH_SIZE", None, "utterances in a micro-batch; for Jasper, BATCH_SIZE: in an update", least=1
    )
    accumulation: int | None = setting(
        "GRAD_ACCUMULATION GRAD_ACCUMULATION_STEPS", None, "micro-batches in an update; default: as published", least=1
    )
    train_manifests: tuple[Path, ...] = setting("TRAIN_MANIFESTS TRAIN_MANIFEST", (), "Jasper's lists or folders")
    val_manifest: tuple[Path, ...] = setting("VAL_MANIFEST VAL_MANIFESTS", (), "lists or folders to validate Jasper on")
    learned: str = setting(
        "LEARNED_ALIGNMENT",
        "auto",
        "true: FastPitch 1.1; false: 1.0, from a list of durations; auto: 1.0 if the list gives durations",
        choices=("auto", "true", "false"),
    )


def training_options(model: str) -> Sequence[type]:
    """Return the dataclasses with train.py's options for a model."""
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
    program = _program(own, n_gpus)
    if bs is None and n_gpus and own.model == "HiFi-GAN" and not {"--from-checkpoint", "--input-mels-dir"} & {*words}:
        # Casts, weight norm and kernel launches take as long for a few short segments as for many.
        bs = max(1, launch.GLOBAL_BATCHES[own.model] // (n_gpus * own.nnodes * accumulation))
    if own.num_gpus == "auto" and n_gpus == 0:
        launch.note("no GPU: training on the CPU; if memory is short, lower BS and raise GRAD_ACCUMULATION to match")
    chosen += _lists_of_librispeech(own, given) if own.model == "Jasper" else _lists(own, words)
    chosen += options(batch_size=bs, gradient_accumulation_steps=own.accumulation) + ["--cuda"] * min(n_gpus, 1)
    output = options(model=own.model, output=own.output_dir or own.trained)
    return [*program, *output, *chosen, *words]


def _program(own: TrainSettings, n_gpus: int) -> list[str | Path]:
    """Return the words that start train.py in one process per GPU.

    Raises InputError if PyTorch sees fewer GPUs, and OptionError if the first of several machines isn't named.
    """
    if n_gpus > 1 and not launch.dry_run():
        import torch  # here, as it takes seconds to load

        if (found := torch.cuda.device_count()) < n_gpus:  # torchrun would print a traceback per process
            raise InputError(f"NUM_GPUS={n_gpus}, but PyTorch sees {found} GPUs here; NUM_GPUS=0 is for the CPU")
    python, train = launch.program("train.py")
    if own.nnodes > 1:
        if own.master_addr is None:
            raise OptionError(f"NNODES={own.nnodes} needs MASTER_ADDR, the host name of the first machine")
        address = f"{own.master_addr}:{own.port or 29500}"
        where = ["--rdzv-backend", "c10d", "--rdzv-id", own.run_id or own.model.lower(), "--rdzv-endpoint", address]
        return [python, *_TORCHRUN, "--nnodes", str(own.nnodes), "--nproc-per-node", str(max(n_gpus, 1)), *where, train]
    if n_gpus > 1:
        where = ["--standalone"] if own.port is None else ["--master-port", str(own.port)]  # else it finds a free port
        return [python, *_TORCHRUN, "--nproc-per-node", str(n_gpus), *where, train]
    return [python, train]


def _lists_of_librispeech(own: TrainSettings, given: Given) -> list[str | Path]:
    """Return the options that name Jasper's corpus and lists."""
    corpus = own.dataset_path or LIBRISPEECH_FOLDER
    published = ("train-clean-100", "train-clean-360", "train-other-500")
    training = own.train_manifests or [launch.librispeech_manifest(corpus, subset) for subset in published]
    validation = own.val_manifest or [launch.librispeech_manifest(corpus, "dev-clean")]
    none = ["--keep-milestones"] if given.environ.get("KEEP_MILESTONES") == "" else []
    return [*options(dataset_path=corpus), "--training-files", *training, "--validation-files", *validation, *none]


def _lists(own: TrainSettings, words: list[str]) -> list[str | Path]:
    """Return the options that name the corpus and lists, and those that follow from the lists and other ``words``."""
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
        launch.note(f"LANGUAGE={language}: training on eSpeak NG's phones; INPUT_TYPE=char trains on letters")
    elif value_of(words, "--input-type") == "phone":
        chosen += ["--symbol-set", "arpabet"]
    if columns == "mel_dur_pitch_text":
        # named after the list of recordings that the training list is made of
        recordings = training.stem.replace("mel_dur_pitch_text", "audio_text")
        chosen += options(pitch_mean_std_file=corpus / f"pitch_char_stats__{recordings}.json")
    return options(dataset_path=corpus, training_files=training, validation_files=validation) + chosen


def value_of(words: Sequence[str], name: str) -> str:
    """Return the value of an option on a command line, or ""."""
    return next((value for one, value in zip(words[-2::-1], words[:0:-1]) if one == name), "")


def list_path(own: CorpusSettings, columns: str, split: str) -> Path:
    """Return the list that scripts/prepare_dataset.sh writes for a split, by its columns."""
    return own.filelists / list_name(own.name, columns, split)


def find_ljspeech() -> Path:
    """Return LJSpeech's folder; if only the original HiFi-GAN's ./data has it, that one."""
    path, other = Path("LJSpeech-1.1"), Path("data/LJSpeech-1.1")
    if path.is_dir() or not other.is_dir():
        return path
    launch.note(f"note: DATASET_PATH={other}, since {path} doesn't exist")
    return other


def _choose_version(own: TrainSettings, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the columns of FastPitch's lists, and the options of its version."""
    path = own.train_filelist or list_path(own, "mel_dur_pitch_text", "train")
    learned, chosen = own.learned == "true", []
    if own.learned == "auto":
        learned = own.train_filelist is None or "_dur_" not in path.name  # until the list exists, its name decides
        if path.is_file():
            learned = re.match(r"(?:[^|]*\.pt\s*\|){3}", read_text(path)) is None
        if not learned:
            launch.note(f"FastPitch 1.0: {path} gives durations; LEARNED_ALIGNMENT=true trains 1.1 without them")
        else:
            chosen = [] if "--from-checkpoint" in words else ["--energy-conditioning"]  # else the checkpoint decides
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


@dataclass(frozen=True)
class FinetuneSettings(TrainSettings):
    """How a voice is fine-tuned."""

    speaker: str | None = setting("SPEAKER", None, "the new voice's name; default: NAME, or the folder's name")


@Script(
    FinetuneSettings,
    lambda model: training_options("FastPitch"),
    # After 300 updates, the EMA weights are still halfway to the initial voice, which sounds cleaner than a few clips.
    defaults={"": "NUM_SPEAKERS=auto LEARNING_RATE=7e-3 WARMUP_STEPS=100 EMA=0.9975 AMP=true GRAD_CLIP=5"},
)
def finetune_voice(own: FinetuneSettings, given: Given) -> None:
    """Fine-tune a FastPitch to a new voice, on given or new lists, and evaluate it before and after."""
    from common.checkpoints.loading import read_model

    named = [Path(word) for word in itertools.takewhile(lambda word: not word.startswith("-"), given.words)]
    if len(named) not in (1, 2) or named[-1].suffix == ".pt" or named[-1].is_file():
        raise OptionError("expected: bash scripts/finetune_voice.sh [CHECKPOINT] DATASET [options of train.py]")
    checkpoint = launch.require(named[0], "no such checkpoint") if len(named) > 1 else SHIPPED["FastPitch"]
    corpus = launch.require(named[-1], "no such folder")
    name = None if own.name == "ljs" else own.name
    speaker = own.speaker or name or corpus.resolve().name
    output = own.output_dir or Path("output", name or speaker)
    training, validation = own.train_filelist, own.val_filelist or own.train_filelist
    if training is None:
        training, validation = (output / "filelists" / list_name(speaker, "audio_text", split) for split in SPLITS[:2])
        _list_clips(corpus, speaker, own, given, training.parent)
    n_clips = len(read_lines(training)) if training.is_file() else 64  # in a dry run
    batch = own.bs or min(8, n_clips)
    epochs = int(given.environ.get("EPOCHS") or max(1, _UPDATES // max(1, n_clips // batch)))
    is_aligned = launch.dry_run() or getattr(read_model(checkpoint)[1].config, "learned_alignment", False)
    start, share = (0, 1) if is_aligned else (epochs // 10, max(1, epochs // 10))
    interval = max(1, epochs // 10)
    chosen = options(epochs=epochs, kl_loss_start_epoch=start, kl_loss_warmup_epochs=share)
    chosen += options(epochs_per_checkpoint=interval, validation_interval=interval)
    chosen += [*options(from_checkpoint=checkpoint, optimizer="adam"), "--resume"]
    gpus = str(min(launch.number_of_gpus(own), 1)) if own.num_gpus == "auto" else own.num_gpus
    lists = {"train_filelist": training, "val_filelist": validation}
    settings = replace(own, model="FastPitch", learned="true", bs=batch, num_gpus=gpus, dataset_path=corpus)
    given = replace(given, words=given.words[len(named) :])
    launch.run_or_print(command(replace(settings, output_dir=output, **lists), given, *chosen))
    if own.train_filelist is None and validation is not None:
        _evaluate_both(checkpoint, find_newest("FastPitch", output), validation, corpus, own)


def _list_clips(corpus: Path, speaker: str, own: FinetuneSettings, given: Given, folder: Path) -> None:
    """Write the lists of a corpus, with some clips set apart for validation."""
    wanted = f"no such file; it lists clip|transcript, or set TRAIN_FILELIST{name_import(corpus)}"
    metadata = launch.require(corpus / "metadata.csv", wanted)
    n_clips = len(read_lines(metadata)) if metadata.is_file() else 0
    share, least, most = _SET_APART
    named = None if own.speaker is None and (corpus / SPEAKERS).is_file() else speaker
    lists = options(dataset_path=corpus, output=folder, name=speaker, n_test=0, speaker=named)
    lists += options(n_val=min(max(n_clips // share, least), most)) + launch.words_for(given.environ, ListOptions)
    launch.run_or_print([*launch.program("scripts.datasets.make_filelists"), *lists])


def _evaluate_both(checkpoint: Path, tuned: Path, validation: Path, corpus: Path, own: GpuSettings) -> None:
    """Evaluate the voice before and after, on the clips that were set apart."""
    from common.checkpoints.loading import read_model
    from common.synthesis.loading import shipped_vocoder

    vocoder = SHIPPED["Harmonic"]
    if not launch.dry_run():
        if not validation.is_file():
            print("no clips were set apart (N_VAL): nothing is evaluated")
            return
        vocoder = getattr(shipped_vocoder(read_model(tuned)[1].audio), "path", Path(GRIFFIN_LIM))
    switches = ["--cuda"] * min(launch.number_of_gpus(own), 1)
    for name, voice in (("before", checkpoint), ("after", tuned)):
        folder = tuned.parent / "evaluation" / name
        phrases = folder.with_suffix(".txt")
        if not launch.dry_run():
            rows = [["output", "text", "speaker"], *(line.split("|") for line in read_lines(validation))]
            n_columns = min(2 if name == "before" else 3, *map(len, rows))  # its speaker is new
            write_text(phrases, "".join("|".join(row[:n_columns]) + "\n" for row in rows))
        measuring = [*options(dataset_path=corpus, output=folder), *switches]
        launch.run_or_print([*launch.program("speech_toolkit evaluate"), voice, vocoder, phrases, *measuring])


@dataclass(frozen=True)
class VocoderSettings(TrainSettings):
    """How a vocoder is fine-tuned."""

    hifigan: str | None = setting("HIFIGAN", None, "checkpoint of the vocoder; empty: the newest")
    input_mels_dir: Path | None = setting("INPUT_MELS_DIR FINE_TUNE_DIR", None, "mels; empty: data/mels-NAME")


@Script(
    VocoderSettings, lambda model: training_options("HiFi-GAN"), defaults={"": "EPOCHS=10000 FINE_TUNE_LR_FACTOR=3"}
)
def finetune_vocoder(own: VocoderSettings, given: Given) -> None:
    """Fine-tune HiFi-GAN on a generator's mels."""
    mels, output = own.input_mels_dir or Path(f"data/mels-{own.name}"), own.output_dir or own.trained / "fine_tune"
    launch.require(mels, "no such folder; scripts/extract_fine_tune_mels.sh makes it, or set INPUT_MELS_DIR")
    initial = ["--resume"]
    if not [*output.glob("HiFi-GAN_checkpoint_*.pt")]:
        initial = options(checkpoint_path=own.hifigan or find_newest("HiFi-GAN", own.trained))
    chosen = [*options(input_mels_dir=mels), *initial]
    launch.exec_or_print(command(replace(own, model="HiFi-GAN", output_dir=output), given, *chosen))


@dataclass(frozen=True)
class TeacherSettings(CorpusSettings):
    """The model that generates a corpus's mels."""

    fastpitch: Path | None = setting("FASTPITCH", None, "checkpoint of the voice; empty: the newest")
    batch_size: int = setting("BATCH_SIZE BS", 32, "utterances in a batch", least=1)


@Script(TeacherSettings, lambda model: [ComputingOptions, EmaOptions])
def extract_fine_tune_mels(own: TeacherSettings, given: Given) -> None:
    """Generate the mels of a corpus with a trained voice."""
    checkpoint = own.fastpitch or find_newest("FastPitch", own.trained)
    chosen = options(checkpoint=checkpoint, dataset_path=own.dataset_path or find_ljspeech())
    if own.train_filelist:
        chosen += ["--filelist", own.train_filelist, *([own.val_filelist] if own.val_filelist else [])]
    else:
        chosen += ["--lists", own.filelists / own.name]
    chosen += options(output=own.output_dir or Path(f"data/mels-{own.name}"), batch_size=own.batch_size)
    chosen += ["--resume", *given.passed, *launch.gpu_option(own), *given.words]
    launch.exec_or_print([*launch.program("extract_mels.py"), *chosen])
