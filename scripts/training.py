"""Scripts that train in several steps: finetune_voice, finetune_vocoder and extract_fine_tune_mels."""

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

from common.checkpoints.options import EmaOptions
from common.cli import ComputingOptions
from common.errors import OptionError
from common.evaluation.options import GRIFFIN_LIM
from common.files import read_lines, write_text
from common.importing.options import SPEAKERS, name_import
from scripts import launch, train
from scripts.datasets.make_filelists import SPLITS, ListOptions
from scripts.launch import Given, GpuSettings, Script, count, cuda, options, python, setting
from scripts.speaking import SHIPPED, find_newest
from scripts.train import CorpusSettings, TrainSettings, training_options

_UPDATES = 300  # of a voice that is fine-tuned: minutes on a CPU; with 16 clips, more of them raise word errors
_SET_APART = (6, 2, 20)  # of a new voice's clips: one of so many, at least, at most


@dataclass(frozen=True)
class FinetuneSettings(TrainSettings):
    """How a voice is fine-tuned."""

    speaker: str | None = setting("SPEAKER", None, "the new voice's name; by default NAME, or that of the folder")


@Script(
    FinetuneSettings,
    lambda model: training_options("FastPitch"),
    defaults={"": "NUM_SPEAKERS=auto LEARNING_RATE=7e-3 WARMUP_STEPS=100 EMA=0.99 AMP=true GRAD_CLIP=5"},
)
def finetune_voice(own: FinetuneSettings, given: Given) -> None:
    """Fine-tune a FastPitch to a new voice, on lists that are given or made, and evaluate both."""
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
        training, validation = (output / f"filelists/{speaker}_audio_text_{split}_filelist.txt" for split in SPLITS[:2])
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
    launch.run_or_print(train.command(replace(settings, output_dir=output, **lists), given, *chosen))
    if own.train_filelist is None and validation is not None:
        tuned = output / f"FastPitch_checkpoint_{epochs}.pt"
        if not launch.dry_run():  # its arguments may say other epochs
            tuned = max(output.glob("FastPitch_checkpoint_*.pt"), key=lambda path: path.stat().st_mtime)
        _evaluate_both(checkpoint, tuned, validation, corpus, own)


def _list_clips(corpus: Path, speaker: str, own: FinetuneSettings, given: Given, folder: Path) -> None:
    """Write the lists of a corpus, with some of its clips set apart for validation."""
    wanted = f"no such file; it lists clip|transcript, or set TRAIN_FILELIST{name_import(corpus)}"
    metadata = launch.require(corpus / "metadata.csv", wanted)
    n_clips = len(read_lines(metadata)) if metadata.is_file() else 0
    share, least, most = _SET_APART
    named = None if own.speaker is None and (corpus / SPEAKERS).is_file() else speaker
    lists = options(dataset_path=corpus, output=folder, name=speaker, n_test=0, speaker=named)
    lists += options(n_val=min(max(n_clips // share, least), most)) + launch.words_for(given.environ, ListOptions)
    launch.run_or_print([python(), "-m", "scripts.datasets.make_filelists", *lists])


def _evaluate_both(checkpoint: Path, tuned: Path, validation: Path, corpus: Path, own: GpuSettings) -> None:
    """Print what evaluate_voice.sh says of the voice before and after, on the clips that were set apart."""
    from common.checkpoints.loading import read_model
    from common.synthesis.loading import shipped_vocoder

    vocoder = SHIPPED["Harmonic"] if checkpoint == SHIPPED["FastPitch"] else Path(GRIFFIN_LIM)
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
        launch.run_or_print([python(), "-m", "scripts.evaluate_voice", voice, vocoder, phrases, *measuring])


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
    launch.exec_or_print(train.command(replace(own, model="HiFi-GAN", output_dir=output), given, *chosen))


@dataclass(frozen=True)
class TeacherSettings(CorpusSettings):
    """What makes mels of a corpus."""

    fastpitch: Path | None = setting("FASTPITCH", None, "checkpoint of the voice; empty: the newest")
    batch_size: int = count("BATCH_SIZE BS", 32, "utterances of a batch")


@Script(TeacherSettings, lambda model: [ComputingOptions, EmaOptions])
def extract_fine_tune_mels(own: TeacherSettings, given: Given) -> None:
    """Make a generator's mels of a corpus."""
    checkpoint = own.fastpitch or find_newest("FastPitch", own.trained)
    chosen = options(checkpoint=checkpoint, dataset_path=own.dataset_path or train.find_ljspeech())
    if own.train_filelist:
        chosen += ["--filelist", own.train_filelist, *([own.val_filelist] if own.val_filelist else [])]
    else:
        chosen += ["--lists", own.filelists / own.name]
    chosen += options(output=own.output_dir or Path(f"data/mels-{own.name}"), batch_size=own.batch_size)
    chosen += ["--resume", *given.passed, *cuda(own), *given.words]
    launch.exec_or_print([python(), launch.shipped("extract_mels.py"), *chosen])
