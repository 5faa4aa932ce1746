"""Scripts that measure training: train_benchmark.sh, and benchmark.sh with all that it measures."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import InputError, OptionError
from common.files import write_text
from common.options import options_of, read_switch, read_variables, variables_of
from common.training.options import RunOptions
from scripts import inference_benchmark, train
from scripts.launch import (
    GLOBAL_BATCHES,
    JASPER,
    TORCHRUN,
    Device,
    Gpus,
    Script,
    dry_run,
    exec_or_print,
    given,
    note,
    python,
    require_gpus,
    run_or_print,
    variable,
)
from scripts.voices import VoiceFiles

_OWN_LOGS = "each run has a log of its own in OUTPUT_DIR; leave it out"


@dataclass(frozen=True)
class TrainingVariables:
    """Variables of train_benchmark.sh for all models."""

    amp: str = variable("AMP", "false true", "mixed precision, one or both")
    accumulation: int | None = variable(
        "GRAD_ACCUMULATION",
        None,
        "micro-batches in an update; empty: what makes the published batch, of Jasper 1",
        least=1,
        most=99999,
        published=("GRAD_ACCUMULATION_STEPS",),
    )
    epochs: int | None = variable("EPOCHS", None, "epochs in total, by default 10, of Jasper 2", least=1, most=99999)
    output_dir: Path | None = variable(
        "OUTPUT_DIR", None, "folder for the results, by default output/train_benchmark or train_benchmark_jasper"
    )
    dataset_path: Path | None = variable(
        "DATASET_PATH",
        None,
        "folder of the corpus, by default LJSpeech-1.1 or LibriSpeech",
        published=("DATASET_DIR", "DATA_DIR"),
    )
    largest_batch: bool = variable("LARGEST_BATCH", False, "search for the largest batch instead of training")


@dataclass(frozen=True)
class SpeechTraining:
    """Variables of voices and vocoders."""

    num_gpus: str = variable(
        "NUM_GPUS",
        "auto",
        "GPUs, several numbers for several runs; auto: all there are; 0: the CPU",
        published=("NUM_GPUS_SEQUENCE",),
    )
    batch_sizes: tuple[int, ...] = variable(
        "BS", (16,), "utterances in a micro-batch of one process", least=1, most=99999, published=("BATCH_SIZE",)
    )
    clips: int = variable("CLIPS", 160, "sentences of the corpus that is made where there is none", least=1, most=99999)


@dataclass(frozen=True)
class SpeechLists:
    """Lists of a corpus, as train.sh has them."""

    train_filelist: Path | None = variable("TRAIN_FILELIST", None, "list to train on")
    val_filelist: Path | None = variable("VAL_FILELIST", None, "list to validate on")


@dataclass(frozen=True)
class JasperTraining:
    """Variables of Jasper."""

    num_gpus: str = variable("NUM_GPUS_SEQ", "auto", "numbers of GPUs; auto: those of 1, 4 and 8 that are there")
    batch_sizes: tuple[int, ...] = variable("BATCH_SIZE_SEQ", (32,), "of one GPU", least=1, most=99999)
    model_config: Path = variable(
        "MODEL_CONFIG",
        Path("jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml"),
        "YAML file that configures Jasper",
    )
    train_manifest: Path | None = variable(
        "TRAIN_MANIFEST",
        None,
        "manifest, list or folder to train on, by default train-clean-100",
        published=("TRAIN_MANIFESTS",),
    )
    val_manifest: Path | None = variable(
        "VAL_MANIFEST",
        None,
        "manifest, list or folder to validate on, by default dev-clean",
        published=("VAL_MANIFESTS",),
    )
    max_duration: float | None = variable("MAX_DURATION", None, "s; empty: as MODEL_CONFIG says", above=0)
    sequences: int | None = variable(
        "SEQUENCES",
        None,
        "recordings of noise, where there is no corpus; empty: 24 updates of the largest run",
        least=1,
        most=99999,
    )


@dataclass(frozen=True)
class LargestBatch(Gpus):
    """Variables of the search for the largest batch."""

    wn_channels: int = variable("WN_CHANNELS", 512, "of WaveGlow", least=1)
    batch_size: int = variable("BATCH_SIZE", 1, "to begin with", least=1)
    max_batch_size: int | None = variable(
        "MAX_BATCH_SIZE", None, "to stop at; empty: where memory ends, on the CPU 8", least=1
    )
    precisions: tuple[str, ...] = variable(
        "PRECISIONS", (), "of fp32, tf32, float16, bfloat16; empty: those that the machine has"
    )
    steps: int = variable("STEPS", 5, "updates that are timed", least=1)


def benchmark_training(environ: dict[str, str], words: list[str]) -> None:
    """Time training in each combination of batch size, GPUs and precision, or find the largest batch."""
    own: TrainingVariables = read_variables(TrainingVariables, environ)
    if own.largest_batch:
        _find_largest_batch(environ, words)
        return
    model = environ["MODEL"]
    is_jasper = model == "Jasper"
    kind = JasperTraining if is_jasper else SpeechTraining
    one: SpeechTraining | JasperTraining = read_variables(kind, environ)
    switches = [read_switch("AMP", word) for word in own.amp.split()]
    numbers = _numbers_of_gpus(one, environ)
    folder = own.output_dir or Path(f"output/train_benchmark{'_jasper' * is_jasper}")
    epochs = own.epochs or (2 if is_jasper else 10)
    # Nothing but training takes time.
    settings = dict.fromkeys(("EPOCHS_PER_CHECKPOINT", "VALIDATION_INTERVAL", "SAMPLES_INTERVAL"), str(epochs + 1))
    settings |= {"MINUTES_PER_CHECKPOINT": "0", "EMA": "0"} if is_jasper else {"MINUTES_PER_CHECKPOINT": "0"}
    for _, _, known in options_of(RunOptions):  # which the originals may call otherwise
        if any(environ.get(name) for name in variables_of(known)):
            settings.pop(known.variable or "", None)
    environ = settings | {name: value for name, value in environ.items() if value} | {"EPOCHS": str(epochs)}
    if isinstance(one, JasperTraining):
        for name in {"NUM_GPUS", "BATCH_SIZE"} & environ.keys():
            raise OptionError(f"{name}={environ[name]}: not a variable of MODEL=Jasper; set {name}_SEQ")
        environ |= {"KEEP_MILESTONES": "", **_jasper_corpus(one, own, folder, numbers)}
        words = [*given(max_duration=one.max_duration), *words]
    else:
        environ |= _speech_corpus(one, own, environ, folder)
    for name in ("LARGEST_BATCH", "BATCH_SIZE", "BATCH_SIZE_SEQ", "NUM_GPUS_SEQ", "NUM_GPUS_SEQUENCE", "MAX_DURATION"):
        environ.pop(name, None)
    runs = []
    for size in one.batch_sizes:
        for gpus in numbers:
            processes = max(gpus, 1)
            least, most = GLOBAL_BATCHES[model]
            published = least if least == most else 1
            accumulation = own.accumulation or max(1, published // (size * processes))
            further = ["--cudnn-benchmark"] if is_jasper and gpus and not environ.get("CUDNN_BENCHMARK") else []
            for amp in switches:
                if "OMP_NUM_THREADS" not in environ:  # that of an earlier run of several processes
                    os.environ.pop("OMP_NUM_THREADS", None)
                output = folder / f"gpus{gpus}_bs{size}_acc{accumulation}_amp_{str(amp).lower()}"
                if not dry_run():
                    shutil.rmtree(output, ignore_errors=True)  # figures of an earlier run
                run = {"NUM_GPUS": str(gpus), "BS": str(size), "GRAD_ACCUMULATION": str(accumulation)}
                run |= {"AMP": str(amp).lower(), "OUTPUT_DIR": str(output)}
                run_or_print(train.command(environ | run, [*map(str, [*further, *words])]))
                runs.append(f"{processes}={output}/nvlog.json")
    run_or_print([python(), "-m", "scripts.benchmarks.table", "training", *runs])


def _numbers_of_gpus(one: SpeechTraining | JasperTraining, environ: dict[str, str]) -> list[int]:
    """Each number of GPUs to train on."""
    is_jasper = isinstance(one, JasperTraining)
    if one.num_gpus == "auto":
        there = Gpus.number(read_variables(Gpus, environ | {"NUM_GPUS": "auto"}))
        return ([number for number in (1, 4, 8) if number <= there] or [0]) if is_jasper else [there]
    return [Gpus(num_gpus=word).number() for word in one.num_gpus.split()]


def _jasper_corpus(one: JasperTraining, own: TrainingVariables, folder: Path, numbers: list[int]) -> dict[str, str]:
    """Variables that name LibriSpeech, or noise that is made in its place.

    Raises:
        InputError: the manifest that is named does not exist.
    """
    corpus = own.dataset_path or Path("LibriSpeech")
    training = one.train_manifest or corpus / "librispeech-train-clean-100-wav.json"
    validation = one.val_manifest or corpus / "librispeech-dev-clean-wav.json"
    is_default = own.dataset_path is None and one.train_manifest is None and one.val_manifest is None
    if not training.exists() and not is_default and not dry_run():
        raise InputError(f"{training}: no such manifest; see scripts/preprocess_librispeech.sh")
    if not training.exists() and is_default:
        count = one.sequences or 24 * max(one.batch_sizes) * max(1, *numbers)
        corpus = folder / "noise"
        training = validation = corpus / "list.txt"
        note(f"LibriSpeech is not here: training on {count} recordings of noise")
        made = [corpus, "--model", "Jasper", "--no-checkpoint", *given(count=count, max_duration=one.max_duration)]
        made += given(model_config=one.model_config)
        run_or_print([python(), "-m", "scripts.benchmarks.random_models", *made])
    manifests = {"TRAIN_MANIFESTS": str(training), "VAL_MANIFEST": str(validation)}
    return {"DATASET_PATH": str(corpus), "MODEL_CONFIG": str(one.model_config), **manifests}


def _speech_corpus(
    one: SpeechTraining, own: TrainingVariables, environ: dict[str, str], folder: Path
) -> dict[str, str]:
    """Variables that name the corpus, or one that the embedded speaker makes in its place.

    Raises:
        InputError: the folder that is named does not exist.
    """
    corpus = own.dataset_path or train.find_ljspeech()
    lists = read_variables(SpeechLists, environ)
    is_default = own.dataset_path is None and lists == SpeechLists()
    if corpus.is_dir() or (not is_default and dry_run()):
        return {"DATASET_PATH": str(corpus)}
    if not is_default:
        raise InputError(f"{corpus}: no such folder; set DATASET_PATH to a corpus")
    corpus, sentences = folder / "corpus", folder / "sentences.txt"
    if not dry_run():
        note(f"LJSpeech-1.1 is not here: the embedded speaker makes a corpus of up to {one.clips} clips")
        lines = Path("scripts/datasets/corpus_sentences.txt").read_text(encoding="utf-8").splitlines()
        chosen = [line for line in lines if line.strip() and not line.startswith("#")][: one.clips]
        folder.mkdir(parents=True, exist_ok=True)
        write_text(sentences, "\n".join(chosen) + "\n")
    made = ["-o", corpus, "--n-validation", "2", "--sentences", sentences]
    run_or_print([python(), "-m", "scripts.datasets.make_corpus", *made])
    settings = {"DATASET_PATH": str(corpus), "TRAIN_FILELIST": f"{corpus}/train.txt"}
    # It has recordings and transcripts alone.
    of_model = {"FastPitch": {"LEARNED_ALIGNMENT": "true"}, "Tacotron2": {"LOAD_MEL_FROM_DISK": "false"}}
    return settings | {"VAL_FILELIST": f"{corpus}/val.txt"} | of_model.get(environ["MODEL"], {})


def _find_largest_batch(environ: dict[str, str], words: list[str]) -> None:
    own: LargestBatch = read_variables(LargestBatch, environ)
    model, gpus = environ["MODEL"], own.number(1)  # another GPU would hold as much
    require_gpus(gpus)
    largest = own.max_batch_size or (2**16 if gpus else 8)
    options = given(model=model, batch_size=own.batch_size, accumulation=1, steps=own.steps, largest_batch=largest)
    options += given(wn_channels=own.wn_channels) if model == "WaveGlow" else []
    options += ["--settings", *own.precisions] if own.precisions else []
    exec_or_print([python(), "-m", "scripts.benchmarks.train", *options, *["--cuda"] * gpus, *words])


@dataclass(frozen=True)
class BenchmarkVariables(Device):
    """Variables of benchmark.sh."""

    batch_size: int = variable("BS", 16, "utterances in a micro-batch of one process, of train", least=1, most=99999)
    accumulation: int = variable("GRAD_ACCUMULATION", 4, "micro-batches in an update, of train", least=1, most=99999)


def benchmark(environ: dict[str, str], words: list[str]) -> None:
    """Measure the part of the toolkit that the first word names."""
    subjects = ("train", "inference", "feed", "gpu")
    what, *words = words or [""]
    if what not in subjects:
        raise OptionError(f"{what}{': ' * bool(what)}expected {', '.join(subjects[:-1])} or {subjects[-1]}")
    if what == "inference":
        inference_benchmark.SCRIPTS["inference_benchmark"].start(environ, words)
        return
    own: BenchmarkVariables = read_variables(BenchmarkVariables, environ)
    launcher, flags = [python(), "-m", f"scripts.benchmarks.{what}"], []
    if what == "train":
        gpus = own.number()
        require_gpus(gpus)
        if gpus > 1:
            launcher[1:1] = [*TORCHRUN, "--standalone", "--nproc-per-node", str(gpus)]
        flags = [*given(batch_size=own.batch_size, accumulation=own.accumulation), *["--cuda"] * min(gpus, 1)]
    elif what == "feed":
        flags = replace(own, amp=False, ema=None).flags()
    exec_or_print([*launcher, *flags, *words])


SCRIPTS = {
    "train_benchmark": Script(
        benchmark_training,
        {
            TrainingVariables: (),
            LargestBatch: (),
            SpeechTraining: ("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2"),
            SpeechLists: ("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2"),
            JasperTraining: JASPER,
        },
        models=("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2", "Jasper"),
        removed={
            **train.REMOVED,
            "LOG_FILE": _OWN_LOGS,
            "RESUME": "each run is measured from its beginning; leave it out",
            "BMARK_EPOCHS_NUM": "the table is of the steady state, which it finds by itself; leave it out",
        },
        calls="scripts/train.sh",
    ),
    "benchmark": Script(benchmark, {BenchmarkVariables: (), VoiceFiles: ()}),
}
