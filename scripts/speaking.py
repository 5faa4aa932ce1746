"""Scripts that speak, transcribe, evaluate and serve: inference_example, evaluation, evaluate_voice and serve."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError, OptionError
from common.evaluation.options import EvaluationOptions
from common.options import option, read_variables
from scripts.launch import (
    JASPER,
    MODELS,
    SPEAKING,
    Device,
    Script,
    dry_run,
    exec_or_print,
    given,
    passed_on,
    python,
    run_or_print,
    variable,
)
from scripts.voices import VoiceFiles, find_newest, find_voice

_OF_TRANSCRIBING = {
    "NUM_STEPS": "the first recordings alone are the argument --max-utterances N",
    "SEED": "transcribing draws no random numbers; leave it out",
    "MODEL_CONFIG": "the checkpoint holds the configuration; leave it out",
}


@dataclass(frozen=True)
class RecognizerFile:
    """The checkpoint that transcribes."""

    jasper: Path | None = variable("JASPER", None, "checkpoint; empty: the newest", published=("CHECKPOINT",))

    def find(self) -> Path:
        """The checkpoint that is named, or the newest; raises InputError where there is none."""
        return self.jasper or find_newest("JASPER", "Jasper", train="train_jasper.sh")


@dataclass(frozen=True)
class ExampleVariables(Device):
    """Variables of inference_example.sh for all models."""

    batch_size: int = variable("BATCH_SIZE", 32, "utterances of a batch", least=1, published=("BS",))
    output_dir: Path | None = variable(
        "OUTPUT_DIR", None, "folder for the results, by default in ./output and named after the list"
    )
    dataset_path: Path | None = variable(
        "DATASET_PATH",
        None,
        "folder that a list's recordings and mels start from; of Jasper by default LibriSpeech",
        published=("DATASET_DIR", "DATA_DIR"),
    )


@dataclass(frozen=True)
class SpokenVariables:
    """What is spoken, and how."""

    phrases: Path = variable("PHRASES", Path("phrases/devset10.tsv"), "list to speak", published=("FILELIST",))
    speaker: str | None = variable("SPEAKER", None, "speaker, by name or number; by default 0")
    sigma: float | None = variable("SIGMA", None, "of WaveGlow's noise, by default 0.9")
    denoising: float | None = variable(
        "DENOISING", None, "strength of the denoiser, by default 0.005, or 0.01 of WaveGlow; 0: none"
    )


@dataclass(frozen=True)
class TranscribedVariables(RecognizerFile):
    """What is transcribed."""

    dataset: str = variable("DATASET", "test-other", "subset of LibriSpeech to transcribe")
    manifest: Path | None = variable("MANIFEST", None, "manifest or list to transcribe, instead of DATASET")


@dataclass(frozen=True)
class PassedOn:
    """Variables of the originals that are options of inference.py."""

    log_file: Path | None = option(None, "JSON log", published=("LOG_FILE",))
    cudnn_benchmark: bool = option(False, "let cuDNN try its algorithms", published=("CUDNN_BENCHMARK",))


@dataclass(frozen=True)
class PassedOnSpeaking:
    """Variables of the originals that are options of speaking."""

    torchscript: bool = option(False, "compile the networks to TorchScript", published=("TORCHSCRIPT",))
    repeats: int | None = option(None, "times that the list is spoken", least=1, published=("REPEATS",))
    warmup_steps: int | None = option(None, "batches before measuring", least=0, published=("WARMUP",))
    p_arpabet: float | None = option(None, "words as phones", words={"true": 1.0, "false": 0.0}, published=("PHONE",))


@dataclass(frozen=True)
class PassedOnTranscribing:
    """Variables of the originals that are options of transcribing."""

    warmup_steps: int | None = option(None, "batches before measuring", least=0, published=("NUM_WARMUP_STEPS",))
    max_duration: float | None = option(None, "s", above=0, published=("MAX_DURATION",))
    pad_leading: int | None = option(None, "frames before the recordings", least=0, published=("PAD_LEADING",))
    pad_to_max_duration: bool = option(False, "pad to --max-duration", published=("PAD_TO_MAX_DURATION",))


@dataclass(frozen=True)
class PassedOnTranscripts:
    """Variables of the originals that name files for one list's results."""

    output: Path | None = option(None, "file for transcripts", published=("PREDICTION_FILE",))
    save_logits: Path | None = option(None, "file for the network's outputs", published=("LOGITS_FILE",))


def run_example(environ: dict[str, str], words: list[str]) -> None:
    """Speak a list, or transcribe one with Jasper."""
    own: ExampleVariables = read_variables(ExampleVariables, environ)
    command: list[str | Path] = [python(), "inference.py"]
    if environ["MODEL"] == "Jasper":
        heard: TranscribedVariables = read_variables(TranscribedVariables, environ)
        if environ.get("DATASET") and heard.manifest:
            raise OptionError(f"DATASET={heard.dataset}: MANIFEST={heard.manifest} is set too; leave one out")
        corpus = own.dataset_path or Path("LibriSpeech")
        manifest = heard.manifest or _manifest_of(heard.dataset, corpus)
        transcripts = (own.output_dir or Path("output/transcripts")) / "transcripts.json"
        command += given(jasper=heard.find(), input=manifest, dataset_path=corpus, output=transcripts)
        kinds = [PassedOn, PassedOnTranscribing, PassedOnTranscripts]
    else:
        spoken: SpokenVariables = read_variables(SpokenVariables, environ)
        voice = find_voice(environ, words, phrases=spoken.phrases)
        output = own.output_dir or Path(f"output/audio_{spoken.phrases.stem}_{'amp' if own.amp else 'fp32'}")
        command += given(input=spoken.phrases, output=output, dataset_path=own.dataset_path)
        speaker = spoken.speaker or ("0" if voice.fastpitch else None)
        sigma, denoising = spoken.sigma, spoken.denoising
        if voice.waveglow:
            sigma, denoising = sigma or 0.9, 0.01 if denoising is None else denoising
        elif voice.hifigan and denoising is None:
            denoising = 0.005
        command += [*given(speaker=speaker), *voice.words()]
        command += given(sigma_infer=sigma, denoising_strength=denoising)
        kinds = [PassedOn, PassedOnSpeaking]
    command += [*given(batch_size=own.batch_size), *own.flags()]
    exec_or_print([*command, *(word for kind in kinds for word in passed_on(kind, environ)), *words])


def _manifest_of(subset: str, corpus: Path) -> Path:
    """The manifest that scripts/preprocess_librispeech.sh writes of a subset of LibriSpeech."""
    if "/" in subset:
        raise OptionError(f"{subset}: expected the name of a subset of LibriSpeech")
    return corpus / f"librispeech-{subset}-wav.json"


@dataclass(frozen=True)
class EvaluateVoiceVariables(Device):
    """Variables of evaluate_voice.sh, beside those of its options."""

    jasper: Path | None = variable(
        "JASPER", None, "checkpoint of a recognizer; empty: pocketsphinx, if it is installed"
    )
    output_dir: Path = variable("OUTPUT_DIR", Path("output/evaluation"), "folder for the results")


def evaluate_voice(environ: dict[str, str], words: Sequence[str | Path]) -> None:
    """Evaluate a voice or a vocoder on a list."""
    own: EvaluateVoiceVariables = read_variables(EvaluateVoiceVariables, environ)
    options = [*given(output=own.output_dir, jasper=own.jasper), *passed_on(EvaluationOptions, environ)]
    exec_or_print([python(), "-m", "scripts.evaluate_voice", *options, *own.flags(), *words])


@dataclass(frozen=True)
class EvaluationVariables(RecognizerFile):
    """Variables of evaluation.sh of Jasper."""

    dataset_path: Path = variable(
        "DATASET_PATH", Path("LibriSpeech"), "folder of the corpus", published=("DATASET_DIR", "DATA_DIR")
    )
    datasets: tuple[str, ...] = variable(
        "DATASETS",
        ("dev-clean", "dev-other", "test-clean", "test-other"),
        "subsets of LibriSpeech to evaluate",
        published=("DATASET",),
    )
    manifests: tuple[Path, ...] = variable("MANIFESTS", (), "lists or manifests, instead of DATASETS")
    batch_size: int = variable("BATCH_SIZE", 16, "recordings of a batch", least=1)


@dataclass(frozen=True)
class EvaluatedList:
    """What a voice speaks to be evaluated."""

    phrases: Path = variable("PHRASES", Path("phrases/devset10.tsv"), "list to speak")


def evaluate(environ: dict[str, str], words: list[str]) -> None:
    """Transcribe lists with Jasper and print its error rates, or evaluate a voice."""
    if environ["MODEL"] != "Jasper":
        phrases = read_variables(EvaluatedList, environ).phrases
        voice = find_voice(environ, [], phrases=phrases)
        speaking = voice.voice or find_newest("FASTPITCH", "FastPitch", train="train.sh")
        evaluate_voice(environ, [speaking, voice.vocoder or "griffin-lim", phrases, *words])
        return
    own: EvaluationVariables = read_variables(EvaluationVariables, environ)
    device: EvaluateVoiceVariables = read_variables(EvaluateVoiceVariables, environ)
    jasper, flags = (
        own.find(),
        [*device.flags(), *passed_on(PassedOn, environ), *passed_on(PassedOnTranscribing, environ)],
    )
    manifests = own.manifests or [_manifest_of(subset, own.dataset_path) for subset in own.datasets]
    outputs: dict[Path, Path] = {}
    for manifest in manifests:
        output = device.output_dir / f"{manifest.stem}.json"
        if outputs.setdefault(output, manifest) != manifest:
            raise OptionError(
                f"MANIFESTS: the transcripts of {manifest} and {outputs[output]} would both be {output}; rename one"
            )
    for output, manifest in outputs.items():
        if not manifest.exists() and not dry_run():
            raise InputError(f"{manifest}: no such manifest; scripts/preprocess_librispeech.sh makes LibriSpeech's")
        print(manifest, flush=True)
        options = given(jasper=jasper, input=manifest, dataset_path=own.dataset_path, output=output)
        options += given(batch_size=own.batch_size)
        run_or_print([python(), "inference.py", *options, "--quiet", *flags, *words])


@dataclass(frozen=True)
class ServeVariables(Device):
    """Variables of serve.sh beside the voice's."""

    jasper: Path | None = variable("JASPER", None, "checkpoint of a recognizer; empty: no transcriptions")
    api_key: str | None = variable("SPEECH_API_KEY", None, "key that clients must send; empty: they need none")


def serve(environ: dict[str, str], words: list[str]) -> None:
    """Serve a voice."""
    own: ServeVariables = read_variables(ServeVariables, environ)  # serve.py reads the key itself
    voice = find_voice(environ, words)
    exec_or_print([python(), "serve.py", *voice.words(), *given(jasper=own.jasper), *own.flags(), *words])


SCRIPTS = {
    "inference_example": Script(
        run_example,
        {
            ExampleVariables: (),
            PassedOn: (),
            VoiceFiles: SPEAKING,
            SpokenVariables: SPEAKING,
            PassedOnSpeaking: SPEAKING,
            TranscribedVariables: JASPER,
            PassedOnTranscribing: JASPER,
            PassedOnTranscripts: JASPER,
        },
        models=MODELS,
        removed=_OF_TRANSCRIBING,
    ),
    "evaluation": Script(
        evaluate,
        {
            EvaluateVoiceVariables: (),
            PassedOn: (),
            EvaluationVariables: JASPER,
            PassedOnTranscribing: JASPER,
            VoiceFiles: SPEAKING,
            EvaluatedList: SPEAKING,
            EvaluationOptions: SPEAKING,
        },
        models=("Jasper", *SPEAKING),
        removed={
            **_OF_TRANSCRIBING,
            "PREDICTION_FILE": "each list has a file of its own in OUTPUT_DIR; leave it out",
            "LOGITS_FILE": "they are of one list: MODEL=Jasper bash scripts/inference_example.sh writes them",
            "LOG_FILE": "OUTPUT_DIR holds the transcripts and error rates of each list; leave it out",
        },
    ),
    "evaluate_voice": Script(evaluate_voice, {EvaluateVoiceVariables: (), EvaluationOptions: ()}),
    "serve": Script(serve, {VoiceFiles: (), ServeVariables: ()}),
}
