"""The absolute error of each utterance's mean frame."""

import torch
from torch import Tensor

from common.config import AudioConfig
from common.nn.layers import mask_from_lengths
from common.training.objective import LogStyle, Networks, Objective, Phase, Term
from toy_voice.data_function import ToyBatch
from toy_voice.options import TrainingOptions


class ToyObjective(Objective):
    """One phase with one term."""

    phases = (Phase("toy_voice", ("toy_voice",)),)
    log_style = LogStyle({"mean_loss": "mean loss"}, shows_total=False)

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"mean_loss": 1.0}

    def counts(self, phase: str, batch: ToyBatch) -> dict[str, Tensor]:
        return {"mean_loss": torch.tensor(batch.means.numel())}

    def numerators(self, phase: str, networks: Networks, batch: ToyBatch) -> dict[str, Tensor]:
        lengths = batch.lengths * networks["toy_voice"].frames
        mel = networks["toy_voice"](batch.tokens)
        mel = mel * mask_from_lengths(lengths, mel.size(2)).unsqueeze(1)
        return {"mean_loss": (mel.sum(2) / lengths.unsqueeze(1) - batch.means).abs().float().sum()}

    def evaluate(self, networks: Networks, batch: ToyBatch) -> dict[str, Term]:
        total, count = (terms["mean_loss"] for terms in (self.numerators("", networks, batch), self.counts("", batch)))
        return {"mean_loss": Term(total, count)}


def build_objective(options: TrainingOptions, audio: AudioConfig) -> ToyObjective:
    """The objective, which has no options."""
    return ToyObjective()
