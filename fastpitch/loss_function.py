"""FastPitch's losses: mels, durations, pitch and energy, each a mean over what is valid, and those of the alignment."""

from typing import cast

import torch
from torch import Tensor

from common.config import AudioConfig
from common.nn.alignment_metrics import diagonality, unattended_tokens
from common.nn.layers import mask_from_lengths
from common.training.objective import Example, LogStyle, Networks, Objective, Phase, Term
from fastpitch.aligner import Alignment, binarization_sum, forward_sum_losses
from fastpitch.batch import FastPitchBatch
from fastpitch.model import FastPitch, FastPitchOutput
from fastpitch.options import AlignmentLosses, TrainingOptions

_PHASE = "fastpitch"
_N_EXAMPLES = 2


class FastPitchObjective(Objective):
    """Squared error of mels, of log(1 + duration), of normalized pitch and of log(1 + energy) (FastPitch, section 2.2).

    ``duration_error`` (frames) and ``pitch_error`` (normalized) are mean absolute errors, logged only. With a learned
    alignment there are its forward sum, ``attn_loss``, a mean over utterances, and its binarization, ``kl_loss``, one
    over frames. Validation adds two figures (`common.nn.alignment_metrics`): ``unattended_tokens``, the share of
    tokens that no frame attends to most; and ``attention_diagonality``, a mean over utterances, of the attention
    without its prior, which is diagonal before anything is learned.
    """

    phases = (Phase(_PHASE, trains=("fastpitch",)),)

    def __init__(
        self,
        *,
        dur_predictor_loss_scale: float = 0.1,
        pitch_predictor_loss_scale: float = 0.1,
        energy_predictor_loss_scale: float | None = None,
        alignment: AlignmentLosses | None = None,
    ) -> None:
        """``energy_predictor_loss_scale`` and ``alignment`` None: of a model without energy or learned alignment."""
        self._weights = {
            "mel_loss": 1.0,
            "duration_predictor_loss": dur_predictor_loss_scale,
            "pitch_loss": pitch_predictor_loss_scale,
        }
        shown = {"mel_loss": "mel loss", "duration_predictor_loss": "dur loss", "pitch_loss": "pitch loss"}
        if energy_predictor_loss_scale is not None:
            self._weights["energy_loss"] = energy_predictor_loss_scale
            shown["energy_loss"] = "energy loss"
        self._alignment = alignment
        if alignment is not None:
            shown |= {"attn_loss": "attn loss", "kl_loss": "kl loss"}
            shown |= {"attention_diagonality": "diagonality", "unattended_tokens": "unattended"}
        self.log_style = LogStyle(shown)

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return self._weights | ({} if self._alignment is None else self._alignment.weights(epoch))

    def counts(self, phase: str, batch: FastPitchBatch) -> dict[str, Tensor]:
        n_tokens, n_frames = batch.token_lengths.sum(), batch.mel_lengths.sum()
        counts = dict.fromkeys((*self._weights, "duration_error", "pitch_error"), n_tokens)
        counts["mel_loss"] = n_frames * batch.mels.size(1)
        if self._alignment is not None:
            counts |= {"attn_loss": _n_utterances(batch), "kl_loss": n_frames}
        return counts

    def numerators(self, phase: str, networks: Networks, batch: FastPitchBatch) -> dict[str, Tensor]:
        return self._sums(_teacher_forced(networks, batch), batch)

    def evaluate(self, networks: Networks, batch: FastPitchBatch) -> dict[str, Term]:
        out = _teacher_forced(networks, batch)
        counts = self.counts(_PHASE, batch)
        terms = {name: Term(total, counts[name]) for name, total in self._sums(out, batch).items()}
        if self._alignment is None:
            return terms
        lengths = batch.token_lengths, batch.mel_lengths
        attention = out.alignment.attention(batch.mel_lengths)
        learned = out.alignment.attention_without(batch.prior, batch.mel_lengths)
        terms["attention_diagonality"] = Term(diagonality(learned, *lengths).sum(), _n_utterances(batch))
        terms["unattended_tokens"] = Term(unattended_tokens(attention, *lengths).sum(), batch.token_lengths.sum())
        return terms

    def examples(self, networks: Networks, batch: FastPitchBatch) -> list[Example]:
        out = _teacher_forced(networks, batch)
        return [_example(out, batch, index) for index in range(min(_N_EXAMPLES, len(batch.names)))]

    def _sums(self, out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
        sums = sums_of_errors(out, batch)
        if "energy_loss" in self._weights:
            token_mask = mask_from_lengths(batch.token_lengths, out.energy.size(1))
            sums["energy_loss"] = ((out.energy.float() - out.target_energy) * token_mask).square().sum()
        if self._alignment is not None:
            losses = forward_sum_losses(out.alignment.log_probs, batch.token_lengths, batch.mel_lengths)
            sums |= {"attn_loss": losses.sum(), "kl_loss": binarization_sum(out.alignment, batch.mel_lengths)}
        return sums


def build_objective(options: TrainingOptions, audio: AudioConfig) -> FastPitchObjective:
    """The objective with the given loss scales, for the parts that the model has."""
    return FastPitchObjective(
        dur_predictor_loss_scale=options.dur_predictor_loss_scale,
        pitch_predictor_loss_scale=options.pitch_predictor_loss_scale,
        energy_predictor_loss_scale=options.energy_predictor_loss_scale if options.model.energy_conditioning else None,
        alignment=options.alignment_losses if options.model.learned_alignment else None,
    )


def sums_of_errors(out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
    """Sums over the valid elements of a batch, of the terms that each FastPitch has; float32 whatever it computed in.

    Durations and pitch are compared with the batch's, or with those of the model's alignment.
    """
    durations = (out.target_durations if batch.durations is None else batch.durations).float()
    pitch = out.target_pitch if batch.pitch is None else batch.pitch
    frame_mask = mask_from_lengths(batch.mel_lengths, batch.mels.size(2)).unsqueeze(1)
    token_mask = mask_from_lengths(batch.token_lengths, durations.size(1))
    mel_error = (out.mel.float() - batch.mels) * frame_mask
    log_duration_error = (out.log_durations.float() - torch.log1p(durations)) * token_mask
    pitch_error = (out.pitch.float() - pitch) * token_mask
    duration_error = (out.durations.detach().float() - durations) * token_mask
    return {
        "mel_loss": mel_error.square().sum(),
        "duration_predictor_loss": log_duration_error.square().sum(),
        "pitch_loss": pitch_error.square().sum(),
        "duration_error": duration_error.abs().sum(),
        "pitch_error": pitch_error.detach().abs().sum(),
    }


def _teacher_forced(networks: Networks, batch: FastPitchBatch) -> FastPitchOutput:
    return cast(FastPitch, networks["fastpitch"]).teacher_forced(batch)  # the networks of any model are nn.Modules


def _n_utterances(batch: FastPitchBatch) -> Tensor:
    return torch.ones_like(batch.token_lengths).sum()


def _example(out: FastPitchOutput, batch: FastPitchBatch, index: int) -> Example:
    n_frames, n_tokens = int(batch.mel_lengths[index]), int(batch.token_lengths[index])
    curves = {"pitch": (out.target_pitch, out.pitch), "duration": (out.target_durations, out.durations)}
    if out.energy is not None:
        curves["energy"] = (out.target_energy, out.energy)
    return Example(
        name=batch.names[index],
        mels={
            "target": batch.mels[index, :, :n_frames].float().cpu(),
            "predicted": out.mel[index, :, :n_frames].float().cpu(),
        },
        curves={
            name: {
                "target": target[index, :n_tokens].float().cpu(),
                "predicted": predicted[index, :n_tokens].float().cpu(),
            }
            for name, (target, predicted) in curves.items()
        },
        alignments={} if out.alignment is None else _alignments(out.alignment, index, n_frames, n_tokens),
    )


def _alignments(alignment: Alignment, index: int, n_frames: int, n_tokens: int) -> dict[str, Tensor]:
    """Weights (F, L) of one utterance: the attention of its frames, and the path that gives the durations."""
    soft = alignment.log_attention[index, :n_frames, :n_tokens].float().exp()
    hard = torch.nn.functional.one_hot(alignment.path[index, :n_frames], n_tokens)
    return {"soft attention": soft.cpu(), "hard alignment": hard.float().cpu()}
