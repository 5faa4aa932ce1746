"""The losses of symbols' means and durations, and of the velocity."""

import torch
from torch import Tensor

from common.config import AudioConfig
from common.data.text_mel import TextMelBatch
from common.nn.alignment_search import durations_of_path
from common.nn.layers import mask_from_lengths
from common.training.objective import LogStyle, Networks, Objective, Phase
from toy_flow.arg_parser import TrainingOptions


class FlowObjective(Objective):
    """One phase with three terms."""

    phases = (Phase("toy_flow", ("toy_flow",)),)
    log_style = LogStyle({"flow_loss": "flow loss"})

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"flow_loss": 1.0, "mean_loss": 1.0, "duration_loss": 1.0}

    def counts(self, phase: str, batch: TextMelBatch) -> dict[str, Tensor]:
        elements = batch.mel_lengths.sum() * batch.mels.size(1)
        return {"flow_loss": elements, "mean_loss": elements, "duration_loss": batch.token_lengths.sum()}

    def numerators(self, phase: str, networks: Networks, batch: TextMelBatch) -> dict[str, Tensor]:
        network, mels = networks["toy_flow"], batch.mels
        path = network.find_path(batch.tokens, batch.token_lengths, mels, batch.mel_lengths)
        durations = durations_of_path(path, batch.mel_lengths, batch.tokens.size(1))
        means = network.means(batch.tokens.gather(1, path)).transpose(1, 2)
        noise, time = means.detach() + torch.randn_like(mels), torch.rand(len(mels))
        velocity = network.velocity(torch.lerp(noise, mels, time[:, None, None]), time, means.detach())
        is_frame = mask_from_lengths(batch.mel_lengths, mels.size(2)).unsqueeze(1)
        predicted = network.log_durations(batch.tokens)[:, :, 0]
        errors = predicted - durations.clamp(min=1).log()
        return {
            "flow_loss": ((velocity - (mels - noise)).square() * is_frame).sum(),
            "mean_loss": ((means - mels).square() * is_frame).sum(),
            "duration_loss": (errors.square() * mask_from_lengths(batch.token_lengths, errors.size(1))).sum(),
        }


def build_objective(options: TrainingOptions, audio: AudioConfig) -> FlowObjective:
    """The objective, which has no options."""
    return FlowObjective()
