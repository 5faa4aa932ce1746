"""Scripts that speak, transcribe, evaluate and serve: inference_example, evaluation, evaluate_voice and serve."""

from collections.abc import Sequence
from pathlib import Path

from common.checkpoints.options import EmaOptions
from common.errors import OptionError
from common.evaluation.options import EvaluationOptions
from common.options import read_switch
from common.precision import ComputingOptions
from common.recognition.options import TranscribingOptions
from common.registry import get_model
from common.synthesis.options import CommandOptions, VoiceOptions
from scripts.launch import (
    GPU,
    JASPER,
    MODELS,
    SPEAKING,
    Script,
    cuda,
    exec_or_print,
    given,
    python,
    require,
    run_or_print,
)
from scripts.train import librispeech_manifest
from scripts.variables import Variables
from scripts.voices import VOICE, find_newest, find_voice, vocoder_of, voice_of, voice_words

SPEAKING_OPTIONS = (VoiceOptions, CommandOptions, get_model("WaveGlow").inference.options)
TRANSCRIBING_OPTIONS = (TranscribingOptions, get_model("Jasper").inference.options)
_LIBRISPEECH = Path("LibriSpeech")


def run_example(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Speak a list, or transcribe one with Jasper."""
    if own.model == "Jasper":
        corpus = own.dataset_path or _LIBRISPEECH
        manifest = own.manifest or librispeech_manifest(corpus, own.dataset)
        transcripts = (own.output_dir or Path("output/transcripts")) / "transcripts.json"
        jasper = own.jasper or find_newest("Jasper")
        options = given(jasper=jasper, input=manifest, dataset_path=corpus, output=transcripts)
    else:
        own = find_voice(own, words)
        defaults = {"SPEAKER": "0"} if own.fastpitch else {}
        if own.waveglow:
            defaults |= {"SIGMA": "0.9", "DENOISING": "0.01"}
        elif own.hifigan:
            defaults["DENOISING"] = "0.005"
        environ = defaults | {name: value for name, value in environ.items() if value}
        numbers = "amp" if read_switch("AMP", environ.get("AMP", "false")) else "fp32"
        output = own.output_dir or Path(f"output/audio_{own.phrases.stem if own.phrases else ''}_{numbers}")
        options = [*given(input=own.phrases, output=output, dataset_path=own.dataset_path), *voice_words(own)]
    options += [*SCRIPTS["inference_example"].passed_on(environ), *cuda(own)]
    exec_or_print([python(), "inference.py", *options, *words])


def evaluate_voice(own: Variables, environ: dict[str, str], words: Sequence[str | Path]) -> None:
    """Evaluate a voice or a vocoder on a list."""
    options = [*given(output=own.output_dir, jasper=own.jasper), *SCRIPTS["evaluate_voice"].passed_on(environ)]
    exec_or_print([python(), "-m", "scripts.evaluate_voice", *cuda(own), *options, *words])


def evaluate(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Transcribe lists with Jasper and print its error rates, or evaluate a voice."""
    if own.model != "Jasper":
        voice = find_voice(own, [])
        generator = voice_of(voice) or find_newest("FastPitch")
        evaluate_voice(own, environ, [generator, vocoder_of(voice) or "griffin-lim", own.phrases or "", *words])
        return
    corpus, jasper = own.dataset_path or _LIBRISPEECH, own.jasper or find_newest("Jasper")
    manifests = own.manifests or [librispeech_manifest(corpus, subset) for subset in own.datasets]
    if len({manifest.stem for manifest in manifests}) < len(manifests):
        raise OptionError("MANIFESTS: transcripts of lists of one name would replace each other; rename one")
    for manifest in manifests:
        require(manifest, "no such manifest; scripts/preprocess_librispeech.sh makes LibriSpeech's")
        print(manifest, flush=True)
        output = (own.output_dir or Path()) / f"{manifest.stem}.json"
        options = [*given(jasper=jasper, input=manifest, dataset_path=corpus, output=output), "--quiet", *cuda(own)]
        run_or_print([python(), "inference.py", *options, *SCRIPTS["evaluation"].passed_on(environ), *words])


def serve(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Serve a voice; serve.py reads the key itself."""
    options = [*voice_words(find_voice(own, words)), *given(jasper=own.jasper), *cuda(own)]
    exec_or_print([python(), "serve.py", *options, *SCRIPTS["serve"].passed_on(environ), *words])


SCRIPTS = {
    "inference_example": Script(
        run_example,
        {
            f"{GPU} output_dir dataset_path": (),
            ComputingOptions: (),
            f"{VOICE} phrases torchscript": SPEAKING,
            **dict.fromkeys(SPEAKING_OPTIONS, SPEAKING),
            "jasper dataset manifest": JASPER,
            **dict.fromkeys(TRANSCRIBING_OPTIONS, JASPER),
        },
        models=MODELS,
        defaults={"": "BATCH_SIZE=32 PHRASES=phrases/devset10.tsv DATASET=test-other"},
        removed="NUM_STEPS SEED MODEL_CONFIG",
    ),
    "evaluation": Script(
        evaluate,
        {
            f"{GPU} output_dir jasper": (),
            ComputingOptions: (),
            "dataset_path datasets manifests": JASPER,
            **dict.fromkeys(TRANSCRIBING_OPTIONS, JASPER),
            f"{VOICE} phrases": SPEAKING,
            EvaluationOptions: SPEAKING,
            EmaOptions: SPEAKING,
        },
        models=(*JASPER, *SPEAKING),
        defaults={
            "": "OUTPUT_DIR=output/evaluation PHRASES=phrases/devset10.tsv",
            "Jasper": "BATCH_SIZE=16 DATASETS='dev-clean dev-other test-clean test-other'",
        },
        removed="NUM_STEPS SEED MODEL_CONFIG PREDICTION_FILE LOGITS_FILE LOG_FILE",
    ),
    "evaluate_voice": Script(
        evaluate_voice,
        {f"{GPU} output_dir jasper": (), EvaluationOptions: (), ComputingOptions: (), EmaOptions: ()},
        defaults={"": "OUTPUT_DIR=output/evaluation"},
    ),
    "serve": Script(serve, {f"{VOICE} {GPU} jasper api_key": (), ComputingOptions: (), EmaOptions: ()}),
}
