"""WaveGlow's loss: the negative log-likelihood of sound, given its mel-spectrogram."""

import math

import torch
from torch import Tensor

from common.config import AudioConfig
from common.data.recordings import input_mel_extractor
from common.errors import InputError
from common.training.objective import N_EXAMPLES, Example, LogStyle, Networks, Objective, Phase, sound_example
from waveglow.arg_parser import TrainingOptions
from waveglow.data_function import WaveGlowBatch
from waveglow.model import FlowOutput


class WaveGlowObjective(Objective):
    """The likelihood of segments of one length, averaged over all elements of z in the global batch, as published."""

    phases = (Phase("waveglow", trains=("waveglow",)),)
    log_style = LogStyle({}, format="{:>6.3f}", shows_speed=True)

    def __init__(self, options: TrainingOptions, audio: AudioConfig) -> None:
        self._sigma = options.sigma
        self._mel = input_mel_extractor(audio)

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"likelihood_loss": 1.0}

    def counts(self, phase: str, batch: WaveGlowBatch) -> dict[str, Tensor]:
        return {"likelihood_loss": batch.n_utterances}

    def numerators(self, phase: str, networks: Networks, batch: WaveGlowBatch) -> dict[str, Tensor]:
        mel = self._mel.to(batch.audio.device)(batch.audio)
        out = networks["waveglow"](mel, batch.audio)
        mean = likelihood_sum(out, sigma=self._sigma) / out.z.numel()
        return {"likelihood_loss": mean * len(batch.names)}

    def diagnose(self, networks: Networks) -> None:
        for flow, value in enumerate(networks["waveglow"].log_determinants().tolist()):
            if math.isnan(value):
                problem = f"the determinant of flow {flow}'s 1x1 convolution is no longer positive"
                raise InputError(f"{problem}; resume with a lower --learning-rate, or with --grad-clip-thresh")

    def examples(self, networks: Networks, batch: WaveGlowBatch) -> list[Example]:
        assert batch.recordings is not None, "validation batches have them"
        extractor = self._mel.to(batch.audio.device)
        examples = []
        for index, name in enumerate(batch.names[:N_EXAMPLES]):
            recorded = batch.recordings[index : index + 1, : batch.n_samples[index]]
            generated = networks["waveglow"].infer(extractor(recorded))
            examples.append(sound_example(name, extractor, recorded, generated))
        return examples


def likelihood_sum(out: FlowOutput, *, sigma: float) -> Tensor:
    """Return the negative log-likelihood up to a constant, summed over z (equation 3 of arXiv:1811.00002); scalar."""
    with torch.autocast(out.z.device.type, enabled=False):
        scales = torch.stack([log_s.sum() for log_s in out.log_s]).sum()
        return out.z.square().sum() / (2 * sigma**2) - scales - torch.stack(out.log_det).sum()


build_objective = WaveGlowObjective
