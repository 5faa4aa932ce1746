"""FastPitch's losses: mel-spectrogram, duration and pitch errors, each a mean over what is valid."""

import argparse

import torch
from torch import Tensor

from common.config import AudioConfig
from common.layers import mask_from_lengths
from common.objective import Example, LogStyle, Networks, Objective, Phase, Term
from common.synthesis import MelOutput
from fastpitch.data_function import FastPitchBatch

_PHASE = "fastpitch"
_N_EXAMPLES = 2


class FastPitchObjective(Objective):
    """Squared error of mels, of log(1 + duration) and of normalised pitch (FastPitch, section 2.2).

    ``duration_error`` (frames) and ``pitch_error`` (normalised) are mean absolute errors, logged only.
    """

    phases = (Phase(_PHASE, trains=("fastpitch",)),)
    log_style = LogStyle({"mel_loss": "mel loss", "duration_predictor_loss": "dur loss", "pitch_loss": "pitch loss"})

    def __init__(self, *, dur_predictor_loss_scale: float = 0.1, pitch_predictor_loss_scale: float = 0.1) -> None:
        self._weights = {
            "mel_loss": 1.0,
            "duration_predictor_loss": dur_predictor_loss_scale,
            "pitch_loss": pitch_predictor_loss_scale,
        }

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return dict(self._weights)

    def counts(self, phase: str, batch: FastPitchBatch) -> dict[str, Tensor]:
        n_tokens = batch.token_lengths.sum()
        return {
            "mel_loss": batch.mel_lengths.sum() * batch.mels.size(1),
            "duration_predictor_loss": n_tokens,
            "pitch_loss": n_tokens,
            "duration_error": n_tokens,
            "pitch_error": n_tokens,
        }

    def numerators(self, phase: str, networks: Networks, batch: FastPitchBatch) -> dict[str, Tensor]:
        return sums_of_errors(networks["fastpitch"].teacher_forced(batch), batch)

    def evaluate(self, networks: Networks, batch: FastPitchBatch) -> dict[str, Term]:
        sums = self.numerators(_PHASE, networks, batch)
        counts = self.counts(_PHASE, batch)
        return {name: Term(total, counts[name]) for name, total in sums.items()}

    def examples(self, networks: Networks, batch: FastPitchBatch) -> list[Example]:
        out = networks["fastpitch"].teacher_forced(batch)
        return [_example(out, batch, index) for index in range(min(_N_EXAMPLES, len(batch.names)))]


def build_objective(args: argparse.Namespace, audio: AudioConfig) -> FastPitchObjective:
    """The objective with the loss scales of the command line."""
    return FastPitchObjective(
        dur_predictor_loss_scale=args.dur_predictor_loss_scale,
        pitch_predictor_loss_scale=args.pitch_predictor_loss_scale,
    )


def sums_of_errors(out: MelOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
    """Each term's sum over the valid elements of a batch, float32 whatever the network computed in."""
    frame_mask = mask_from_lengths(batch.mel_lengths, batch.mels.size(2)).unsqueeze(1)
    token_mask = mask_from_lengths(batch.token_lengths, batch.durations.size(1))
    mel_error = (out.mel.float() - batch.mels) * frame_mask
    durations = batch.durations.float()
    log_duration_error = (out.log_durations.float() - torch.log1p(durations)) * token_mask
    pitch_error = (out.pitch.float() - batch.pitch) * token_mask
    duration_error = (out.durations.detach().float() - durations) * token_mask
    return {
        "mel_loss": mel_error.square().sum(),
        "duration_predictor_loss": log_duration_error.square().sum(),
        "pitch_loss": pitch_error.square().sum(),
        "duration_error": duration_error.abs().sum(),
        "pitch_error": pitch_error.detach().abs().sum(),
    }


def _example(out: MelOutput, batch: FastPitchBatch, index: int) -> Example:
    n_frames, n_tokens = int(batch.mel_lengths[index]), int(batch.token_lengths[index])
    return Example(
        name=batch.names[index],
        mels={
            "target": batch.mels[index, :, :n_frames].float().cpu(),
            "predicted": out.mel[index, :, :n_frames].float().cpu(),
        },
        curves={
            "pitch": {
                "target": batch.pitch[index, :n_tokens].float().cpu(),
                "predicted": out.pitch[index, :n_tokens].float().cpu(),
            },
            "duration": {
                "target": batch.durations[index, :n_tokens].float().cpu(),
                "predicted": out.durations[index, :n_tokens].float().cpu(),
            },
        },
    )
