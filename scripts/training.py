"""Scripts that train in several steps or places, such as finetune_voice, train_digits and slurm_train."""

import itertools
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.checkpoints.options import EmaOptions
from common.cli import ComputingOptions
from common.errors import InputError, OptionError
from common.evaluation.options import GRIFFIN_LIM
from common.files import read_lines, write_text
from common.importing.options import SPEAKERS, name_import
from scripts import launch, train
from scripts.datasets.make_filelists import SPLITS, ListOptions
from scripts.launch import MODELS, Given, GpuSettings, count, cuda, options, python, script, setting
from scripts.speaking import SHIPPED, find_newest
from scripts.train import CorpusSettings, TrainSettings, training_options

_UPDATES = 1000  # of a voice that is fine-tuned: minutes on a CPU
_SET_APART = (6, 2, 20)  # of a new voice's clips: one of so many, at least, at most


@dataclass(frozen=True)
class FinetuneSettings(TrainSettings):
    """How a voice is fine-tuned."""

    speaker: str | None = setting("SPEAKER", None, "the new voice's name; by default NAME, or that of the folder")


@script(
    FinetuneSettings,
    lambda model: training_options("FastPitch"),
    defaults="NUM_SPEAKERS=auto LEARNING_RATE=7e-3 WARMUP_STEPS=100 EMA=0.99 AMP=true GRAD_CLIP=5",
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
    is_aligned = launch.dry_run() or read_model(checkpoint)[1].config.get("learned_alignment")
    start, share = (0, 1) if is_aligned else (epochs // 10, max(1, epochs // 10))
    chosen = options(epochs=epochs, kl_loss_start_epoch=start, kl_loss_warmup_epochs=share)
    chosen += options(epochs_per_checkpoint=max(1, epochs // 10), validation_interval=max(1, epochs // 10))
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
        phrases = folder.with_suffix(".tsv")
        listing = [*options(output=phrases), *["--no-speakers"] * (name == "before")]
        launch.run_or_print([python(), "-m", "scripts.datasets.spoken_list", validation, *listing])
        measuring = [*options(dataset_path=corpus, output=folder), *switches]
        launch.run_or_print([python(), "-m", "scripts.evaluate_voice", voice, vocoder, phrases, *measuring])


@dataclass(frozen=True)
class VocoderSettings(TrainSettings):
    """How a vocoder is fine-tuned."""

    hifigan: str | None = setting("HIFIGAN", None, "checkpoint of the vocoder; empty: the newest")
    input_mels_dir: Path | None = setting("INPUT_MELS_DIR FINE_TUNE_DIR", None, "mels; empty: data/mels-NAME")


@script(VocoderSettings, lambda model: training_options("HiFi-GAN"), defaults="EPOCHS=10000 FINE_TUNE_LR_FACTOR=3")
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


@script(TeacherSettings, [ComputingOptions, EmaOptions])
def extract_fine_tune_mels(own: TeacherSettings, given: Given) -> None:
    """Make a generator's mels of a corpus."""
    checkpoint = own.fastpitch or find_newest("FastPitch", own.trained)
    chosen = options(checkpoint=checkpoint, dataset_path=own.dataset_path or train.find_ljspeech())
    if own.train_filelist:
        chosen += ["--filelist", own.train_filelist, *([own.val_filelist] if own.val_filelist else [])]
    else:
        chosen += ["--lists", own.filelists / own.name]
    chosen += options(output=own.output_dir or Path(f"data/mels-{own.name}"), batch_size=own.batch_size)
    program = [python(), launch.program("extract_mels.py")]
    launch.exec_or_print([*program, *chosen, "--resume", *given.passed, *cuda(own), *given.words])


@dataclass(frozen=True)
class DigitSettings(GpuSettings):
    """A corpus of digits, and how long it is trained on."""

    dataset: Path = setting("DATASET", Path("fsdd"), "folder of the Free Spoken Digit Dataset")
    output_dir: Path = setting("OUTPUT_DIR", Path("output/digits"), "folder for the results")
    epochs: int = count("EPOCHS", 28, "epochs in total")
    batch_size: int = count("BATCH_SIZE BS", 8, "utterances of a batch")


@script(
    DigitSettings,
    lambda model: training_options("Jasper"),
    defaults="MODEL_CONFIG=jasper/configs/jasper_digits.yaml WARMUP_EPOCHS=2 HOLD_EPOCHS=8 LEARNING_RATE=0.02 "
    "LR_POLICY=polynomial GRAD_ACCUMULATION=4 SEED=0 EMA=0.99 EPOCHS_PER_CHECKPOINT=5 VALIDATION_INTERVAL=5",
)
def train_digits(own: DigitSettings, given: Given) -> None:
    """Train a small Jasper on spoken digits, and print its word error rate."""
    output, epochs = own.output_dir, own.epochs
    recordings = launch.require(
        own.dataset / "recordings", "no such folder; run scripts/download_fsdd.sh, or set DATASET"
    )
    chosen = options(model="Jasper", output=output, dataset_path=recordings, batch_size=own.batch_size, epochs=epochs)
    chosen += options(training_files=output / "train.txt", validation_files=output / "test.txt")
    chosen += options(keep_milestones=epochs, samples_interval=epochs)
    if not launch.dry_run():
        list_digits(recordings, output)
    launch.run_or_print([python(), launch.program("train.py"), *chosen, *given.passed, *cuda(own), *given.words])
    chosen = options(jasper=output / f"Jasper_checkpoint_{epochs}.pt", dataset_path=recordings)
    chosen += [*options(input=output / "test.txt", output=output / "transcripts.tsv"), "--ema", "--quiet", *cuda(own)]
    launch.run_or_print(
        [python(), launch.program("inference.py"), *chosen, *launch.words_for(given.environ, ComputingOptions)]
    )


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def list_digits(recordings: Path, output: Path) -> None:
    """Write ``train.txt`` and ``test.txt`` with lines ``7_george_12.wav|seven``; takes 0 to 4 are for testing.

    Raises:
        InputError: a recording has another name.
    """
    lines: dict[str, list[str]] = {"train": [], "test": []}
    for path in sorted(recordings.glob("*.wav")):
        found = re.fullmatch(r"(\d)_[a-z]+_(\d+)\.wav", path.name)
        if found is None:
            raise InputError(f"{path}: expected a name like 7_george_12.wav, of digit, speaker and take")
        lines["test" if int(found[2]) < 5 else "train"].append(f"{path.name}|{_DIGITS[int(found[1])]}")
    for name, rows in lines.items():
        write_text(output / f"{name}.txt", "\n".join(rows) + "\n")
        print(f"{output / name}.txt: {len(rows)} recordings", flush=True)


_STAGES = ("data", "vocoder", "voice")
# What all trainings of the shipped voice have.
_VOICE = "--learned-alignment --amp --grad-clip-thresh 5 --ema-decay 0.99 --optimizer adam"
_BASE = f"{_VOICE} --size small --energy-conditioning --input-type phone --symbol-set espeak --n-speakers 4 "
_BASE += "--epochs-per-checkpoint 1 --validation-interval 1 --kl-loss-start-epoch 2 --kl-loss-warmup-epochs 2 "
_BASE += "--g2p espeak --g2p-language en-us"
_FINE_TUNING = f"{_VOICE} --n-speakers auto --learning-rate 7e-3 --warmup-steps 100 --epochs-per-checkpoint 10 "
_FINE_TUNING += "--validation-interval 10 --kl-loss-start-epoch 0 --kl-loss-warmup-epochs 1"


@dataclass(frozen=True)
class ShippedSettings(GpuSettings):
    """How the shipped voice is made."""

    dataset_path: Path | None = setting(train.DATASET_PATH, None, "corpus; empty: the published one")
    output_dir: Path = setting("OUTPUT_DIR", Path("output/voices"), "folder for the results")
    held_back: tuple[str, ...] = setting(
        "HELD_BACK", (), "its clips that are not trained on; empty: LJ001-0073 to 0080"
    )
    voices: Path = setting("VOICES", Path("voices"), "folder for the two files")
    stages: tuple[str, ...] = setting("STAGES", _STAGES, "what to do", choices=_STAGES)
    vocoder_epochs: int = count("VOCODER_EPOCHS", 100, "epochs of the vocoder")
    base_epochs: int = count("BASE_EPOCHS", 12, "epochs of the voice on embedded speakers and the recordings")
    voice_epochs: int = count("VOICE_EPOCHS", 200, "epochs of its fine-tuning")


@script(ShippedSettings)
def train_voices(own: ShippedSettings, given: Given) -> None:
    """Train the voice and the vocoder that the project ships."""
    output, data = own.output_dir, own.output_dir / "data"
    if "data" in own.stages:
        corpus = own.dataset_path or train.find_ljspeech()
        if own.dataset_path:
            launch.require(corpus, "no such folder; it holds wavs/ and metadata.csv")
        elif not corpus.is_dir():
            launch.run_or_print(["bash", launch.program("scripts/download_dataset.sh")])
        chosen = ["-o", data, "--recordings", corpus, *(["--held-back", *own.held_back] if own.held_back else [])]
        _run_once(data / "vocoder_train.txt", [python(), "-m", "scripts.datasets.voice_data", *chosen])
    if "vocoder" in own.stages:
        settings = ["--epochs-per-checkpoint", "5"]
        _strip(
            "float16", _train(own, "vocoder", "vocoder", own.vocoder_epochs, settings), own.voices / "vocoder-small.pt"
        )
    if "voice" in own.stages:
        cache = options(pitch_cache=output / "pitch_cache")
        base = _train(own, "base", "base", own.base_epochs, [*_BASE.split(), *cache], bs=8)
        chosen = [*_FINE_TUNING.split(), *cache, "--from-checkpoint", base]
        _strip("bfloat16", _train(own, "lj", "lj", own.voice_epochs, chosen, bs=4), own.voices / "lj-small.pt")
    measuring = [own.voices / "vocoder-small.pt", data / "held_back.txt", "--dataset-path", data]
    launch.print_next("to measure the vocoder", ["bash", "scripts/evaluate_voice.sh", *measuring])


def _run_once(file: Path, command: Sequence[str | Path]) -> None:
    """Run a command unless the file that it makes is there."""
    if file.is_file() and not launch.dry_run():
        print(f"{file} is there", flush=True)
    else:
        launch.run_or_print(command)


def _strip(dtype: str, checkpoint: Path, file: Path) -> None:
    """Write the weights that infer, anew."""
    if not launch.dry_run():
        file.unlink(missing_ok=True)
    launch.run_or_print([python(), "-m", "scripts.checkpoint_tools", "strip", "--dtype", dtype, checkpoint, file])


def _train(
    own: ShippedSettings, name: str, lists: str, epochs: int, words: Sequence[str | Path], bs: int | None = None
) -> Path:
    """Train in the folder ``name`` on lists of that name; returns the last epoch's checkpoint."""
    model, data = "Harmonic" if name == "vocoder" else "FastPitch", own.output_dir / "data"
    validation = data / f"{'lj' if lists == 'base' else lists}_val.txt"
    settings = TrainSettings(
        num_gpus=str(launch.number_of_gpus(own, 1)),
        model=model,
        dataset_path=data,
        output_dir=own.output_dir / name,
        train_filelist=data / f"{lists}_train.txt",
        val_filelist=validation,
        bs=bs,
        learned="true",
    )
    chosen = [*options(epochs=epochs, keep_checkpoints=2), *words, "--resume"]
    checkpoint = own.output_dir / name / f"{model}_checkpoint_{epochs}.pt"
    _run_once(checkpoint, train.command(settings, Given([], [], {}), *chosen))
    return checkpoint


@dataclass(frozen=True)
class SlurmSettings(TrainSettings):
    """What a Slurm job trains."""

    train_script: str = setting("TRAIN_SCRIPT", "scripts/train.sh", "script whose MODEL is trained, instead of MODEL")


# A task of Slurm, as a process of torch.distributed.
_TASK = """RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=$TASKS_PER_NODE \\
exec bash "$0" --resume "$@"
"""


@script(SlurmSettings, models=MODELS, defaults="PORT=29500")
def slurm_train(own: SlurmSettings, given: Given) -> None:
    """Start the processes of a Slurm job, and give the job back to the queue where they stopped early."""
    if "SLURM_JOB_ID" not in given.environ:
        raise InputError("this is not a Slurm job; submit it: sbatch --nodes 2 scripts/slurm_train.sh")
    named = re.search(r"^MODEL=(\S+) ", Path(own.train_script).read_text("utf-8"), re.MULTILINE)
    model = named[1] if named else own.model
    if own.num_gpus == "auto":
        own = replace(own, num_gpus=given.environ.get("SLURM_GPUS_ON_NODE", "auto"))
    gpus, accumulation = launch.number_of_gpus(own), own.accumulation or 1
    tasks_per_node = max(gpus, 1)
    n_tasks = int(given.environ["SLURM_JOB_NUM_NODES"]) * tasks_per_node
    settings: dict[str, object] = {"MODEL": model, "NUM_GPUS": gpus, "GRAD_ACCUMULATION": accumulation}
    least, most = launch.GLOBAL_BATCHES[model]
    if (least == most or model == "Jasper") and own.bs is None:
        settings["BS"] = max(1, least // (n_tasks * accumulation))
    names = ["scontrol", "show", "hostnames", given.environ["SLURM_JOB_NODELIST"]]
    listed = subprocess.run(names, stdout=subprocess.PIPE, text=True, check=True)
    settings |= {"MASTER_ADDR": listed.stdout.split()[0], "MASTER_PORT": own.port, "TASKS_PER_NODE": tasks_per_node}
    environ = dict(given.environ) | {name: str(value) for name, value in settings.items()}
    # One task a GPU and no launcher between: each process gets a signal exactly once.
    # --wait lets slower processes save after the first has ended.
    command = ["srun", f"--ntasks-per-node={tasks_per_node}", f"--ntasks={n_tasks}", "--kill-on-bad-exit=0"]
    command += ["--wait=120", "bash", "-c", _TASK, str(launch.program("scripts/train.sh")), *given.words]
    signal.signal(signal.SIGTERM, lambda *_: None)  # the processes get it from Slurm too; this one must outlive them
    status = subprocess.run(command, env=environ, check=False).returncode
    if status == 128 + signal.SIGTERM:  # stopped early with its state saved
        print("stopped early; the job goes back into the queue", flush=True)
        # A preempted job is in the queue already.
        subprocess.run(["scontrol", "requeue", given.environ["SLURM_JOB_ID"]], check=False)
    raise SystemExit(status if status >= 0 else 128 - status)
