"""Jasper's shell scripts build the right commands, and its tables are computed rightly."""

import json
import re
import shlex
import sys
import tarfile
from pathlib import Path

import pytest
from sung_words import make_sung_corpus
from test_scripts import ROOT, dry_run, run_bash

import train
from common.errors import InputError
from common.logger import Logger
from common.recognition.arguments import parse_recognition_args
from jasper.manifest import read_entries
from jasper.yaml_config import load_config
from scripts.datasets.make_digits_lists import main as make_digits_lists
from scripts.benchmarks.random_recognizer import durations
from scripts.recognition_table import read_run as read_recognition
from scripts.recognition_table import table as recognition_table
from scripts.sequences_table import read_run as read_training
from scripts.sequences_table import table as sequences_table

PLATFORMS = sorted(ROOT.glob("platform/*_Jasper_*.sh"))


def lines_of(script: str, *words: str, **variables: str | Path) -> list[list[str]]:
    """The words of each command that a script would run."""
    result = run_bash(ROOT / script, *words, DRY_RUN="1", PYTHON="py", **variables)
    assert result.returncode == 0, result.stderr
    return [shlex.split(line) for line in result.stdout.splitlines()]


def test_train_jasper_without_settings_is_the_published_run_on_eight_gpus():
    launcher, options = dry_run("scripts/train_jasper.sh")
    assert launcher == ["the-python", *"-m torch.distributed.run --nproc-per-node 8 --standalone train.py".split()]
    args = train.parse_args(options)
    assert (args.model, args.epochs, args.batch_size, args.gradient_accumulation_steps) == ("Jasper", 440, 32, 2)
    assert (args.optimizer, args.learning_rate, args.weight_decay, args.ema_decay) == ("novograd", 0.01, 1e-3, 0.999)
    assert (args.lr_policy, args.lr_exp_gamma, args.min_lr) == ("exponential", 0.981, 1e-5)
    assert (args.warmup_epochs, args.hold_epochs, args.seed) == (2, 140, 0)
    assert args.keep_milestones == [100, 200, 300, 400] and args.epochs_per_checkpoint == 10
    names = [f"LibriSpeech/librispeech-train-{name}-wav.json" for name in ("clean-100", "clean-360", "other-500")]
    assert [str(path) for path in (args.training_files, *args.more_training_files)] == names
    assert args.validation_files == Path("LibriSpeech/librispeech-dev-clean-wav.json")
    assert (args.dataset_path, args.cuda, args.amp) == (Path("LibriSpeech"), True, False)
    load_config(ROOT / args.model_config)


def test_train_jasper_takes_every_setting_from_the_environment():
    variables = {"NUM_GPUS": "0", "BATCH_SIZE": "2", "GRAD_ACCUMULATION": "3", "OUTPUT_DIR": "o", "EPOCHS": "10"}
    variables |= {"EPOCHS_PER_CHECKPOINT": "5", "KEEP_MILESTONES": "", "LEARNING_RATE": "2e-3", "EMA": "0"}
    variables |= {"MIN_LEARNING_RATE": "1e-4", "LR_POLICY": "polynomial", "LR_EXP_GAMMA": "0.9", "WARMUP_EPOCHS": "1"}
    variables |= {
        "HOLD_EPOCHS": "4",
        "WEIGHT_DECAY": "1e-4",
        "SEED": "3",
        "DATASET_PATH": "d",
        "MODEL_CONFIG": "m.yaml",
    }
    variables |= {"TRAIN_MANIFESTS": "a.json", "VAL_MANIFEST": "v.json", "AMP": "true"}
    args = vars(train.parse_args(dry_run("scripts/train_jasper.sh", "--max-duration", "7", **variables)[1]))
    wanted = {
        "cuda": False,
        "amp": True,
        "batch_size": 2,
        "gradient_accumulation_steps": 3,
        "output": Path("o"),
        "epochs": 10,
        "epochs_per_checkpoint": 5,
        "keep_milestones": None,
        "learning_rate": 2e-3,
        "ema_decay": 0.0,
        "min_lr": 1e-4,
        "lr_policy": "polynomial",
        "lr_exp_gamma": 0.9,
        "warmup_epochs": 1,
        "hold_epochs": 4,
        "weight_decay": 1e-4,
        "seed": 3,
        "dataset_path": Path("d"),
        "model_config": Path("m.yaml"),
        "training_files": Path("a.json"),
        "more_training_files": [],
        "validation_files": Path("v.json"),
        "max_duration": 7.0,
    }
    assert {name: args[name] for name in wanted} == wanted


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda path: path.stem)
def test_each_platform_file_trains_with_the_published_global_batch(path: Path):
    name = re.fullmatch(r"(DGX1-16GB|DGX1-32GB|DGX2|DGXA100)_Jasper_(AMP|FP32|TF32)_(\d+)GPU", path.stem)
    assert name is not None
    launcher, options = dry_run(path, "--resume", EPOCHS="10")
    n_gpus = int(launcher[launcher.index("--nproc-per-node") + 1]) if "--nproc-per-node" in launcher else 1
    args = train.parse_args(options)
    assert n_gpus == int(name[3])
    assert n_gpus * args.batch_size * args.gradient_accumulation_steps == 512
    assert args.batch_size <= {"DGX1-16GB": 16, "DGXA100": 64}.get(name[1], 64 if name[2] == "AMP" else 32)
    assert (args.model, args.amp, args.cuda, args.epochs, args.resume) == ("Jasper", name[2] == "AMP", True, 10, True)


def test_all_machines_settings_and_sizes_have_their_platform_file():
    machines = {"DGX1-16GB": (1, 4, 8), "DGX1-32GB": (1, 4, 8), "DGX2": (1, 4, 8, 16), "DGXA100": (1, 4, 8)}
    wanted = {
        f"{machine}_Jasper_{precision}_{n}GPU"
        for machine, sizes in machines.items()
        for n in sizes
        for precision in ("AMP", "TF32" if machine == "DGXA100" else "FP32")
    }
    assert {path.stem for path in PLATFORMS} == wanted


def test_the_digits_script_trains_and_hears_what_its_settings_say():
    lists, training, hearing = lines_of("scripts/train_digits.sh", "--resume", DATASET="/data/fsdd", EPOCHS="7")
    assert lists == ["py", "-m", "scripts.datasets.make_digits_lists", "/data/fsdd", "output/digits"]
    args = train.parse_args(training[2:])
    assert (args.epochs, args.cuda, args.resume, args.dataset_path) == (7, False, True, Path("/data/fsdd/recordings"))
    settings = load_config(ROOT / args.model_config)
    assert settings.model.features.sample_rate == 8000
    assert args.ema_decay > 0
    heard = parse_recognition_args(hearing[2:])
    assert heard.jasper == Path("output/digits/Jasper_checkpoint_7.pt") and heard.ema
    assert heard.input == [args.validation_files] == [Path("output/digits/test.txt")]
    result = run_bash(ROOT / "scripts/train_digits.sh", DATASET="/absent")
    assert result.stderr.strip().startswith("error: /absent/recordings: no such folder; set DATASET")


def test_digits_are_split_by_take(tmp_path: Path):
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    for take in (0, 4, 5, 49):
        (recordings / f"7_george_{take}.wav").touch()
    make_digits_lists([str(tmp_path), str(tmp_path / "out")])
    lines = {name: (tmp_path / "out" / f"{name}.txt").read_text().splitlines() for name in ("train", "test")}
    assert lines["test"] == ["7_george_0.wav|seven", "7_george_4.wav|seven"]
    assert lines["train"] == ["7_george_49.wav|seven", "7_george_5.wav|seven"]
    (recordings / "seven.wav").touch()
    with pytest.raises(InputError, match=r"seven\.wav: expected a name like 7_george_12\.wav"):
        make_digits_lists([str(tmp_path), str(tmp_path / "out")])


def test_the_training_benchmark_runs_each_combination(tmp_path: Path):
    corpus = make_sung_corpus(tmp_path / "corpus")
    (corpus / "m.json").touch()
    variables = {
        "BATCH_SIZE_SEQ": "2 4",
        "NUM_GPUS_SEQ": "0 4",
        "OUTPUT_DIR": tmp_path,
        "TRAIN_MANIFEST": corpus / "m.json",
    }
    *runs, table = lines_of("scripts/train_benchmark_jasper.sh", "--seed", "4", **variables)
    found = []
    for words in runs:
        n_processes = int(words[words.index("--nproc-per-node") + 1]) if "--nproc-per-node" in words else 1
        args = train.parse_args(words[words.index("train.py") + 1 :])
        assert (args.model, args.epochs, args.validation_interval, args.seed, args.ema_decay) == (
            "Jasper",
            2,
            3,
            4,
            0.0,
        )
        assert args.gradient_accumulation_steps == 1 and args.cudnn_benchmark == args.cuda
        assert "train-benchmark" in str(args.model_config)
        found.append((args.batch_size, n_processes, args.cuda, args.amp))
    assert found == [(bs, n, n > 1, amp) for bs in (2, 4) for n in (1, 4) for amp in (False, True)]
    assert [word.partition("=")[0] for word in table[3:]] == ["1", "1", "4", "4"] * 2


def test_the_training_benchmark_makes_noise_where_there_is_no_corpus(tmp_path: Path):
    making, *runs, _ = lines_of(
        "scripts/train_benchmark_jasper.sh", OUTPUT_DIR=tmp_path, NUM_GPUS_SEQ="1", MAX_DURATION="3"
    )
    assert making[2:] == [
        *["scripts.benchmarks.random_recognizer", f"{tmp_path}/noise", "--no-checkpoint", "--count", "768", "--max-duration", "3"],
        *["--model-config", "jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml"],
    ]
    args = train.parse_args(runs[0][2:])
    assert args.training_files == args.validation_files == tmp_path / "noise/list.txt"
    assert args.max_duration == 3.0
    absent = run_bash(ROOT / "scripts/train_benchmark_jasper.sh", PYTHON="py", DATASET_PATH="/absent")
    assert absent.returncode == 1 and "/absent/librispeech-train-clean-100-wav.json: no such manifest" in absent.stderr


def training_log(path: Path, *, amp: bool, batch_size: int, took: list[list[float]]) -> Path:
    logger = Logger(path, stdout=False)
    logger.parameter(batch_size=batch_size, gradient_accumulation_steps=2, amp=amp)
    for epoch, updates in enumerate(took, 1):
        for number, seconds in enumerate(updates, 1):
            logger.log((epoch, number, len(updates)), {"train_took": seconds})
    logger.close()
    return path


def test_sequences_are_counted_in_the_steady_state_and_compared_with_like_runs(tmp_path: Path):
    runs = [
        read_training(1, training_log(tmp_path / "a", amp=False, batch_size=8, took=[[9.0, 9.0], [2.0, 2.0]])),
        read_training(1, training_log(tmp_path / "b", amp=True, batch_size=8, took=[[9.0, 9.0], [1.0, 1.0]])),
        read_training(4, training_log(tmp_path / "c", amp=True, batch_size=8, took=[[9.0] + [2.0] * 9])),
        read_training(4, training_log(tmp_path / "d", amp=True, batch_size=4, took=[[4.0]])),
    ]
    rows = [line.strip("|").split("|") for line in sequences_table(runs)[2:]]
    assert rows[0] == ["8", "2", "1", "full", "8.00", "-", "1.00"]
    assert rows[1] == ["8", "2", "1", "mixed", "16.00", "2.00", "1.00"]
    assert rows[2] == ["8", "2", "4", "mixed", "32.00", "-", "2.00"]
    assert rows[3] == ["4", "2", "4", "mixed", "8.00", "-", "1.00"]
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="no updates of training"):
        read_training(1, tmp_path / "empty")


def test_the_inference_benchmark_measures_each_shape_in_each_precision(tmp_path: Path):
    variables = {"BATCH_SIZE_SEQ": "1 4", "MAX_DURATION_SEQ": "2 16.7", "OUTPUT_DIR": tmp_path, "ITERATIONS": "9"}
    lines = lines_of("scripts/inference_benchmark_jasper.sh", "--no-trim-silence", CPU="true", **variables)
    making = [words for words in lines if "scripts.benchmarks.random_recognizer" in words]
    assert len(making) == 1 + 4 and "--no-checkpoint" not in making[0]
    found = []
    for words in lines:
        if "inference.py" in words:
            args = parse_recognition_args(words[2:])
            assert (args.iterations, args.warmup_steps, args.pad_to_max_duration, args.trim_silence) == (
                9,
                2,
                True,
                False,
            )
            found.append((args.max_duration, args.batch_size, args.amp))
    assert found == [(seconds, size, amp) for seconds in (2.0, 16.7) for size in (1, 4) for amp in (False, True)]


def test_latencies_become_a_table_in_milliseconds(tmp_path: Path):
    for name, amp, latency in (("a", False, 0.1), ("b", True, 0.05)):
        logger = Logger(tmp_path / name, stdout=False)
        logger.parameter(batch_size=4, max_duration=16.7, amp=amp, precision="BF16" if amp else "FP32")
        figures = {f"{percent}%_latency": latency + percent / 1e5 for percent in (90, 95, 99)}
        logger.log((), {"avg_latency": latency, **figures, "avg_sequences/s": 4 / latency, "avg_RTF": 60.0})
        logger.close()
    lines = recognition_table([read_recognition(tmp_path / name) for name in "ab"])
    assert lines[2] == "|4|16.7|FP32|100.90|100.95|100.99|100.00|40.00|60.0|-|"
    assert lines[3] == "|4|16.7|BF16|50.90|50.95|50.99|50.00|80.00|60.0|2.00|"


def test_made_up_durations_are_mostly_long():
    import numpy as np

    drawn = durations(2000, 16.7, np.random.default_rng(0))
    assert max(drawn) == drawn[0] == 16.7 and min(drawn) > 1.4
    assert 10.5 < sum(drawn) / len(drawn) < 12.5


def test_evaluation_hears_each_list(tmp_path: Path):
    for name in ("dev-clean", "test-other"):
        (tmp_path / f"librispeech-{name}-wav.json").touch()
    variables = {"JASPER": "j.pt", "DATASET_PATH": tmp_path, "DATASETS": "dev-clean test-other", "EMA": "true"}
    lines = lines_of("scripts/evaluation.sh", "-bs", "3", CPU="true", **variables)
    runs = [parse_recognition_args(words[2:]) for words in lines if "inference.py" in words]
    assert [run.output.name for run in runs] == ["librispeech-dev-clean-wav.json", "librispeech-test-other-wav.json"]
    assert all((run.ema, run.quiet, run.batch_size, run.dataset_path) == (True, True, 3, tmp_path) for run in runs)
    absent = run_bash(ROOT / "scripts/evaluation.sh", JASPER="j.pt", PYTHON="py", DATASET_PATH="/absent")
    assert absent.returncode == 1 and absent.stderr.startswith("error: /absent/librispeech-dev-clean-wav.json: no such")


def test_librispeech_comes_from_archives_at_hand_and_an_absent_one_is_named(tmp_path: Path):
    source, target = tmp_path / "archives", tmp_path / "target"
    chapter = tmp_path / "LibriSpeech/dev-clean/1/2"
    chapter.mkdir(parents=True)
    (chapter / "1-2.trans.txt").write_text("1-2-0000 YES\n")
    source.mkdir()
    with tarfile.open(source / "dev-clean.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "LibriSpeech", "LibriSpeech")
    variables = {"LIBRISPEECH_SOURCE": source, "DATASET_PATH": target, "PYTHON": sys.executable}
    script = ROOT / "scripts/download_librispeech.sh"
    wrong = run_bash(script, SUBSETS="dev-clean", **variables)
    assert wrong.returncode == 1 and "SHA-256 is" in wrong.stderr and len(wrong.stderr.splitlines()) == 1
    done = run_bash(script, SUBSETS="dev-clean", VERIFY="false", **variables)
    assert done.returncode == 0, done.stderr
    assert (target / "dev-clean/1/2/1-2.trans.txt").is_file()
    assert [path.name for path in target.iterdir()] == ["dev-clean"]
    assert "is there already" in run_bash(script, SUBSETS="dev-clean", **variables).stdout
    absent = run_bash(script, SUBSETS="test-clean", **variables)
    assert absent.returncode == 1 and absent.stderr.startswith(f"error: {source}/test-clean.tar.gz: no such file")
    unknown = run_bash(script, SUBSETS="dev", **variables)
    assert unknown.returncode == 2 and unknown.stderr.startswith("error: SUBSETS: dev is none of")


def test_preprocessing_takes_its_settings_from_the_environment():
    variables = {"DATASET_PATH": "d", "SUBSETS": "a b", "SPEEDS": "0.9 1.1", "N_WORKERS": "3"}
    (words,) = lines_of("scripts/preprocess_librispeech.sh", "--sampling-rate", "8000", **variables)
    rest = "d --n-workers 3 --subsets a b --speeds 0.9 1.1 --sampling-rate 8000"
    assert words == ["py", "-m", "scripts.datasets.preprocess_librispeech", *rest.split()]


def test_random_weights_hear_noise(tmp_path: Path):
    config = make_sung_corpus(tmp_path / "corpus") / "config.yaml"
    variables = {"MODEL_CONFIG": config, "BATCH_SIZE_SEQ": "2", "MAX_DURATION_SEQ": "0.5", "ITERATIONS": "3"}
    variables |= {
        "CPU": "true",
        "OUTPUT_DIR": tmp_path,
        "PYTHON": sys.executable,
        "OMP_NUM_THREADS": "1",
        "WARMUP": "1",
    }
    result = run_bash(ROOT / "scripts/inference_benchmark_jasper.sh", AMP="false", **variables)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].startswith("|2|0.5|FP32|")
    entries = read_entries(tmp_path / "noise_0.5s/list.txt", folder=tmp_path / "noise_0.5s")
    assert [entry.duration for entry in entries] == [0.5, 0.5]
    log = [json.loads(line.removeprefix("DLLL ")) for line in (tmp_path / "nvlog_fp32_bs2_0.5s.json").open()]
    assert log[-1]["data"]["avg_latency"] > 0
