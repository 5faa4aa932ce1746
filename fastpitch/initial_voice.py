"""The voice that a fine-tuning starts from."""

from dataclasses import dataclass
from pathlib import Path

from common.checkpoints.checkpoint import Checkpoint
from common.errors import CheckpointError
from common.text.config import TextConfig
from fastpitch.config import ModelConfig


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


def voice_of(path: Path, checkpoint: Checkpoint) -> InitialVoice:
    """The voice that a checkpoint holds; raises CheckpointError for one of another model, or of unknown symbols."""
    if checkpoint.model != "FastPitch":
        raise CheckpointError(f"{path}: a checkpoint of {checkpoint.model}, expected one of FastPitch")
    if checkpoint.text is None or checkpoint.text.input_type == "pf":
        raise CheckpointError(f"{path}: does not name its symbols, by which another voice takes their vectors")
    return InitialVoice(path, checkpoint.text, checkpoint, checkpoint.config)
