"""Scripts that measure speed: inference_benchmark, train_benchmark, and benchmark, which starts these and others."""

import itertools
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import OptionError
from common.options import read_switch
from scripts import launch, training
from scripts.benchmarks.table import markdown, rows
from scripts.launch import DATASET_PATH, LIBRISPEECH_FOLDER, MODELS, Given, GpuSettings, Script, options, setting
from scripts.speaking import VoiceSettings, find_newest, find_voice, inference_options
from scripts.training import TrainSettings, training_options

_SIZES = "BS_SEQUENCE BS BATCH_SIZE BATCH_SIZE_SEQ"
_SUBJECTS = ("train", "updates", "inference", "voices", "gpu")


def _mixed(words: str) -> list[bool]:
    """Return for each run whether it's in mixed precision."""
    return [False, True] if words == "both" else [read_switch("AMP", word) for word in words.split()]


@dataclass(frozen=True)
class InferenceSettings(VoiceSettings):
    """How inference is measured."""

    phrases: Path = setting("PHRASES FILELIST", launch.shipped("phrases/benchmark_8_128.tsv"), "list to speak")
    output_dir: Path = setting("OUTPUT_DIR", Path("output/benchmark_inference"), "folder for the logs")
    sizes: tuple[int, ...] = setting(_SIZES, (1, 4, 8), "batch sizes", least=1)
    mixed: str = setting("AMP", "false", "mixed precision: true, false, or both")
    durations: tuple[float, ...] = setting("MAX_DURATION_SEQ", (2.0, 7.0, 16.7), "lengths for Jasper, in s", above=0)
    iterations: int = setting("ITERATIONS NUM_STEPS", 500, "approximate number of Jasper batches to measure", least=1)
    dataset_path: Path = setting(DATASET_PATH, LIBRISPEECH_FOLDER, "folder of LibriSpeech")
    manifest: Path | None = setting("MANIFEST", None, "manifest or list to transcribe; empty: dev-clean")


@Script(
    InferenceSettings,
    inference_options,
    models=MODELS,
    model_of={"BATCH_SIZE_SEQ": "Jasper"},
    defaults={
        "": "REPEATS=100",
        "Jasper": "AMP=both OUTPUT_DIR=output/benchmark_jasper BS_SEQUENCE='1 2 4 8 16' PAD_TO_MAX_DURATION=true",
    },
)
def inference_benchmark(own: InferenceSettings, given: Given) -> None:
    """Measure latency and throughput of a model by batch size and precision."""
    gpu, logs = launch.gpu_option(own), []
    chosen = ["--warmup-steps", "16", "--cudnn-benchmark"] if gpu else ["--warmup-steps", "2"]
    if own.model == "Jasper":
        jasper = own.jasper or find_newest("Jasper")
        manifest = own.manifest or launch.librispeech_manifest(own.dataset_path, "dev-clean")
        chosen += options(jasper=jasper, input=manifest, dataset_path=own.dataset_path, iterations=own.iterations)
    else:
        own = find_voice(own, given.options, phrases=own.phrases)
        chosen += [*options(input=own.phrases), *own.words]
        chosen += ["--benchmark"] if own.vocoder else []  # which also times the first sound
    durations = own.durations if own.model == "Jasper" else (None,)
    for seconds, mixed, size in itertools.product(durations, _mixed(own.mixed), own.sizes):
        log = own.output_dir / f"nvlog_{'amp' if mixed else 'fp32'}_bs{size}_{seconds or 'infer'}.json"
        words = [*options(batch_size=size, log_file=log), *["--amp"] * mixed]
        if seconds is not None:
            words += options(max_duration=f"{seconds:g}", max_utterances=size * own.iterations)
        words = [*chosen, *words, *given.passed, *gpu, *given.words]
        launch.run_or_print([*launch.program("inference.py"), *words])
        logs.append(log)
    if not launch.dry_run():
        print(*markdown(rows(logs)), sep="\n")


@dataclass(frozen=True)
class BenchmarkSettings(TrainSettings):
    """How training is measured."""

    num_gpus: str = setting(
        "NUM_GPUS NUM_GPUS_SEQUENCE NUM_GPUS_SEQ", "auto", "GPUs of each run; auto: all, for Jasper 1, 4, 8; 0: the CPU"
    )
    sizes: tuple[int, ...] = setting(_SIZES, (16,), "batch sizes", least=1, names=("-bs", "--batch-size"))
    bs: int | None = None
    mixed: str = setting("AMP", "both", "mixed precision: true, false, or both")
    output_dir: Path = setting("OUTPUT_DIR", Path("output/train_benchmark"), "folder for the logs")
    epochs: int = setting("EPOCHS", 10, "epochs of a run", least=1)


@Script(
    BenchmarkSettings,
    training_options,
    models=("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2", "Harmonic", "Jasper"),
    model_of={"BATCH_SIZE_SEQ": "Jasper", "NUM_GPUS_SEQ": "Jasper"},
    defaults={
        "": "MINUTES_PER_CHECKPOINT=0",
        "Jasper": "EMA=0 EPOCHS=2 OUTPUT_DIR=output/train_benchmark_jasper BS_SEQUENCE=32 SEED=0 CUDNN_BENCHMARK=true "
        "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml",
        **{model: training.train.defaults[model] for model in ("FastPitch", "Tacotron2")},
    },
)
def train_benchmark(own: BenchmarkSettings, given: Given) -> None:
    """Time training with each combination of batch size, GPUs and precision."""
    numbers = [launch.number_of_gpus(replace(own, num_gpus=word)) for word in own.num_gpus.split()]
    if own.num_gpus == "auto" and own.model == "Jasper":
        numbers = [number for number in (1, 4, 8) if number <= numbers[0]] or [0]
    if own.model == "Jasper" and not own.train_manifests:
        corpus = own.dataset_path or LIBRISPEECH_FOLDER
        manifest = launch.librispeech_manifest(corpus, "train-clean-100")
        launch.require(manifest, "no such manifest; see scripts/preprocess_librispeech.sh")
        own = replace(own, train_manifests=(manifest,))
    never = own.epochs + 1  # so that only training takes time
    chosen = options(epochs_per_checkpoint=never, validation_interval=never, samples_interval=never, epochs=own.epochs)
    given = replace(given, environ={})  # where BATCH_SIZE is the size of an update
    logs = []
    for size, gpus, mixed in itertools.product(own.sizes, numbers, _mixed(own.mixed)):
        accumulation = own.accumulation or max(1, launch.GLOBAL_BATCHES.get(own.model, 1) // (size * max(gpus, 1)))
        output = own.output_dir / f"gpus{gpus}_bs{size}_acc{accumulation}_{'mixed' if mixed else 'full'}"
        if not launch.dry_run():
            shutil.rmtree(output, ignore_errors=True)  # figures of an earlier run
        run = replace(own, bs=size, num_gpus=str(gpus), accumulation=accumulation, output_dir=output)
        launch.run_or_print(training.command(run, given, *chosen, *["--amp"] * mixed))
        for checkpoint in output.glob("*.pt"):
            checkpoint.unlink()
        logs.append(output / "nvlog.json")
    if not launch.dry_run():
        print(*markdown(rows(logs)), sep="\n")


@Script()
def benchmark(own: GpuSettings, given: Given) -> None:
    """Measure the part of the toolkit that the first word names."""
    what, *words = given.words or [""]
    if what not in _SUBJECTS:
        raise OptionError(f"{what}{': ' * bool(what)}expected {', '.join(_SUBJECTS[:-1])} or {_SUBJECTS[-1]}")
    if what in ("train", "inference"):
        {"train": train_benchmark, "inference": inference_benchmark}[what].start(given.environ, words)
        return
    program = ["bash", launch.ROOT / "scripts/benchmarks/gpu.sh"]
    if what != "gpu":
        program = launch.program(f"scripts.benchmarks.{what}")
        program += launch.gpu_option(own) if what == "updates" else []
    launch.exec_or_print([*program, *words])
