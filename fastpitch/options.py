"""Options of a FastPitch training, parsed once from the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.checkpoints import Checkpoint
from common.config import TextConfig
from common.data import FilelistEntry
from fastpitch.config import ModelConfig


@dataclass(frozen=True)
class LossScales:
    """Weights of the loss terms; defaults as published."""

    dur_predictor_loss_scale: float = 0.1
    pitch_predictor_loss_scale: float = 0.1
    energy_predictor_loss_scale: float = 0.1
    attn_loss_scale: float = 1.0  # of the forward sum over all alignments
    kl_loss_weight: float = 1.0  # of binarization, after its warm-up
    kl_loss_start_epoch: int = 250  # the last epoch without binarization
    kl_loss_warmup_epochs: int = 100  # 0: no warm-up

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
    checkpoint: Checkpoint
    config: ModelConfig

    @property
    def speaker_names(self) -> tuple[str, ...]:
        """Names of its speakers in order of their ids; those that had numbers alone are named by these."""
        names, n_speakers = self.text.speakers, self.config.n_speakers
        return names[:1] if n_speakers == 1 else (*names, *map(str, range(len(names), n_speakers)))


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run."""

    architecture: ModelConfig
    losses: LossScales
    initial_voice: InitialVoice | None
    dataset_path: Path
    training_files: Sequence[Path]
    entries: list[FilelistEntry]  # of the training lists
    unknown_symbols: str
    seed: int
    num_workers: int | None  # loader processes; None: as many as are worth it
    pitch_method: str
    pitch_cache: Path | None  # None: in the dataset's folder
    pitch_mean_std_file: Path | None
    alignment_priors: Path | None = None  # folder of priors; None: they are computed
    load_pitch_from_disk: bool = False  # whether lists without pitch are refused
    mean_mel_bias: bool = False  # a new network's output layer starts at the mean mel of the training list
