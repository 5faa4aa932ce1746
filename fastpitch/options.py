"""What a training run or an inference of FastPitch is told, parsed once from the command line."""

from dataclasses import dataclass
from pathlib import Path

from common.audio.pitch_statistics import PitchStatistics
from common.checkpoints.checkpoint import Checkpoint
from common.config import TextConfig
from common.data.filelist import FilelistEntry
from fastpitch.model import ModelConfig
from fastpitch.prosody_transforms import EnergyTransform, PitchTransform


@dataclass(frozen=True)
class AlignmentLosses:
    """Weights of a learned alignment's losses; defaults as published."""

    attn_loss_scale: float = 1.0  # of the forward sum over all alignments
    kl_loss_weight: float = 1.0  # of binarization, after its warm-up
    kl_loss_start_epoch: int = 250  # the last epoch of weight 0
    kl_loss_warmup_epochs: int = 100  # 0: no warm-up

    def weights(self, epoch: int) -> dict[str, float]:
        """The weight of each term in an epoch (from 1)."""
        epochs = epoch - self.kl_loss_start_epoch
        if self.kl_loss_warmup_epochs > 0:
            share = min(max(epochs, 0) / self.kl_loss_warmup_epochs, 1)
        else:
            share = float(epochs >= 0)
        return {"attn_loss": self.attn_loss_scale, "kl_loss": share * self.kl_loss_weight}


@dataclass(frozen=True)
class InitialVoice:
    """The checkpoint of ``--from-checkpoint``, without its training state."""

    path: Path
    text: TextConfig
    checkpoint: Checkpoint
    config: ModelConfig


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run."""

    model: ModelConfig
    dataset_path: Path
    training_files: Path
    entries: list[FilelistEntry]  # of the training list
    unknown_symbols: str
    seed: int
    num_workers: int | None  # loader processes; None: as many as are worth it
    pitch_method: str
    pitch_cache: Path
    pitch_mean_std_file: Path | None
    initial_voice: InitialVoice | None
    dur_predictor_loss_scale: float
    pitch_predictor_loss_scale: float
    energy_predictor_loss_scale: float
    alignment_losses: AlignmentLosses


@dataclass(frozen=True)
class InferenceOptions:
    """Options of inference."""

    pace: float
    max_duration: float  # frames
    pitch_statistics: PitchStatistics | None  # instead of the checkpoint's
    pitch_transform: PitchTransform | None
    energy_transform: EnergyTransform | None
