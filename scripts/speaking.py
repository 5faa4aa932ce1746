"""Scripts that speak, transcribe, evaluate and serve, and the checkpoints that scripts find where none is named.

They are inference_example, evaluation, evaluate_voice and serve.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.checkpoints.options import EmaOptions
from common.cli import ComputingOptions
from common.errors import InputError, OptionError
from common.evaluation.options import EvaluationOptions
from common.files import read_text
from common.options import read_switch
from common.recognition.options import TranscribingOptions
from common.registry import get_model
from common.synthesis.options import CommandOptions, VoiceOptions
from scripts import launch
from scripts.launch import cuda, dry_run, exec_or_print, given, note, python, require, run_or_print, script
from scripts.train import LIBRISPEECH_FOLDER, librispeech_manifest
from scripts.variables import Variables

SPEAKING_OPTIONS = (VoiceOptions, CommandOptions, get_model("WaveGlow").arg_parser.InferenceOptions)
TRANSCRIBING_OPTIONS = (TranscribingOptions, get_model("Jasper").arg_parser.InferenceOptions)

VOICE = "fastpitch tacotron2 hifigan waveglow harmonic"  # fields of `Variables`
VOCODERS = {"HiFi-GAN": "hifigan", "WaveGlow": "waveglow", "Harmonic": "harmonic"}
SHIPPED = {"FastPitch": Path("voices/lj-small.pt"), "Harmonic": Path("voices/vocoder-small.pt")}


def voice_words(own: Variables) -> list[str | Path]:
    """Options of inference.py and serve.py that name the checkpoints."""
    return given(**{name: getattr(own, name) for name in VOICE.split()})


def find_newest(model: str) -> Path:
    """The newest checkpoint of a model in ./output, else in ./pretrained_models, else the shipped one.

    Raises:
        InputError: there is none.
    """
    found = next(iter(_checkpoints_of(model)), None)
    if found is None and dry_run():
        return Path(f"output/{model}_checkpoint_NEWEST.pt")
    found = found or SHIPPED.get(model)
    if found is None or not found.is_file():
        name = get_model(model).option.upper()
        raise InputError(f"no {model} checkpoint in ./output or ./pretrained_models; set {name}, or train one")
    return found


def _checkpoints_of(model: str) -> list[Path]:
    """The checkpoints of a model in ./output, the newest first, then those in ./pretrained_models."""
    trained = Path("output").glob(f"{model}_checkpoint_*.pt")
    return [*sorted(trained, key=lambda path: path.stat().st_mtime, reverse=True), *downloaded(model)]


def find_voice(own: Variables, words: Sequence[str], *, audio: bool = True) -> Variables:
    """The variables with the newest voice where none is named, and a trained or downloaded vocoder that fits it.

    A list of phrases with a column of mels or recordings needs no voice; without ``audio`` there is no vocoder.
    """
    if own.model == "Tacotron2" and own.tacotron2 is None:
        own = replace(own, tacotron2=find_newest("Tacotron2"))
    if own.voice is None and not _gives_sound(own.phrases):
        own = replace(own, fastpitch=find_newest("FastPitch"))
    name = VOCODERS.get(own.model)
    if name and getattr(own, name) is None:
        own = replace(own, **{name: str(find_newest(own.model))})
    decided = re.compile("--(hifigan|waveglow|harmonic|no-audio|griffin-lim-iters)")
    if audio and own.voice and not (own.vocoder or any(map(decided.match, words))):
        for name, path in ((name, path) for model, name in VOCODERS.items() for path in _checkpoints_of(model)):
            if dry_run() or _fits(own.voice, path):  # a dry run reads no checkpoint
                note(f"note: {path} makes the sound; HIFIGAN, WAVEGLOW or HARMONIC names another vocoder")
                return replace(own, **{name: str(path)})
    return own  # where there is none, the command takes the shipped one that fits, or Griffin-Lim, and says so


def _gives_sound(phrases: Path | None) -> bool:
    """Whether a list names a column of mel-spectrograms or recordings."""
    if phrases is None or not phrases.is_file():
        return False
    return not {"mel", "wav"}.isdisjoint(re.split(r"[|\t]", read_text(phrases).partition("\n")[0]))


def _fits(voice: Path, vocoder: Path) -> bool:
    """Whether a vocoder reads a voice's mels; raises CheckpointError where a file cannot be read."""
    from common.checkpoints.loading import read_model
    from common.synthesis.vocoder import AudioContract

    speaking, sounding = read_model(voice)[1], read_model(vocoder)[1]
    contract = AudioContract(sounding.audio, "vocoder", sounding.assumed)
    return not contract.differences(speaking.audio, assumed=speaking.assumed)


def downloaded(model: str) -> list[Path]:
    """The checkpoints of a model that scripts/download_models.sh has put into ./pretrained_models, the newest first."""
    folder = Path("pretrained_models") / get_model(model).option
    kinds = (path for kind in ("*.pt", "g_*", "nvidia_*") for path in folder.rglob(kind))
    found = {path for path in kinds if path.is_file() and "discrim" not in path.name}
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


@script(
    {
        f"{launch.GPU} output_dir dataset_path": (),
        ComputingOptions: (),
        f"{VOICE} phrases": launch.SPEAKING,
        **dict.fromkeys(SPEAKING_OPTIONS, launch.SPEAKING),
        "jasper dataset manifest": launch.JASPER,
        **dict.fromkeys(TRANSCRIBING_OPTIONS, launch.JASPER),
    },
    models=launch.MODELS,
    defaults="BATCH_SIZE=32 PHRASES=phrases/devset10.tsv DATASET=test-other",
    removed="NUM_STEPS SEED MODEL_CONFIG",
)
def inference_example(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Speak a list, or transcribe one with Jasper."""
    if own.model == "Jasper":
        corpus = own.dataset_path or LIBRISPEECH_FOLDER
        manifest = own.manifest or librispeech_manifest(corpus, own.dataset)
        transcripts = (own.output_dir or Path("output/transcripts")) / "transcripts.json"
        jasper = own.jasper or find_newest("Jasper")
        options = given(jasper=jasper, input=manifest, dataset_path=corpus, output=transcripts)
    else:
        own = find_voice(own, words)
        if own.waveglow or own.hifigan:
            environ["DENOISING"] = environ.get("DENOISING") or ("0.01" if own.waveglow else "0.005")
        numbers = "amp" if read_switch("AMP", environ.get("AMP", "false")) else "fp32"
        output = own.output_dir or Path(f"output/audio_{own.phrases.stem if own.phrases else ''}_{numbers}")
        options = [*given(input=own.phrases, output=output, dataset_path=own.dataset_path), *voice_words(own)]
    options += [*inference_example.passed_on(environ), *cuda(own)]
    exec_or_print([python(), "inference.py", *options, *words])


@script(
    {f"{launch.GPU} output_dir jasper": (), EvaluationOptions: (), ComputingOptions: (), EmaOptions: ()},
    defaults="OUTPUT_DIR=output/evaluation",
)
def evaluate_voice(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Evaluate a voice or a vocoder on a list."""
    options = [*given(output=own.output_dir, jasper=own.jasper), *evaluate_voice.passed_on(environ)]
    exec_or_print([python(), "-m", "scripts.evaluate_voice", *cuda(own), *options, *words])


@script(
    {
        f"{launch.GPU} output_dir jasper dataset_path datasets manifests": (),
        ComputingOptions: (),
        **dict.fromkeys(TRANSCRIBING_OPTIONS, launch.JASPER),
    },
    models=launch.JASPER,
    defaults="BATCH_SIZE=16 DATASETS='dev-clean dev-other test-clean test-other'",
    removed="NUM_STEPS SEED MODEL_CONFIG PREDICTION_FILE LOGITS_FILE LOG_FILE",
)
def evaluation(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Transcribe lists with Jasper and print its error rates."""
    corpus, jasper = own.dataset_path or LIBRISPEECH_FOLDER, own.jasper or find_newest("Jasper")
    manifests = own.manifests or [librispeech_manifest(corpus, subset) for subset in own.datasets]
    if len({manifest.stem for manifest in manifests}) < len(manifests):
        raise OptionError("MANIFESTS: transcripts of lists of one name would replace each other; rename one")
    for manifest in manifests:
        require(manifest, "no such manifest; scripts/preprocess_librispeech.sh makes LibriSpeech's")
        print(manifest, flush=True)
        output = (own.output_dir or Path("output/evaluation")) / f"{manifest.stem}.json"
        options = [*given(jasper=jasper, input=manifest, dataset_path=corpus, output=output), "--quiet", *cuda(own)]
        run_or_print([python(), "inference.py", *options, *evaluation.passed_on(environ), *words])


@script({f"{VOICE} {launch.GPU} jasper api_key": (), ComputingOptions: (), EmaOptions: ()})
def serve(own: Variables, environ: dict[str, str], words: list[str]) -> None:
    """Serve a voice; serve.py reads the key itself."""
    options = [*voice_words(find_voice(own, words)), *given(jasper=own.jasper), *cuda(own)]
    exec_or_print([python(), "serve.py", *options, *serve.passed_on(environ), *words])
