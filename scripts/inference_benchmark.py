"""Scripts that measure speaking and transcribing: inference_benchmark.sh."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import OptionError
from common.options import option, read_switch, read_variables
from scripts.launch import (
    JASPER,
    MODELS,
    SPEAKING,
    Gpus,
    Script,
    dry_run,
    given,
    passed_on,
    python,
    run_or_print,
    variable,
)
from scripts.voices import VoiceFiles, find_voice

_OWN_LOGS = "each run has a log of its own in OUTPUT_DIR; leave it out"


def _read_precisions(text: str) -> tuple[bool, ...]:
    """Whether each run is in mixed precision: true, false or both."""
    return (False, True) if text == "both" else (read_switch("AMP", text),)


@dataclass(frozen=True)
class InferenceVariables(Gpus):
    """Variables of inference_benchmark.sh for all models."""

    warmup: int | None = variable(
        "WARMUP",
        None,
        "batches before measuring; empty: 16 on a GPU, 2 on a CPU",
        least=0,
        published=("NUM_WARMUP_STEPS",),
    )
    cudnn_benchmark: bool = variable("CUDNN_BENCHMARK", True, "cuDNN tries its algorithms for each shape, on a GPU")
    amp: str | None = variable(
        "AMP", None, "true, false, or both, which adds the speed-up; by default false, of Jasper both"
    )
    output_dir: Path | None = variable(
        "OUTPUT_DIR", None, "folder for the results, by default output/benchmark_inference or benchmark_jasper"
    )


@dataclass(frozen=True)
class SpeakingBenchmark:
    """Variables of voices and vocoders; a vocoder may be random-..., which makes one of random weights."""

    denoising: float = variable("DENOISING", 0.0, "how much of the vocoder's own noise is subtracted", least=0)
    phrases: Path | None = variable(
        "PHRASES",
        None,
        "list to speak; empty: texts of 128 characters, or mels of 8.05 s for a random vocoder without a voice",
        published=("FILELIST",),
    )
    batch_sizes: tuple[int, ...] = variable(
        "BS_SEQUENCE", (1, 4, 8), "batch sizes", least=1, most=99999, published=("BATCH_SIZE",)
    )
    repeats: int = variable("REPEATS", 100, "times that the list is synthesized", least=1, most=99999)
    audio: bool = variable("AUDIO", True, "false: measure the text-to-mel model only")
    torchscript: bool = variable("TORCHSCRIPT", False, "compile the networks to TorchScript")


@dataclass(frozen=True)
class TranscribingBenchmark:
    """Variables of Jasper."""

    jasper: Path | None = variable(
        "JASPER", None, "checkpoint; empty: random weights for MODEL_CONFIG", published=("CHECKPOINT",)
    )
    model_config: Path = variable(
        "MODEL_CONFIG", Path("jasper/configs/jasper10x5dr_speedp-online_speca.yaml"), "YAML file that configures Jasper"
    )
    batch_sizes: tuple[int, ...] = variable("BATCH_SIZE_SEQ", (1, 2, 4, 8, 16), "batch sizes", least=1)
    durations: tuple[str, ...] = variable("MAX_DURATION_SEQ", ("2", "7", "16.7"), "s, of the recordings of a batch")
    dataset_path: Path = variable(
        "DATASET_PATH", Path("LibriSpeech"), "folder of the corpus", published=("DATASET_DIR", "DATA_DIR")
    )
    manifest: Path | None = variable(
        "MANIFEST", None, "manifest or list to transcribe, by default LibriSpeech's dev-clean"
    )
    pad_to_max_duration: bool = variable("PAD_TO_MAX_DURATION", True, "false: pad batches to their longest recording")
    iterations: int = variable(
        "ITERATIONS", 500, "batches that are measured, about", least=1, most=99999, published=("NUM_STEPS",)
    )


@dataclass(frozen=True)
class PassedOn:
    """Variables of Jasper's original that are options of inference.py."""

    pad_leading: int | None = option(None, "frames before the recordings", least=0, published=("PAD_LEADING",))


class _Runs:
    """Runs of inference.py with the same arguments, each with a log."""

    def __init__(self, own: InferenceVariables, words: list[str]) -> None:
        self.words = words
        self.gpu = own.number(1) > 0
        self.logs: list[Path] = []
        self._flags = ["--cuda"] * self.gpu + ["--cudnn-benchmark"] * (self.gpu and own.cudnn_benchmark)
        self._warmup = (16 if self.gpu else 2) if own.warmup is None else own.warmup

    def measure(self, log: Path, *, amp: bool, options: list[str | Path]) -> None:
        """One run."""
        if not dry_run():
            log.unlink(missing_ok=True)  # figures of an earlier run
        own = given(log_file=log, warmup_steps=self._warmup)
        run_or_print([python(), "inference.py", *own, *options, *self._flags, *["--amp"] * amp, *self.words])
        self.logs.append(log)

    def print_table(self, kind: str) -> None:
        """Print the figures of all logs."""
        if not dry_run():
            run_or_print([python(), "-m", "scripts.benchmarks.table", kind, *self.logs])


def benchmark_inference(environ: dict[str, str], words: list[str]) -> None:
    """Measure latency and throughput of a model by batch size and precision."""
    own: InferenceVariables = read_variables(InferenceVariables, environ)
    is_jasper = environ["MODEL"] == "Jasper"
    precisions = _read_precisions(own.amp or ("both" if is_jasper else "false"))
    runs = _Runs(own, [*passed_on(PassedOn, environ), *words] if is_jasper else words)
    folder = own.output_dir or Path(f"output/benchmark_{'jasper' if is_jasper else 'inference'}")
    if is_jasper:
        _measure_transcribing(read_variables(TranscribingBenchmark, environ), runs, folder, precisions)
        runs.print_table("recognition")
    else:
        _measure_speaking(environ, runs, folder, precisions)
        runs.print_table("inference")


def _measure_transcribing(own: TranscribingBenchmark, runs: _Runs, folder: Path, precisions: tuple[bool, ...]) -> None:
    random_models = [python(), "-m", "scripts.benchmarks.random_models"]
    config = given(model_config=own.model_config)
    for duration in own.durations:
        if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", duration):  # part of names of folders
            raise OptionError(f"MAX_DURATION_SEQ={' '.join(own.durations)}: expected seconds, such as 2 7 16.7")
    checkpoint = own.jasper
    if checkpoint is None:
        checkpoint = folder / "weights/Jasper_random.pt"
        run_or_print([*random_models, checkpoint.parent, "--model", "Jasper", "--count", "1", *config])
    for duration in own.durations:
        for size in own.batch_sizes:
            corpus = own.dataset_path
            manifest = own.manifest or corpus / "librispeech-dev-clean-wav.json"
            if not manifest.exists():
                corpus = folder / f"noise_{duration}s"
                manifest = corpus / "list.txt"
                made = [corpus, "--model", "Jasper", "--no-checkpoint", "--all-longest"]
                run_or_print([*random_models, *made, *given(count=size, max_duration=duration), *config])
            options = given(jasper=checkpoint, input=manifest, dataset_path=corpus, batch_size=size)
            options += [*given(max_duration=duration), *["--pad-to-max-duration"] * own.pad_to_max_duration]
            options += given(iterations=own.iterations, max_utterances=size * own.iterations)
            for amp in precisions:
                log = folder / f"nvlog_{'amp' if amp else 'fp32'}_bs{size}_{duration}s.json"
                runs.measure(log, amp=amp, options=options)


def _measure_speaking(environ: dict[str, str], runs: _Runs, folder: Path, precisions: tuple[bool, ...]) -> None:
    own: SpeakingBenchmark = read_variables(SpeakingBenchmark, environ)
    voice: VoiceFiles = read_variables(VoiceFiles, environ)
    phrases = own.phrases
    for model, name, default in (
        ("HiFi-GAN", "hifigan", "random-v1"),
        ("WaveGlow", "waveglow", "random-256"),
        ("Harmonic", "harmonic", "random-256"),
    ):
        file = getattr(voice, name) or (default if environ["MODEL"] == model else "")
        if not file.startswith("random-"):
            continue
        kind = file.removeprefix("random-")
        made = [folder, *given(model=model, kind=kind, count=max(own.batch_sizes))]
        run_or_print([python(), "-m", "scripts.benchmarks.random_models", *made])
        environ[name.upper()] = str(folder / f"{model}_{kind}.pt")
        if not voice.voice:
            phrases = phrases or folder / "random_mels.tsv"
    phrases = phrases or Path("phrases/benchmark_8_128.tsv")
    if phrases == folder / "random_mels.tsv":  # a dry run has not made it
        voice = read_variables(VoiceFiles, environ)
    else:
        voice = find_voice(environ, runs.words, phrases=phrases, audio=own.audio)
    if not own.audio:
        voice = replace(voice, hifigan=None, waveglow=None, harmonic=None)
    denoising = given(denoising_strength=own.denoising) if voice.vocoder else []
    options = [*given(input=phrases, repeats=own.repeats), *voice.words(), *denoising]
    options += ["--benchmark"] if voice.vocoder else []  # times the first sound
    options += ["--no-audio"] * (not own.audio) + ["--torchscript"] * own.torchscript
    for amp in precisions:
        for size in own.batch_sizes:
            log = folder / f"nvlog_infer_{'amp' if amp else 'fp32'}_bs{size}.json"
            runs.measure(log, amp=amp, options=[*options, *given(batch_size=size)])


SCRIPTS = {
    "inference_benchmark": Script(
        benchmark_inference,
        {
            InferenceVariables: (),
            VoiceFiles: SPEAKING,
            SpeakingBenchmark: SPEAKING,
            TranscribingBenchmark: JASPER,
            PassedOn: JASPER,
        },
        models=MODELS,
        removed={
            "LOG_FILE": _OWN_LOGS,
            "SEED": "transcribing draws no random numbers; leave it out",
            "DATASET": "set MANIFEST to its manifest",
        },
    )
}
