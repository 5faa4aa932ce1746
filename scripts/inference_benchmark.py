"""Scripts that measure speaking and transcribing: inference_benchmark.sh."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from common.registry import get_model
from scripts.launch import (
    GPU,
    JASPER,
    MODELS,
    SPEAKING,
    Script,
    cuda,
    dry_run,
    given,
    passed_on,
    precisions,
    python,
    run_or_print,
)
from scripts.train import librispeech_manifest
from scripts.variables import Variables
from scripts.voices import VOCODERS, VOICE, find_voice, vocoder_of, voice_of, voice_words

_JASPER = get_model("Jasper").inference.options


def benchmark_inference(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Measure latency and throughput of a model by batch size and precision."""
    gpu = cuda(own)
    flags = [*gpu, *["--cudnn-benchmark"] * (own.cudnn_benchmark and bool(gpu))]
    warmup = (16 if gpu else 2) if own.warmup is None else own.warmup
    folder, logs = own.output_dir or Path(), []
    if own.model == "Jasper":
        table, runs = "recognition", _transcribing_runs(own, folder)
        words = [*passed_on([_JASPER], environ), *words]
    else:
        table, runs = "inference", _speaking_runs(own, folder, flags, words)
    for name, options in runs:
        log = folder / name
        if not dry_run():
            log.unlink(missing_ok=True)  # figures of an earlier run
        run_or_print([python(), "inference.py", *given(log_file=log, warmup_steps=warmup), *options, *flags, *words])
        logs.append(log)
    if not dry_run():
        run_or_print([python(), "-m", "scripts.benchmarks.table", table, *logs])


def _make_random(folder: Path, model: str, *words: str | Path) -> None:
    run_or_print([python(), "-m", "scripts.benchmarks.random_models", folder, "--model", model, *map(str, words)])


def _transcribing_runs(own: Variables, folder: Path) -> Iterator[tuple[str, list[str | Path]]]:
    """Log and options of each run of Jasper, with random weights or noise where there are no others."""
    config, checkpoint = given(model_config=own.model_config), own.jasper
    if checkpoint is None:
        checkpoint = folder / "weights/Jasper_random.pt"
        _make_random(checkpoint.parent, "Jasper", "--count", "1", *config)
    for seconds in own.durations:
        for size in own.batch_sizes:
            corpus = own.dataset_path or Path("LibriSpeech")
            manifest = own.manifest or librispeech_manifest(corpus, "dev-clean")
            if not manifest.exists():
                corpus = folder / f"noise_{seconds:g}s"
                manifest = corpus / "list.txt"
                made = given(count=size, max_duration=seconds)
                _make_random(corpus, "Jasper", "--no-checkpoint", "--all-longest", *made, *config)
            options = given(jasper=checkpoint, input=manifest, dataset_path=corpus, batch_size=size)
            options += [*given(max_duration=seconds), *["--pad-to-max-duration"] * own.pad_to_max_duration]
            options += given(iterations=own.iterations, max_utterances=size * own.iterations)
            for amp in precisions(own):
                yield f"nvlog_{'amp' if amp else 'fp32'}_bs{size}_{seconds:g}s.json", [*options, *["--amp"] * amp]


def _speaking_runs(
    own: Variables, folder: Path, flags: list[str], words: list[str]
) -> Iterator[tuple[str, list[str | Path]]]:
    """Log and options of each run of a voice or a vocoder; a vocoder random-... gets random weights.

    A HiFi-GAN without a voice is compared with the layers of its paper first, and what streams is timed to its first
    sound.
    """
    phrases, needs_voice = own.phrases, True
    for model, name in VOCODERS.items():
        default = "random-v1" if model == "HiFi-GAN" else "random-256"
        kind = (getattr(own, name) or (default if own.model == model else "")).partition("random-")[2]
        if not kind:
            continue
        _make_random(folder, model, *given(kind=kind, count=max(own.batch_sizes)))
        checkpoint = str(folder / f"{model}_{kind}.pt")
        own = replace(own, **{name: checkpoint})
        if voice_of(own) is None:
            needs_voice = phrases is not None
            phrases = phrases or folder / "random_mels.tsv"
            if model == "HiFi-GAN":
                measured = [checkpoint, *given(repeats=own.repeats), *flags, *["--amp"] * (True in precisions(own))]
                run_or_print([python(), "-m", "scripts.benchmarks.vocoder", *measured])
    own = replace(own, phrases=phrases or Path("phrases/benchmark_8_128.tsv"))
    if needs_voice:
        own = find_voice(own, words, audio=own.audio)
    if not own.audio:
        own = replace(own, hifigan=None, waveglow=None, harmonic=None)
    vocoder = vocoder_of(own)
    denoising = given(denoising_strength=own.denoising) if vocoder else []
    options = [*given(input=own.phrases, repeats=own.repeats), *voice_words(own), *denoising]
    options += ["--no-audio"] * (not own.audio) + ["--torchscript"] * own.torchscript
    for amp in precisions(own):
        for size in own.batch_sizes:
            name = f"nvlog_infer_{'amp' if amp else 'fp32'}_bs{size}.json"
            yield name, [*options, *given(batch_size=size), *["--amp"] * amp]
        if vocoder and not own.tacotron2:  # which cannot be told to speak for 20 s
            timed = [vocoder, *denoising, *flags, *["--amp"] * amp, *given(voice=own.fastpitch)]
            run_or_print([python(), "-m", "scripts.benchmarks.first_sound", *timed])


SCRIPTS = {
    "inference_benchmark": Script(
        benchmark_inference,
        {
            f"{GPU} warmup cudnn_benchmark amp output_dir batch_sizes": (),
            f"{VOICE} phrases denoising repeats audio torchscript": SPEAKING,
            "jasper model_config durations dataset_path manifest pad_to_max_duration iterations": JASPER,
            _JASPER: JASPER,
        },
        models=MODELS,
        defaults={
            "": "AMP=false OUTPUT_DIR=output/benchmark_inference BS_SEQUENCE='1 4 8'",
            "Jasper": "AMP=both OUTPUT_DIR=output/benchmark_jasper BS_SEQUENCE='1 2 4 8 16' "
            "MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-online_speca.yaml",
        },
        removed="LOG_FILE SEED DATASET",
        default_models={"BATCH_SIZE_SEQ": "Jasper"},
    )
}
