"""Scripts that measure: inference_benchmark.sh, train_benchmark.sh, and benchmark.sh with all that it measures."""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.cli import ArgumentParser, ComputingOptions
from common.errors import OptionError
from common.options import read_switch
from scripts import launch, train
from scripts.launch import GPU, JASPER, MODELS, SPEAKING, cuda, given, python, script
from scripts.speaking import SPEAKING_OPTIONS, TRANSCRIBING_OPTIONS, VOCODERS, VOICE, find_voice, voice_words
from scripts.variables import Variables

_TRAINED = ("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2", "Harmonic")
# Precision of a training -> value of AMP, and options of train.py.
SETTINGS = {
    "full": ("false", []),
    "mixed": ("true", []),
    "fp32": ("false", ["--no-tf32"]),
    "tf32": ("false", ["--tf32"]),
    "float16": ("true", ["--amp-dtype", "float16"]),
    "bfloat16": ("true", ["--amp-dtype", "bfloat16"]),
}
# Variable -> arguments of `benchmark.sh train` that set it.
_ARGUMENTS = {
    "MODEL": ("-m", "--model"),
    "BS": ("-bs", "--batch-size"),
    "GRAD_ACCUMULATION": ("--accumulation",),
    "STEPS": ("--steps",),
    "PRECISIONS": ("--settings",),
    "MAX_DURATION": ("--max-duration",),
    "MODEL_CONFIG": ("--model-config",),
}


def _mixed(own: Variables) -> list[bool]:
    """Whether each run is in mixed precision."""
    return [False, True] if own.amp == "both" else [read_switch("AMP", word) for word in own.amp.split()]


def _precisions(own: Variables) -> list[str]:
    """Keys of `SETTINGS`, for each run of training."""
    return list(own.precisions) or ["mixed" if mixed else "full" for mixed in _mixed(own)]


def _make_random(folder: Path, model: str, *words: str | Path) -> None:
    launch.run_or_print([python(), "-m", "scripts.benchmarks.random_models", folder, "--model", model, *words])


@script(
    {
        f"{GPU} amp output_dir batch_sizes": (),
        ComputingOptions: (),
        f"{VOICE} phrases audio": SPEAKING,
        **dict.fromkeys(SPEAKING_OPTIONS, SPEAKING),
        "jasper model_config durations dataset_path manifest iterations": JASPER,
        **dict.fromkeys(TRANSCRIBING_OPTIONS, JASPER),
    },
    models=MODELS,
    defaults="AMP=false OUTPUT_DIR=output/benchmark_inference BS_SEQUENCE='1 4 8' REPEATS=100",
    defaults_by_model={
        "Jasper": "AMP=both OUTPUT_DIR=output/benchmark_jasper BS_SEQUENCE='1 2 4 8 16' PAD_TO_MAX_DURATION=true "
        "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_speca.yaml"
    },
    removed="LOG_FILE SEED DATASET",
    default_models={"BATCH_SIZE_SEQ": "Jasper"},
)
def inference_benchmark(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Measure latency and throughput of a model by batch size and precision."""
    gpu = cuda(own)
    defaults = ["WARMUP=16", "CUDNN_BENCHMARK=true"] if gpu else ["WARMUP=2", "CUDNN_BENCHMARK="]
    own, environ, words = inference_benchmark.prepare(environ, [*defaults, *words])
    is_jasper, folder, logs = own.model == "Jasper", own.output_dir or Path(), []
    runs = _transcribing_runs(own, folder) if is_jasper else _speaking_runs(own, folder, words)
    for name, variables, options in runs:
        log = folder / name
        if not launch.dry_run():
            log.unlink(missing_ok=True)  # figures of an earlier run
        passed_on = inference_benchmark.passed_on(environ | variables | {"BS": "", "LOG_FILE": str(log)})
        launch.run_or_print([python(), "inference.py", *options, *passed_on, *gpu, *words])
        logs.append(str(log))
    if not launch.dry_run():
        launch.run_or_print([python(), "-m", "scripts.benchmarks.table", *logs])


Runs = Iterator[tuple[str, dict[str, str], list[str | Path]]]  # log, variables and options of each


def _transcribing_runs(own: Variables, folder: Path) -> Runs:
    """Jasper's runs, with random weights or noise where there are no others."""
    config, checkpoint = given(model_config=own.model_config), own.jasper
    if checkpoint is None:
        checkpoint = folder / "weights/Jasper_random.pt"
        _make_random(checkpoint.parent, "Jasper", "--count", "1", *config)
    for seconds in own.durations:
        for size in own.batch_sizes:
            corpus = own.dataset_path or train.LIBRISPEECH_FOLDER
            manifest = own.manifest or train.librispeech_manifest(corpus, "dev-clean")
            if not manifest.exists():
                corpus = folder / f"noise_{seconds:g}s"
                manifest = corpus / "list.txt"
                made = given(count=size, max_duration=seconds)
                _make_random(corpus, "Jasper", "--no-checkpoint", *made, *config)
            options = given(jasper=checkpoint, input=manifest, dataset_path=corpus)
            options += given(iterations=own.iterations, max_utterances=size * own.iterations)
            for mixed in _mixed(own):
                variables = {"AMP": str(mixed), "BATCH_SIZE": str(size), "MAX_DURATION": f"{seconds:g}"}
                yield f"nvlog_{'amp' if mixed else 'fp32'}_bs{size}_{seconds:g}s.json", variables, options


def _speaking_runs(own: Variables, folder: Path, words: list[str]) -> Runs:
    """A voice's or a vocoder's runs; a vocoder random-... gets random weights, and without a voice random mels."""
    phrases, needs_voice = own.phrases, True
    for model, name in VOCODERS.items():
        default = "random-v1" if model == "HiFi-GAN" else "random-256"
        kind = (getattr(own, name) or (default if own.model == model else "")).partition("random-")[2]
        if kind:
            _make_random(folder, model, *given(kind=kind, count=max(own.batch_sizes)))
            own = replace(own, **{name: str(folder / f"{model}_{kind}.pt")})
            if own.voice is None and phrases is None:
                phrases, needs_voice = folder / "random_mels.tsv", False
    own = replace(own, phrases=phrases or Path("phrases/benchmark_8_128.tsv"))
    if needs_voice:
        own = find_voice(own, words, audio=own.audio)
    if not own.audio:
        own = replace(own, hifigan=None, waveglow=None, harmonic=None)
    options = [*given(input=own.phrases), *voice_words(own), *["--no-audio"] * (not own.audio)]
    options += ["--benchmark"] if own.vocoder else []  # times the first sound
    without_vocoder = {} if own.vocoder else {"DENOISING": "", "SIGMA": ""}
    for mixed, size in itertools.product(_mixed(own), own.batch_sizes):
        name = f"nvlog_infer_{'amp' if mixed else 'fp32'}_bs{size}.json"
        yield name, {"AMP": str(mixed), "BATCH_SIZE": str(size)} | without_vocoder, options


@script(
    {
        "gpu_numbers cpu cuda batch_sizes amp accumulation epochs output_dir dataset_path": (),
        "largest_batch smallest max_batch_size wn_channels precisions steps sequences": (),
        "train_filelist val_filelist": _TRAINED,
        "model_config train_manifests val_manifest max_duration": JASPER,
    },
    models=(*_TRAINED, "Jasper"),
    defaults="MINUTES_PER_CHECKPOINT=0 EPOCHS=10 OUTPUT_DIR=output/train_benchmark BS_SEQUENCE=16",
    defaults_by_model={
        "Jasper": "EMA=0 EPOCHS=2 OUTPUT_DIR=output/train_benchmark_jasper BS_SEQUENCE=32 "
        "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml"
    },
    removed=f"{train.train.removed} LOG_FILE RESUME BMARK_EPOCHS_NUM",
    default_models={"BATCH_SIZE_SEQ": "Jasper", "NUM_GPUS_SEQ": "Jasper"},
    names_model=True,
    trains=train.train,
)
def train_benchmark(own: Variables, environ: dict[str, str], words: list[str], *, noise: bool = False) -> None:
    """Time training in each combination of batch size, GPUs and precision, or find the largest batch.

    The corpus is ``noise`` where that is asked for, or where there is no other.
    """
    if own.largest_batch:
        _find_largest_batch(own, environ, words)
        return
    numbers = [launch.number_of_gpus(replace(own, num_gpus=word)) for word in own.gpu_numbers.split()]
    if own.gpu_numbers == "auto" and own.model == "Jasper":
        numbers = [number for number in (1, 4, 8) if number <= numbers[0]] or [0]
    least, most = launch.GLOBAL_BATCHES[own.model]
    logs = []
    for size, gpus in itertools.product(own.batch_sizes, numbers):
        accumulation = own.accumulation or max(1, (least if least == most else 1) // (size * max(gpus, 1)))
        corpus = _corpus(own, size * accumulation * max(gpus, 1), noise=noise)
        for precision in _precisions(own):
            logs.append(_train(own, environ | corpus, words, (gpus, size, accumulation, precision)))
    launch.run_or_print([python(), "-m", "scripts.benchmarks.table", *logs])


def _train(own: Variables, environ: dict[str, str], words: Sequence[str], run: tuple[int, int, int, str]) -> str:
    """Train with so many GPUs, utterances, micro-batches, and in a precision; returns processes=log for the table."""
    gpus, size, accumulation, precision = run
    amp, options = SETTINGS[precision]
    output = (own.output_dir or Path()) / f"gpus{gpus}_bs{size}_acc{accumulation}_{precision}"
    if not launch.dry_run():
        shutil.rmtree(output, ignore_errors=True)  # figures of an earlier run
    if "OMP_NUM_THREADS" not in environ:  # that of an earlier run of several processes
        os.environ.pop("OMP_NUM_THREADS", None)
    never = (own.epochs or 0) + 1  # nothing but training takes time
    defaults = [f"EPOCHS_PER_CHECKPOINT={never}", f"VALIDATION_INTERVAL={never}", f"SAMPLES_INTERVAL={never}"]
    defaults += ["CUDNN_BENCHMARK=true"] * (own.model == "Jasper" and gpus > 0)
    settings = {"NUM_GPUS": str(gpus), "BS": str(size), "BATCH_SIZE": "", "GRAD_ACCUMULATION": str(accumulation)}
    settings |= {"AMP": amp, "OUTPUT_DIR": str(output)}
    launch.run_or_print(train.command(environ | settings, [*defaults, *options, *words]))
    for checkpoint in output.glob("*.pt"):
        checkpoint.unlink()
    return f"{max(gpus, 1)}={output}/nvlog.json"


def _corpus(own: Variables, global_batch: int, *, noise: bool) -> dict[str, str]:
    """Variables that name the corpus, or noise that is made in its place."""
    is_jasper = own.model == "Jasper"
    corpus = own.dataset_path or (train.LIBRISPEECH_FOLDER if is_jasper else train.find_ljspeech())
    if not noise and (own.dataset_path or own.train_manifests or own.train_filelist or corpus.is_dir()):
        settings = {"DATASET_PATH": str(corpus)}
        if is_jasper and not own.train_manifests:
            manifest = train.librispeech_manifest(corpus, "train-clean-100")
            launch.require(manifest, "no such manifest; see scripts/preprocess_librispeech.sh")
            settings["TRAIN_MANIFESTS"] = str(manifest)
        return settings
    count = own.sequences or (1 + own.steps) * global_batch
    if not noise:
        launch.note(f"{corpus} is not here: training on {count} recordings of noise")
    corpus = (own.output_dir or Path()) / "noise"
    made = given(count=count, max_duration=own.max_duration, model_config=own.model_config)
    _make_random(corpus, own.model, "--no-checkpoint", *made)
    names = ("TRAIN_MANIFESTS", "VAL_MANIFEST") if is_jasper else ("TRAIN_FILELIST", "VAL_FILELIST")
    lists = {name: f"{corpus}/{file}" for name, file in zip(names, ("list.txt", "val.txt"))}
    return {"DATASET_PATH": str(corpus), "LEARNED_ALIGNMENT": "false" if own.model == "FastPitch" else "", **lists}


def _find_largest_batch(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Search for the largest batch in each precision by training on noise, and print a table of those that fit."""
    gpus = launch.number_of_gpus(replace(own, num_gpus=own.gpu_numbers), 1)  # another GPU would hold as much
    largest, logs, found = own.max_batch_size or (2**16 if gpus else 8), [], []
    words = [*map(str, given(wn_channels=own.wn_channels) if own.model == "WaveGlow" else []), *words]

    def fits(size: int) -> bool:
        corpus = _corpus(own, size, noise=True) | {"EPOCHS": "1"}
        try:
            logs.append(_train(own, environ | corpus, words, (gpus, size, 1, precision)))
        except SystemExit as error:
            if error.code == 2:  # wrong options, whatever the size
                raise
            return False
        return True

    for precision in _precisions(own):
        size = search(fits, smallest=own.smallest, largest=own.smallest if launch.dry_run() else largest)
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


@script({f"{GPU} bs accumulation": ()}, defaults="BS=16 GRAD_ACCUMULATION=4")
def benchmark(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Measure the part of the toolkit that the first word names."""
    subjects = ("train", "updates", "inference", "serving", "feed", "vocoder", "voices", "gpu")
    what, *words = words or [""]
    if what not in subjects:
        raise OptionError(f"{what}{': ' * bool(what)}expected {', '.join(subjects[:-1])} or {subjects[-1]}")
    if what == "train":
        parser = ArgumentParser(add_help=False)
        for name, options in _ARGUMENTS.items():
            parser.add_argument(*options, dest=name, nargs="+")
        args, others = parser.parse_known_args(["--model", "FastPitch", *words])
        environ |= {name: " ".join(one) for name, one in vars(args).items() if one}
        defaults = ["EPOCHS=1", "OUTPUT_DIR=output/benchmark_train"]
        train_benchmark.run(*train_benchmark.prepare(environ, [*defaults, *others]), noise=True)
    elif what == "inference":
        inference_benchmark.start(dict(os.environ), words)
    else:
        gpu = cuda(own) if what not in ("gpu", "voices") else []
        launch.exec_or_print([python(), "-m", f"scripts.benchmarks.{what}", *gpu, *words])
