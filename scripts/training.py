"""Scripts that train in several steps or places: fine_tune, finetune_voice, train_digits, train_voices, slurm_train."""

import itertools
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.checkpoints.options import EmaOptions
from common.cli import ComputingOptions
from common.errors import InputError, OptionError
from common.evaluation.options import GRIFFIN_LIM
from common.files import read_lines, write_text
from common.importing.options import SPEAKERS, name_import
from scripts import launch, train
from scripts.datasets.make_filelists import SPLITS, ListOptions
from scripts.launch import GPU, MODELS, cuda, given, python, script
from scripts.speaking import SHIPPED, find_newest
from scripts.variables import Variables

_UPDATES = 1000  # of a voice that is fine-tuned: minutes on a CPU
_SET_APART = (6, 2, 20)  # of a new voice's clips: one of so many, at least, at most


@script(
    {f"{GPU} speaker train_filelist val_filelist output_dir": (), ListOptions: ()},
    defaults="NUM_SPEAKERS=auto LEARNING_RATE=7e-3 WARMUP_STEPS=100 EMA=0.99 AMP=true GRAD_CLIP=5",
    trains=train.train,
)
def finetune_voice(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Fine-tune a FastPitch to a new voice, on lists that are given or made, and evaluate both."""
    from common.checkpoints.loading import read_model

    named = [Path(word) for word in itertools.takewhile(lambda word: not word.startswith("-"), words)]
    if len(named) not in (1, 2) or named[-1].suffix == ".pt" or named[-1].is_file():
        raise OptionError("expected: bash scripts/finetune_voice.sh [CHECKPOINT] DATASET [options of train.py]")
    words = words[len(named) :]
    checkpoint = launch.require(named[0], "no such checkpoint") if len(named) > 1 else SHIPPED["FastPitch"]
    corpus = launch.require(named[-1], "no such folder")
    speaker = own.speaker or corpus.resolve().name
    output = own.output_dir or Path("output") / speaker
    training, validation = own.train_filelist, own.val_filelist or own.train_filelist
    if training is None:
        training, validation = (output / f"filelists/{speaker}_audio_text_{split}_filelist.txt" for split in SPLITS[:2])
        _list_clips(corpus, speaker, own, environ, training.parent)
    environ = environ | {"TRAIN_FILELIST": str(training), "VAL_FILELIST": str(validation), "OUTPUT_DIR": str(output)}
    environ |= {"MODEL": "FastPitch", "LEARNED_ALIGNMENT": "true", "DATASET_PATH": str(corpus)}
    n_clips = len(read_lines(training)) if training.is_file() else 64  # in a dry run
    batch = int(environ.get("BS") or min(8, n_clips))
    epochs = max(1, _UPDATES // max(1, n_clips // batch))
    is_aligned = launch.dry_run() or getattr(read_model(checkpoint)[1].config, "learned_alignment", False)
    chosen = {"BS": batch, "EPOCHS": epochs, "KL_LOSS_START_EPOCH": 0 if is_aligned else epochs // 10}
    chosen |= dict.fromkeys(("EPOCHS_PER_CHECKPOINT", "VALIDATION_INTERVAL"), max(1, epochs // 10))
    chosen |= {"KL_LOSS_WARMUP_EPOCHS": 1 if is_aligned else max(1, epochs // 10)}
    environ |= {name: environ.get(name) or str(value) for name, value in chosen.items()}
    if own.num_gpus == "auto":
        environ["NUM_GPUS"] = str(min(launch.number_of_gpus(own), 1))
    options = given(from_checkpoint=checkpoint, optimizer="adam")
    launch.run_or_print(train.command(environ, [*options, "--resume", *words]))
    if own.train_filelist is None and validation is not None:
        tuned = output / f"FastPitch_checkpoint_{environ['EPOCHS']}.pt"
        if not launch.dry_run():  # its arguments may say other epochs
            tuned = max(output.glob("FastPitch_checkpoint_*.pt"), key=lambda path: path.stat().st_mtime)
        _evaluate_both(checkpoint, tuned, validation, corpus, own)


def _list_clips(corpus: Path, speaker: str, own: Variables, environ: dict[str, str], folder: Path) -> None:
    """Write the lists of a corpus, with some of its clips set apart for validation."""
    wanted = f"no such file; it lists clip|transcript, or set TRAIN_FILELIST{name_import(corpus)}"
    metadata = launch.require(corpus / "metadata.csv", wanted)
    n_clips = len(read_lines(metadata)) if metadata.is_file() else 0
    share, least, most = _SET_APART
    environ["N_VAL"] = environ.get("N_VAL") or str(min(max(n_clips // share, least), most))
    named = None if own.speaker is None and (corpus / SPEAKERS).is_file() else speaker
    options = given(dataset_path=corpus, output=folder, name=speaker, n_test=0, speaker=named)
    options += finetune_voice.passed_on(environ)
    launch.run_or_print([python(), "-m", "scripts.datasets.make_filelists", *options])


def _evaluate_both(checkpoint: Path, tuned: Path, validation: Path, corpus: Path, own: Variables) -> None:
    """Print what evaluate_voice.sh says of the voice before and after, on the clips that were set apart."""
    from common.checkpoints.loading import read_model
    from common.synthesis.loading import shipped_vocoder

    vocoder = SHIPPED["Harmonic"] if checkpoint == SHIPPED["FastPitch"] else Path(GRIFFIN_LIM)
    if not launch.dry_run():
        if not validation.is_file():
            print("no clips were set apart (N_VAL): nothing is evaluated")
            return
        vocoder = getattr(shipped_vocoder(read_model(tuned)[1].audio), "path", Path(GRIFFIN_LIM))
    switches = cuda(replace(own, num_gpus=str(min(launch.number_of_gpus(own), 1))))
    for name, voice in (("before", checkpoint), ("after", tuned)):
        folder = tuned.parent / "evaluation" / name
        phrases = folder.with_suffix(".tsv")
        options = [*given(output=phrases), *["--no-speakers"] * (name == "before")]
        launch.run_or_print([python(), "-m", "scripts.datasets.spoken_list", validation, *options])
        options = [*given(dataset_path=corpus, output=folder), *switches]
        launch.run_or_print([python(), "-m", "scripts.evaluate_voice", voice, vocoder, phrases, *options])


@script(
    {"hifigan name input_mels_dir output_dir": ()},
    defaults="OUTPUT_DIR=output/fine_tune EPOCHS=10000 FINE_TUNE_LR_FACTOR=3",
    trains=train.train,
)
def fine_tune(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Fine-tune HiFi-GAN on a generator's mels."""
    mels, output = own.input_mels_dir or Path(f"data/mels-{own.name}"), own.output_dir or Path()
    launch.require(mels, "no such folder; scripts/extract_fine_tune_mels.sh makes it, or set INPUT_MELS_DIR")
    initial = ["--resume"]
    if not [*output.glob("HiFi-GAN_checkpoint_*.pt")]:
        initial = given(checkpoint_path=own.hifigan or find_newest("HiFi-GAN"))
    environ |= {"MODEL": "HiFi-GAN", "INPUT_MELS_DIR": str(mels)}
    launch.exec_or_print(train.command(environ, [*initial, *words]))


@script(
    {
        f"{GPU} fastpitch dataset_path name filelists train_filelist val_filelist output_dir batch_size": (),
        ComputingOptions: (),
        EmaOptions: (),
    },
    removed="LOAD_MEL_FROM_DISK LOAD_PITCH_FROM_DISK SAMPLING_RATE",
)
def extract_fine_tune_mels(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Make a generator's mels of a corpus."""
    checkpoint = own.fastpitch or find_newest("FastPitch")
    options = given(checkpoint=checkpoint, dataset_path=own.dataset_path or train.find_ljspeech())
    if own.train_filelist:
        options += ["--filelist", own.train_filelist, *([own.val_filelist] if own.val_filelist else [])]
    else:
        options += ["--lists", own.filelists / own.name]
    options += given(output=own.output_dir or Path(f"data/mels-{own.name}"), batch_size=own.batch_size)
    options += ["--resume", *extract_fine_tune_mels.passed_on(environ), *cuda(own)]
    launch.exec_or_print([python(), "extract_mels.py", *options, *words])


@script(
    {f"{GPU} dataset output_dir epochs batch_size": (), ComputingOptions: ()},
    defaults="OUTPUT_DIR=output/digits MODEL_CONFIG=jasper/configs/jasper_digits.yaml EPOCHS=28 WARMUP_EPOCHS=2 "
    "HOLD_EPOCHS=8 LEARNING_RATE=0.02 LR_POLICY=polynomial BATCH_SIZE=8 GRAD_ACCUMULATION=4 SEED=0 EMA=0.99 "
    "EPOCHS_PER_CHECKPOINT=5 VALIDATION_INTERVAL=5",
    trains=train.train,
)
def train_digits(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Train a small Jasper on spoken digits, and print its word error rate."""
    folder, output = Path(own.dataset), own.output_dir or Path()
    recordings = launch.require(folder / "recordings", "no such folder; run scripts/download_fsdd.sh, or set DATASET")
    environ = environ | {"MODEL": "Jasper", "KEEP_MILESTONES": str(own.epochs), "SAMPLES_INTERVAL": str(own.epochs)}
    options = given(model="Jasper", output=output, dataset_path=recordings, batch_size=own.batch_size)
    options += given(training_files=output / "train.txt", validation_files=output / "test.txt")
    options += [*train.train.passed_on(environ), *cuda(own)]
    if not launch.dry_run():
        list_digits(recordings, output)
    launch.run_or_print([python(), "train.py", *options, *words])
    options = given(jasper=output / f"Jasper_checkpoint_{own.epochs}.pt", dataset_path=recordings)
    options += given(input=output / "test.txt", output=output / "transcripts.tsv")
    options += ["--ema", "--quiet", *train_digits.passed_on(environ), *cuda(own)]
    launch.run_or_print([python(), "inference.py", *options])


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


# What all trainings of the shipped voice have, and its network.
_VOICE = "MODEL=FastPitch LEARNED_ALIGNMENT=true AMP=true GRAD_CLIP=5 EMA=0.99 VAL=lj_val "
_NETWORK = "--in-fft-n-layers 4 --out-fft-n-layers 4 --in-fft-conv1d-filter-size 384 --out-fft-conv1d-filter-size 384 "
_NETWORK += "--symbols-embedding-dim 192 --in-fft-output-size 192 --out-fft-output-size 192 --mean-mel-bias "
_NETWORK += "--g2p espeak --g2p-language en-us"
_BASE = _VOICE + "TRAIN=base_train BS=8 GRAD_ACCUMULATION=1 LEARNING_RATE=1.4e-2 ENERGY=true INPUT_TYPE=phone "
_BASE += "SYMBOL_SET=espeak NUM_SPEAKERS=4 WARMUP_STEPS=250 EPOCHS_PER_CHECKPOINT=1 VALIDATION_INTERVAL=1 "
_BASE += "KL_LOSS_START_EPOCH=2 KL_LOSS_WARMUP_EPOCHS=2"
_FINE_TUNING = _VOICE + "TRAIN=lj_train BS=4 NUM_SPEAKERS=auto LEARNING_RATE=7e-3 WARMUP_STEPS=100 "
_FINE_TUNING += "EPOCHS_PER_CHECKPOINT=10 VALIDATION_INTERVAL=10 KL_LOSS_START_EPOCH=0 KL_LOSS_WARMUP_EPOCHS=1"


@script(
    {f"{GPU} dataset_path held_back output_dir voices stages vocoder_epochs base_epochs voice_epochs": ()},
    defaults="OUTPUT_DIR=output/voices",
)
def train_voices(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Train the voice and the vocoder that the project ships."""
    output = own.output_dir or Path()
    data = output / "data"
    own = replace(own, num_gpus=str(launch.number_of_gpus(own, 1)))
    if "data" in own.stages:
        corpus = own.dataset_path or train.find_ljspeech()
        if own.dataset_path:
            launch.require(corpus, "no such folder; it holds wavs/ and metadata.csv")
        elif not corpus.is_dir():
            launch.run_or_print(["bash", "scripts/download_dataset.sh"])
        options = ["-o", data, "--recordings", corpus, "--held-back", *own.held_back]
        _run_once(data / "vocoder_train.txt", [python(), "-m", "scripts.datasets.voice_data", *options])
    if "vocoder" in own.stages:
        settings = "MODEL=Harmonic EPOCHS_PER_CHECKPOINT=5 TRAIN=vocoder_train VAL=vocoder_val"
        vocoder = _train(own, "vocoder", settings, own.vocoder_epochs)
        _strip("float16", vocoder, own.voices / "vocoder-small.pt")
    if "voice" in own.stages:
        options = ["--optimizer", "adam", "--pitch-cache", output / "pitch_cache"]
        base = _train(own, "base", _BASE, own.base_epochs, *options, *_NETWORK.split())
        voice = _train(own, "lj", _FINE_TUNING, own.voice_epochs, *options, "--from-checkpoint", base)
        _strip("bfloat16", voice, own.voices / "lj-small.pt")
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


def _train(own: Variables, name: str, settings: str, epochs: int, *options: str | Path) -> Path:
    """Train in the folder ``name`` with variables in words, and options; returns the last epoch's checkpoint."""
    output = own.output_dir or Path()
    variables = {"EPOCHS": str(epochs), "NUM_GPUS": own.num_gpus, "KEEP_CHECKPOINTS": "2"}
    variables |= {"DATASET_PATH": f"{output}/data", "OUTPUT_DIR": f"{output}/{name}"}
    variables |= dict(word.split("=") for word in settings.split())
    for split in ("TRAIN", "VAL"):
        variables[f"{split}_FILELIST"] = f"{output}/data/{variables.pop(split)}.txt"
    checkpoint = output / name / f"{variables['MODEL']}_checkpoint_{epochs}.pt"
    _run_once(checkpoint, train.command(variables, [*options, "--resume"]))
    return checkpoint


# A task of Slurm, as a process of torch.distributed.
_TASK = """RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=$TASKS_PER_NODE \\
exec bash scripts/train.sh --resume "$@"
"""


@script({f"{GPU} accumulation bs port train_script": ()}, models=MODELS, defaults="PORT=29500", trains=train.train)
def slurm_train(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Start the processes of a Slurm job, and give the job back to the queue where they stopped early."""
    script_text = Path(own.train_script).read_text("utf-8")
    named = re.search(r"^MODEL=(\S+) (run_script train|source) ", script_text, re.MULTILINE)
    model = named[1] if named else own.model
    if own.num_gpus == "auto":
        own = replace(own, num_gpus=environ.get("SLURM_GPUS_ON_NODE", "auto"))
    gpus, accumulation = launch.number_of_gpus(own), own.accumulation or 1
    tasks_per_node = max(gpus, 1)
    n_tasks = int(environ["SLURM_JOB_NUM_NODES"]) * tasks_per_node
    settings: dict[str, object] = {"MODEL": model, "NUM_GPUS": gpus, "GRAD_ACCUMULATION": accumulation}
    least, most = launch.GLOBAL_BATCHES[model]
    if (least == most or model == "Jasper") and own.bs is None:
        settings["BS"] = max(1, least // (n_tasks * accumulation))
    listed = subprocess.run(
        ["scontrol", "show", "hostnames", environ["SLURM_JOB_NODELIST"]], stdout=subprocess.PIPE, text=True, check=True
    )
    settings |= {"MASTER_ADDR": listed.stdout.split()[0], "MASTER_PORT": own.port, "TASKS_PER_NODE": tasks_per_node}
    environ = environ | {name: str(value) for name, value in settings.items()}
    # One task a GPU and no launcher between: each process gets a signal exactly once.
    # --wait lets slower processes save after the first has ended.
    command = ["srun", f"--ntasks-per-node={tasks_per_node}", f"--ntasks={n_tasks}", "--kill-on-bad-exit=0"]
    command += ["--wait=120", "bash", "-c", _TASK, "train", *words]
    signal.signal(signal.SIGTERM, lambda *_: None)  # the processes get it from Slurm too; this one must outlive them
    status = subprocess.run(command, env=environ, check=False).returncode
    if status == 128 + signal.SIGTERM:  # stopped early with its state saved
        print("stopped early; the job goes back into the queue", flush=True)
        # A preempted job is in the queue already.
        subprocess.run(["scontrol", "requeue", environ["SLURM_JOB_ID"]], check=False)
    raise SystemExit(status if status >= 0 else 128 - status)
