"""The shell entry points build the right commands, and the small tools behind them do what they say."""

import http.server
import io
import os
import re
import shlex
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import pytest
import torch

import extract_mels
import train
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig, TextConfig, to_plain
from common.errors import CheckpointError, InputError, OptionError
from common.logger import Logger
from fastpitch.model import ModelConfig
from scripts.benchmarks.train import Figures
from scripts.datasets.download import fetch, unpack
from scripts.download_models import main as download_models
from scripts.benchmarks.largest_batch import measure as measure_batch
from scripts.benchmarks.largest_batch import parse_args as largest_batch_options
from scripts.benchmarks.largest_batch import rows as batch_rows
from scripts.benchmarks.largest_batch import search
from scripts.datasets.make_filelists import main as make_filelists
from scripts.datasets.make_filelists import split_clips
from scripts.train_table import read_run as read_training_run
from scripts.train_table import table as training_table

ROOT = Path(__file__).resolve().parents[1]
SHELL_FILES = sorted([*ROOT.glob("scripts/*.sh"), *ROOT.glob("platform/*.sh"), ROOT / ".ci" / "run"])
# Those of Jasper, whose machines are others, are in test_jasper_scripts.py.
PLATFORMS = sorted(path for path in ROOT.glob("platform/*.sh") if "_Jasper_" not in path.stem)


def run_bash(*words: str | Path, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script with nothing in the environment but ``variables`` and where programs are."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    environment |= {name: str(value) for name, value in variables.items()}
    command = ["bash", *map(str, words)]
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)


def dry_run(script: str | Path, *words: str, **variables: str | Path) -> tuple[list[str], list[str]]:
    """The words before the Python file that a script would run, and those after it."""
    result = run_bash(ROOT / script, *words, DRY_RUN="1", PYTHON="the-python", **variables)
    assert result.returncode == 0, result.stderr
    command = shlex.split(result.stdout.splitlines()[-1])
    at = next(index for index, word in enumerate(command) if word.endswith(".py"))
    return command[: at + 1], command[at + 1 :]


@pytest.mark.parametrize("path", SHELL_FILES, ids=lambda path: path.name)
def test_each_script_is_valid_bash(path: Path):
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True, check=False).stderr == b""
    assert path.name == "lib.sh" or path.read_text().startswith("#!/usr/bin/env bash\n")


def test_train_sh_without_settings_is_the_published_run_on_eight_gpus():
    launcher, options = dry_run("scripts/train.sh")
    assert launcher == ["the-python", *"-m torch.distributed.run --nproc-per-node 8 --standalone train.py".split()]
    args = train.parse_args(options)
    assert (args.model, args.epochs, args.batch_size, args.gradient_accumulation_steps) == ("FastPitch", 1500, 32, 1)
    assert (args.learning_rate, args.warmup_steps, args.optimizer, args.amp, args.cuda) == (
        0.1,
        1000,
        "lamb",
        False,
        True,
    )
    assert args.pitch_mean_std_file == Path("LJSpeech-1.1/pitch_char_stats__ljs_audio_text_train_filelist.json")


def test_train_sh_takes_every_setting_from_the_environment():
    _, options = dry_run(
        "scripts/train.sh",
        "--resume",
        NUM_GPUS="1",
        BS="64",
        GRAD_ACCUMULATION="4",
        AMP="true",
        OUTPUT_DIR="my output",
        EPOCHS="10",
        EPOCHS_PER_CHECKPOINT="5",
        LEARNING_RATE="0.05",
        WARMUP_STEPS="7",
        SEED="3",
        DATASET_PATH="voice",
        TRAIN_FILELIST="lists/a_mel_dur_pitch_text_train.txt",
        VAL_FILELIST="lists/b.txt",
        INPUT_TYPE="phone",
        SYMBOL_SET="arpabet",
        TEXT_CLEANERS="basic_cleaners english_cleaners",
        NUM_SPEAKERS="2",
    )
    args = vars(train.parse_args(options))
    wanted = {
        "resume": True,
        "batch_size": 64,
        "gradient_accumulation_steps": 4,
        "amp": True,
        "cuda": True,
        "output": Path("my output"),
        "epochs": 10,
        "epochs_per_checkpoint": 5,
        "learning_rate": 0.05,
        "warmup_steps": 7,
        "seed": 3,
        "dataset_path": Path("voice"),
        "training_files": Path("lists/a_mel_dur_pitch_text_train.txt"),
        "validation_files": Path("lists/b.txt"),
        "pitch_mean_std_file": Path("voice/pitch_char_stats__a_audio_text_train.json"),
        "input_type": "phone",
        "symbol_set": "arpabet",
        "text_cleaners": ["basic_cleaners", "english_cleaners"],
        "n_speakers": 2,
    }
    assert {name: args[name] for name in wanted} == wanted


def test_train_lj22khz_without_settings_is_the_published_run_of_hifigan_on_eight_gpus():
    launcher, options = dry_run("scripts/train_lj22khz.sh")
    assert launcher == ["the-python", *"-m torch.distributed.run --nproc-per-node 8 --standalone train.py".split()]
    args = train.parse_args(options)
    assert (args.model, args.epochs, args.batch_size, args.gradient_accumulation_steps) == ("HiFi-GAN", 6500, 16, 1)
    assert (args.optimizer, args.learning_rate, args.lr_decay, args.weight_decay) == ("adamw", 3e-4, 0.9998, 0.01)
    assert (args.epochs_per_checkpoint, args.validation_interval, args.samples_interval) == (10, 10, 100)
    assert (tuple(args.adam_betas), args.amp, args.cuda) == ((0.8, 0.99), False, True)
    assert args.training_files == Path("filelists/ljs_audio_train_v3.txt")
    assert args.validation_files == Path("filelists/ljs_audio_val.txt")


def test_train_lj22khz_takes_every_setting_from_the_environment():
    _, options = dry_run(
        "scripts/train_lj22khz.sh",
        *("--no_amp_grouped_conv", "--resume"),
        NUM_GPUS="1",
        BATCH_SIZE="64",
        GRAD_ACCUMULATION="2",
        AMP="true",
        OUTPUT_DIR="my output",
        EPOCHS="10",
        CHECKPOINT_INTERVAL="1",
        VALIDATION_INTERVAL="2",
        SAMPLES_INTERVAL="3",
        LEARNING_RATE="1e-4",
        LR_DECAY="0.999",
        SEED="3",
        DATASET_PATH="voice",
        TRAIN_FILELIST="lists/a.txt",
        VAL_FILELIST="lists/b.txt",
    )
    args = vars(train.parse_args(options))
    wanted = {
        "no_amp_grouped_conv": True,
        "resume": True,
        "batch_size": 64,
        "gradient_accumulation_steps": 2,
        "amp": True,
        "cuda": True,
        "output": Path("my output"),
        "epochs": 10,
        "epochs_per_checkpoint": 1,
        "validation_interval": 2,
        "samples_interval": 3,
        "learning_rate": 1e-4,
        "lr_decay": 0.999,
        "seed": 3,
        "dataset_path": Path("voice"),
        "training_files": Path("lists/a.txt"),
        "validation_files": Path("lists/b.txt"),
    }
    assert {name: args[name] for name in wanted} == wanted
    assert train.parse_args(dry_run("scripts/train_lj22khz.sh", BS="32")[1]).batch_size == 32


def test_train_tacotron2_without_settings_is_the_published_run_on_eight_gpus():
    launcher, options = dry_run("scripts/train_tacotron2.sh")
    assert launcher == ["the-python", *"-m torch.distributed.run --nproc-per-node 8 --standalone train.py".split()]
    args = train.parse_args(options)
    assert (args.model, args.epochs, args.batch_size, args.gradient_accumulation_steps) == ("Tacotron2", 1501, 48, 1)
    assert (args.optimizer, args.learning_rate, args.weight_decay, args.grad_clip_thresh) == ("adam", 1e-3, 1e-6, 1.0)
    assert (args.anneal_steps, args.anneal_factor, args.epochs_per_checkpoint) == ([500, 1000, 1500], 0.1, 50)
    assert (args.load_mel_from_disk, args.amp, args.cuda) == (True, False, True)
    assert args.training_files == Path("filelists/ljs_mel_text_train_filelist.txt")
    mixed = train.parse_args(dry_run("scripts/train_tacotron2.sh", AMP="true")[1])
    assert (mixed.batch_size, mixed.anneal_factor, mixed.amp) == (104, 0.3, True)


def test_train_tacotron2_takes_every_setting_from_the_environment():
    variables = {"NUM_GPUS": "0", "BS": "8", "GRAD_ACCUMULATION": "6", "OUTPUT_DIR": "my output", "EPOCHS": "10"}
    variables |= {"EPOCHS_PER_CHECKPOINT": "5", "LEARNING_RATE": "2e-3", "ANNEAL_STEPS": "none", "ANNEAL_FACTOR": "0.5"}
    variables |= {"WEIGHT_DECAY": "0", "GRAD_CLIP": "2", "SEED": "3", "DATASET_PATH": "voice", "INPUT_TYPE": "phone"}
    variables |= {"LOAD_MEL_FROM_DISK": "false", "VAL_FILELIST": "lists/b.txt", "TEXT_CLEANERS": "basic_cleaners"}
    args = vars(train.parse_args(dry_run("scripts/train_tacotron2.sh", "--resume", **variables)[1]))
    wanted = {
        "resume": True,
        "cuda": False,
        "batch_size": 8,
        "gradient_accumulation_steps": 6,
        "output": Path("my output"),
        "epochs": 10,
        "epochs_per_checkpoint": 5,
        "learning_rate": 2e-3,
        "anneal_steps": [],
        "anneal_factor": 0.5,
        "weight_decay": 0.0,
        "grad_clip_thresh": 2.0,
        "seed": 3,
        "dataset_path": Path("voice"),
        "input_type": "phone",
        "symbol_set": "arpabet",
        "text_cleaners": ["basic_cleaners"],
        "load_mel_from_disk": False,
        "training_files": Path("filelists/ljs_audio_text_train_filelist.txt"),
        "validation_files": Path("lists/b.txt"),
    }
    assert {name: args[name] for name in wanted} == wanted


def test_train_waveglow_without_settings_is_the_published_run_on_eight_gpus():
    launcher, options = dry_run("scripts/train_waveglow.sh")
    assert launcher == ["the-python", *"-m torch.distributed.run --nproc-per-node 8 --standalone train.py".split()]
    args = train.parse_args(options)
    assert (args.model, args.epochs, args.batch_size, args.gradient_accumulation_steps) == ("WaveGlow", 1501, 4, 1)
    assert (args.optimizer, args.learning_rate, args.weight_decay) == ("adam", 1e-4, 0.0)
    assert (args.segment_length, args.grad_clip_thresh, args.cudnn_benchmark) == (8000, float("inf"), True)
    assert args.training_files == Path("filelists/ljs_audio_train_v3.txt")
    mixed = train.parse_args(dry_run("scripts/train_waveglow.sh", AMP="true")[1])
    assert (mixed.batch_size, mixed.grad_clip_thresh, mixed.amp) == (10, 65504.0, True)


def test_train_waveglow_takes_every_setting_from_the_environment():
    variables = {"NUM_GPUS": "0", "BATCH_SIZE": "2", "GRAD_ACCUMULATION": "3", "OUTPUT_DIR": "o", "EPOCHS": "10"}
    variables |= {"EPOCHS_PER_CHECKPOINT": "5", "LEARNING_RATE": "2e-4", "WEIGHT_DECAY": "1e-6", "GRAD_CLIP": "5"}
    variables |= {"SEGMENT_LENGTH": "4000", "SEED": "3", "DATASET_PATH": "voice", "TRAIN_FILELIST": "a.txt"}
    args = vars(train.parse_args(dry_run("scripts/train_waveglow.sh", "--wn-channels", "64", **variables)[1]))
    wanted = {
        "wn_channels": 64,
        "cuda": False,
        "batch_size": 2,
        "gradient_accumulation_steps": 3,
        "output": Path("o"),
        "epochs": 10,
        "epochs_per_checkpoint": 5,
        "learning_rate": 2e-4,
        "weight_decay": 1e-6,
        "grad_clip_thresh": 5.0,
        "segment_length": 4000,
        "seed": 3,
        "dataset_path": Path("voice"),
        "training_files": Path("a.txt"),
    }
    assert {name: args[name] for name in wanted} == wanted


def test_fine_tune_goes_on_from_the_given_vocoder_and_then_from_its_own_checkpoint(tmp_path: Path):
    variables = {"HIFIGAN": "voc.pt", "INPUT_MELS_DIR": "my mels", "OUTPUT_DIR": tmp_path, "GRAD_ACCUMULATION": "4"}
    launcher, options = dry_run("scripts/fine_tune.sh", "--seed", "9", NUM_GPUS="2", **variables)
    assert launcher[launcher.index("--nproc-per-node") + 1] == "2"
    args = train.parse_args(options)
    assert (args.model, args.epochs, args.fine_tuning, args.fine_tune_lr_factor) == ("HiFi-GAN", 10000, True, 3.0)
    assert (args.checkpoint_path, args.input_mels_dir, args.resume) == (Path("voc.pt"), Path("my mels"), False)
    assert (args.output, args.seed, args.gradient_accumulation_steps, args.batch_size) == (tmp_path, 9, 4, 16)
    (tmp_path / "HiFi-GAN_checkpoint_6510.pt").touch()
    args = train.parse_args(dry_run("scripts/fine_tune.sh", EPOCHS="7000", **variables)[1])
    assert (args.checkpoint_path, args.resume, args.epochs) == (None, True, 7000)


@pytest.mark.parametrize(
    ("variables", "status", "message"),
    [
        ({"INPUT_MELS_DIR": "/absent"}, 1, "/absent: no such folder; scripts/extract_fine_tune_mels.sh makes it"),
        ({"INPUT_MELS_DIR": "/", "HIFIGAN": "a.pt", "BATCH_SIZE": "x"}, 2, "BATCH_SIZE=x: expected a whole number"),
    ],
)
def test_fine_tune_says_what_is_missing_in_one_line(variables: dict[str, str], status: int, message: str):
    result = run_bash(ROOT / "scripts/fine_tune.sh", PYTHON=sys.executable, OUTPUT_DIR="/absent", **variables)
    assert result.returncode == status
    assert result.stderr.startswith(f"error: {message}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("variables", "launcher"),
    [
        ({"NUM_GPUS": "0"}, ""),
        ({"NUM_GPUS": "1"}, ""),
        ({"NUM_GPUS": "4", "PORT": "7"}, "-m torch.distributed.run --nproc-per-node 4 --master-port 7"),
        (
            {"NNODES": "2", "MASTER_ADDR": "a", "RUN_ID": "x"},
            "-m torch.distributed.run --nnodes 2 --nproc-per-node 8 "
            "--rdzv-backend c10d --rdzv-id x --rdzv-endpoint a:29500",
        ),
        (
            {"NNODES": "2", "MASTER_ADDR": "a", "NODE_RANK": "1", "NUM_GPUS": "0"},
            "-m torch.distributed.run --nnodes 2 --nproc-per-node 1 --node-rank 1 --master-addr a --master-port 29500",
        ),
        ({"WORLD_SIZE": "16", "RANK": "3"}, ""),
    ],
)
@pytest.mark.parametrize(
    "script",
    ["scripts/train.sh", "scripts/train_lj22khz.sh", "scripts/train_tacotron2.sh", "scripts/train_waveglow.sh"],
)
def test_training_starts_processes_as_the_machines_ask(script: str, variables: dict[str, str], launcher: str):
    start, options = dry_run(script, **variables)
    assert start == ["the-python", *launcher.split(), "train.py"]
    assert ("--cuda" in options) == (variables.get("NUM_GPUS") != "0")


def test_train_sh_says_when_the_global_batch_is_not_the_published_one():
    result = run_bash(ROOT / "scripts/train.sh", DRY_RUN="1", NUM_GPUS="4", BS="16")
    assert result.stderr.startswith("note: the global batch is 64 utterances (")
    assert "accumulated: 4 x 16 x 1)" in result.stderr
    assert "note" not in run_bash(ROOT / "scripts/train.sh", DRY_RUN="1", NUM_GPUS="4", BS="64").stderr
    vocoder = ROOT / "scripts/train_lj22khz.sh"
    assert "is 64 utterances" in run_bash(vocoder, DRY_RUN="1", NUM_GPUS="4").stderr
    assert run_bash(vocoder, DRY_RUN="1", NUM_GPUS="4", GRAD_ACCUMULATION="2").stderr == ""
    for script, few, range_of in (("train_tacotron2", "5", "48 to 1024"), ("train_waveglow", "1", "4 to 80")):
        path = ROOT / f"scripts/{script}.sh"
        assert run_bash(path, DRY_RUN="1", NUM_GPUS="4").stderr == "", "several were published"
        note = run_bash(path, DRY_RUN="1", NUM_GPUS="3", BS=few).stderr
        assert note.endswith(f"the published settings are for {range_of}\n")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_train_sh_without_gpus_says_how_to_train_on_the_cpu():
    result = run_bash(ROOT / "scripts/train.sh", PYTHON=sys.executable)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    assert "NUM_GPUS=8, but PyTorch sees 0 GPUs here" in result.stderr and "NUM_GPUS=0 for the CPU" in result.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"BS": "many"}, "error: BS=many: expected a whole number"),
        ({"NNODES": "2"}, "error: NNODES=2 needs MASTER_ADDR, the host name of the first machine"),
    ],
)
def test_train_sh_refuses_settings_in_one_line(variables: dict[str, str], message: str):
    result = run_bash(ROOT / "scripts/train.sh", PYTHON=sys.executable, **variables)
    assert (result.returncode, result.stderr.strip()) == (2, message)


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda path: path.stem)
def test_each_platform_file_trains_with_the_published_global_batch(path: Path):
    name = re.fullmatch(r"(DGX1|DGXA100|T4)_(FastPitch|HiFi-GAN|Tacotron2|WaveGlow)_(AMP|FP32|TF32)_(\d)GPU", path.stem)
    assert name is not None
    launcher, options = dry_run(path, "--seed", "5", EPOCHS="10")
    n_gpus = int(launcher[launcher.index("--nproc-per-node") + 1]) if "--nproc-per-node" in launcher else 1
    args = train.parse_args(options)
    assert n_gpus == int(name[4])
    if name[2] in ("FastPitch", "HiFi-GAN"):
        global_batch = {"FastPitch": 256, "HiFi-GAN": 128}[name[2]]
        assert n_gpus * args.batch_size * args.gradient_accumulation_steps == global_batch
    else:  # published by the batch of one GPU
        tacotron2 = 128 if name[1] == "DGXA100" else {"AMP": 104, "FP32": 48}[name[3]]
        batch = tacotron2 if name[2] == "Tacotron2" else {"AMP": 10}.get(name[3], 4)
        assert (args.batch_size, args.gradient_accumulation_steps) == (batch, 1)
    assert (args.model, args.amp, args.cuda, args.seed, args.epochs) == (name[2], name[3] == "AMP", True, 5, 10)
    if name[2] == "HiFi-GAN":
        assert args.no_amp_grouped_conv == (name[1] == "DGXA100" and args.amp)
    if name[2] == "WaveGlow":
        assert train.parse_args(dry_run(path)[1]).epochs == 1001


def test_all_machines_settings_and_sizes_have_their_platform_file():
    settings = [("DGXA100", "TF32"), ("DGX1", "FP32"), ("T4", "FP32")]
    kinds = [(machine, precision) for machine, full in settings for precision in ("AMP", full)]
    models = ("FastPitch", "HiFi-GAN", "Tacotron2", "WaveGlow")
    wanted = {f"{m}_{model}_{p}_{n}GPU" for m, p in kinds for model in models for n in (1, 4, 8)}
    assert {path.stem for path in PLATFORMS} == wanted


def test_the_training_benchmark_runs_each_combination_with_the_published_global_batch(tmp_path: Path):
    corpus = make_corpus(tmp_path / "corpus")
    variables = {"NUM_GPUS": "0 4", "AMP": "false true", "BS": "16", "DATASET_PATH": corpus, "OUTPUT_DIR": tmp_path}
    result = run_bash(ROOT / "scripts/train_benchmark.sh", "--seed", "4", DRY_RUN="1", PYTHON="py", **variables)
    *runs, table = result.stdout.splitlines()
    found = []
    for line in runs:
        words = shlex.split(line)
        args = train.parse_args(words[words.index("train.py") + 1 :])
        n_processes = int(words[words.index("--nproc-per-node") + 1]) if "--nproc-per-node" in words else 1
        assert n_processes * args.batch_size * args.gradient_accumulation_steps == 128
        assert (args.model, args.epochs, args.validation_interval, args.seed) == ("HiFi-GAN", 10, 11, 4)
        found.append((n_processes, args.cuda, args.amp))
    assert found == [(1, False, False), (1, False, True), (4, True, False), (4, True, True)]
    logs = [word.rpartition("/")[0].partition("=") for word in shlex.split(table)[3:]]
    assert [(processes, Path(path).parent) for processes, _, path in logs] == [(n, tmp_path) for n in "1144"]


def write_training_log(path: Path, *, amp: bool, frames_per_second: list[float]) -> Path:
    logger = Logger(path, stdout=False)
    logger.parameter(batch_size=16, gradient_accumulation_steps=2, amp=amp, amp_dtype="auto")
    for epoch, value in enumerate(frames_per_second, start=1):
        logger.log((epoch, 1, 1), {"train_frames/s": 1.0})
        logger.log((epoch,), {"avg_train_frames/s": value, "avg_train_took": 10.0 / epoch})
    logger.close()
    return path


def test_the_table_of_training_runs_leaves_out_the_first_epoch_and_compares_alike_runs(tmp_path: Path):
    runs = [
        (1, write_training_log(tmp_path / "a", amp=False, frames_per_second=[1, 1000, 1200])),
        (1, write_training_log(tmp_path / "b", amp=True, frames_per_second=[1, 2200])),
        (4, write_training_log(tmp_path / "c", amp=True, frames_per_second=[6600])),
    ]
    rows = [line.strip("|").split("|") for line in training_table([read_training_run(*run) for run in runs])[2:]]
    assert rows[0] == ["16", "2", "1", "full", "1,100", "4.17", "-", "1.00"]
    assert rows[1] == ["16", "2", "1", "mixed (auto)", "2,200", "5.00", "2.00", "1.00"]
    assert rows[2] == ["16", "2", "4", "mixed (auto)", "6,600", "10.00", "-", "3.00"]
    with pytest.raises(InputError, match="no finished epoch of training"):
        read_training_run(1, write_training_log(tmp_path / "d", amp=False, frames_per_second=[]))


@pytest.mark.slow
def test_the_training_benchmark_makes_its_own_corpus_on_a_cpu(tmp_path: Path):
    small = "--preset v3 --upsample-initial-channel 8 --mpd-channels 2 4 4 4 4 --msd-channels 2 2 4 4 4 4 4"
    small += " --msd-groups 1 1 1 1 1 1 1"
    variables = {"NUM_GPUS": "0", "AMP": "false", "BS": "2", "GRAD_ACCUMULATION": "1", "EPOCHS": "2", "CLIPS": "6"}
    variables |= {"OUTPUT_DIR": str(tmp_path), "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    result = run_bash(ROOT / "scripts/train_benchmark.sh", *small.split(), **variables)
    assert result.returncode == 0, result.stderr
    row = result.stdout.splitlines()[-1].strip("|").split("|")
    assert row[:4] == ["2", "1", "1", "full"]
    assert float(row[4].replace(",", "")) > 0


def figures_up_to(limit: int, tried: list[int]) -> Callable[[int], Figures | None]:
    def attempt(size: int) -> Figures | None:
        tried.append(size)
        return Figures(10.0 * size, 2560.0 * size, 0.5, 1.5, 0.1 * size) if size <= limit else None

    return attempt


@pytest.mark.parametrize("limit", [0, 1, 2, 5, 8, 37])
@pytest.mark.parametrize("smallest", [1, 3, 8])
def test_the_largest_batch_that_fits_is_found_in_few_tries(limit: int, smallest: int):
    tried: list[int] = []
    found, too_large = search(figures_up_to(limit, tried), smallest=smallest, largest=None)
    assert (max(found, default=0), too_large) == (limit, limit + 1)
    assert sorted(found) == sorted(size for size in tried if size <= limit)
    assert len(tried) == len(set(tried)) <= 12


def test_the_search_for_the_largest_batch_stops_where_it_is_told_to():
    tried: list[int] = []
    assert max(search(figures_up_to(100, tried), smallest=3, largest=20)[0]) == 20
    assert tried == [3, 6, 12, 20]
    found, too_large = search(figures_up_to(9, tried), smallest=3, largest=20)
    assert (max(found), too_large) == (9, 10)


def test_the_table_of_batch_sizes_says_which_is_the_largest():
    found = {2: Figures(20.0, 5120.0, 0.5, 1.5, 0.2), 1: Figures(1234.5, None, 0.25, None, 9.0)}
    first, second = (line[1:-1].split("|") for line in batch_rows("fp32", found, 3))
    assert first == ["1", "fp32", "1,234", "-", "0.250", "-", ""]
    assert second == ["2", "fp32", "20", "5,120", "0.500", "1.5", "yes"]
    assert batch_rows("fp32", found, None)[-1].endswith("|not reached|")


@pytest.mark.parametrize("model", ["WaveGlow", "Tacotron2"])
def test_the_waveglow_benchmark_looks_for_the_largest_batch_of_a_model(model: str):
    variables = {"MODEL": model, "NUM_GPUS": "1", "BATCH_SIZE": "2", "PRECISIONS": "fp32 float16", "WN_CHANNELS": "256"}
    script = ROOT / "scripts/train_benchmark_waveglow.sh"
    words = shlex.split(run_bash(script, "--compile", DRY_RUN="1", PYTHON="py", **variables).stdout)
    assert words[:3] == ["py", "-m", "scripts.benchmarks.largest_batch"]
    args = largest_batch_options(words[3:])
    assert (args.model, args.smallest, args.largest, args.cuda, args.compile) == (model, 2, None, True, True)
    assert (args.settings, args.wn_channels) == (["fp32", "float16"], 256)
    words = shlex.split(run_bash(script, DRY_RUN="1", PYTHON="py", NUM_GPUS="0").stdout)
    args = largest_batch_options(words[3:])
    assert (args.largest, args.cuda, args.settings) == (8, False, ["fp32", "bfloat16"])
    assert run_bash(script, NUM_GPUS="2", PYTHON="py").stderr.startswith("error: NUM_GPUS=2: expected 0 or 1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--largest: give the batch size to stop at"),
        (["--smallest", "4", "--largest", "2"], "--largest 2 is below --smallest 4"),
        (["--largest", "2", "--settings", "float16"], "--settings 'float16': expected some of 'fp32', 'bfloat16'"),
    ],
)
def test_the_search_for_the_largest_batch_refuses_what_cannot_be(options: list[str], message: str):
    with pytest.raises(OptionError, match=re.escape(message)):
        largest_batch_options(options)


def test_a_batch_is_tried_in_a_process_of_its_own_whose_memory_may_end(monkeypatch: pytest.MonkeyPatch):
    args = largest_batch_options(["--largest", "2"])
    outcomes = {3: None, -9: None, 1: "error: broken"}
    for status, message in outcomes.items():
        done = subprocess.CompletedProcess([], status, "", "a warning\nerror: broken\n")
        monkeypatch.setattr("scripts.benchmarks.largest_batch.subprocess.run", lambda *_, done=done, **__: done)
        if message is None:
            assert measure_batch("fp32", 2, args) is None
        else:
            with pytest.raises(InputError, match="fp32, batch size 2: exit status 1: error: broken"):
                measure_batch("fp32", 2, args)


@pytest.mark.slow
def test_waveglow_is_measured_by_batch_size_on_a_cpu():
    variables = {"NUM_GPUS": "0", "MAX_BATCH_SIZE": "2", "WN_CHANNELS": "8", "STEPS": "1", "PRECISIONS": "fp32"}
    variables |= {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    result = run_bash(ROOT / "scripts/train_benchmark_waveglow.sh", "--segment-length", "1024", **variables)
    assert result.returncode == 0, result.stderr
    rows = [line.strip("|").split("|") for line in result.stdout.splitlines()[2:4]]
    assert [row[0] for row in rows] == ["1", "2"]
    for size, row in enumerate(rows, start=1):
        frames, samples, seconds = (float(cell.replace(",", "")) for cell in row[2:5])
        assert samples == pytest.approx(1024 * size / seconds, rel=0.01)
        assert frames == pytest.approx(samples / 256, abs=1)
    assert result.stdout.splitlines()[-1] == "fp32: 2 fits, where the search stops"


def fake_slurm(folder: Path, status: int) -> None:
    """Programs that stand in for Slurm's: ``srun`` starts task 5 of 16 only, ``scontrol`` notes what it is told."""
    srun = f"""#!/bin/bash
echo "$@" > {folder}/srun.txt
while [[ $1 == --* ]]; do shift; done
export SLURM_PROCID=5 SLURM_LOCALID=5 SLURM_NTASKS=16
"$@" > {folder}/task.txt 2>&1
exit {status}
"""
    scontrol = f"""#!/bin/bash
if [ "$1" = show ]; then printf 'first\\nsecond\\n'; else echo "$@" > {folder}/scontrol.txt; fi
"""
    for name, text in (("srun", srun), ("scontrol", scontrol)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


@pytest.mark.parametrize(("status", "requeued"), [(143, True), (0, False), (1, False)])
def test_slurm_starts_one_task_a_gpu_and_requeues_what_was_stopped_early(tmp_path: Path, status: int, requeued: bool):
    fake_slurm(tmp_path, status)
    result = run_bash(
        ROOT / "scripts/slurm_train.sh",
        "--epochs",
        "3",
        PATH=f"{tmp_path}:{os.environ['PATH']}",
        SLURM_SUBMIT_DIR=ROOT,
        SLURM_JOB_NODELIST="n[1-2]",
        SLURM_JOB_NUM_NODES="2",
        SLURM_JOB_ID="77",
        DRY_RUN="1",
        PYTHON="the-python",
    )
    assert result.returncode == status
    assert "--ntasks-per-node=8 --ntasks=16" in (tmp_path / "srun.txt").read_text()
    command = (tmp_path / "task.txt").read_text()
    assert command.startswith("the-python train.py ")  # each task is one process, there is no launcher between
    assert command.split()[-3:] == ["--resume", "--epochs", "3"]
    assert 16 * train.parse_args(command.split()[2:]).batch_size == 256
    assert (tmp_path / "scontrol.txt").exists() == requeued
    if requeued:
        assert (tmp_path / "scontrol.txt").read_text() == "requeue 77\n"


def test_slurm_trains_another_model_where_it_is_asked_to(tmp_path: Path):
    fake_slurm(tmp_path, 0)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_SUBMIT_DIR": str(ROOT), "SLURM_JOB_ID": "7"}
    variables |= {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "DRY_RUN": "1", "PYTHON": "py"}
    vocoder = {"TRAIN_SCRIPT": "scripts/train_lj22khz.sh"}
    assert run_bash(ROOT / "scripts/slurm_train.sh", **variables, **vocoder).returncode == 0
    args = train.parse_args((tmp_path / "task.txt").read_text().split()[2:])
    assert (args.model, 16 * args.batch_size * args.gradient_accumulation_steps, args.resume) == ("HiFi-GAN", 128, True)
    for model, batch in (("Tacotron2", 48), ("WaveGlow", 4)):
        script = {"TRAIN_SCRIPT": f"scripts/train_{model.lower()}.sh"}
        assert run_bash(ROOT / "scripts/slurm_train.sh", **variables, **script).returncode == 0
        args = train.parse_args((tmp_path / "task.txt").read_text().split()[2:])
        assert (args.model, args.batch_size, args.resume) == (model, batch, True)
    result = run_bash(ROOT / "scripts/slurm_train.sh", **variables, TRAIN_SCRIPT="train.py")
    assert result.returncode == 1
    assert result.stderr.startswith("error: TRAIN_SCRIPT=train.py: expected a training script")


def make_corpus(folder: Path, clips: int = 12) -> Path:
    (folder / "wavs").mkdir(parents=True)
    lines = []
    for number in range(clips):
        (folder / "wavs" / f"c{number:02}.wav").touch()
        lines.append(f"c{number:02}|It is No. {number}.|It is number {number}.\n")
    (folder / "metadata.csv").write_text("".join(lines))
    return folder


def make_lists(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["make_filelists", *map(str, words)])
    assert make_filelists() == 0


def test_a_corpus_is_split_without_overlap_and_the_same_way_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    corpus = make_corpus(tmp_path / "corpus")
    for folder in ("a", "b"):
        options = ("--name", "my", "--n-val", "3", "--n-test", "2")
        make_lists(monkeypatch, "-d", corpus, "-o", tmp_path / folder, *options)
    texts = {}
    for split, size in (("train", 7), ("val", 3), ("test", 2)):
        name = f"my_audio_text_{split}_filelist.txt"
        texts[split] = (tmp_path / "a" / name).read_text().splitlines()
        assert texts[split] == (tmp_path / "b" / name).read_text().splitlines()
        assert len(texts[split]) == size
    lines = [line for split in texts.values() for line in split]
    assert sorted(lines) == [f"wavs/c{n:02}.wav|It is number {n}." for n in range(12)]
    assert lines != sorted(lines)


def test_named_clips_go_where_they_are_put_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    corpus = make_corpus(tmp_path / "corpus")
    (corpus / "wavs" / "c05.wav").rename(corpus / "wavs" / "c05.flac")
    (tmp_path / "val").write_text("c07\nc02\n")
    (tmp_path / "train").write_text("c05\nc01\n")
    options = ("--train-ids", tmp_path / "train", "--val-ids", tmp_path / "val", "--n-test", "0")
    make_lists(monkeypatch, "-d", corpus, "-o", tmp_path, *options)
    train_list = (tmp_path / "ljs_audio_text_train_filelist.txt").read_text()
    assert train_list == "wavs/c05.flac|It is number 5.\nwavs/c01.wav|It is number 1.\n"
    assert [line[5:8] for line in (tmp_path / "ljs_audio_text_val_filelist.txt").read_text().splitlines()] == [
        "c07",
        "c02",
    ]
    assert not (tmp_path / "ljs_audio_text_test_filelist.txt").exists()


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("", r"metadata\.csv: lists no clips"),
        ("a|b|c|d\n", r"metadata\.csv:1: 4 columns, expected clip\|transcript"),
        ("c00|hello\nc01|\n", r"metadata\.csv:2: the transcript is empty"),
        ("c00|hello\n\nc00|hello\n", r"metadata\.csv:3: c00 is listed twice"),
        ("c00|hello\nx|hello\n", r"wavs/x\.wav: no such file, but metadata\.csv lists it"),
    ],
)
def test_a_faulty_corpus_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: str, message: str
):
    corpus = make_corpus(tmp_path / "corpus")
    (corpus / "metadata.csv").write_text(metadata)
    with pytest.raises(InputError, match=message):
        make_lists(monkeypatch, "-d", corpus, "-o", tmp_path, "--n-val", "0", "--n-test", "0")
    assert list(tmp_path.glob("*.txt")) == []


def test_unknown_or_repeated_clips_and_an_empty_training_set_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    corpus = make_corpus(tmp_path / "corpus")
    (tmp_path / "ids").write_text("c01\nc99\n")
    with pytest.raises(InputError, match=r"ids:2: c99 is not in the corpus$"):
        make_lists(monkeypatch, "-d", corpus, "-o", tmp_path, "--val-ids", tmp_path / "ids")
    (tmp_path / "ids").write_text("c01\nc01\n")
    with pytest.raises(InputError, match=r"ids:2: c01 stands already in .*ids:1"):
        make_lists(monkeypatch, "-d", corpus, "-o", tmp_path, "--val-ids", tmp_path / "ids")
    with pytest.raises(InputError, match="no clips are left to train on: 2 go to validation and 1 to testing"):
        split_clips("abc", chosen={}, n_val=2, n_test=5, seed=0)


def test_prepare_dataset_extracts_all_lists_at_once(tmp_path: Path):
    corpus = make_corpus(tmp_path / "corpus")
    (corpus / "TextGrid").mkdir()
    (corpus / "TextGrid" / "c00.TextGrid").touch()
    variables = {"DRY_RUN": "1", "PYTHON": "py", "DATASET_PATH": corpus, "FILELISTS": tmp_path, "NAME": "my"}
    result = run_bash(ROOT / "scripts/prepare_dataset.sh", "--resume", N_VAL="3", N_TEST="2", **variables)
    split, extract, following, vocoder = result.stdout.splitlines()
    assert shlex.split(split)[:3] == ["py", "-m", "scripts.datasets.make_filelists"]
    args = extract_mels.build_parser().parse_args(shlex.split(extract)[2:])
    extract_mels.check_options(args)
    assert [path.name for path in args.wav_text_filelist] == [
        f"my_audio_text_{split}_filelist.txt" for split in ("train", "val", "test")
    ]
    assert [path.name for path in args.output_meta_file] == [
        f"my_mel_dur_pitch_text_{split}_filelist.txt" for split in ("train", "val", "test")
    ]
    assert args.extract_durs_from_textgrids
    assert args.extract_pitch_char
    assert args.resume
    assert "INPUT_TYPE=phone" in following
    assert f"TRAIN_FILELIST={tmp_path}/my_audio_train.txt VAL_FILELIST={tmp_path}/my_audio_val.txt" in vocoder


def test_prepare_dataset_makes_what_tacotron_2_learns_from_without_durations(tmp_path: Path):
    corpus = make_corpus(tmp_path / "corpus")
    variables = {"DRY_RUN": "1", "PYTHON": "py", "DATASET_PATH": corpus, "FILELISTS": tmp_path, "NAME": "my"}
    result = run_bash(ROOT / "scripts/prepare_dataset.sh", FEATURES="mels", **variables)
    assert (result.returncode, result.stderr) == (0, "")
    _, extract, following, _ = result.stdout.splitlines()
    args = extract_mels.build_parser().parse_args(shlex.split(extract)[2:])
    extract_mels.check_options(args)
    assert (args.extract_mels, args.extract_pitch_char, args.extract_durations) == (True, False, False)
    assert [path.name for path in args.output_meta_file][:2] == [
        "my_mel_text_train_filelist.txt",
        "my_mel_text_val_filelist.txt",
    ]
    train_list = f"TRAIN_FILELIST={tmp_path}/my_mel_text_train_filelist.txt"
    assert train_list in following and following.endswith("bash scripts/train_tacotron2.sh")
    refused = run_bash(ROOT / "scripts/prepare_dataset.sh", FEATURES="mels", TACOTRON2_CHECKPOINT="t.pt", **variables)
    assert refused.stderr.startswith("error: FEATURES=mels makes no durations")


def test_prepare_dataset_takes_durations_from_a_tacotron_2_that_is_given(tmp_path: Path):
    corpus = make_corpus(tmp_path / "corpus")
    (corpus / "TextGrid").mkdir()
    (corpus / "TextGrid" / "c00.TextGrid").touch()  # not asked for: the checkpoint is
    variables = {"DRY_RUN": "1", "PYTHON": "py", "DATASET_PATH": corpus, "FILELISTS": tmp_path, "NAME": "my"}
    result = run_bash(ROOT / "scripts/prepare_dataset.sh", TACOTRON2_CHECKPOINT="t.pt", CUDA="true", **variables)
    _, extract, following, _ = result.stdout.splitlines()
    args = extract_mels.build_parser().parse_args(shlex.split(extract)[2:])
    assert (args.extract_durations, args.tacotron2_checkpoint, args.cuda) == (True, Path("t.pt"), True)
    assert (args.extract_durs_from_textgrids, args.extract_mels, args.extract_pitch_char) == (False, True, True)
    assert "TEXT_CLEANERS=<" in following and following.endswith("bash scripts/train.sh")


def prepare(corpus: Path, lists: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    settings = {"PYTHON": sys.executable, "USE_SYSTEM_PYTHON": "1", "DATASET_PATH": corpus, "FILELISTS": lists}
    return run_bash(ROOT / "scripts/prepare_dataset.sh", **settings, **variables)


def test_a_corpus_without_durations_gets_the_lists_that_a_vocoder_trains_on(tmp_path: Path):
    corpus = make_corpus(tmp_path / "corpus")
    result = prepare(corpus, tmp_path, NAME="my", N_VAL="2", N_TEST="1")
    assert result.returncode == 0, result.stderr
    assert "no durations" in result.stderr and "a vocoder trains on recordings alone" in result.stderr
    recordings, texts = (tmp_path / "my_audio_train.txt", tmp_path / "my_audio_text_train_filelist.txt")
    assert recordings.read_text().splitlines() == [line.split("|")[0] for line in texts.read_text().splitlines()]
    assert len(recordings.read_text().splitlines()) == 9
    recordings.unlink()  # as a corpus that was prepared before there were vocoders
    texts.write_text("wavs/c03.wav|text\n")
    assert prepare(corpus, tmp_path, NAME="my").returncode == 0
    assert recordings.read_text() == "wavs/c03.wav\n", "a split that is there stays"


def test_recordings_alone_are_enough_for_a_vocoder(tmp_path: Path):
    for name in ("a.wav", "anna/b.flac", "anna/c.wav"):
        (tmp_path / "corpus" / "wavs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / "wavs" / name).touch()
    result = prepare(tmp_path / "corpus", tmp_path, NAME="my", N_VAL="1", N_TEST="0", FEATURES="false")
    assert (result.returncode, result.stderr) == (0, "")
    lines = [(tmp_path / f"my_audio_{split}.txt").read_text().splitlines() for split in ("train", "val")]
    assert [len(names) for names in lines] == [2, 1]
    assert sorted(lines[0] + lines[1]) == ["wavs/a.wav", "wavs/anna/b.flac", "wavs/anna/c.wav"]
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "my_audio_train.txt", "my_audio_val.txt"}


def test_ljspeech_is_split_as_it_was_for_published_voices(tmp_path: Path):
    ids = {split: (ROOT / f"filelists/ljs_{split}_ids.txt").read_text().split() for split in ("train", "val", "test")}
    assert {split: len(clips) for split, clips in ids.items()} == {"train": 12500, "val": 100, "test": 500}
    assert len(set().union(*ids.values())) == 13100
    part = ids["train"][:30] + ids["val"][5:7] + ids["test"][9:10]
    (tmp_path / "corpus" / "wavs").mkdir(parents=True)
    for clip in part:
        (tmp_path / "corpus" / "wavs" / f"{clip}.wav").touch()
    (tmp_path / "corpus" / "metadata.csv").write_text("".join(f"{clip}|text\n" for clip in part))
    result = prepare(tmp_path / "corpus", tmp_path)
    assert "ljs_train_ids.txt names 12500 clips, and the corpus has 30 of them" in result.stdout
    for name, clips in (("train_v3", part[:30]), ("val", part[30:32]), ("test", part[32:])):
        found = (tmp_path / f"ljs_audio_{name}.txt").read_text().splitlines()
        assert found == [f"wavs/{clip}.wav" for clip in clips]


def test_a_part_of_ljspeech_without_its_validation_clips_validates_on_training_clips(tmp_path: Path):
    part = (ROOT / "filelists/ljs_train_ids.txt").read_text().split()[:30]
    (tmp_path / "wavs").mkdir(parents=True)
    for clip in part:
        (tmp_path / "wavs" / f"{clip}.wav").touch()
    result = prepare(tmp_path, tmp_path)
    assert "none of the clips to validate on is there; 3 of the training clips take their place" in result.stdout
    lists = [(tmp_path / f"ljs_audio_{name}.txt").read_text().splitlines() for name in ("train_v3", "val")]
    assert lists == [[f"wavs/{clip}.wav" for clip in clips] for clips in (part[:27], part[27:])]


@pytest.mark.parametrize(
    ("folder", "words", "variables", "status", "message"),
    [
        ("absent", [], {}, 1, "no such folder"),
        ("corpus", [], {"FEATURES": "true"}, 1, "no durations: put TextGrids"),
        ("corpus", ["--resume"], {}, 1, "no durations: put TextGrids"),
        ("corpus", ["--resume"], {"FEATURES": "false"}, 2, "--resume: for extract_mels.py, which FEATURES=false"),
        ("corpus", [], {"FEATURES": "maybe"}, 2, "FEATURES=maybe: expected true, mels, false or auto"),
    ],
)
def test_prepare_dataset_says_what_is_missing(
    tmp_path: Path, folder: str, words: list[str], variables: dict[str, str], status: int, message: str
):
    make_corpus(tmp_path / "corpus")
    result = run_bash(ROOT / "scripts/prepare_dataset.sh", *words, DATASET_PATH=tmp_path / folder, **variables)
    assert result.returncode == status
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


class RangeServer(http.server.BaseHTTPRequestHandler):
    """Serves ``content``, ranges included, and breaks each connection after ``limit`` bytes."""

    content = bytes(range(256)) * 4000
    limit = 10**9
    requests: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.requests.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if self.path != "/file" or start >= len(self.content):
            self.send_error(404 if self.path != "/file" else 416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start : start + self.limit])

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[tuple[str, type[RangeServer]]]:
    handler = type("Handler", (RangeServer,), {"requests": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", handler
        running.shutdown()
        thread.join()


def test_an_interrupted_download_goes_on_where_it_broke(tmp_path: Path, server: tuple[str, type[RangeServer]]):
    url, handler = server
    target, digest = tmp_path / "new" / "file", sha256(RangeServer.content).hexdigest()
    handler.limit = 600_000
    with pytest.raises(InputError, match="run again to go on"):
        fetch(f"{url}/file", target, sha256=digest)
    assert not target.exists()
    fetch(f"{url}/file", target, sha256=digest)
    assert target.read_bytes() == RangeServer.content
    assert handler.requests == [None, "bytes=600000-"]
    fetch(f"{url}/file", target, sha256=digest)
    assert len(handler.requests) == 2  # it is there already


def test_a_download_with_another_checksum_is_refused_and_not_kept(
    tmp_path: Path, server: tuple[str, type[RangeServer]]
):
    with pytest.raises(InputError, match=r"file\.part: SHA-256 is [0-9a-f]{64}, expected abcd"):
        fetch(f"{server[0]}/file", tmp_path / "file", sha256="abcd")
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_cannot_be_reached_is_one_clear_line(tmp_path: Path, server: tuple[str, type[RangeServer]]):
    with pytest.raises(InputError, match="/other: the server answers 404"):
        fetch(f"{server[0]}/other", tmp_path / "file")
    with pytest.raises(InputError, match=r"cannot be downloaded \(.*is this machine offline\?"):
        fetch("http://127.0.0.1:1/file", tmp_path / "file")
    with pytest.raises(InputError, match=r"absent\.tar: no such file"):
        fetch(str(tmp_path / "absent.tar"), tmp_path / "file")


def test_an_archive_is_unpacked_and_a_broken_one_refused(tmp_path: Path):
    archive = tmp_path / "corpus.tar.bz2"
    with tarfile.open(archive, "w:bz2") as tar:
        member = tarfile.TarInfo("LJSpeech-1.1/metadata.csv")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"a|b\n"))
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "LJSpeech-1.1" / "metadata.csv").read_text() == "a|b\n"
    archive.write_bytes(archive.read_bytes()[:40])
    with pytest.raises(InputError, match=r"corpus\.tar\.bz2: cannot be unpacked"):
        unpack(archive, tmp_path / "out")


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_zip_is_unpacked_but_not_out_of_its_folder(tmp_path: Path):
    unpack(write_zip(tmp_path / "a.zip", {"deep/b.pt": b"b"}), tmp_path / "out")
    assert (tmp_path / "out" / "deep" / "b.pt").read_bytes() == b"b"
    with pytest.raises(InputError, match=r"a\.zip: cannot be unpacked \(\.\./b leads out of the folder\)"):
        unpack(write_zip(tmp_path / "a.zip", {"../b": b"b"}), tmp_path / "out")
    assert not (tmp_path / "b").exists()
    (tmp_path / "a.zip").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match=r"a\.zip: cannot be unpacked"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    """A checkpoint of a tiny FastPitch."""
    config = ModelConfig(symbols_embedding_dim=8, in_fft_output_size=8, out_fft_output_size=8)
    networks = {"fastpitch": {"proj.bias": torch.zeros(80)}}
    checkpoint = Checkpoint("FastPitch", to_plain(config), AudioConfig(), TextConfig(), networks)
    save_checkpoint(tmp_path / "from" / "voice.pt", checkpoint)
    return tmp_path / "from" / "voice.pt"


def test_a_model_is_copied_unpacked_verified_and_described(
    tmp_path: Path, voice: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    output = tmp_path / "models"
    archive = write_zip(tmp_path / "voice.zip", {"v1/voice.pt": voice.read_bytes(), "v1/LICENSE.txt": b"free"})
    digest = sha256(archive.read_bytes()).hexdigest()
    assert download_models(["fastpitch", "--source", str(archive), "--sha256", digest, "-o", str(output)]) == 0
    assert (output / "fastpitch" / "v1" / "voice.pt").read_bytes() == voice.read_bytes()
    line = f"{output}/fastpitch/v1/voice.pt: FastPitch (fastpitch), 0.0 M weights, 22050 Hz, 80 mels every 256 samples"
    assert capsys.readouterr().out.splitlines() == [line]
    assert [path.name for path in output.iterdir()] == ["fastpitch"], "nothing else stays"
    assert download_models(["fastpitch", "-o", str(output)]) == 0  # there already
    assert capsys.readouterr().out.splitlines() == [line]
    monkeypatch.setenv("FASTPITCH_SOURCE", str(voice))
    assert download_models(["fastpitch", "-o", str(output)]) == 0
    out = capsys.readouterr().out
    assert "voice.pt comes without a checksum" in out and "not verified" in out
    assert (output / "fastpitch" / "voice.pt").is_file()


def test_a_checksum_beside_the_source_is_verified(
    tmp_path: Path, voice: Path, server: tuple[str, type[RangeServer]], monkeypatch: pytest.MonkeyPatch
):
    beside = voice.with_name("voice.pt.sha256")
    beside.write_text(f"{sha256(voice.read_bytes()).hexdigest()}  voice.pt\n")
    assert download_models(["fastpitch", "--source", str(voice), "-o", str(tmp_path / "a")]) == 0
    beside.write_text("0" * 64 + "  voice.pt\n")
    with pytest.raises(InputError, match=r"SHA-256 is [0-9a-f]{64}, expected 0000"):
        download_models(["fastpitch", "--source", str(voice), "-o", str(tmp_path / "b")])
    assert not (tmp_path / "b" / "fastpitch").exists()
    beside.write_text("see our page")
    with pytest.raises(InputError, match="holds no SHA-256, expected 64"):
        download_models(["fastpitch", "--source", str(voice), "-o", str(tmp_path / "b")])


def test_a_model_is_downloaded_and_a_broken_connection_is_gone_on_with(
    tmp_path: Path, voice: Path, server: tuple[str, type[RangeServer]]
):
    url, handler = server
    handler.content = voice.read_bytes()
    handler.limit = len(handler.content) // 2 + 10
    command = ["fastpitch", "--source", f"{url}/file", "-o", str(tmp_path / "models")]
    command += ["--sha256", sha256(handler.content).hexdigest()]
    with pytest.raises(InputError, match="run again to go on"):
        download_models(command)
    assert not (tmp_path / "models" / "fastpitch").exists()
    assert download_models(command) == 0
    assert (tmp_path / "models" / "fastpitch" / "file").read_bytes() == handler.content


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["hifigan"], OptionError, "hifigan: say where its checkpoint is, by --source or HIFIGAN_SOURCE"),
        (["hifigan", "fastpitch", "--source", "a"], OptionError, "--source gives one model"),
        (["hifigan", "--source", "{voice}"], CheckpointError, r"hifigan: no checkpoint of HiFi-GAN"),
        (["hifigan", "--source", "{voice}", "--sha256", "12"], InputError, "SHA-256 is [0-9a-f]{{64}}, expected 12"),
        (["fastpitch", "--source", "/absent.pt"], InputError, r"/absent\.pt: no such file"),
        (["fastpitch", "--source", "http://127.0.0.1:1/a.pt"], InputError, r"is this machine offline\?"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_clear_line_and_leaves_nothing_behind(
    tmp_path: Path, voice: Path, words: list[str], error: type[InputError], message: str
):
    with pytest.raises(error, match=message.replace("{{", "{").replace("}}", "}")):
        download_models([word.format(voice=voice) for word in words] + ["-o", str(tmp_path / "models")])
    assert not list((tmp_path / "models").glob("[!.]*"))


ENSURE = """
source "$1/scripts/lib.sh"
ROOT=$2 VENV=$2/.venv
make_venv() {
    rm -rf "$VENV"; mkdir -p "$VENV/bin"; echo made
    printf '#!/bin/sh\\nexec "%s" "$@"\\n' "$1" > "$VENV/bin/python"; chmod +x "$VENV/bin/python"
}
install_requirements() { echo "installed $(basename "$1")"; }
ensure_venv; ensure_venv; echo --
ensure_venv dev; ensure_venv dev; echo --
echo new >> "$ROOT/requirements.txt"; ensure_venv dev; ensure_venv; echo --
echo broken > "$VENV/bin/python"; PYTHON=$3; ensure_venv; ensure_venv
"""


def test_the_environment_is_made_once_and_again_when_requirements_change(tmp_path: Path):
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).write_text("torch\n")
    result = run_bash("-euo", "pipefail", "-c", ENSURE, "bash", ROOT, tmp_path, sys.executable, PYTHON=sys.executable)
    assert result.returncode == 0, result.stderr
    base, dev = "installed requirements.txt\n", "installed requirements-dev.txt\n"
    assert result.stdout == f"made\n{base}--\n{dev}--\n{dev}{base}--\nmade\n{base}"


def test_a_python_that_does_not_fit_is_refused_in_one_line(tmp_path: Path):
    (tmp_path / "python9").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python9").chmod(0o755)
    result = run_bash("-c", f'source "{ROOT}/scripts/lib.sh"; find_python', PYTHON=tmp_path / "python9")
    assert result.returncode == 1
    assert result.stderr == f"error: PYTHON={tmp_path}/python9 is not a Python 3.10, 3.11 or 3.12\n"


def test_a_home_that_cannot_be_written_to_is_not_used_for_caches(tmp_path: Path):
    script = f'source "{ROOT}/scripts/lib.sh"; VENV=$1; use_writable_caches; echo "$MPLCONFIGDIR $NUMBA_CACHE_DIR"'
    (tmp_path / "venv").mkdir()
    result = run_bash("-c", script, "bash", tmp_path / "venv", HOME=tmp_path / "absent")
    folders = [Path(word) for word in result.stdout.split()]
    assert len(folders) == 2
    assert all(folder.is_dir() and folder.is_relative_to(tmp_path / "venv") for folder in folders)
    assert run_bash("-c", script, "bash", tmp_path / "venv", HOME=tmp_path).stdout.split() == []
