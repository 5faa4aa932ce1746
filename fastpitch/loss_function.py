"""FastPitch's losses for mels, durations, pitch, energy and alignment, each a mean over valid elements."""

from torch import Tensor

from common.config import AudioConfig
from common.nn.alignment import diagonality, unattended_tokens
from common.nn.layers import mask_from_lengths
from common.training.adversarial import AdversarialObjective
from common.training.objective import N_EXAMPLES, Example, LogStyle, Networks, Term, cut, text_mel_example
from common.training.verdict import Aligned
from fastpitch.aligner import binarization_sum, forward_sum_losses
from fastpitch.arg_parser import TrainingOptions
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
# Measured (docs/TRAINING.md): 0.20 to 0.52 and at most 4 % for intelligible voices, 0.05 and 6 to 9 % with wrong
# transcripts, 0.16 and 16 to 35 % with only eight clips.
ALIGNED = Aligned(diagonality=0.15, unattended=0.05)


class FastPitchObjective(AdversarialObjective):
    """Squared errors of mels, log(1 + duration), normalized pitch and log(1 + energy) (FastPitch, section 2.2).

    ``duration_error`` (frames) and ``pitch_error`` (normalized) are mean absolute errors that are only logged. A
    learned alignment adds its forward-sum loss, ``attn_loss``, averaged over utterances, and its binarization loss,
    ``kl_loss``, averaged over frames. Validation adds ``unattended_tokens``, the share of tokens that are no frame's
    argmax, and ``attention_diagonality``, averaged over utterances. The latter ignores the attention's prior, which
    is diagonal from the start.
    """

    discriminators = ("mel_discriminator",)
    feature_scale = 1.0
    log_style = LogStyle(_LABELS)

    def __init__(self, options: TrainingOptions, audio: AudioConfig) -> None:
        model, scales = options.architecture, options.losses
        self._losses, self._has_alignment = scales, model.learned_alignment
        self.aligned = ALIGNED if model.learned_alignment else None
        weights = {"mel_loss": 1.0, "duration_predictor_loss": scales.dur_predictor_loss_scale}
        weights["pitch_loss"] = scales.pitch_predictor_loss_scale
        if model.energy_conditioning:
            weights["energy_loss"] = scales.energy_predictor_loss_scale
        if model.learned_alignment:
            weights |= {"attn_loss": scales.attn_loss_scale, "kl_loss": 0.0}  # the second depends on the epoch
        adversarial = {"adversarial_loss": scales.adversarial_loss_scale, "feature_loss": scales.feature_loss_scale}
        super().__init__("fastpitch", weights, adversarial if model.adversarial else {})

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        weights = super().weights(phase, epoch=epoch)
        return weights | ({"kl_loss": self._losses.kl_loss_scale(epoch)} if "kl_loss" in weights else {})

    def own_counts(self, batch: FastPitchBatch) -> dict[str, Tensor]:
        n_frames = batch.n_frames
        counts = {"mel_loss": n_frames * batch.mels.size(1), "attn_loss": batch.n_utterances, "kl_loss": n_frames}
        counts |= dict.fromkeys(_TERMS_PER_TOKEN, batch.token_lengths.sum())
        logged = ("duration_error", "pitch_error")
        return {term: count for term, count in counts.items() if term in self._own_weights or term in logged}

    def generate(self, networks: Networks, batch: FastPitchBatch) -> FastPitchOutput:
        return networks["fastpitch"](batch)

    def scored(self, batch: FastPitchBatch, output: FastPitchOutput) -> tuple[Tensor, Tensor]:
        assert batch.window is not None, "training batches say where the discriminator looks"
        recorded, made = (cut_windows(mel.float(), batch.mel_lengths, batch.window) for mel in (batch.mels, output.mel))
        return recorded, made

    def own_sums(self, networks: Networks, batch: FastPitchBatch, output: FastPitchOutput) -> dict[str, Tensor]:
        sums = sums_of_errors(output, batch)
        if "energy_loss" in self._own_weights:
            sums["energy_loss"] = _errors(output.energy, output.target_energy, batch).square().sum()
        if self._has_alignment:
            assert output.alignment is not None, "a batch without durations is aligned"
            losses = forward_sum_losses(output.alignment.log_probs, batch.token_lengths, batch.mel_lengths)
            sums |= {"attn_loss": losses.sum(), "kl_loss": binarization_sum(output.alignment, batch.mel_lengths)}
        return sums

    def evaluate(self, networks: Networks, batch: FastPitchBatch) -> dict[str, Term]:
        out = networks["fastpitch"](batch)
        terms = self.terms(self.own_sums(networks, batch, out), batch)
        if self._has_alignment and out.alignment is not None and batch.prior is not None:
            lengths = batch.token_lengths, batch.mel_lengths
            attention = out.alignment.attention(batch.mel_lengths)
            learned = out.alignment.attention(batch.mel_lengths, without=batch.prior)
            terms["attention_diagonality"] = Term(diagonality(learned, *lengths).sum(), batch.n_utterances)
            terms["unattended_tokens"] = Term(unattended_tokens(attention, *lengths).sum(), batch.token_lengths.sum())
        return terms

    def examples(self, networks: Networks, batch: FastPitchBatch) -> list[Example]:
        out = networks["fastpitch"](batch)
        return [_example(networks["fastpitch"], out, batch, index) for index, _ in enumerate(batch.names[:N_EXAMPLES])]


def sums_of_errors(out: FastPitchOutput, batch: FastPitchBatch) -> dict[str, Tensor]:
    """Sum the terms that every FastPitch has over a batch's valid elements, in float32."""
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
    """Return differences (B, L), one value per token, float32, zero at padding."""
    assert predicted is not None and target is not None, "a training pass predicts every value that has a target"
    return (predicted.float() - target.float()) * mask_from_lengths(batch.token_lengths, predicted.size(1))


def _example(network: FastPitch, out: FastPitchOutput, batch: FastPitchBatch, index: int) -> Example:
    n_tokens = int(batch.token_lengths[index])
    assert out.target_durations is not None and out.pitch is not None and out.target_pitch is not None
    durations = out.target_durations[index, :n_tokens].cpu()

    def over_frames(values: Tensor) -> Tensor:
        """Expand one row of per-token values (B, L) to frames (F,)."""
        return cut(values, index, n_tokens).repeat_interleave(durations)

    voiced = out.target_pitch != 0  # elsewhere there is no pitch to learn
    pairs = {"target": out.target_pitch, "predicted": out.pitch}
    pitch = {name: over_frames(network.pitch_in_hz(one, batch.speakers) * voiced) for name, one in pairs.items()}
    curves = {}
    if out.energy is not None and out.target_energy is not None:
        curves["energy"] = {"target": over_frames(out.target_energy), "predicted": over_frames(out.energy)}
    alignments = None if out.alignment is None else out.alignment.log_attention.exp()
    return text_mel_example(batch, index, out.mel, alignments, durations=durations, pitch=pitch, curves=curves)


build_objective = FastPitchObjective
