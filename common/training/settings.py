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
from common.registry import ModelSpec
from common.text.config import TextConfig
from common.training.optim import Optimization
from common.training.options import RunOptions


@dataclass(frozen=True)
class MelSource:
    """Mel settings, and where they come from."""

    name: str  # in messages
    audio: AudioConfig
    unrecorded: tuple[str, ...] = ()  # fields that are assumed, since the source lacks them

    def check_agreement(self, other: "MelSource") -> None:
        """Raise OptionError, which names each field that differs, if another source describes different mels."""
        names = self.name, other.name
        if lines := differences(self.audio, other.audio, names=names, ignored=other.unrecorded):
            raise OptionError(f"{' and '.join(names)} describe different mels: {'; '.join(lines)}; give one of them")


def stored_mels(folder: Path | None, *, option: str = "") -> MelSource | None:
    """Return the settings of the mels in ``folder``, None if it records none; ``option`` is for messages."""
    audio = None if folder is None else features_config(folder)
    return None if audio is None else MelSource(f"{option} {folder}".strip(), audio)


@dataclass(frozen=True)
class TrainingRequest:
    """Options and checkpoints of a training, except for its model's own options."""

    spec: ModelSpec
    run: RunOptions
    computing: ComputingOptions
    audio: AudioOptions
    values: dict[str, Any]  # of all options, for the log
    resumed: tuple[Path, Checkpoint] | None = None  # the checkpoint that the run continues
    initial: tuple[Path, Checkpoint] | None = None  # the one whose weights a new run starts from

    def mels(self, *sources: MelSource | None, for_voice: Path | None = None, may_resume: bool = True) -> AudioConfig:
        """Return the mel settings of ``sources``, --for-voice and --audio-config, changed by the given mel options.

        Without any source, use those of the checkpoint to start from (if ``may_resume``), else the corpus's. Raises
        OptionError, which names each field that differs, if two sources disagree.
        """
        voice = file = None
        if for_voice is not None:
            checkpoint = open_checkpoint(for_voice, role="generator", ema=True).checkpoint
            voice = MelSource(f"--for-voice {for_voice}", checkpoint.audio, checkpoint.assumed)
        if (path := self.audio.audio_config) is not None:
            file = MelSource(f"--audio-config {path}", read_audio_config(path))
        # The source with the fewest unrecorded fields comes first; the others must agree with it on what they record.
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
    """A training as set up by a model's package. The functions return lines to print.

    ``initial`` is the path and checkpoint of --from-checkpoint, or None. ``new``: no other checkpoint has been loaded.
    """

    options: Any  # the package's own frozen dataclass
    audio: AudioConfig
    text: TextConfig | None  # None: the model reads no text
    optimization: Optimization
    same_shapes: bool = False  # whether all training batches have the same shape, such as fixed-size segments
    adaptable: tuple[str, ...] = ()  # fields of AudioConfig that may differ in the checkpoint to resume
    notes: Sequence[str] = ()  # lines to print about what was chosen
    # (checkpoint of --from-checkpoint, template) -> the checkpoint adapted to the template's symbols, and lines
    adapt: Callable[[Checkpoint, Checkpoint], tuple[Checkpoint, list[str]]] | None = None
    # (networks, options, *, text, training_set, validation_set, initial, gather, new) -> lines; sets weights and other
    # initial state, and statistics of the training list, computed with ``gather`` (`common.distributed.Gather`)
    set_up_networks: Callable[..., list[str]] | None = None
