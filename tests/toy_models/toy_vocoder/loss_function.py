"""The squared error of samples."""

import torch
from torch import Tensor

from common.config import AudioConfig
from common.training.objective import LogStyle, Networks, Objective, Phase, Term
from toy_vocoder.data_function import ToyBatch
from toy_vocoder.options import TrainingOptions


class ToyObjective(Objective):
    """One phase with one term."""

    phases = (Phase("toy_vocoder", ("toy_vocoder",)),)
    log_style = LogStyle({})

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"wave_loss": 1.0}

    def counts(self, phase: str, batch: ToyBatch) -> dict[str, Tensor]:
        return {"wave_loss": torch.tensor(batch.wave.numel())}

    def numerators(self, phase: str, networks: Networks, batch: ToyBatch) -> dict[str, Tensor]:
        return {"wave_loss": (networks["toy_vocoder"](batch.mel) - batch.wave).square().float().sum()}

    def evaluate(self, networks: Networks, batch: ToyBatch) -> dict[str, Term]:
        total, count = (terms["wave_loss"] for terms in (self.numerators("", networks, batch), self.counts("", batch)))
        return {"wave_loss": Term(total, count)}


def build_objective(options: TrainingOptions, audio: AudioConfig) -> ToyObjective:
    """The objective, which has no options."""
    return ToyObjective()
