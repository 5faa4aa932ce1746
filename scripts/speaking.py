"""Scripts that speak, transcribe, evaluate and serve, and the search for checkpoints that aren't named."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.checkpoints.command_line import EmaOptions
from common.cli import ComputingOptions
from common.errors import InputError, OptionError
from common.evaluation.options import EvaluationOptions
from common.files import read_text
from common.recognition.options import TranscribingOptions
from common.registry import get_model
from common.synthesis.options import CommandOptions, VoiceOptions
from scripts import launch
from scripts.launch import DATASET_PATH, LIBRISPEECH_FOLDER, Given, GpuSettings, Script, options, setting

OUTPUT = Path("output")
VOCODERS = {"HiFi-GAN": "hifigan", "WaveGlow": "waveglow", "Harmonic": "harmonic"}
SHIPPED = {
    model: launch.shipped(f"voices/{name}-small.pt") for model, name in (("FastPitch", "en"), ("Harmonic", "vocoder"))
}


@dataclass(frozen=True)
class VoiceSettings(GpuSettings):
    """The checkpoints of a voice, and what to speak with it."""

    name: str | None = setting("NAME", None, "voice whose checkpoints to look for, in its folder in ./output")
    fastpitch: Path | None = setting("FASTPITCH", None, "checkpoint of the voice; empty: the newest")
    tacotron2: Path | None = setting("TACOTRON2", None, "checkpoint of a voice, instead of FASTPITCH")
    hifigan: str | None = setting("HIFIGAN", None, "checkpoint of the vocoder; empty: one that fits, or the newest")
    waveglow: str | None = setting("WAVEGLOW", None, "checkpoint of a vocoder, instead of HIFIGAN")
    harmonic: str | None = setting("HARMONIC", None, "checkpoint of a vocoder, instead of HIFIGAN")
    jasper: Path | None = setting("JASPER CHECKPOINT", None, "recognizer; empty: the newest")

    @property
    def voice(self) -> Path | None:
        """The checkpoint of the voice."""
        return self.tacotron2 or self.fastpitch

    @property
    def vocoder(self) -> str | None:
        """The checkpoint of the vocoder."""
        return self.hifigan or self.waveglow or self.harmonic

    @property
    def words(self) -> list[str | Path]:
        """The options of inference.py and serve.py that name the checkpoints."""
        return options(**{name: getattr(self, name) for name in ("fastpitch", "tacotron2", *VOCODERS.values())})


def inference_options(model: str) -> Sequence[type]:
    """Return the dataclasses with inference.py's options for a model."""
    if model == "Jasper":
        return [ComputingOptions, TranscribingOptions, get_model("Jasper").arg_parser.InferenceOptions]
    return [ComputingOptions, VoiceOptions, CommandOptions, get_model("WaveGlow").arg_parser.InferenceOptions]


def find_newest(model: str, folder: Path = OUTPUT) -> Path:
    """Return the newest checkpoint of a model in ``folder``; if there is none, a downloaded or the shipped one.

    Raises InputError if there is none, or if the folder of a voice's NAME has none.
    """
    is_named = folder != OUTPUT and get_model(model).role == "generator"
    places = f"./{folder}"
    paths = _newest_first(folder.glob(f"{model}_checkpoint_*.pt"))
    if not is_named:
        paths, places = [*paths, *downloaded(model)], f"{places} or ./pretrained_models"
    if not paths and launch.dry_run():
        return folder / f"{model}_checkpoint_NEWEST.pt"
    if not is_named and model in SHIPPED:
        paths.append(SHIPPED[model])
    if not paths:
        raise InputError(f"no {model} checkpoint in {places}; set {get_model(model).option.upper()}, or train one")
    return paths[0]


def downloaded(model: str) -> list[Path]:
    """Return the model's checkpoints in ./pretrained_models, where download_models.sh puts them, newest first."""
    folder = Path("pretrained_models") / get_model(model).option
    kinds = (path for kind in ("*.pt", "g_*", "nvidia_*") for path in folder.rglob(kind))
    return _newest_first({path for path in kinds if path.is_file() and "discrim" not in path.name})


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)


def find_voice(own: Any, words: Sequence[str], *, phrases: Path | None = None) -> Any:
    """Return the settings with the newest trained or downloaded voice and vocoder in place of those not named.

    A list of phrases with a column of mels or recordings needs no voice.
    """
    folder = OUTPUT / (own.name or "")
    name = {"Tacotron2": "tacotron2", **VOCODERS}.get(own.model)
    if name and getattr(own, name) is None:
        own = replace(own, **{name: str(find_newest(own.model, folder))})
    heading = read_text(phrases).partition("\n")[0] if phrases and phrases.is_file() else ""
    if own.voice is None and {"mel", "wav"}.isdisjoint(re.split(r"[|\t]", heading)):
        own = replace(own, fastpitch=find_newest("FastPitch", folder))
    decided = own.vocoder or {word.partition("=")[0] for word in words} & {"--no-audio", "--griffin-lim-iters"}
    if own.voice and not decided:
        for model, name in VOCODERS.items():
            for path in [*_newest_first(folder.glob(f"{model}_checkpoint_*.pt")), *downloaded(model)]:
                launch.note(f"note: using the vocoder {path}; set HIFIGAN, WAVEGLOW or HARMONIC to use another")
                return replace(own, **{name: str(path)})
    return own  # if there is none, the command uses the shipped one if it fits, else Griffin-Lim, and says so


@dataclass(frozen=True)
class ExampleSettings(VoiceSettings):
    """What is spoken or transcribed."""

    phrases: Path = setting("PHRASES FILELIST", launch.shipped("phrases/devset10.tsv"), "list to speak")
    output_dir: Path | None = setting("OUTPUT_DIR", None, "folder for the results; empty: one in ./output")
    dataset_path: Path | None = setting(DATASET_PATH, None, "base folder of the lists; for Jasper, LibriSpeech's")
    dataset: str = setting("DATASET", "test-other", "subset of LibriSpeech")
    manifest: Path | None = setting("MANIFEST", None, "manifest or list to transcribe, instead of DATASET")


@Script(ExampleSettings, inference_options, models=launch.MODELS, defaults={"": "BATCH_SIZE=32"})
def inference_example(own: ExampleSettings, given: Given) -> None:
    """Speak a list, or transcribe one with Jasper."""
    if own.model == "Jasper":
        corpus = own.dataset_path or LIBRISPEECH_FOLDER
        manifest = own.manifest or launch.librispeech_manifest(corpus, own.dataset)
        transcripts = (own.output_dir or Path("output/transcripts")) / "transcripts.json"
        jasper = own.jasper or find_newest("Jasper")
        chosen = options(jasper=jasper, input=manifest, dataset_path=corpus, output=transcripts)
    else:
        own = find_voice(own, given.options, phrases=own.phrases)
        spoken = f"audio_{own.phrases.stem}_{'amp' if '--amp' in given.options else 'fp32'}"
        output = own.output_dir or OUTPUT / (own.name or "") / spoken
        chosen = [*options(input=own.phrases, output=output, dataset_path=own.dataset_path), *own.words]
        if own.waveglow or own.hifigan:
            chosen += options(denoising_strength=0.01 if own.waveglow else 0.005)
    command = [*launch.program("inference.py"), *chosen, *given.passed, *launch.gpu_option(own), *given.words]
    launch.exec_or_print(command)


@dataclass(frozen=True)
class EvaluateSettings(GpuSettings):
    """How a voice is evaluated."""

    output_dir: Path = setting("OUTPUT_DIR", Path("output/evaluation"), "folder for the results")
    jasper: Path | None = setting("JASPER CHECKPOINT", None, "recognizer for error rates, instead of Whisper")


@Script(EvaluateSettings, lambda model: [EvaluationOptions, ComputingOptions, EmaOptions])
def evaluate_voice(own: EvaluateSettings, given: Given) -> None:
    """Evaluate a voice or a vocoder on a list."""
    chosen = [*launch.gpu_option(own), *options(output=own.output_dir, jasper=own.jasper), *given.options]
    launch.exec_or_print([*launch.program("speech_toolkit evaluate"), *chosen])


@dataclass(frozen=True)
class TranscribeSettings(EvaluateSettings):
    """What is transcribed to compute error rates."""

    dataset_path: Path = setting(DATASET_PATH, LIBRISPEECH_FOLDER, "folder of LibriSpeech, or the lists' base folder")
    datasets: tuple[str, ...] = setting(
        "DATASETS DATASET", ("dev-clean", "dev-other", "test-clean", "test-other"), "subsets of LibriSpeech"
    )
    manifests: tuple[Path, ...] = setting("MANIFESTS", (), "lists or manifests to transcribe, instead of DATASETS")


@Script(TranscribeSettings, inference_options, models=("Jasper",), defaults={"": "BATCH_SIZE=16"})
def evaluate_recognizer(own: TranscribeSettings, given: Given) -> None:
    """Transcribe lists with Jasper and print its error rates."""
    corpus, jasper = own.dataset_path, own.jasper or find_newest("Jasper")
    manifests = own.manifests or [launch.librispeech_manifest(corpus, subset) for subset in own.datasets]
    if len({manifest.stem for manifest in manifests}) < len(manifests):
        raise OptionError("MANIFESTS: lists with the same name would overwrite each other's transcripts; rename one")
    for manifest in manifests:
        launch.require(manifest, "no such manifest; scripts/preprocess_librispeech.sh makes LibriSpeech's")
        print(manifest, flush=True)
        output = own.output_dir / f"{manifest.stem}.json"
        chosen = [*options(jasper=jasper, input=manifest, dataset_path=corpus, output=output), "--quiet"]
        chosen += [*launch.gpu_option(own), *given.options]
        launch.run_or_print([*launch.program("inference.py"), *chosen])


@Script(VoiceSettings, lambda model: [ComputingOptions, EmaOptions])
def serve(own: VoiceSettings, given: Given) -> None:
    """Serve a voice; serve.py itself reads SPEECH_API_KEY, the key that clients must send."""
    chosen = [*find_voice(own, given.words).words, *options(jasper=own.jasper), *launch.gpu_option(own)]
    launch.exec_or_print([*launch.program("serve.py"), *chosen, *given.options])
