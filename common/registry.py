"""The one table of models, and the contract that each model's package fulfills with its ``MODEL``."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from common.errors import OptionError

if TYPE_CHECKING:  # names in annotations alone: this file lies below the rooms that define them
    from torch import Tensor

    from common.checkpoints import Checkpoint
    from common.config import AudioConfig, TextConfig
    from common.data import Dataset
    from common.distributed import Gather
    from common.recognition import SpeechItem
    from common.synthesis import Controls, MelOutput, VocoderSettings
    from common.training.objective import Objective
    from common.training.options import Recipe
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


class DefaultsOf(Protocol):
    """What files that the command line names say of options that it leaves out."""

    def __call__(self, given: Mapping[str, Any], initial: "tuple[Path, Checkpoint] | None") -> Mapping[str, Any]:
        """Defaults by the names of options; ``given`` are all values, ``initial`` the checkpoint to begin with."""


class ModelConfigOf(Protocol):
    """The architecture that a package's options describe."""

    def __call__(self, options: Any, audio: "AudioConfig", text: Any, *, base: Any) -> Any:
        """Make it; ``base`` is that of the checkpoint to begin with, or None, which options may change."""


class BuildDataset(Protocol):
    """Opens the utterances of lists."""

    def __call__(
        self, options: Any, filelists: Sequence[Path], *, audio: "AudioConfig", text: Any, training: bool
    ) -> Any:
        """A `common.data.Dataset`, without ``sizes`` where all batches have one shape; raises InputError."""


class SetUpNetworks(Protocol):
    """Gives networks weights and settings beyond their architecture."""

    def __call__(self, networks: Any, options: Any, *, text: Any, new: bool) -> list[str]:
        """Do so, and return lines to print; ``new`` is False where a training is resumed."""


class ComputeStatistics(Protocol):
    """Computes what must be gathered over the whole training list."""

    def __call__(
        self, networks: Any, options: Any, *, training_set: "Any", validation_set: "Any", gather: "Gather", new: bool
    ) -> None:
        """Compute it, and store it in the networks."""


@dataclass(frozen=True)
class TrainingSpec:
    """How ``train.py`` trains a model. ``options`` below is an instance of the package's own frozen dataclass."""

    recipe: "Recipe"  # the published one: defaults of the options that all models share
    options: type  # declared as `common.options` says
    set_up: "Callable[[Any, TrainingRequest], TrainingSetup]"  # of options as they were given
    model_config: ModelConfigOf
    build_dataset: BuildDataset
    build_objective: "Callable[[Any, AudioConfig], Objective]"
    defaults: DefaultsOf | None = None
    set_up_networks: SetUpNetworks | None = None
    compute_statistics: ComputeStatistics | None = None
    # (config) -> the setting through which what is learned depends on a batch's padding; None: there is none
    sees_padding: "Callable[[Any], str | None]" = lambda config: None
    # Whether ``set_up_networks`` takes the weights of --from-checkpoint; else its architecture must be the same.
    starts_from_checkpoint: bool = False


class MakeControls(Protocol):
    """Makes the controls of a text-to-mel network of its package's options; may set up the network."""

    def __call__(self, options: Any, network: Any, config: Any, *, where: Path) -> "Controls":
        """Make them, for the checkpoint ``where``; raises InputError where it lacks what the options need."""


class OpenTeacherForcedDataset(Protocol):
    """Opens a list's utterances as they are, for ``network.teacher_forced(batch)``."""

    def __call__(
        self,
        dataset_path: Path,
        filelist: Path,
        *,
        config: Any,
        audio: "AudioConfig",
        text: "TextConfig",
        unknown_symbols: str,
        networks: "Mapping[str, Any]",
    ) -> "Dataset":
        """Open the list; raises InputError for what cannot be read."""


class MakeVocoderSettings(Protocol):
    """Makes the settings of a vocoder's ``infer`` of its package's options."""

    def __call__(self, options: Any, config: Any, *, seed: int, where: Path) -> "VocoderSettings":
        """Make them, for the checkpoint ``where``; raises OptionError for options that do not fit it."""


class OpenSpeech(Protocol):
    """Opens recordings, folders, lists and manifests for a recognizer."""

    def __call__(
        self, settings: Any, network: Any, *, sources: Sequence[Path], folder: Path, max_duration: float
    ) -> "list[SpeechItem]":
        """Open the utterances of up to ``max_duration`` seconds; relative paths start from ``folder``."""


class Transcribe(Protocol):
    """Transcribes a batch."""

    def __call__(
        self, network: Any, waves: "Tensor", lengths: "Tensor", settings: Any
    ) -> "tuple[list[str], list[Tensor]]":
        """waves (B, T), lengths (B,) -> B texts, and of each its log-probabilities (F, C)."""


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
    controls: MakeControls
    options: type = NoOptions  # the package's dataclass of inference options (`common.options`)
    to_torchscript: Callable[[Any], Any] | None = None  # (network) -> network
    not_compilable: str | None = None  # why torch.compile cannot help, for the error message
    n_speakers: Callable[[Any], int] | None = None  # (config); None: one speaker
    phrase_columns: tuple[str, ...] = ()  # columns of a list of phrases that it reads besides text: pitch, duration
    # (network, tokens, mels) -> MelOutput with durations by its attention: common.extraction.batches.TeacherModel
    teacher: "Callable[[Any, Sequence[Tensor], Sequence[Tensor]], MelOutput] | None" = None
    teacher_forced_dataset: OpenTeacherForcedDataset | None = None
    # (config) -> the columns of its lists, as scripts/prepare_dataset.sh has them in the names of lists
    list_columns: Callable[[Any], str] = lambda config: "audio_text"


@dataclass(frozen=True)
class VocoderSpec:
    """How a vocoder makes sound.

    Its network offers ``infer(mel, lengths, **settings) -> wave``, and ``prepare_for_inference()`` as generators do.
    """

    role: ClassVar[str] = "vocoder"
    settings: MakeVocoderSettings | None = None  # None: nothing but mels is told
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
    open_speech: OpenSpeech
    prepare: "Callable[[Tensor, Any], Tensor]"  # (wave (T,), settings) -> the part of it to transcribe
    transcribe: Transcribe
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
    # (payload, *, path, training) -> Checkpoint, or None for a file of another layout; raises CheckpointError
    read_published: Callable[..., Any] | None = None
    published_audio: "AudioConfig | None" = None  # the mels of the published checkpoints
    # (network, config, audio) -> common.checkpoints.Exports, of the network that infers, prepared for it
    exports: Callable[..., Any] | None = None
    # (config, audio) -> common.checkpoints.Signature of each part of ``exports``, by name
    signatures: Callable[..., Any] | None = None
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
