"""Options of a FastPitch training, with the published recipe."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from common.audio.pitch import METHODS
from common.config import TextConfig
from common.options import group, option
from common.text.options import TextOptions
from common.training.options import Recipe
from fastpitch.config import ModelConfig

if TYPE_CHECKING:  # the options below are shown without PyTorch
    from common.checkpoints import Checkpoint
    from common.data import FilelistEntry

PITCH_CACHE = "pitch_cache"  # folder in the dataset's folder
RECIPE = Recipe(
    epochs=1500,
    batch_size=32,
    optimizer="lamb",
    learning_rate=0.1,
    weight_decay=1e-6,
    grad_clip_thresh=1000.0,
    epochs_per_checkpoint=50,
)
_weight = partial(option, least=0)


@dataclass(frozen=True)
class LossScales:
    """Weights of the loss terms; defaults as published."""

    dur_predictor_loss_scale: float = _weight(
        0.1, "weight of the duration loss", names=("--duration-predictor-loss-scale",)
    )
    pitch_predictor_loss_scale: float = _weight(0.1, "weight of the pitch loss")
    energy_predictor_loss_scale: float = _weight(0.1, "weight of the energy loss")
    attn_loss_scale: float = _weight(1.0, "weight of the alignment's loss")
    kl_loss_weight: float = _weight(1.0, "final weight of the loss between soft and hard alignment")
    kl_loss_start_epoch: int = _weight(250, "epoch after which that loss begins")
    kl_loss_warmup_epochs: int = _weight(100, "epochs in which its weight rises")

    def kl_loss_scale(self, epoch: int) -> float:
        """The weight of binarization in an epoch (from 1)."""
        epochs = epoch - self.kl_loss_start_epoch
        if self.kl_loss_warmup_epochs == 0:
            return self.kl_loss_weight * (epochs >= 0)
        return self.kl_loss_weight * min(max(epochs, 0) / self.kl_loss_warmup_epochs, 1)


@dataclass(frozen=True)
class InitialVoice:
    """The checkpoint of ``--from-checkpoint``, without its training state."""

    path: Path
    text: TextConfig
    checkpoint: "Checkpoint"
    config: ModelConfig

    @property
    def speaker_names(self) -> tuple[str, ...]:
        """Names of its speakers in order of their ids; those that had numbers alone are named by these."""
        names, n_speakers = self.text.speakers, self.config.n_speakers
        return names[:1] if n_speakers == 1 else (*names, *map(str, range(len(names), n_speakers)))


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run, and what they stand for once its lists are read."""

    text: TextOptions = group(TextOptions)
    architecture: ModelConfig = group(ModelConfig, "architecture of FastPitch")
    losses: LossScales = group(LossScales, "FastPitch's losses")
    warmup_steps: int = option(1000, "updates of rising rate; 0: none", least=0, variable="WARMUP_STEPS")
    n_speakers: int | None = option(
        None,
        "number of speakers, with a column of their numbers or names in the lists; 1: one voice, whatever the lists "
        "say (default: as many as the training list's column has)",
        least=1,
        words={"auto": None},
        variable="NUM_SPEAKERS",
    )
    pitch_mean_std_file: Path | None = option(
        None,
        "JSON with the pitch statistics to store in the model (Hz); with --learned-alignment they are measured if not "
        "given",
        variable="PITCH_MEAN_STD",
    )
    mean_mel_bias: bool = option(
        False, "start the output layer's bias at the mean mel of the training list, not at random: fewer updates"
    )
    pitch_method: str = option(
        "praat",
        "estimates the pitch of recordings",
        choices=METHODS,
        variable="PITCH_METHOD",
        published=("--pitch-online-method",),
    )
    pitch_cache: Path | None = option(
        None,
        f"folder that keeps the pitch of recordings (default: {PITCH_CACHE} in the dataset's folder)",
        names=("--pitch-online-dir",),
    )
    alignment_priors: Path | None = option(
        None, "folder of the alignment's priors of extract_mels.py --save-alignment-priors (default: compute them)"
    )
    load_pitch_from_disk: bool = option(False, "refuse lists that do not name the pitch, instead of estimating it")
    initial_voice: InitialVoice | None = None
    dataset_path: Path = Path()
    training_files: Sequence[Path] = ()
    entries: "Sequence[FilelistEntry]" = ()  # of the training lists
    seed: int = 0
    num_workers: int | None = None  # loader processes; None: as many as are worth it

    @property
    def unknown_symbols(self) -> str:
        """What symbols of the lists do that are not in the set."""
        return self.text.unknown_symbols
