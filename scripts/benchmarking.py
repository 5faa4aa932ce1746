"""Scripts that measure: inference_benchmark.sh, train_benchmark.sh, and benchmark.sh with all that it measures."""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import OptionError
from common.options import option, read_switch
from scripts import launch, train
from scripts.launch import MODELS, Given, GpuSettings, count, cuda, options, python, script, setting
from scripts.speaking import VOCODERS, VoiceSettings, find_voice, inference_options
from scripts.train import DATASET_PATH, TrainSettings, training_options

# Precision of a training -> options of train.py.
SETTINGS = {
    "full": [],
    "mixed": ["--amp"],
    "fp32": ["--no-tf32"],
    "tf32": ["--tf32"],
    "float16": ["--amp", "--amp-dtype", "float16"],
    "bfloat16": ["--amp", "--amp-dtype", "bfloat16"],
}
_SIZES = "BS_SEQUENCE BS BATCH_SIZE BATCH_SIZE_SEQ"
_SUBJECTS = ("train", "updates", "inference", "serving", "feed", "voices", "gpu")


def _mixed(words: str) -> list[bool]:
    """Whether each run is in mixed precision."""
    return [False, True] if words == "both" else [read_switch("AMP", word) for word in words.split()]


def _make_random(folder: Path, model: str, *words: str | Path) -> None:
    launch.run_or_print([python(), "-m", "scripts.benchmarks.random_models", folder, "--model", model, *words])


@dataclass(frozen=True)
class InferenceSettings(VoiceSettings):
    """What is measured of inference."""

    phrases: Path | None = setting("PHRASES FILELIST", None, "list to speak; empty: eight texts of 128 characters")
    output_dir: Path = setting("OUTPUT_DIR", Path("output/benchmark_inference"), "folder for the logs")
    sizes: tuple[int, ...] = count(_SIZES, (1, 4, 8), "batch sizes")
    mixed: str = setting("AMP", "false", "mixed precision: true, false, or both, which adds the speed-up")
    audio: bool = setting("AUDIO", True, "false: measure the text-to-mel model only")
    durations: tuple[float, ...] = setting("MAX_DURATION_SEQ", (2.0, 7.0, 16.7), "s, of Jasper's recordings", above=0)
    iterations: int = count("ITERATIONS NUM_STEPS", 500, "batches of Jasper that are measured, about")
    dataset_path: Path = setting(DATASET_PATH, train.LIBRISPEECH_FOLDER, "folder of LibriSpeech")
    manifest: Path | None = setting("MANIFEST", None, "manifest or list to transcribe; empty: dev-clean")
    model_config: Path | None = setting("MODEL_CONFIG", None, "YAML file of a Jasper without checkpoint")


@script(
    InferenceSettings,
    inference_options,
    models=MODELS,
    model_of={"BATCH_SIZE_SEQ": "Jasper"},
    defaults={
        "": "REPEATS=100",
        "Jasper": "AMP=both OUTPUT_DIR=output/benchmark_jasper BS_SEQUENCE='1 2 4 8 16' PAD_TO_MAX_DURATION=true "
        "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_speca.yaml",
    },
)
def inference_benchmark(own: InferenceSettings, given: Given) -> None:
    """Measure latency and throughput of a model by batch size and precision."""
    gpu, logs = cuda(own), []
    defaults = ["--warmup-steps", "16", "--cudnn-benchmark"] if gpu else ["--warmup-steps", "2"]
    for name, words in _transcribing_runs(own) if own.model == "Jasper" else _speaking_runs(own, given):
        log = own.output_dir / name
        if not launch.dry_run():
            log.unlink(missing_ok=True)  # figures of an earlier run
        chosen = [*defaults, *words, *options(log_file=log), *given.passed, *gpu, *given.words]
        launch.run_or_print([python(), launch.shipped("inference.py"), *chosen])
        logs.append(str(log))
    if not launch.dry_run():
        launch.run_or_print([python(), "-m", "scripts.benchmarks.table", *logs])


Runs = Iterator[tuple[str, list[str | Path]]]  # log and options of each


def _transcribing_runs(own: InferenceSettings) -> Runs:
    """Jasper's runs, with random weights or noise where there are no others."""
    folder, config, checkpoint = own.output_dir, options(model_config=own.model_config), own.jasper
    if checkpoint is None:
        checkpoint = folder / "weights/Jasper_random.pt"
        _make_random(checkpoint.parent, "Jasper", "--count", "1", *config)
    for seconds, size in itertools.product(own.durations, own.sizes):
        corpus = own.dataset_path
        manifest = own.manifest or train.librispeech_manifest(corpus, "dev-clean")
        if not manifest.exists():
            corpus = folder / f"noise_{seconds:g}s"
            manifest = corpus / "list.txt"
            made = options(count=size, max_duration=seconds)
            _make_random(corpus, "Jasper", "--no-checkpoint", *made, *config)
        chosen = options(jasper=checkpoint, input=manifest, dataset_path=corpus, iterations=own.iterations)
        chosen += options(max_utterances=size * own.iterations, batch_size=size, max_duration=f"{seconds:g}")
        for mixed in _mixed(own.mixed):
            yield f"nvlog_{'amp' if mixed else 'fp32'}_bs{size}_{seconds:g}s.json", chosen + ["--amp"] * mixed


def _speaking_runs(own: InferenceSettings, given: Given) -> Runs:
    """A voice's or a vocoder's runs; a vocoder random-... gets random weights, and without a voice random mels."""
    phrases, needs_voice = own.phrases, True
    for model, name in VOCODERS.items():
        default = "random-v1" if model == "HiFi-GAN" else "random-256"
        kind = (getattr(own, name) or (default if own.model == model else "")).partition("random-")[2]
        if kind:
            _make_random(own.output_dir, model, *options(kind=kind, count=max(own.sizes)))
            own = replace(own, **{name: str(own.output_dir / f"{model}_{kind}.pt")})
            if own.voice is None and phrases is None:
                phrases, needs_voice = own.output_dir / "random_mels.tsv", False
    phrases = phrases or launch.shipped("phrases/benchmark_8_128.tsv")
    if needs_voice:
        own = find_voice(own, given.options, phrases=phrases, audio=own.audio)
    if not own.audio:
        own = replace(own, hifigan=None, waveglow=None, harmonic=None)
        for name in {"--denoising-strength", "--sigma-infer"}.intersection(given.passed):  # of a vocoder
            place = given.passed.index(name)
            del given.passed[place : place + 2]
    chosen = [*options(input=phrases), *own.words, *["--no-audio"] * (not own.audio)]
    chosen += ["--benchmark"] if own.vocoder else []  # times the first sound
    for mixed, size in itertools.product(_mixed(own.mixed), own.sizes):
        name = f"nvlog_infer_{'amp' if mixed else 'fp32'}_bs{size}.json"
        yield name, [*chosen, *options(batch_size=size), *["--amp"] * mixed]


@dataclass(frozen=True)
class BenchmarkSettings(TrainSettings):
    """What is measured of training."""

    num_gpus: str = setting(
        "NUM_GPUS NUM_GPUS_SEQUENCE NUM_GPUS_SEQ",
        "auto",
        "GPUs, one number a run; auto: all there are, of Jasper 1, 4 and 8; 0: the CPU",
    )
    sizes: tuple[int, ...] = count(_SIZES, (16,), "batch sizes", names=("-bs", "--batch-size"))
    bs: int | None = None
    mixed: str = setting("AMP", "both", "mixed precision: true, false, or both, which adds the speed-up")
    precisions: tuple[str, ...] = setting(
        "PRECISIONS", (), "several instead of AMP", choices=tuple(SETTINGS), names=("--settings",)
    )
    output_dir: Path = setting("OUTPUT_DIR", Path("output/train_benchmark"), "folder for the logs")
    epochs: int = count("EPOCHS", 10, "epochs of a run")
    steps: int = count("STEPS", 5, "updates of an epoch on noise after its first")
    sequences: int | None = count("SEQUENCES CLIPS", None, "recordings of noise; empty: for 1 + STEPS updates")
    noise: bool = option(False, "train on noise where there is a corpus, too")
    max_duration: float | None = setting("MAX_DURATION", None, "s, of Jasper's recordings; empty: all", above=0)
    model_config: Path | None = setting("MODEL_CONFIG", None, "YAML file that configures Jasper")
    largest_batch: bool = setting("LARGEST_BATCH", False, "search for the largest batch instead of training")
    max_batch_size: int | None = count("MAX_BATCH_SIZE", None, "where it ends; empty: where memory does, on the CPU 8")
    wn_channels: int = count("WN_CHANNELS", 512, "of WaveGlow, in the search")


@script(
    BenchmarkSettings,
    training_options,
    models=("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2", "Harmonic", "Jasper"),
    model_of={"BATCH_SIZE_SEQ": "Jasper", "NUM_GPUS_SEQ": "Jasper"},
    defaults={
        "": "MINUTES_PER_CHECKPOINT=0",
        "Jasper": "EMA=0 EPOCHS=2 OUTPUT_DIR=output/train_benchmark_jasper BS_SEQUENCE=32 SEED=0 "
        "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml",
        **{model: train.train.defaults[model] for model in ("FastPitch", "Tacotron2")},
    },
)
def train_benchmark(own: BenchmarkSettings, given: Given) -> None:
    """Time training in each combination of batch size, GPUs and precision, or find the largest batch."""
    precisions = own.precisions or ["mixed" if mixed else "full" for mixed in _mixed(own.mixed)]
    if own.largest_batch:
        _find_largest_batch(own, given, precisions)
        return
    numbers = [launch.number_of_gpus(replace(own, num_gpus=word)) for word in own.num_gpus.split()]
    if own.num_gpus == "auto" and own.model == "Jasper":
        numbers = [number for number in (1, 4, 8) if number <= numbers[0]] or [0]
    least, most = launch.GLOBAL_BATCHES[own.model]
    logs = []
    for size, gpus in itertools.product(own.sizes, numbers):
        accumulation = own.accumulation or max(1, (least if least == most else 1) // (size * max(gpus, 1)))
        run = replace(own, bs=size, num_gpus=str(gpus), accumulation=accumulation)
        run = _with_corpus(run, size * accumulation * max(gpus, 1))
        logs += [_train(run, given, precision) for precision in precisions]
    launch.run_or_print([python(), "-m", "scripts.benchmarks.table", *logs])


def _train(own: BenchmarkSettings, given: Given, precision: str, *words: str | Path) -> str:
    """Train in a precision; returns processes=log for the table."""
    gpus = int(own.num_gpus)
    output = own.output_dir / f"gpus{gpus}_bs{own.bs}_acc{own.accumulation}_{precision}"
    if not launch.dry_run():
        shutil.rmtree(output, ignore_errors=True)  # figures of an earlier run
    if "OMP_NUM_THREADS" not in given.environ:  # that of an earlier run of several processes
        os.environ.pop("OMP_NUM_THREADS", None)
    never = own.epochs + 1  # nothing but training takes time
    chosen = options(epochs_per_checkpoint=never, validation_interval=never, samples_interval=never, epochs=own.epochs)
    if own.model == "Jasper":
        chosen += options(max_duration=own.max_duration, model_config=own.model_config)
        chosen += ["--cudnn-benchmark"] * (gpus > 0)
    given = replace(given, environ={})  # where BATCH_SIZE is of an update
    chosen += [*words, *SETTINGS[precision]]
    launch.run_or_print(train.command(replace(own, output_dir=output), given, *chosen))
    for checkpoint in output.glob("*.pt"):
        checkpoint.unlink()
    return f"{max(gpus, 1)}={output}/nvlog.json"


def _with_corpus(own: BenchmarkSettings, global_batch: int) -> BenchmarkSettings:
    """The settings with the corpus, or noise that is made where there is none."""
    is_jasper = own.model == "Jasper"
    corpus = own.dataset_path or (train.LIBRISPEECH_FOLDER if is_jasper else train.find_ljspeech())
    if not own.noise and (own.dataset_path or own.train_manifests or own.train_filelist or corpus.is_dir()):
        if not is_jasper or own.train_manifests:
            return replace(own, dataset_path=corpus)
        manifest = train.librispeech_manifest(corpus, "train-clean-100")
        launch.require(manifest, "no such manifest; see scripts/preprocess_librispeech.sh")
        return replace(own, dataset_path=corpus, train_manifests=(manifest,))
    n_recordings = own.sequences or (1 + own.steps) * global_batch
    if not own.noise:
        launch.note(f"{corpus} is not here: training on {n_recordings} recordings of noise")
    corpus = own.output_dir / "noise"
    made = options(count=n_recordings, max_duration=own.max_duration, model_config=own.model_config)
    _make_random(corpus, own.model, "--no-checkpoint", *made)
    lists = {"train_filelist": corpus / "list.txt", "val_filelist": corpus / "val.txt"}
    lists |= {"train_manifests": (corpus / "list.txt",), "val_manifest": (corpus / "val.txt",)}
    return replace(own, dataset_path=corpus, learned="false", **lists)


def _find_largest_batch(own: BenchmarkSettings, given: Given, precisions: list[str]) -> None:
    """Search for the largest batch in each precision by training on noise, and print a table of those that fit."""
    gpus = launch.number_of_gpus(own, 1)  # another GPU would hold as much
    smallest = int(given.environ.get("BATCH_SIZE") or 1)
    largest = smallest if launch.dry_run() else own.max_batch_size or (2**16 if gpus else 8)
    logs, found = [], []
    words = options(wn_channels=own.wn_channels) if own.model == "WaveGlow" else []
    own = replace(own, num_gpus=str(gpus), accumulation=1, noise=True, epochs=1)

    def fits(size: int) -> bool:
        try:
            logs.append(_train(_with_corpus(replace(own, bs=size), size), given, precision, *words))
        except SystemExit as error:
            if error.code == 2:  # wrong options, whatever the size
                raise
            return False
        return True

    for precision in precisions:
        size = search(fits, smallest=smallest, largest=largest)
        found.append(f"{precision}: the largest batch up to {largest} that fits is {size}")
    launch.run_or_print([python(), "-m", "scripts.benchmarks.table", *logs])
    if not launch.dry_run():
        print(*found, sep="\n")


def search(fits: Callable[[int], bool], *, smallest: int, largest: int) -> int:
    """The largest size up to ``largest`` that fits, 0 where none does; sizes are doubled, then the gap is halved."""
    fitting, too_large, size = 0, largest + 1, smallest
    while fitting + 1 < too_large:
        if fits(size):
            fitting = size
        else:
            too_large = size
        doubled = 2 * fitting if too_large > largest else (fitting + too_large) // 2
        size = max(1, min(doubled, too_large - 1))
    return fitting


@script()
def benchmark(own: GpuSettings, given: Given) -> None:
    """Measure the part of the toolkit that the first word names."""
    what, *words = given.words or [""]
    if what not in _SUBJECTS:
        raise OptionError(f"{what}{': ' * bool(what)}expected {', '.join(_SUBJECTS[:-1])} or {_SUBJECTS[-1]}")
    if what == "train":
        defaults = ["EPOCHS=1", "OUTPUT_DIR=output/benchmark_train", "BS_SEQUENCE=16", "GRAD_ACCUMULATION=4", "--noise"]
        train_benchmark.start({"MODEL": "FastPitch"} | dict(given.environ), [*defaults, *words])
    elif what == "inference":
        inference_benchmark.start(given.environ, words)
    else:
        gpu = {"gpu": ["--cpu"] * own.cpu, "voices": []}.get(what) or cuda(own) * (what not in ("gpu", "voices"))
        launch.exec_or_print([python(), "-m", f"scripts.benchmarks.{what}", *gpu, *words])
