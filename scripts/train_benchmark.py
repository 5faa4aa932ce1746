"""Scripts that measure training: train_benchmark.sh, and benchmark.sh with all that it measures."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

from common.checkpoints.options import EmaOptions
from common.errors import OptionError
from common.files import write_text
from common.precision import ComputingOptions
from scripts import inference_benchmark, train
from scripts.launch import (
    GLOBAL_BATCHES,
    GPU,
    JASPER,
    Script,
    cuda,
    dry_run,
    exec_or_print,
    given,
    launcher,
    note,
    number_of_gpus,
    passed_on,
    precisions,
    python,
    require,
    run_or_print,
)
from scripts.variables import Variables
from scripts.voices import VOICE, find_voice, voice_words

_SPEAKING = ("HiFi-GAN", "WaveGlow", "FastPitch", "Tacotron2")


def benchmark_training(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Time training in each combination of batch size, GPUs and precision, or find the largest batch."""
    if own.largest_batch:
        _find_largest_batch(own, words)
        return
    is_jasper = own.model == "Jasper"
    there = number_of_gpus(replace(own, num_gpus="auto"))
    numbers = [number_of_gpus(replace(own, num_gpus=word)) for word in own.gpu_numbers.split() if word != "auto"]
    if own.gpu_numbers == "auto":
        numbers = ([number for number in (1, 4, 8) if number <= there] or [0]) if is_jasper else [there]
    folder = own.output_dir or Path()
    never = (own.epochs or 0) + 1  # nothing but training takes time
    defaults = [f"EPOCHS_PER_CHECKPOINT={never}", f"VALIDATION_INTERVAL={never}", f"SAMPLES_INTERVAL={never}"]
    environ = environ | (_jasper_corpus(own, folder, max(1, *numbers)) if is_jasper else _speech_corpus(own, folder))
    environ.pop("BATCH_SIZE", None)  # another name of BS, or Jasper's of an update
    least, most = GLOBAL_BATCHES[own.model]
    runs = []
    for size in own.batch_sizes:
        for gpus in numbers:
            processes = max(gpus, 1)
            published = least if least == most else 1
            accumulation = own.accumulation or max(1, published // (size * processes))
            benchmark = ["CUDNN_BENCHMARK=true"] * (is_jasper and gpus > 0)
            for amp in precisions(own):
                if "OMP_NUM_THREADS" not in environ:  # that of an earlier run of several processes
                    os.environ.pop("OMP_NUM_THREADS", None)
                output = folder / f"gpus{gpus}_bs{size}_acc{accumulation}_amp_{str(amp).lower()}"
                if not dry_run():
                    shutil.rmtree(output, ignore_errors=True)  # figures of an earlier run
                run = {"NUM_GPUS": str(gpus), "BS": str(size), "GRAD_ACCUMULATION": str(accumulation)}
                run |= {"AMP": str(amp).lower(), "OUTPUT_DIR": str(output)}
                run_or_print(train.command(environ | run, [*defaults, *benchmark, *words]))
                runs.append(f"{processes}={output}/nvlog.json")
    run_or_print([python(), "-m", "scripts.benchmarks.table", "sequences" if is_jasper else "training", *runs])


def _jasper_corpus(own: Variables, folder: Path, processes: int) -> dict[str, str]:
    """Variables that name LibriSpeech, or noise that is made in its place."""
    corpus = own.dataset_path or Path("LibriSpeech")
    training = own.train_manifests or (train.librispeech_manifest(corpus, "train-clean-100"),)
    validation = own.val_manifest or (train.librispeech_manifest(corpus, "dev-clean"),)
    if own.dataset_path or own.train_manifests or own.val_manifest:
        require(training[0], "no such manifest; see scripts/preprocess_librispeech.sh")
    elif not training[0].exists():
        count = own.sequences or 24 * max(own.batch_sizes) * processes
        corpus = folder / "noise"
        training = validation = (corpus / "list.txt",)
        note(f"LibriSpeech is not here: training on {count} recordings of noise")
        made = [corpus, "--model", "Jasper", "--no-checkpoint", *given(count=count, max_duration=own.max_duration)]
        made += given(model_config=own.model_config)
        run_or_print([python(), "-m", "scripts.benchmarks.random_models", *made])
    manifests = {"TRAIN_MANIFESTS": " ".join(map(str, training)), "VAL_MANIFEST": " ".join(map(str, validation))}
    return {"DATASET_PATH": str(corpus), **manifests}


def _speech_corpus(own: Variables, folder: Path) -> dict[str, str]:
    """Variables that name the corpus, or one that the embedded speaker makes in its place."""
    corpus = own.dataset_path or train.find_ljspeech()
    if own.dataset_path or own.train_filelist or own.val_filelist or corpus.is_dir():
        return {"DATASET_PATH": str(require(corpus, "no such folder; set DATASET_PATH to a corpus"))}
    corpus, sentences = folder / "corpus", folder / "sentences.txt"
    if not dry_run():
        note(f"LJSpeech-1.1 is not here: the embedded speaker makes a corpus of up to {own.clips} clips")
        lines = Path("scripts/datasets/corpus_sentences.txt").read_text(encoding="utf-8").splitlines()
        chosen = [line for line in lines if line.strip() and not line.startswith("#")][: own.clips]
        folder.mkdir(parents=True, exist_ok=True)
        write_text(sentences, "\n".join(chosen) + "\n")
    made = ["-o", corpus, "--n-validation", "2", "--sentences", sentences]
    run_or_print([python(), "-m", "scripts.datasets.make_corpus", *made])
    settings = {"DATASET_PATH": str(corpus), "TRAIN_FILELIST": f"{corpus}/train.txt"}
    # It has recordings and transcripts alone.
    of_model = {"FastPitch": {"LEARNED_ALIGNMENT": "true"}, "Tacotron2": {"LOAD_MEL_FROM_DISK": "false"}}
    return settings | {"VAL_FILELIST": f"{corpus}/val.txt"} | of_model.get(own.model, {})


def _find_largest_batch(own: Variables, words: list[str]) -> None:
    gpu = cuda(replace(own, num_gpus=own.gpu_numbers))  # another GPU would hold as much
    largest = own.max_batch_size or (None if gpu else 8)
    options = given(model=own.model, smallest=own.smallest, steps=own.steps, largest=largest)
    options += given(wn_channels=own.wn_channels) if own.model == "WaveGlow" else []
    options += ["--settings", *own.precisions] if own.precisions else []
    exec_or_print([python(), "-m", "scripts.benchmarks.largest_batch", *options, *gpu, *words])


def benchmark(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Measure the part of the toolkit that the first word names."""
    subjects = ("train", "inference", "serving", "feed", "extract", "vocoder", "decoder", "gpu")
    what, *words = words or [""]
    if what not in subjects:
        raise OptionError(f"{what}{': ' * bool(what)}expected {', '.join(subjects[:-1])} or {subjects[-1]}")
    if what == "inference":
        inference_benchmark.SCRIPTS["inference_benchmark"].start(dict(os.environ), words)
        return
    command, options = [python()], []
    if what == "train":
        gpus = number_of_gpus(own)
        command, _ = launcher(own, gpus)
        options = [*given(batch_size=own.bs, accumulation=own.accumulation), *["--cuda"] * min(gpus, 1)]
    elif what == "serving":
        options = [*voice_words(find_voice(own, words)), *passed_on([ComputingOptions, EmaOptions], environ)]
    elif what == "vocoder":
        options = passed_on([ComputingOptions], environ)
    if what in ("serving", "vocoder", "feed", "decoder"):
        options += cuda(own)
    exec_or_print([*command, "-m", f"scripts.benchmarks.{what}", *options, *words])


SCRIPTS = {
    "train_benchmark": Script(
        benchmark_training,
        {
            "gpu_numbers cpu cuda batch_sizes amp accumulation epochs output_dir dataset_path": (),
            "largest_batch smallest max_batch_size wn_channels precisions steps": (),
            "clips train_filelist val_filelist": _SPEAKING,
            "model_config train_manifests val_manifest max_duration sequences": JASPER,
        },
        models=(*_SPEAKING, "Jasper"),
        defaults={
            "": "MINUTES_PER_CHECKPOINT=0 EPOCHS=10 OUTPUT_DIR=output/train_benchmark BS_SEQUENCE=16",
            "Jasper": "EMA=0 EPOCHS=2 OUTPUT_DIR=output/train_benchmark_jasper BS_SEQUENCE=32 "
            "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml",
        },
        removed=f"{train.SCRIPT.removed} LOG_FILE RESUME BMARK_EPOCHS_NUM",
        default_models={"BATCH_SIZE_SEQ": "Jasper", "NUM_GPUS_SEQ": "Jasper"},
        trains=train.SCRIPT,
    ),
    "benchmark": Script(
        benchmark,
        {f"{GPU} bs accumulation {VOICE}": (), ComputingOptions: (), EmaOptions: ()},
        defaults={"": "BS=16 GRAD_ACCUMULATION=4"},
    ),
}
