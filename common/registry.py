"""The one table of models, and the contract that each model's package fulfills with its ``MODEL``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from common.errors import OptionError

if TYPE_CHECKING:  # names in annotations alone: this file lies below the rooms that define them
    import torch
    from torch import Tensor, nn

    from common.checkpoints.checkpoint import Checkpoint
    from common.checkpoints.exported import Exports
    from common.config import AudioConfig
    from common.data.batch import Dataset
    from common.distributed import Gather
    from common.recognition.recognizer import SpeechItem
    from common.synthesis.utterances import Controls, MelOutput
    from common.synthesis.vocoder import VocoderSettings
    from common.text.config import TextConfig
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


# In the signatures below, Any stands for classes of the model's package: its options, ModelConfig, networks, datasets;
# ``text: Any`` is a TextConfig, or None for a model without text.


class FindDefaults(Protocol):
    def __call__(self, given: Mapping[str, Any], initial: tuple[Path, Checkpoint] | None) -> Mapping[str, Any]:
        """Return what files on the command line say of options, by name; ``given`` are the values of all options.

        ``initial`` is the checkpoint that training starts from, with its path.
        """


class MakeModelConfig(Protocol):
    def __call__(self, options: Any, audio: AudioConfig, text: Any, *, base: Any) -> Any:
        """Make the ModelConfig that options describe; ``base`` is that of the checkpoint to begin with, or None."""


class BuildDataset(Protocol):
    def __call__(
        self, options: Any, filelists: Sequence[Path], *, audio: AudioConfig, text: Any, training: bool
    ) -> Any:
        """Open lists as a `common.data.Dataset`, without ``sizes`` if all batches have one shape; raises InputError."""


class SetUpNetworks(Protocol):
    def __call__(self, networks: Any, options: Any, **given: Any) -> list[str]:
        """Set weights and what the architecture lacks; return lines to print.

        ``given`` are ``text``, the ``training_set``, the ``initial`` checkpoint that training starts from, with its
        path, or None, and whether the networks are ``new``: those of a resumed training are not.
        """


class ComputeStatistics(Protocol):
    def __call__(
        self,
        networks: Any,
        options: Any,
        *,
        training_set: Any,
        validation_set: Any,
        initial: Any,
        gather: Gather,
        new: bool,
    ) -> list[str]:
        """Store in the networks what must be computed over the training list; return lines to print."""


@dataclass(frozen=True)
class TrainingSpec:
    """How ``train.py`` trains a model. ``options`` below is an instance of the package's own frozen dataclass."""

    recipe: RunOptions  # the published one: defaults of the options that all models share
    # Declared as `common.options` says; fields that are no options and have names of the run's have the run's values.
    options: type
    set_up: Callable[[Any, TrainingRequest], TrainingSetup]  # of options as they were given
    model_config: MakeModelConfig
    build_dataset: BuildDataset
    build_objective: Callable[[Any, AudioConfig], Objective]
    defaults: FindDefaults | None = None
    set_up_networks: SetUpNetworks | None = None
    compute_statistics: ComputeStatistics | None = None
    # The setting of a ModelConfig through which what is learned depends on a batch's padding; None: there is none
    sees_padding: Callable[[Any], str | None] = lambda config: None
    # The checkpoint of --from-checkpoint for a template's other symbols, and lines that say what is new
    adapt: Callable[[Checkpoint, Checkpoint], tuple[Checkpoint, list[str]]] | None = None
    # Whether ``set_up_networks`` takes the weights of --from-checkpoint; else its architecture must be the same.
    starts_from_checkpoint: bool = False


@dataclass(frozen=True)
class NoOptions:
    """Options of a model that has none."""


class MakeControls(Protocol):
    def __call__(self, options: Any, network: Any, config: Any, *, where: Path) -> Controls:
        """Make the controls for the checkpoint ``where``, and set up its network.

        Raises InputError where it lacks what the options need.
        """


class RunTeacher(Protocol):
    def __call__(self, network: Any, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
        """Find durations of tokens (L,) in mels (n_mels, F) by the network's attention, each utterance as if alone."""


class OpenTeacherForcedDataset(Protocol):
    def __call__(
        self,
        dataset_path: Path,
        filelist: Path,
        *,
        config: Any,
        audio: AudioConfig,
        text: TextConfig,
        unknown_symbols: str,
        networks: Mapping[str, Any],
    ) -> Dataset:
        """Open a list's utterances as they are, for ``network.teacher_forced(batch)``; raises InputError."""


@dataclass(frozen=True)
class GeneratorSpec:
    """How a text-to-mel model speaks.

    Its network offers ``infer(tokens, lengths, controls) -> MelOutput``, and ``prepare_for_inference()``, which folds
    weight norm and the like and is called once.
    """

    role: ClassVar[str] = "generator"
    controls: MakeControls
    options: type = NoOptions  # the package's dataclass of inference options (`common.options`)
    to_torchscript: Callable[[Any], Any] | None = None  # makes a network of the network
    not_compilable: str | None = None  # why torch.compile cannot help, for the error message
    n_speakers: Callable[[Any], int] | None = None  # of a ModelConfig; None: one speaker
    recordable: tuple[str, ...] = ()  # methods of its network that --cuda-graphs records where padding changes nothing
    phrase_columns: tuple[str, ...] = ()  # columns of a list of phrases that it reads besides text: pitch, duration
    teacher: RunTeacher | None = None
    teacher_forced_dataset: OpenTeacherForcedDataset | None = None
    # Whether a network of a ModelConfig has ``misfits(batch)``: how badly transcripts fit their recordings, (B,);
    # and ``align(tokens, mel)``: the frames of tokens (L,) in a recording's mel (n_mels, F), or None
    has_aligner: Callable[[Any], bool] = lambda config: False
    # The columns of lists for a ModelConfig, as scripts/prepare_dataset.sh has them in the names of lists
    list_columns: Callable[[Any], str] = lambda config: "audio_text"


class MakeVocoderSettings(Protocol):
    def __call__(self, options: Any, config: Any, *, seed: int, where: Path) -> VocoderSettings:
        """Make the settings of ``infer`` for the checkpoint ``where``; raises OptionError where options do not fit."""


@dataclass(frozen=True)
class VocoderSpec:
    """How a vocoder makes sound.

    Its network offers ``infer(mel, lengths, **settings) -> wave``, and ``prepare_for_inference()`` as generators do.
    """

    role: ClassVar[str] = "vocoder"
    settings: MakeVocoderSettings | None = None  # None: ``infer`` takes nothing but mels
    options: type = NoOptions
    to_torchscript: Callable[[Any], Any] | None = None
    not_compilable: str | None = None
    has_noise: bool = True  # of its own, a constant one that the denoiser can find and subtract
    # Whether ``infer`` and ``track`` take a ``pitch`` of frames (B, F) in Hz, and a ``voicing`` (B, F), 0 to 1,
    # instead of finding them
    takes_pitch: bool = False
    # Mel frames on each side that a frame's samples depend on, by ModelConfig, so that long mels are spoken in pieces;
    # None: all of the mel
    context: Callable[[Any, AudioConfig], int] | None = None


class OpenSpeech(Protocol):
    def __call__(
        self, settings: Any, network: Any, *, sources: Sequence[Path], folder: Path, max_duration: float
    ) -> list[SpeechItem]:
        """Open recordings, folders, lists and manifests; utterances of more than ``max_duration`` seconds are left out.

        Relative paths start from ``folder``.
        """


class Transcribe(Protocol):
    def __call__(self, network: Any, waves: Tensor, lengths: Tensor, settings: Any) -> tuple[list[str], list[Tensor]]:
        """Transcribe waves (B, T) of lengths (B,): B texts, and the log-probabilities (F, C) of each."""


@dataclass(frozen=True)
class RecognizerSpec:
    """How a speech-to-text model transcribes. Its network offers ``normalize(text)``: the text as it would write it."""

    role: ClassVar[str] = "recognizer"
    open_speech: OpenSpeech
    prepare: Callable[[Tensor, Any], Tensor]  # returns the part of a wave (T,) to transcribe, by the settings
    transcribe: Transcribe
    options: type = NoOptions
    settings: Callable[[Any, Any], Any] = lambda options, config: options  # what the functions above are given


class BuildNetworks(Protocol):
    def __call__(self, config: Any, audio: AudioConfig, text: Any, *, inference: bool = False) -> dict[str, nn.Module]:
        """Build networks by name, the one that infers first; with ``inference`` that alone."""


class ReadPublished(Protocol):
    def __call__(
        self, state: dict[str, Tensor], payload: dict[str, Any], /, *, path: Path, training: bool
    ) -> Checkpoint | None:
        """Convert a published file's payload; None for a file of another layout. Raises CheckpointError.

        ``state`` is `common.checkpoints.published_state` of the file's ``state_dict``, empty where it has none.
        """


class MakeExports(Protocol):
    def __call__(self, network: Any, config: Any, audio: AudioConfig) -> Exports:
        """Describe the parts to export of the network that infers, prepared for it."""


class LoadExported(Protocol):
    def __call__(self, runner: Any, config: Any, description: dict[str, Any], device: torch.device, /) -> Any:
        """Make what infers as the network does, of an exported file's `common.checkpoints.Runner` and description.

        ``runner`` is a mapping of the parts' runners by name where the network has several.
        """


@dataclass(frozen=True)
class ModelSpec:
    """All that the rest of the code knows of a model."""

    name: str  # as `train.py --model`
    config: type  # its frozen ModelConfig: architecture only, plain types
    build_networks: BuildNetworks
    training: TrainingSpec
    inference: GeneratorSpec | VocoderSpec | RecognizerSpec
    read_published: ReadPublished | None = None
    exports: MakeExports | None = None
    from_exported: LoadExported | None = None  # None: inference has no use for such files

    @property
    def role(self) -> str:
        """``generator`` (text to mel), ``vocoder`` (mel to sound) or ``recognizer`` (speech to text)."""
        return self.inference.role

    @property
    def option(self) -> str:
        """The option that takes its checkpoint, without hyphens: ``HiFi-GAN`` -> ``hifigan``."""
        return self.name.lower().replace("-", "")


def deferred(name: str) -> Callable[..., Any]:
    """A function by its full name, whose module is imported when it is called: a `ModelSpec` needs no PyTorch."""

    def call(*args: Any, **kwargs: Any) -> Any:
        module, _, function = name.rpartition(".")
        return getattr(importlib.import_module(module), function)(*args, **kwargs)

    return call


def available_models(role: str | None = None) -> list[str]:
    """Names of the models; with ``role`` of those alone that have it."""
    return [name for name in _PACKAGES if role is None or get_model(name).role == role]


def get_model(name: str) -> ModelSpec:
    """The model of that name; raises OptionError where there is none."""
    if name not in _PACKAGES:
        raise OptionError(f"model {name!r}: expected one of {', '.join(_PACKAGES)}")
    return importlib.import_module(_PACKAGES[name]).MODEL
