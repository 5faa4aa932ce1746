"""The interface between training and a model's package: the request, the setup, and the mels to train on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.audio.options import AudioOptions, features_config, read_audio_config
from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.loading import open_checkpoint
from common.cli import ComputingOptions
from common.config import AudioConfig, differences
from common.errors import OptionError
from common.text.config import TextConfig
from common.training.optim import Optimization
from common.training.options import RunOptions


@dataclass(frozen=True)
class MelSource:
    """A description of mels, and where it comes from."""

    name: str  # in messages
    audio: AudioConfig
    unrecorded: tuple[str, ...] = ()  # fields that are assumed

    def check_agreement(self, other: "MelSource") -> None:
        """Raise OptionError if another source describes other mels, with each field that differs."""
        names = self.name, other.name
        if lines := differences(self.audio, other.audio, names=names, ignored=other.unrecorded):
            raise OptionError(f"{' and '.join(names)} are of different mels: {'; '.join(lines)}; give one of them")


def stored_mels(folder: Path, *, option: str = "") -> MelSource | None:
    """Return the description of the mels in a folder, which ``option`` names; None if it has none."""
    audio = features_config(folder)
    return None if audio is None else MelSource(f"{option} {folder}".strip(), audio)


@dataclass(frozen=True)
class TrainingRequest:
    """Options and checkpoints of a training, besides the options of its model."""

    run: RunOptions
    computing: ComputingOptions
    audio: AudioOptions
    resumed: tuple[Path, Checkpoint] | None = None  # the checkpoint that the run continues
    initial: tuple[Path, Checkpoint] | None = None  # the one whose weights a new run begins with

    def mels(self, *sources: MelSource | None, for_voice: Path | None = None, may_resume: bool = True) -> AudioConfig:
        """Return the mels of ``sources``, --for-voice and --audio-config, with the given options' changes.

        Without these, they are the first checkpoint's (if it ``may_resume`` them), or the corpus's. Raises OptionError
        with each field in which two of them differ.
        """
        voice = file = None
        if for_voice is not None:
            checkpoint = open_checkpoint(for_voice, role="generator", ema=True).checkpoint
            voice = MelSource(f"--for-voice {for_voice}", checkpoint.audio, checkpoint.assumed)
        if (path := self.audio.audio_config) is not None:
            file = MelSource(f"--audio-config {path}", read_audio_config(path))
        # The source with the fewest unrecorded fields comes first; the others must agree in what they record.
        found = sorted((one for one in (*sources, voice, file) if one is not None), key=lambda one: len(one.unrecorded))
        for other in found[1:]:
            found[0].check_agreement(other)
        begun = self.resumed or self.initial
        base = found[0].audio if found else begun[1].audio if begun is not None and may_resume else None
        audio = self.audio.config(corpus=self.run.dataset_path, base=base)
        if voice is not None:
            MelSource("the options", audio).check_agreement(voice)
        return audio


@dataclass(frozen=True)
class TrainingSetup:
    """How a model's package sets up a training. The functions return lines to print.

    ``initial`` is the checkpoint of --from-checkpoint with its path, or None; ``new``: no other provides the weights.
    """

    options: Any  # the package's own frozen dataclass
    audio: AudioConfig
    text: TextConfig | None  # None: the model reads no text
    optimization: Optimization
    same_shapes: bool = False  # whether all batches of training have one shape, as segments of one size do
    adaptable: tuple[str, ...] = ()  # fields of AudioConfig in which a checkpoint to resume from may differ
    notes: Sequence[str] = ()  # lines to print, on what was chosen
    # (checkpoint of --from-checkpoint, template) -> the checkpoint for the template's other symbols, and lines
    adapt: Callable[[Checkpoint, Checkpoint], tuple[Checkpoint, list[str]]] | None = None
    # (networks, options, *, text, training_set, initial, new) -> lines; sets weights and what no architecture says
    set_up_networks: Callable[..., list[str]] | None = None
    # (networks, options, *, training_set, validation_set, initial, gather, new) -> lines; stores what is computed over
    # the training list, by `common.distributed.Gather`
    compute_statistics: Callable[..., list[str]] | None = None
