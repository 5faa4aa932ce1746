"""Scripts that train in several steps or places: fine_tune, finetune_voice, train_digits, train_voices, slurm_train."""

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import InputError, OptionError
from common.options import read_variables
from scripts import train
from scripts.launch import (
    Device,
    Gpus,
    Script,
    dry_run,
    exec_or_print,
    given,
    print_next,
    python,
    require_gpus,
    run_or_print,
    variable,
)
from scripts.voices import find_newest

_DATASET_PATHS = ("DATASET_DIR", "DATA_DIR")


def check_name(variable: str, name: str) -> None:
    """Raise OptionError for what cannot be part of a file's name and of a list's line."""
    if not name or name in (".", "..") or len(name.encode()) > 100 or set(name) & set("/|") or name[0] in "- ":
        raise OptionError(
            f"{variable}={name}: expected a name without / and |, of at most 100 bytes, as it is part of names of files"
        )


def _require(path: Path, *, exists: bool, what: str) -> None:
    if not exists and not dry_run():
        raise InputError(f"{path}: {what}")


@dataclass(frozen=True)
class VoiceVariables(Gpus):
    """Variables of finetune_voice.sh."""

    speaker: str | None = variable("SPEAKER", None, "the new voice's name; by default that of the folder")
    train_filelist: Path | None = variable("TRAIN_FILELIST", None, "list to train on; empty: made of metadata.csv")
    val_filelist: Path | None = variable("VAL_FILELIST", None, "list to validate on")
    n_val: int = variable("N_VAL", 5, "clips set aside for validation then", least=0)
    kl_loss_start_epoch: int = variable(
        "KL_LOSS_START_EPOCH", 20, "epoch after which the binarization loss begins", least=0
    )
    kl_loss_warmup_epochs: int = variable("KL_LOSS_WARMUP_EPOCHS", 20, "epochs in which its weight rises", least=0)
    output_dir: Path | None = variable("OUTPUT_DIR", None, "folder for the results, by default ./output/SPEAKER")


def finetune_voice(environ: dict[str, str], words: Sequence[str]) -> None:
    """Fine-tune a FastPitch to a new voice."""
    *lists, training = _finetuning(environ, words)
    for command in lists:
        run_or_print(command)
    exec_or_print(training)


def _finetuning(environ: dict[str, str], words: Sequence[str]) -> list[list[str | Path]]:
    """The commands that do: one makes lists, unless they are there, and one trains."""
    if len(words) < 2:
        raise OptionError("expected: bash scripts/finetune_voice.sh CHECKPOINT DATASET [options of train.py]")
    own: VoiceVariables = read_variables(VoiceVariables, environ)
    checkpoint, corpus, words = Path(words[0]), Path(words[1]), words[2:]
    _require(checkpoint, exists=checkpoint.is_file(), what="no such checkpoint")
    _require(corpus, exists=corpus.is_dir(), what="no such folder")
    speaker = own.speaker or corpus.name or str(corpus)
    check_name("SPEAKER", speaker)
    output = own.output_dir or Path("output") / speaker
    training, validation = own.train_filelist, own.val_filelist or own.train_filelist
    commands: list[list[str | Path]] = []
    if training is None:
        if own.val_filelist:
            raise OptionError("VAL_FILELIST needs TRAIN_FILELIST too")
        metadata = corpus / "metadata.csv"
        what = "no such file; it lists clip|transcript, or set TRAIN_FILELIST and VAL_FILELIST"
        _require(metadata, exists=metadata.is_file(), what=what)
        lists = output / "filelists"
        training, validation = (lists / f"{speaker}_audio_text_{split}_filelist.txt" for split in ("train", "val"))
        if not training.is_file():
            options = given(dataset_path=corpus, output=lists, name=speaker, n_val=own.n_val, n_test=0, speaker=speaker)
            commands.append([python(), "-m", "scripts.datasets.make_filelists", *options])
    # A new schedule with a warm-up of its own; inference uses the EMA weights. UNKNOWN_SYMBOLS=error refuses
    # transcripts with characters that the voice has no symbol for.
    settings = "NUM_SPEAKERS=auto BS=16 EPOCHS=200 EPOCHS_PER_CHECKPOINT=50 VALIDATION_INTERVAL=10 LEARNING_RATE=0.05"
    settings += " WARMUP_STEPS=50 EMA=0.98"
    options = given(from_checkpoint=checkpoint, kl_loss_start_epoch=own.kl_loss_start_epoch)
    options += given(kl_loss_warmup_epochs=own.kl_loss_warmup_epochs)
    environ = environ | {"MODEL": "FastPitch", "LEARNED_ALIGNMENT": "true", "OUTPUT_DIR": str(output)}
    environ |= {"TRAIN_FILELIST": str(training), "VAL_FILELIST": str(validation), "DATASET_PATH": str(corpus)}
    if own.num_gpus == "auto":
        environ["NUM_GPUS"] = str(min(own.number(), 1))
    words = [*settings.split(), *map(str, options), "--resume", *words]
    return [*commands, train.command(environ, words)]


@dataclass(frozen=True)
class FineTuneVariables:
    """Variables of fine_tune.sh."""

    hifigan: Path | None = variable("HIFIGAN", None, "checkpoint to continue; empty: the newest in ./output")
    name: str = variable("NAME", "ljs", "first part of the lists' names")
    input_mels_dir: Path | None = variable(
        "INPUT_MELS_DIR",
        None,
        "folder with the generator's mels, by default data/mels-NAME",
        published=("FINE_TUNE_DIR",),
    )
    fine_tune_lr_factor: float = variable("FINE_TUNE_LR_FACTOR", 3.0, "factor of the learning rate", above=0)
    output_dir: Path = variable("OUTPUT_DIR", Path("output/fine_tune"), "folder for the results")
    epochs: int = variable("EPOCHS", 10000, "epochs, 3500 more than the vocoder was trained for", least=1)


def fine_tune(environ: dict[str, str], words: list[str]) -> None:
    """Fine-tune HiFi-GAN on a generator's mels."""
    own: FineTuneVariables = read_variables(FineTuneVariables, environ)
    check_name("NAME", own.name)
    mels = own.input_mels_dir or Path(f"data/mels-{own.name}")
    what = "no such folder; scripts/extract_fine_tune_mels.sh makes it, or set INPUT_MELS_DIR"
    _require(mels, exists=mels.is_dir(), what=what)
    if [*own.output_dir.glob("HiFi-GAN_checkpoint_*.pt")]:
        initial: list[str | Path] = ["--resume"]
    else:
        checkpoint = own.hifigan or find_newest("HIFIGAN", "HiFi-GAN", train="train_lj22khz.sh")
        initial = given(checkpoint_path=checkpoint)
    options = given(input_mels_dir=mels, fine_tune_lr_factor=own.fine_tune_lr_factor)
    environ |= {"MODEL": "HiFi-GAN", "OUTPUT_DIR": str(own.output_dir), "EPOCHS": str(own.epochs)}
    words = [*map(str, [*initial, "--fine-tuning", *options]), *words]
    exec_or_print(train.command(environ, words))


@dataclass(frozen=True)
class MelVariables(Device):
    """Variables of extract_fine_tune_mels.sh."""

    fastpitch: Path | None = variable("FASTPITCH", None, "checkpoint; empty: the newest")
    dataset_path: Path | None = variable(
        "DATASET_PATH", None, "folder of the corpus, by default LJSpeech-1.1", published=_DATASET_PATHS
    )
    name: str = variable("NAME", "ljs", "first part of the lists' names")
    filelists: Path = variable("FILELISTS", Path("filelists"), "folder of the lists")
    train_filelist: Path | None = variable(
        "TRAIN_FILELIST", None, "list to train on, instead of the one of that name", published=("DATASET_FILELIST",)
    )
    val_filelist: Path | None = variable("VAL_FILELIST", None, "list to validate on, with TRAIN_FILELIST")
    output_dir: Path | None = variable("OUTPUT_DIR", None, "folder for the results, by default data/mels-NAME")
    batch_size: int = variable("BATCH_SIZE", 32, "utterances of a batch", least=1)


def extract_fine_tune_mels(environ: dict[str, str], words: list[str]) -> None:
    """Make a generator's mels of a corpus."""
    own: MelVariables = read_variables(MelVariables, environ)
    check_name("NAME", own.name)
    if own.val_filelist and own.train_filelist is None:
        raise OptionError(f"VAL_FILELIST={own.val_filelist}: set TRAIN_FILELIST as well")
    checkpoint = own.fastpitch or find_newest("FASTPITCH", "FastPitch", train="train.sh")
    options = given(checkpoint=checkpoint, dataset_path=own.dataset_path or train.find_ljspeech())
    if own.train_filelist:
        options += ["--filelist", own.train_filelist, *([own.val_filelist] if own.val_filelist else [])]
    else:
        options += ["--lists", own.filelists / own.name]
    options += given(output=own.output_dir or Path(f"data/mels-{own.name}"), batch_size=own.batch_size)
    exec_or_print([python(), "extract_mels.py", *options, "--resume", *own.flags(), *words])


@dataclass(frozen=True)
class DigitsVariables(Device):
    """Variables of train_digits.sh."""

    dataset: Path = variable("DATASET", Path("fsdd"), "folder that holds recordings/")
    output_dir: Path = variable("OUTPUT_DIR", Path("output/digits"), "folder for the results")
    model_config: Path = variable(
        "MODEL_CONFIG", Path("jasper/configs/jasper_digits.yaml"), "YAML file that configures Jasper"
    )
    epochs: int = variable("EPOCHS", 28, "epochs in total", least=1)
    warmup_epochs: int = variable("WARMUP_EPOCHS", 2, "epochs in which the learning rate rises", least=0)
    hold_epochs: int = variable("HOLD_EPOCHS", 8, "epochs at the full learning rate", least=0)
    learning_rate: float = variable("LEARNING_RATE", 0.02, "learning rate", above=0)
    batch_size: int = variable("BATCH_SIZE", 8, "recordings of a micro-batch; batches are length-bucketed", least=1)
    accumulation: int = variable("GRAD_ACCUMULATION", 4, "micro-batches of an update", least=1)
    seed: int = variable("SEED", 0, "seed of everything random", least=0)


def train_digits(environ: dict[str, str], words: list[str]) -> None:
    """Train a small Jasper on spoken digits, and print its word error rate."""
    own: DigitsVariables = read_variables(DigitsVariables, environ)
    recordings, output = own.dataset / "recordings", own.output_dir
    what = "no such folder; run scripts/download_fsdd.sh, or set DATASET to the Free Spoken Digit Dataset's"
    _require(recordings, exists=recordings.is_dir(), what=what)
    options = given(
        model="Jasper",
        model_config=own.model_config,
        output=output,
        seed=own.seed,
        dataset_path=recordings,
        training_files=output / "train.txt",
        validation_files=output / "test.txt",
        epochs=own.epochs,
        epochs_per_checkpoint=5,
        keep_milestones=own.epochs,
        validation_interval=5,
        samples_interval=own.epochs,
        learning_rate=own.learning_rate,
        lr_policy="polynomial",
        warmup_epochs=own.warmup_epochs,
        hold_epochs=own.hold_epochs,
        batch_size=own.batch_size,
        gradient_accumulation_steps=own.accumulation,
        ema_decay=0.99,
    )
    flags = replace(own, ema=None).flags()
    require_gpus(own.number(1))
    run_or_print([python(), "-m", "scripts.datasets.make_digits_lists", own.dataset, output])
    start = time.monotonic()
    run_or_print([python(), "train.py", *options, *flags, *words])
    took, cpu = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    checkpoint = output / f"Jasper_checkpoint_{own.epochs}.pt"
    options = ["--jasper", checkpoint, "--ema", "--quiet", "--dataset-path", recordings]
    options += given(input=output / "test.txt", output=output / "transcripts.tsv")
    run_or_print([python(), "inference.py", *options, *flags])
    if not dry_run():
        print(f"training took {took:.3f} s, and {cpu:.3f} s of CPU time")


@dataclass(frozen=True)
class VoicesVariables(Gpus):
    """Variables of train_voices.sh."""

    dataset_path: Path | None = variable(
        "DATASET_PATH", None, "folder of the recordings, in LJSpeech's layout; by default LJSpeech-1.1"
    )
    held_back: tuple[str, ...] = variable(
        "HELD_BACK", tuple(f"LJ001-{number:04}" for number in range(73, 81)), "its clips that are not trained on"
    )
    output_dir: Path = variable("OUTPUT_DIR", Path("output/voices"), "folder for corpora, lists and checkpoints")
    voices: Path = variable("VOICES", Path("voices"), "folder for the two files")
    stages: tuple[str, ...] = variable(
        "STAGES", ("data", "vocoder", "voice"), "what to do", choices=("data", "vocoder", "voice")
    )
    vocoder_epochs: int = variable("VOCODER_EPOCHS", 100, "epochs of the vocoder", least=1)
    base_epochs: int = variable(
        "BASE_EPOCHS", 12, "epochs of the voice on embedded speakers and the recordings", least=1
    )
    voice_epochs: int = variable("VOICE_EPOCHS", 200, "epochs of its fine-tuning", least=1)


def train_voices(environ: dict[str, str], words: list[str]) -> None:
    """Train the voice and the vocoder that the project ships."""
    own: VoicesVariables = read_variables(VoicesVariables, environ)
    if words:
        raise OptionError(f"{' '.join(words)}: expected no arguments")
    gpus, data = str(own.number(1)), own.output_dir / "data"
    stages = {"data": _make_voice_data, "vocoder": _train_vocoder, "voice": _train_voice}
    for name, stage in stages.items():
        if name in own.stages:
            stage(own, gpus, data)
    measuring = [own.voices / "vocoder-small.pt", data / "held_back.txt", "--dataset-path", data]
    print_next("to measure the vocoder", ["bash", "scripts/evaluate_voice.sh", *measuring])


def _run_once(file: Path, command: Sequence[str | Path]) -> None:
    """Run a command unless the file that it makes is there."""
    if file.is_file() and not dry_run():
        print(f"{file} is there", flush=True)
    else:
        run_or_print(command)


def _strip(dtype: str, checkpoint: Path, file: Path) -> None:
    """Write the weights that infer, anew."""
    if not dry_run():
        file.unlink(missing_ok=True)
    run_or_print([python(), "-m", "scripts.strip_checkpoint", "--dtype", dtype, checkpoint, file])


def _make_voice_data(own: VoicesVariables, gpus: str, data: Path) -> None:
    corpus = own.dataset_path or train.find_ljspeech()
    if not corpus.is_dir():
        _require(corpus, exists=own.dataset_path is None, what="no such folder; it holds wavs/ and metadata.csv")
        run_or_print(["bash", "scripts/download_dataset.sh"])
    options = ["-o", data, "--recordings", corpus, "--held-back", *own.held_back]
    _run_once(data / "vocoder_train.txt", [python(), "-m", "scripts.datasets.voice_data", *options])


def _train_vocoder(own: VoicesVariables, gpus: str, data: Path) -> None:
    folder = own.output_dir / "vocoder"
    checkpoint = folder / f"Harmonic_checkpoint_{own.vocoder_epochs}.pt"
    settings = {"MODEL": "Harmonic", "NUM_GPUS": gpus, "OUTPUT_DIR": str(folder), "DATASET_PATH": str(data)}
    settings |= {"TRAIN_FILELIST": f"{data}/vocoder_train.txt", "VAL_FILELIST": f"{data}/vocoder_val.txt"}
    settings |= {"EPOCHS": str(own.vocoder_epochs), "EPOCHS_PER_CHECKPOINT": "5", "KEEP_CHECKPOINTS": "2"}
    _run_once(checkpoint, train.command(settings, ["--resume"]))
    _strip("float16", checkpoint, own.voices / "vocoder-small.pt")


def _settings(text: str) -> dict[str, str]:
    return dict(word.split("=") for word in text.split())


def _train_voice(own: VoicesVariables, gpus: str, data: Path) -> None:
    size = "--in-fft-n-layers 4 --out-fft-n-layers 4 --in-fft-conv1d-filter-size 384 --out-fft-conv1d-filter-size 384"
    size += " --symbols-embedding-dim 192 --in-fft-output-size 192 --out-fft-output-size 192 --mean-mel-bias"
    cache = ["--pitch-cache", str(own.output_dir / "pitch_cache")]
    every = {"NUM_GPUS": gpus, "AMP": "true", "GRAD_CLIP": "5", "EMA": "0.99", "KEEP_CHECKPOINTS": "2"}
    folder = own.output_dir / "base"
    base = folder / f"FastPitch_checkpoint_{own.base_epochs}.pt"
    settings = every | {"MODEL": "FastPitch", "OUTPUT_DIR": str(folder), "DATASET_PATH": str(data)}
    settings |= {"TRAIN_FILELIST": f"{data}/base_train.txt", "VAL_FILELIST": f"{data}/lj_val.txt"}
    settings |= _settings(
        f"LEARNED_ALIGNMENT=true ENERGY=true INPUT_TYPE=phone SYMBOL_SET=ipa_marked NUM_SPEAKERS=4 BS=8 "
        f"GRAD_ACCUMULATION=1 EPOCHS={own.base_epochs} LEARNING_RATE=1.4e-2 WARMUP_STEPS=250 EPOCHS_PER_CHECKPOINT=1 "
        "VALIDATION_INTERVAL=1"
    )
    words = f"--optimizer adam --g2p espeak --g2p-language en-us {size} --resume".split()
    words += ["--kl-loss-start-epoch", "2", "--kl-loss-warmup-epochs", "2", *cache]
    _run_once(base, train.command(settings, words))
    folder = own.output_dir / "lj"
    voice = folder / f"FastPitch_checkpoint_{own.voice_epochs}.pt"
    settings = every | {"SPEAKER": "lj", "OUTPUT_DIR": str(folder)}
    settings |= {"TRAIN_FILELIST": f"{data}/lj_train.txt", "VAL_FILELIST": f"{data}/lj_val.txt"}
    settings |= _settings(
        f"BS=4 EPOCHS={own.voice_epochs} LEARNING_RATE=7e-3 WARMUP_STEPS=100 EPOCHS_PER_CHECKPOINT=10 "
        "VALIDATION_INTERVAL=10 KL_LOSS_START_EPOCH=0 KL_LOSS_WARMUP_EPOCHS=1"
    )
    (finetuning,) = _finetuning(settings, [str(base), str(data), "--optimizer", "adam", *cache])
    _run_once(voice, finetuning)
    _strip("bfloat16", voice, own.voices / "lj-small.pt")


_IN_LISTS = {
    "LOAD_MEL_FROM_DISK": "the columns of the lists say what is read; leave it out",
    "LOAD_PITCH_FROM_DISK": "a column of pitch in the list says it; leave it out",
    "SAMPLING_RATE": train.REMOVED["SAMPLING_RATE"],
}
SCRIPTS = {
    "finetune_voice": Script(finetune_voice, {VoiceVariables: ()}, calls="scripts/train.sh"),
    "fine_tune": Script(fine_tune, {FineTuneVariables: ()}, calls="scripts/train.sh"),
    "extract_fine_tune_mels": Script(extract_fine_tune_mels, {MelVariables: ()}, removed=_IN_LISTS),
    "train_digits": Script(train_digits, {DigitsVariables: ()}),
    "train_voices": Script(train_voices, {VoicesVariables: ()}),
}
