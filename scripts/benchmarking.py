"""Scripts that measure: inference_benchmark.sh, train_benchmark.sh, and benchmark.sh with all that it measures."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from common.errors import OptionError
from common.options import read_switch
from common.precision import ComputingOptions
from scripts import train
from scripts.launch import (
    GLOBAL_BATCHES,
    GPU,
    JASPER,
    MODELS,
    SPEAKING,
    Script,
    cuda,
    dry_run,
    exec_or_print,
    given,
    launcher,
    note,
    number_of_gpus,
    python,
    require,
    run_or_print,
)
from scripts.speaking import SPEAKING_OPTIONS, TRANSCRIBING_OPTIONS, VOCODERS, VOICE, find_voice, voice_words
from scripts.variables import Variables

_TRAINED = ("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2")


def _precisions(own: Variables) -> list[str]:
    """The value of AMP in each run."""
    words = ["false", "true"] if own.amp == "both" else own.amp.split()
    return [str(read_switch("AMP", word)).lower() for word in words]


def _make_random(folder: Path, model: str, *words: str | Path) -> None:
    run_or_print([python(), "-m", "scripts.benchmarks.random_models", folder, "--model", model, *map(str, words)])


def benchmark_inference(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Measure latency and throughput of a model by batch size and precision."""
    gpu = cuda(own)
    defaults = ["WARMUP=16", "CUDNN_BENCHMARK=true"] if gpu else ["WARMUP=2", "CUDNN_BENCHMARK="]
    own, environ, words = SCRIPTS["inference_benchmark"].prepare(environ, [*defaults, *words])
    is_jasper, folder, logs = own.model == "Jasper", own.output_dir or Path(), []
    runs = _transcribing_runs(own, folder) if is_jasper else _speaking_runs(own, folder, words)
    for name, variables, options in runs:
        log = folder / name
        if not dry_run():
            log.unlink(missing_ok=True)  # figures of an earlier run
        passed_on = SCRIPTS["inference_benchmark"].passed_on(environ | variables | {"BS": "", "LOG_FILE": str(log)})
        run_or_print([python(), "inference.py", *options, *passed_on, *gpu, *words])
        logs.append(str(log))
    if not dry_run():
        table = "recognition" if is_jasper else "inference"
        run_or_print([python(), "-m", "scripts.benchmarks.table", table, *logs])


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
                _make_random(corpus, "Jasper", "--no-checkpoint", "--all-longest", *made, *config)
            options = given(jasper=checkpoint, input=manifest, dataset_path=corpus)
            options += given(iterations=own.iterations, max_utterances=size * own.iterations)
            for amp in _precisions(own):
                variables = {"AMP": amp, "BATCH_SIZE": str(size), "MAX_DURATION": f"{seconds:g}"}
                name = f"nvlog_{'amp' if amp == 'true' else 'fp32'}_bs{size}_{seconds:g}s.json"
                yield name, variables, options


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
    for amp in _precisions(own):
        for size in own.batch_sizes:
            name = f"nvlog_infer_{'amp' if amp == 'true' else 'fp32'}_bs{size}.json"
            yield name, {"AMP": amp, "BATCH_SIZE": str(size)} | without_vocoder, options


def benchmark_training(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Time training in each combination of batch size, GPUs and precision, or find the largest batch."""
    if own.largest_batch:
        _find_largest_batch(own, words)
        return
    is_jasper = own.model == "Jasper"
    numbers = [number_of_gpus(replace(own, num_gpus=word)) for word in own.gpu_numbers.split()]
    if own.gpu_numbers == "auto" and is_jasper:
        numbers = [number for number in (1, 4, 8) if number <= numbers[0]] or [0]
    folder, amps = own.output_dir or Path(), _precisions(own)
    never = (own.epochs or 0) + 1  # nothing but training takes time
    defaults = [f"EPOCHS_PER_CHECKPOINT={never}", f"VALIDATION_INTERVAL={never}", f"SAMPLES_INTERVAL={never}"]
    environ = environ | (_jasper_corpus(own, folder, max(1, *numbers)) if is_jasper else _speech_corpus(own, folder))
    least, most = GLOBAL_BATCHES[own.model]
    runs = []
    for size in own.batch_sizes:
        for gpus in numbers:
            processes = max(gpus, 1)
            published = least if least == most else 1
            accumulation = own.accumulation or max(1, published // (size * processes))
            benchmark = ["CUDNN_BENCHMARK=true"] * (is_jasper and gpus > 0)
            for amp in amps:
                if "OMP_NUM_THREADS" not in environ:  # that of an earlier run of several processes
                    os.environ.pop("OMP_NUM_THREADS", None)
                output = folder / f"gpus{gpus}_bs{size}_acc{accumulation}_amp_{amp}"
                if not dry_run():
                    shutil.rmtree(output, ignore_errors=True)  # figures of an earlier run
                run = {"NUM_GPUS": str(gpus), "BS": str(size), "BATCH_SIZE": "", "GRAD_ACCUMULATION": str(accumulation)}
                run |= {"AMP": amp, "OUTPUT_DIR": str(output)}
                run_or_print(train.command(environ | run, [*defaults, *benchmark, *words]))
                runs.append(f"{processes}={output}/nvlog.json")
    run_or_print([python(), "-m", "scripts.benchmarks.table", "training", *runs])


def _jasper_corpus(own: Variables, folder: Path, processes: int) -> dict[str, str]:
    """Variables that name LibriSpeech, or noise that is made in its place."""
    corpus = own.dataset_path or train.LIBRISPEECH_FOLDER
    training = own.train_manifests or (train.librispeech_manifest(corpus, "train-clean-100"),)
    validation = own.val_manifest or (train.librispeech_manifest(corpus, "dev-clean"),)
    if own.dataset_path or own.train_manifests or own.val_manifest:
        require(training[0], "no such manifest; see scripts/preprocess_librispeech.sh")
    elif not training[0].exists():
        count = own.sequences or 24 * max(own.batch_sizes) * processes
        corpus = folder / "noise"
        training = validation = (corpus / "list.txt",)
        note(f"LibriSpeech is not here: training on {count} recordings of noise")
        made = given(count=count, max_duration=own.max_duration, model_config=own.model_config)
        _make_random(corpus, "Jasper", "--no-checkpoint", *made)
    manifests = {"TRAIN_MANIFESTS": " ".join(map(str, training)), "VAL_MANIFEST": " ".join(map(str, validation))}
    return {"DATASET_PATH": str(corpus), **manifests}


def _speech_corpus(own: Variables, folder: Path) -> dict[str, str]:
    """Variables that name the corpus, or one that the embedded speaker makes in its place."""
    corpus = own.dataset_path or train.find_ljspeech()
    if own.dataset_path or own.train_filelist or own.val_filelist or corpus.is_dir():
        return {"DATASET_PATH": str(require(corpus, "no such folder; set DATASET_PATH to a corpus"))}
    corpus = folder / "corpus"
    note(f"LJSpeech-1.1 is not here: the embedded speaker makes a corpus of up to {own.clips} clips")
    made = given(output=corpus, n_validation=2, count=own.clips)
    run_or_print([python(), "-m", "scripts.datasets.make_corpus", *made])
    settings = {"DATASET_PATH": str(corpus), "TRAIN_FILELIST": f"{corpus}/train.txt"}
    # It has recordings and transcripts alone.
    of_model = {"FastPitch": {"LEARNED_ALIGNMENT": "true"}, "Tacotron2": {"LOAD_MEL_FROM_DISK": "false"}}
    return settings | {"VAL_FILELIST": f"{corpus}/val.txt"} | of_model.get(own.model, {})


def _find_largest_batch(own: Variables, words: list[str]) -> None:
    gpu = cuda(replace(own, num_gpus=own.gpu_numbers))  # another GPU would hold as much
    largest = own.max_batch_size or (2**16 if gpu else 8)
    options = given(model=own.model, batch_size=own.smallest, accumulation=1, steps=own.steps, largest_batch=largest)
    options += given(wn_channels=own.wn_channels) if own.model == "WaveGlow" else []
    options += ["--settings", *own.precisions] if own.precisions else []
    exec_or_print([python(), "-m", "scripts.benchmarks.train", *options, *gpu, *words])


def benchmark(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Measure the part of the toolkit that the first word names."""
    subjects = ("train", "inference", "serving", "feed", "vocoder", "gpu")
    what, *words = words or [""]
    if what not in subjects:
        raise OptionError(f"{what}{': ' * bool(what)}expected {', '.join(subjects[:-1])} or {subjects[-1]}")
    if what == "inference":
        SCRIPTS["inference_benchmark"].start(dict(os.environ), words)
        return
    command, options = [python()], []
    if what == "train":
        gpus = number_of_gpus(own)
        command, _ = launcher(own, gpus)
        options = [*given(batch_size=own.bs, accumulation=own.accumulation), *["--cuda"] * min(gpus, 1)]
    elif what != "gpu":
        options = cuda(own)
    exec_or_print([*command, "-m", f"scripts.benchmarks.{what}", *options, *words])


SCRIPTS = {
    "inference_benchmark": Script(
        benchmark_inference,
        {
            f"{GPU} amp output_dir batch_sizes": (),
            ComputingOptions: (),
            f"{VOICE} phrases audio torchscript": SPEAKING,
            **dict.fromkeys(SPEAKING_OPTIONS, SPEAKING),
            "jasper model_config durations dataset_path manifest iterations": JASPER,
            **dict.fromkeys(TRANSCRIBING_OPTIONS, JASPER),
        },
        models=MODELS,
        defaults={
            "": "AMP=false OUTPUT_DIR=output/benchmark_inference BS_SEQUENCE='1 4 8' REPEATS=100",
            "Jasper": "AMP=both OUTPUT_DIR=output/benchmark_jasper BS_SEQUENCE='1 2 4 8 16' PAD_TO_MAX_DURATION=true "
            "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_speca.yaml",
        },
        removed="LOG_FILE SEED DATASET",
        default_models={"BATCH_SIZE_SEQ": "Jasper"},
    ),
    "train_benchmark": Script(
        benchmark_training,
        {
            "gpu_numbers cpu cuda batch_sizes amp accumulation epochs output_dir dataset_path": (),
            "largest_batch smallest max_batch_size wn_channels precisions steps": (),
            "clips train_filelist val_filelist": _TRAINED,
            "model_config train_manifests val_manifest max_duration sequences": JASPER,
        },
        models=(*_TRAINED, "Jasper"),
        defaults={
            "": "MINUTES_PER_CHECKPOINT=0 EPOCHS=10 OUTPUT_DIR=output/train_benchmark BS_SEQUENCE=16",
            "Jasper": "EMA=0 EPOCHS=2 OUTPUT_DIR=output/train_benchmark_jasper BS_SEQUENCE=32 "
            "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml",
        },
        removed=f"{train.SCRIPT.removed} LOG_FILE RESUME BMARK_EPOCHS_NUM",
        default_models={"BATCH_SIZE_SEQ": "Jasper", "NUM_GPUS_SEQ": "Jasper"},
        trains=train.SCRIPT,
    ),
    "benchmark": Script(benchmark, {f"{GPU} bs accumulation": ()}, defaults={"": "BS=16 GRAD_ACCUMULATION=4"}),
}
