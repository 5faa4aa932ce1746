"""The losses of symbols' means and durations, and of the sound."""

from torch import Tensor

from common.config import AudioConfig
from common.nn.alignment_search import durations_of_path
from common.nn.layers import mask_from_lengths
from common.training.objective import LogStyle, Networks, Objective, Phase
from toy_vits.arg_parser import TrainingOptions
from toy_vits.data_function import VitsBatch


class VitsObjective(Objective):
    """One phase with three terms."""

    phases = (Phase("toy_vits", ("toy_vits",)),)
    log_style = LogStyle({"wave_loss": "wave loss"})

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"wave_loss": 1.0, "mean_loss": 1.0, "duration_loss": 1.0}

    def counts(self, phase: str, batch: VitsBatch) -> dict[str, Tensor]:
        hop, n_mels, n_frames = batch.waves.size(1) // batch.mels.size(2), batch.mels.size(1), batch.mel_lengths.sum()
        return {"wave_loss": n_frames * hop, "mean_loss": n_frames * n_mels, "duration_loss": batch.token_lengths.sum()}

    def numerators(self, phase: str, networks: Networks, batch: VitsBatch) -> dict[str, Tensor]:
        network, mels = networks["toy_vits"], batch.mels.transpose(1, 2)
        path = network.find_path(batch.tokens, batch.token_lengths, batch.mels, batch.mel_lengths)
        durations = durations_of_path(path, batch.mel_lengths, batch.tokens.size(1))
        is_frame = mask_from_lengths(batch.mel_lengths, mels.size(1)).unsqueeze(2)
        means = network.means(batch.tokens.gather(1, path))
        errors = network.log_durations(batch.tokens)[:, :, 0] - durations.clamp(min=1).log()
        error = (network.decoder(mels) - batch.waves).square().unflatten(1, (mels.size(1), -1))
        return {
            "wave_loss": (error * is_frame).sum(),
            "mean_loss": ((means - mels).square() * is_frame).sum(),
            "duration_loss": (errors.square() * mask_from_lengths(batch.token_lengths, errors.size(1))).sum(),
        }


def build_objective(options: TrainingOptions, audio: AudioConfig) -> VitsObjective:
    """The objective, which has no options."""
    return VitsObjective()
