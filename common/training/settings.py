"""What a model's package is asked for a training, and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.audio.options import AudioOptions
from common.checkpoints import Checkpoint
from common.config import AudioConfig, TextConfig
from common.precision import ComputingOptions
from common.training.mels import MelSource, training_mels
from common.training.optim import Optimization
from common.training.options import RunOptions


@dataclass(frozen=True)
class TrainingRequest:
    """What a training is told besides the options of its model."""

    run: RunOptions
    computing: ComputingOptions
    audio: AudioOptions
    resumed: tuple[Path, Checkpoint] | None = None  # the checkpoint that the run continues
    initial: tuple[Path, Checkpoint] | None = None  # the one whose weights a new run begins with

    def mels(self, *sources: MelSource | None, for_voice: Path | None = None, may_resume: bool = True) -> AudioConfig:
        """The mels to train on; see `training_mels`."""
        started = [found[1].audio for found in (self.resumed, self.initial) if found is not None and may_resume]
        corpus, base = self.run.dataset_path, next(iter(started), None)
        return training_mels(self.audio, *sources, corpus=corpus, for_voice=for_voice, base=base)


@dataclass(frozen=True)
class TrainingSetup:
    """What a model's package makes of its options; nothing else reads them."""

    options: Any  # the package's own frozen dataclass
    audio: AudioConfig
    text: TextConfig | None  # None: the model reads no text
    optimization: Optimization
    same_shapes: bool = False  # whether all batches of training have one shape, as segments of one size do
    recordable: bool = False  # whether --cuda-graphs can record updates
    adaptable: tuple[str, ...] = ()  # fields of AudioConfig in which a checkpoint to resume from may differ
    notes: Sequence[str] = ()  # lines to print, on what was chosen
