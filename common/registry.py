"""The one table of models, and the contract that each model's package fulfills with its ``MODEL``."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from common.errors import OptionError

if TYPE_CHECKING:  # names in annotations alone: this file lies below the rooms that define them
    from torch import Tensor

    from common.config import AudioConfig
    from common.data import Dataset
    from common.recognition import SpeechItem
    from common.synthesis import Controls, MelOutput, VocoderSettings
    from common.training.objective import Objective
    from common.training.options import RunOptions
    from common.training.settings import TrainingRequest, TrainingSetup

# Name that users type -> package. A new model is a folder and a line here.
_PACKAGES = {
    "FastPitch": "fastpitch",
    "HiFi-GAN": "hifigan",
    "WaveGlow": "waveglow",
    "Tacotron2": "tacotron2",
    "Jasper": "jasper",
    "Harmonic": "harmonic",
}


@dataclass(frozen=True)
class TrainingSpec:
    """How ``train.py`` trains a model. ``options`` below is an instance of the package's own frozen dataclass."""

    recipe: "RunOptions"  # the published one: defaults of the options that all models share
    # Declared as `common.options` says; fields that are no options and have names of the run's have the run's values.
    options: type
    set_up: "Callable[[Any, TrainingRequest], TrainingSetup]"  # of options as they were given
    # (options, audio, text, *, base) -> ModelConfig; ``base`` is that of the checkpoint to begin with, or None
    model_config: Callable[..., Any]
    # (options, filelists, *, audio, text, training) -> common.data.Dataset, without ``sizes`` where all batches have
    # one shape; raises InputError
    build_dataset: Callable[..., Any]
    build_objective: "Callable[[Any, AudioConfig], Objective]"
    # (given, initial) -> defaults by the names of options that the files on the command line say; ``given`` are all
    # values, ``initial`` path and Checkpoint to begin with, or None
    defaults: Callable[[Mapping[str, Any], Any], Mapping[str, Any]] | None = None
    # (networks, options, *, text, new) -> lines to print, once networks have weights and settings beyond their
    # architecture; ``new`` is False where a training is resumed
    set_up_networks: Callable[..., list[str]] | None = None
    # (networks, options, *, training_set, validation_set, gather, new): store in the networks what must be computed
    # over the whole training list
    compute_statistics: Callable[..., None] | None = None
    # (config) -> the setting through which what is learned depends on a batch's padding; None: there is none
    sees_padding: "Callable[[Any], str | None]" = lambda config: None
    # Whether ``set_up_networks`` takes the weights of --from-checkpoint; else its architecture must be the same.
    starts_from_checkpoint: bool = False


@dataclass(frozen=True)
class NoOptions:
    """Options of a model that has none."""


@dataclass(frozen=True)
class GeneratorSpec:
    """How a text-to-mel model speaks.

    Its network offers ``infer(tokens, lengths, controls) -> MelOutput``, and ``prepare_for_inference()``, which folds
    weight norm and the like and is called once.
    """

    role: ClassVar[str] = "generator"
    # (options, network, config, *, where) -> Controls, for the checkpoint ``where``; may set up the network; raises
    # InputError where it lacks what the options need
    controls: "Callable[..., Controls]"
    options: type = NoOptions  # the package's dataclass of inference options (`common.options`)
    to_torchscript: Callable[[Any], Any] | None = None  # (network) -> network
    not_compilable: str | None = None  # why torch.compile cannot help, for the error message
    n_speakers: Callable[[Any], int] | None = None  # (config); None: one speaker
    phrase_columns: tuple[str, ...] = ()  # columns of a list of phrases that it reads besides text: pitch, duration
    # (network, tokens, mels) -> MelOutput with durations by its attention: common.extraction.batches.TeacherModel
    teacher: "Callable[[Any, Sequence[Tensor], Sequence[Tensor]], MelOutput] | None" = None
    # (folder, filelist, *, config, audio, text, unknown_symbols, networks) -> Dataset of a list's utterances as they
    # are, for ``network.teacher_forced(batch)``; raises InputError
    teacher_forced_dataset: "Callable[..., Dataset] | None" = None
    # (config) -> the columns of its lists, as scripts/prepare_dataset.sh has them in the names of lists
    list_columns: Callable[[Any], str] = lambda config: "audio_text"


@dataclass(frozen=True)
class VocoderSpec:
    """How a vocoder makes sound.

    Its network offers ``infer(mel, lengths, **settings) -> wave``, and ``prepare_for_inference()`` as generators do.
    """

    role: ClassVar[str] = "vocoder"
    # (options, config, *, seed, where) -> VocoderSettings of ``infer``, for the checkpoint ``where``; raises
    # OptionError for options that do not fit it; None: nothing but mels is told
    settings: "Callable[..., VocoderSettings] | None" = None
    options: type = NoOptions
    to_torchscript: Callable[[Any], Any] | None = None
    not_compilable: str | None = None
    has_noise: bool = True  # of its own, a constant one that the denoiser can find and subtract
    # Whether ``infer`` and ``track`` take a ``pitch`` of frames (B, F) in Hz, and a ``voicing`` (B, F), 0 to 1,
    # instead of finding them
    takes_pitch: bool = False
    # (config, audio) -> mel frames on each side that a frame's samples depend on, so that long ones are spoken in
    # pieces; None: all of the mel
    context: "Callable[[Any, AudioConfig], int] | None" = None


@dataclass(frozen=True)
class RecognizerSpec:
    """How a speech-to-text model transcribes. Its network offers ``normalize(text)``: the text as it would write it."""

    role: ClassVar[str] = "recognizer"
    # (settings, network, *, sources, folder, max_duration) -> SpeechItems of recordings, folders, lists and manifests,
    # of up to ``max_duration`` seconds; relative paths start from ``folder``
    open_speech: "Callable[..., list[SpeechItem]]"
    prepare: "Callable[[Tensor, Any], Tensor]"  # (wave (T,), settings) -> the part of it to transcribe
    # (network, waves (B, T), lengths (B,), settings) -> B texts, and of each its log-probabilities (F, C)
    transcribe: "Callable[[Any, Tensor, Tensor, Any], tuple[list[str], list[Tensor]]]"
    options: type = NoOptions
    settings: Callable[[Any, Any], Any] = lambda options, config: options  # what the functions above are given


@dataclass(frozen=True)
class ModelSpec:
    """All that the rest of the code knows of a model."""

    name: str  # as `train.py --model`
    config: type  # its frozen ModelConfig: architecture only, plain types
    # (config, audio, text, *, inference) -> {name: network}, the one that infers first; with ``inference`` that alone
    build_networks: Callable[..., Any]
    training: TrainingSpec
    inference: GeneratorSpec | VocoderSpec | RecognizerSpec
    # (state, payload, *, path, training) -> Checkpoint, or None for a file of another layout; raises CheckpointError.
    # ``state`` is `common.checkpoints.published_state` of the file's ``state_dict``, empty where it has none.
    read_published: Callable[..., Any] | None = None
    published_audio: "AudioConfig | None" = None  # the mels of the published checkpoints
    # (network, config, audio) -> common.checkpoints.Exports, of the network that infers, prepared for it
    exports: Callable[..., Any] | None = None
    # (runner, config, description, device) -> what infers as the network does, with an exported file's
    # common.checkpoints.Runner (of a network in several parts: those of all parts by name) and description; None:
    # inference has no use for such files
    from_exported: Callable[..., Any] | None = None

    @property
    def role(self) -> str:
        """``generator`` (text to mel), ``vocoder`` (mel to sound) or ``recognizer`` (speech to text)."""
        return self.inference.role

    @property
    def option(self) -> str:
        """The option that takes its checkpoint, without hyphens: ``HiFi-GAN`` -> ``hifigan``."""
        return self.name.lower().replace("-", "")


class deferred:  # noqa: N801 (used as a function)
    """A function of a package's module, which is imported when it is called: a `ModelSpec` needs no PyTorch.

    ``deferred("hifigan").model.build_networks`` stands for that function.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "deferred":
        if name.startswith("_"):
            raise AttributeError(name)
        return deferred(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module, _, name = self._name.rpartition(".")
        return getattr(importlib.import_module(module), name)(*args, **kwargs)


def available_models(role: str | None = None) -> list[str]:
    """Names of the models whose package is here; with ``role`` of those alone that have it."""
    names = [name for name, package in _PACKAGES.items() if importlib.util.find_spec(package) is not None]
    return names if role is None else [name for name in names if get_model(name).role == role]


def get_model(name: str) -> ModelSpec:
    """The model of that name.

    Raises:
        OptionError: there is none.
    """
    available = available_models()
    if name not in available:
        raise OptionError(f"model {name!r}: expected one of {', '.join(available)}")
    return importlib.import_module(_PACKAGES[name]).MODEL
