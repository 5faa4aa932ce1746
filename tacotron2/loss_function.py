"""Tacotron 2's losses: mels before and after the postnet, and the gate."""

import torch
import torch.nn.functional as F
from torch import Tensor

from common.config import AudioConfig
from common.nn.alignment import diagonality
from common.nn.layers import mask_from_lengths
from common.training.objective import (
    N_EXAMPLES,
    Example,
    LogStyle,
    Networks,
    Objective,
    Phase,
    Term,
    cut,
    text_mel_example,
)
from common.training.verdict import Aligned
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Batch
from tacotron2.model import TrainingOutput


class Tacotron2Objective(Objective):
    """Squared error of mels before and after the postnet, and cross-entropy of the gate (Shen et al., section 2.2).

    Each is a mean over valid frames or, without ``mask_padding``, over padding too, as in the original.
    ``guided_attention_weight`` adds a loss for attention away from the diagonal (Tachibana et al. 2018,
    arXiv:1710.08969, section 4). Validation adds ``attention_diagonality``, averaged over utterances.
    """

    phases = (Phase("tacotron2", trains=("tacotron2",)),)
    log_style = LogStyle(
        {
            "mel_loss": "mel loss",
            "mel_postnet_loss": "postnet loss",
            "gate_loss": "gate loss",
            "guided_attention_loss": "guided attention loss",
            "attention_diagonality": "diagonality",
        },
        format="{:>6.3f}",
    )
    aligned = Aligned(diagonality=0.7)  # below it, speech is unintelligible

    def __init__(self, options: TrainingOptions, audio: AudioConfig) -> None:
        self._mask_padding, weight = options.architecture.mask_padding, options.guided_attention_weight
        self._guide = {"guided_attention_loss": weight} if weight else {}

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        return {"mel_loss": 1.0, "mel_postnet_loss": 1.0, "gate_loss": 1.0} | self._guide

    def counts(self, phase: str, batch: Tacotron2Batch) -> dict[str, Tensor]:
        n_batch, n_mels, n_frames = batch.mels.shape
        frames = batch.mel_lengths.sum() if self._mask_padding else batch.mel_lengths.new_full((), n_batch * n_frames)
        guide = dict.fromkeys(self._guide, batch.mel_lengths.sum())
        return {"mel_loss": frames * n_mels, "mel_postnet_loss": frames * n_mels, "gate_loss": frames} | guide

    def numerators(self, phase: str, networks: Networks, batch: Tacotron2Batch) -> dict[str, Tensor]:
        return self._sums(networks["tacotron2"](batch), batch)

    def _sums(self, out: TrainingOutput, batch: Tacotron2Batch) -> dict[str, Tensor]:
        sums = sums_of_errors(out, batch, mask_padding=self._mask_padding)
        if self._guide:
            away = distance_from_diagonal(out.alignments, batch.token_lengths, batch.mel_lengths)
            sums["guided_attention_loss"] = away.sum()
        return sums

    def evaluate(self, networks: Networks, batch: Tacotron2Batch) -> dict[str, Term]:
        out = networks["tacotron2"](batch)
        terms = self.terms(self._sums(out, batch), batch)
        diagonalities = diagonality(out.alignments, batch.token_lengths, batch.mel_lengths)
        return terms | {"attention_diagonality": Term(diagonalities.sum(), batch.n_utterances)}

    def examples(self, networks: Networks, batch: Tacotron2Batch) -> list[Example]:
        out = networks["tacotron2"](batch)
        examples = []
        for index, _ in enumerate(batch.names[:N_EXAMPLES]):
            end = cut(out.gate_logits, index, int(batch.mel_lengths[index])).sigmoid()
            curves = {"gate": {"probability of the end": end}}
            examples.append(text_mel_example(batch, index, out.mel_postnet, out.alignments, curves=curves))
        return examples


def sums_of_errors(out: TrainingOutput, batch: Tacotron2Batch, *, mask_padding: bool) -> dict[str, Tensor]:
    """Sum each term over valid frames, or over all frames, in float32."""
    gate_logits = out.gate_logits.float()
    errors = {
        "mel_loss": (out.mel.float() - batch.mels).square().sum(1),
        "mel_postnet_loss": (out.mel_postnet.float() - batch.mels).square().sum(1),
        "gate_loss": F.binary_cross_entropy_with_logits(gate_logits, batch.gate_targets, reduction="none"),
    }
    if mask_padding:
        mask = mask_from_lengths(batch.mel_lengths, batch.mels.size(2))
        errors = {name: error * mask for name, error in errors.items()}
    return {name: error.sum() for name, error in errors.items()}


def distance_from_diagonal(alignments: Tensor, token_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """How far each frame's attention is from an even pace: `diagonality`'s arguments -> (B, F) float32, 0 to 1.

    Source: Tachibana et al. (2018, arXiv:1710.08969), section 4.1.
    """
    tokens = torch.arange(alignments.size(2), device=alignments.device) / token_lengths.view(-1, 1)
    frames = torch.arange(alignments.size(1), device=alignments.device) / frame_lengths.view(-1, 1)
    distance = tokens.unsqueeze(1) - frames.unsqueeze(2)
    away = 1 - torch.exp(-distance.square() / (2 * 0.2**2))
    return (alignments.float() * away).sum(2) * mask_from_lengths(frame_lengths, alignments.size(1))


build_objective = Tacotron2Objective
