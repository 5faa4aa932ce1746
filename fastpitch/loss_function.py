"""FastPitch's losses: mels, durations, pitch and energy, each a mean over what is valid, and those of the alignment."""

from collections.abc import Callable

import torch
from torch import Tensor

from common.config import AudioConfig
from common.nn.alignment import diagonality, unattended_tokens
from common.nn.layers import mask_from_lengths
from common.training.adversarial import discriminator_loss, feature_loss, generator_loss
from common.training.objective import Example, LogStyle, Networks, Objective, Phase, Term, cut, example_indices
from common.training.verdict import Aligned
from fastpitch.aligner import binarization_sum, forward_sum_losses
from fastpitch.arg_parser import LossScales, TrainingOptions
from fastpitch.discriminator import cut_windows
from fastpitch.model import FastPitch, FastPitchBatch, FastPitchOutput

_LABELS = {  # on stdout
    "mel_loss": "mel loss",
    "duration_predictor_loss": "dur loss",
    "pitch_loss": "pitch loss",
    "energy_loss": "energy loss",
    "attn_loss": "attn loss",
    "kl_loss": "kl loss",
    "d_loss": "d loss",
    "adversarial_loss": "adv loss",
    "feature_loss": "feature loss",
    "attention_diagonality": "diagonality",
    "unattended_tokens": "unattended",
}
_TERMS_PER_TOKEN = ("duration_predictor_loss", "pitch_loss", "energy_loss", "duration_error", "pitch_error")
_TERMS_OF_DISCRIMINATOR = {"d_loss", "adversarial_loss", "feature_loss"}
_TERMS_OF_ALIGNMENT = {"attn_loss", "kl_loss", "attention_diagonality", "unattended_tokens"}
# Measured (docs/TRAINING.md): voices that speak have 0.20 to 0.52 and at most 4 %, wrong transcripts 0.05 and 6 to 9 %,
# eight clips alone 0.16 and 16 to 35 %.
ALIGNED = Aligned(diagonality=0.15, unattended=0.05)


class FastPitchObjective(Objective):
    """Squared error of mels, of log(1 + duration), of normalized pitch and of log(1 + energy) (FastPitch, section 2.2).

    ``duration_error`` (frames) and ``pitch_error`` (normalized) are mean absolute errors, logged only. With a learned
    alignment there are its forward sum, ``attn_loss``, a mean over utterances, and its binarization, ``kl_loss``, one
    over frames. Validation adds two figures (`common.nn.alignment`): ``unattended_tokens``, the share of
    tokens that no frame attends to most; and ``attention_diagonality``, a mean over utterances, of the attention
    without its prior, which is diagonal before anything is learned.

    In adversarial training a discriminator learns in a phase before: ``d_loss``; and the mels of windows are also
    trained by ``adversarial_loss`` and ``feature_loss``, means over utterances (section 2.4 of arXiv:2010.05646).
    """

    def __init__(
        self,
        losses: LossScales | None = None,
        *,
        energy: bool = False,
        alignment: bool = False,
        adversarial: bool = False,
    ) -> None:
        """``energy``, ``alignment`` and ``adversarial``: whether the model has energy conditioning, a learned alignment
        and a discriminator.
        """
        self._losses = losses or LossScales()
        own = Phase("fastpitch", trains=("fastpitch",))
        first = Phase("discriminator", trains=("mel_discriminator",), keeps=("fastpitch",))
        self.phases = (first, own) if adversarial else (own,)
        self._adversarial = adversarial
        # A micro-batch and its output with the graph, kept from the discriminator's phase for the own one.
        self._kept: tuple[FastPitchBatch, FastPitchOutput] | None = None
        self._has_energy, self._has_alignment = energy, alignment
        self._absent = (set() if energy else {"energy_loss"}) | (set() if alignment else _TERMS_OF_ALIGNMENT)
        self._absent |= set() if adversarial else _TERMS_OF_DISCRIMINATOR
        self.aligned = ALIGNED if alignment else None
        self.log_style = LogStyle({term: label for term, label in _LABELS.items() if term not in self._absent})

    def begin_step(self, networks: Networks) -> None:
        self._kept = None

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        if phase == "discriminator":
            return {"d_loss": 1.0}
        weights = {
            "mel_loss": 1.0,
            "duration_predictor_loss": self._losses.dur_predictor_loss_scale,
            "pitch_loss": self._losses.pitch_predictor_loss_scale,
            "energy_loss": self._losses.energy_predictor_loss_scale,
            "attn_loss": self._losses.attn_loss_scale,
            "kl_loss": self._losses.kl_loss_scale(epoch),
        }
        if self._adversarial:
            weights["adversarial_loss"] = self._losses.adversarial_loss_scale
            weights["feature_loss"] = self._losses.feature_loss_scale
        return {term: weight for term, weight in weights.items() if term not in self._absent}

    def counts(self, phase: str, batch: FastPitchBatch) -> dict[str, Tensor]:
        if phase == "discriminator":
            return {"d_loss": _n_utterances(batch)}
        n_tokens, n_frames = batch.token_lengths.sum(), batch.mel_lengths.sum()
        counts = {"mel_loss": n_frames * batch.mels.size(1), "attn_loss": _n_utterances(batch), "kl_loss": n_frames}
        counts |= dict.fromkeys(_TERMS_PER_TOKEN, n_tokens)
        if self._adversarial:
            counts |= dict.fromkeys(("adversarial_loss", "feature_loss"), _n_utterances(batch))
        return {term: count for term, count in counts.items() if term not in self._absent}

    def numerators(self, phase: str, networks: Networks, batch: FastPitchBatch) -> dict[str, Tensor]:
        kept, self._kept = self._kept, None
        out = kept[1] if kept is not None and kept[0] is batch else networks["fastpitch"](batch)
        if not self._adversarial:
            return self._sums(out, batch)
        discriminator, n_utterances = networks["mel_discriminator"], len(batch.names)
        assert batch.window is not None, "batches of training say where the discriminator looks"
        recorded, made = (cut_windows(mel.float(), batch.mel_lengths, batch.window) for mel in (batch.mels, out.mel))
        if phase == "discriminator":
            self._kept = (batch, out)
            scores = (discriminator(mel)[-1] for mel in (recorded, made.detach()))
            return {"d_loss": discriminator_loss(*scores) * n_utterances}
        with torch.no_grad():  # a target: nothing is kept for gradients
            target = discriminator(recorded)
        features = discriminator(made)
        return self._sums(out, batch) | {
            "adversarial_loss": generator_loss(features[-1]) * n_utterances,
            "feature_loss": feature_loss(target[:-1], features[:-1]) * n_utterances,
        }

    def evaluate(self, networks: Networks, batch: FastPitchBatch) -> dict[str, Term]:
        out = networks["fastpitch"](batch)
        counts = self.counts("fastpitch", batch)
        terms = {name: Term(total, counts[name]) for name, total in self._sums(out, batch).items()}
        if self._has_alignment and out.alignment is not None and batch.prior is not None:
            lengths = batch.token_lengths, batch.mel_lengths
            attention = out.alignment.attention(batch.mel_lengths)
            learned = out.alignment.attention_without(batch.prior, batch.mel_lengths)
            terms["attention_diagonality"] = Term(diagonality(learned, *lengths).sum(), _n_utterances(batch))
            terms["unattended_tokens"] = Term(unattended_tokens(attention, *lengths).sum(), batch.token_lengths.sum())
        return terms

    def misfits(self, networks: Networks) -> Callable[[FastPitchBatch], Tensor] | None:
        return networks["fastpitch"].misfits if self._has_alignment else None

    def examples(self, networks: Networks, batch: FastPitchBatch) -> list[Example]:
        network = networks["fastpitch"]
        out = network(batch)
        return [_example(network, out, batch, index) for index in example_indices(batch)]

    def _sums(self, out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
        sums = sums_of_errors(out, batch)
        if self._has_energy:
            sums["energy_loss"] = _errors(out.energy, out.target_energy, batch).square().sum()
        if self._has_alignment:
            assert out.alignment is not None, "a batch without durations is aligned"
            losses = forward_sum_losses(out.alignment.log_probs, batch.token_lengths, batch.mel_lengths)
            sums |= {"attn_loss": losses.sum(), "kl_loss": binarization_sum(out.alignment, batch.mel_lengths)}
        return sums


def build_objective(options: TrainingOptions, audio: AudioConfig) -> FastPitchObjective:
    """The objective with the given loss scales, for the parts that the model has."""
    energy, alignment = options.architecture.energy_conditioning, options.architecture.learned_alignment
    adversarial = options.architecture.adversarial
    return FastPitchObjective(options.losses, energy=energy, alignment=alignment, adversarial=adversarial)


def sums_of_errors(out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
    """Sums over the valid elements of a batch, of the terms that each FastPitch has, always float32."""
    assert out.target_durations is not None
    frame_mask = mask_from_lengths(batch.mel_lengths, batch.mels.size(2)).unsqueeze(1)
    mel_errors = (out.mel.float() - batch.mels) * frame_mask
    pitch_errors = _errors(out.pitch, out.target_pitch, batch)
    durations = out.durations.detach() if out.durations is not None else None
    return {
        "mel_loss": mel_errors.square().sum(),
        "duration_predictor_loss": _errors(out.log_durations, out.target_durations.log1p(), batch).square().sum(),
        "pitch_loss": pitch_errors.square().sum(),
        "duration_error": _errors(durations, out.target_durations, batch).abs().sum(),
        "pitch_error": pitch_errors.detach().abs().sum(),
    }


def _errors(predicted: Tensor | None, target: Tensor | None, batch: FastPitchBatch) -> Tensor:
    """Differences (B, L) of one value a token, float32, zero at padding."""
    assert predicted is not None and target is not None, "training passes predict what they have targets of"
    return (predicted.float() - target.float()) * mask_from_lengths(batch.token_lengths, predicted.size(1))


def _n_utterances(batch: FastPitchBatch) -> Tensor:
    return torch.ones_like(batch.token_lengths).sum()


def _example(network: FastPitch, out: FastPitchOutput, batch: FastPitchBatch, index: int) -> Example:
    n_frames, n_tokens = int(batch.mel_lengths[index]), int(batch.token_lengths[index])
    assert out.target_durations is not None and out.pitch is not None and out.target_pitch is not None
    durations = out.target_durations[index, :n_tokens].cpu()

    def over_frames(**values: Tensor | None) -> dict[str, Tensor]:
        """Rows of what has one value a token, as values a frame."""
        return {
            name: cut(rows, index, n_tokens).repeat_interleave(durations)
            for name, rows in values.items()
            if rows is not None
        }

    voiced = out.target_pitch != 0  # elsewhere there is no pitch to learn
    pairs = {"target": out.target_pitch, "predicted": out.pitch}
    pitch = over_frames(**{k: network.pitch_in_hz(v, batch.speakers) * voiced for k, v in pairs.items()})
    curves = {
        "energy": over_frames(target=out.target_energy, predicted=out.energy),
        "duration (frames)": over_frames(target=out.target_durations, predicted=out.durations),
    }
    alignment = None
    if out.alignment is not None:
        alignment = cut(out.alignment.log_attention, index, n_tokens)[:n_frames].exp()
    mels = {"target": batch.mels, "predicted": out.mel}
    return Example(
        batch.names[index],
        {label: cut(values, index, n_frames) for label, values in mels.items()},
        text=batch.texts[index] if batch.texts else "",
        tokens=batch.tokens[index, :n_tokens].cpu(),
        durations=durations,
        alignment=alignment,
        pitch=pitch,
        curves={name: values for name, values in curves.items() if values},
    )
