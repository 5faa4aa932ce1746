"""FastPitch's losses: mels, durations, pitch and energy, each a mean over what is valid, and those of the alignment."""

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor

from common.config import AudioConfig
from common.nn.alignment_metrics import diagonality, unattended_tokens
from common.nn.layers import mask_from_lengths
from common.training.objective import Example, LogStyle, Networks, Objective, Phase, Term
from fastpitch.aligner import Alignment, binarisation_sum, forward_sum_losses
from fastpitch.data_function import FastPitchBatch
from fastpitch.model import FastPitchOutput

_PHASE = "fastpitch"
_N_EXAMPLES = 2


@dataclass(frozen=True)
class AlignmentLosses:
    """Weights of a learned alignment's losses; defaults as published."""

    attn_loss_scale: float = 1.0  # of the forward sum over all alignments
    kl_loss_weight: float = 1.0  # of binarisation, once it is warm
    kl_loss_start_epoch: int = 250  # whose weight is 0; it rises from the next epoch on
    kl_loss_warmup_epochs: int = 100  # 0: whole at once

    def weights(self, epoch: int) -> dict[str, float]:
        """The weight of each term in an epoch (from 1)."""
        epochs = epoch - self.kl_loss_start_epoch
        if self.kl_loss_warmup_epochs > 0:
            share = min(max(epochs, 0) / self.kl_loss_warmup_epochs, 1)
        else:
            share = float(epochs >= 0)
        return {"attn_loss": self.attn_loss_scale, "kl_loss": share * self.kl_loss_weight}


class FastPitchObjective(Objective):
    """Squared error of mels, of log(1 + duration), of normalised pitch and of log(1 + energy) (FastPitch, section 2.2).

    ``duration_error`` (frames) and ``pitch_error`` (normalised) are mean absolute errors, logged only. With a learned
    alignment there are its forward sum, ``attn_loss``, a mean over utterances, and its binarisation, ``kl_loss``, one
    over frames. Validation adds two figures (`common.nn.alignment_metrics`): ``unattended_tokens``, the share of
    tokens that no frame attends to most; and ``attention_diagonality``, a mean over
    utterances, of the attention without its prior, which is diagonal before anything is learned.
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
        return self._sums(networks["fastpitch"].teacher_forced(batch), batch)

    def evaluate(self, networks: Networks, batch: FastPitchBatch) -> dict[str, Term]:
        out = networks["fastpitch"].teacher_forced(batch)
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
        out = networks["fastpitch"].teacher_forced(batch)
        return [_example(out, batch, index) for index in range(min(_N_EXAMPLES, len(batch.names)))]

    def _sums(self, out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
        sums = sums_of_errors(out, batch)
        if "energy_loss" in self._weights:
            token_mask = mask_from_lengths(batch.token_lengths, out.energy.size(1))
            sums["energy_loss"] = ((out.energy.float() - out.target_energy) * token_mask).square().sum()
        if self._alignment is not None:
            losses = forward_sum_losses(out.alignment.log_probs, batch.token_lengths, batch.mel_lengths)
            sums |= {"attn_loss": losses.sum(), "kl_loss": binarisation_sum(out.alignment, batch.mel_lengths)}
        return sums


def build_objective(args: argparse.Namespace, audio: AudioConfig) -> FastPitchObjective:
    """The objective with the loss scales of the command line, for the parts that the model has."""
    alignment = None
    if args.learned_alignment:
        alignment = AlignmentLosses(
            attn_loss_scale=args.attn_loss_scale,
            kl_loss_weight=args.kl_loss_weight,
            kl_loss_start_epoch=args.kl_loss_start_epoch,
            kl_loss_warmup_epochs=args.kl_loss_warmup_epochs,
        )
    return FastPitchObjective(
        dur_predictor_loss_scale=args.dur_predictor_loss_scale,
        pitch_predictor_loss_scale=args.pitch_predictor_loss_scale,
        energy_predictor_loss_scale=args.energy_predictor_loss_scale if args.energy_conditioning else None,
        alignment=alignment,
    )


def sums_of_errors(out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
    """Sums over the valid elements of a batch, of the terms that each FastPitch has; float32 whatever it computed in.

    Durations and pitch are compared with the batch's, or with those that the model found in its recordings.
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
    """Weights (F, L) of one utterance: what its frames attend to, and the path that durations are read from."""
    soft = alignment.log_attention[index, :n_frames, :n_tokens].float().exp()
    hard = torch.nn.functional.one_hot(alignment.path[index, :n_frames], n_tokens)
    return {"soft attention": soft.cpu(), "hard alignment": hard.float().cpu()}
