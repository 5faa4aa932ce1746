"""HiFi-GAN's losses: least-squares adversarial, feature matching, and the error of the full-band mel-spectrogram."""

from dataclasses import replace

import torch
from torch import Tensor

from common.audio import MelExtractor
from common.config import AudioConfig
from common.data import input_mel_extractor
from common.nn import mask_from_lengths
from common.training import Example, LogStyle, Networks, Objective, Phase, Term, cut, shown
from hifigan.arg_parser import TrainingOptions
from hifigan.data_function import HifiganBatch
from hifigan.discriminators import MultiScaleDiscriminator

MEL_WEIGHT = 45.0
FEATURE_WEIGHT = 2.0


class HifiganObjective(Objective):
    """The losses of section 2.4 of arXiv:2010.05646, with the published weights in their values.

    ``d_loss`` and ``g_loss`` are what the two phases minimize; the latter is the sum of ``adversarial_loss``,
    ``feature_loss`` and ``mel_loss``. All are means over the segments of the global batch. In validation ``mel_loss``
    is taken over complete recordings, a mean over their frames.
    """

    phases: tuple[Phase, ...] = (
        Phase("discriminator", trains=("mpd", "msd"), keeps=("generator",)),
        Phase("generator", trains=("generator",)),
    )
    log_style = LogStyle(
        {"d_loss": "d loss", "g_loss": "g loss", "mel_loss": "mel loss"},
        format="{:>5.3f}",
        shows_total=False,
        shows_speed=True,
        rates={"generator": "g lr", "discriminator": "d lr"},
    )

    def __init__(
        self,
        audio: AudioConfig,
        *,
        fmax_loss: float | None = None,
        concat_fwd: bool = False,
        mel_loss_only: bool = False,
    ) -> None:
        """``fmax_loss`` (Hz, None: half the rate) is the upper end of the mel loss's band.

        ``concat_fwd`` lets the discriminators score recordings and generated sound in one pass, which is the same.
        ``mel_loss_only`` leaves the discriminators as they are and their losses out.
        """
        self._mel_loss_only = mel_loss_only
        if mel_loss_only:
            self.phases = (Phase("generator", trains=("generator",)),)
            self.log_style = replace(self.log_style, terms={"mel_loss": "mel loss"}, rates={"generator": "g lr"})
        self._concat_fwd = concat_fwd
        self._input_mel = input_mel_extractor(audio)
        self._loss_mel = MelExtractor(replace(audio, framing="aligned", peak=None, mel_fmax=fmax_loss))
        # A micro-batch and its sound (B, 1, T) with the generator's graph, kept from the discriminators' phase for the
        # generator's: a step's last micro-batch needs no second forward pass, as its weights have not changed.
        self._kept: tuple[HifiganBatch, Tensor] | None = None

    def begin_step(self, networks: Networks) -> None:
        if not self._mel_loss_only:
            msd = networks["msd"]
            assert isinstance(msd, MultiScaleDiscriminator)
            msd.advance_spectral_norm()
        self._kept = None

    def weights(self, phase: str, *, epoch: int) -> dict[str, float]:
        if phase == "discriminator":
            return {"d_loss": 1.0}
        if self._mel_loss_only:
            return {"mel_loss": 1.0}
        return {"adversarial_loss": 1.0, "feature_loss": 1.0, "mel_loss": 1.0}

    def counts(self, phase: str, batch: HifiganBatch) -> dict[str, Tensor]:
        terms: tuple[str, ...] = ("d_loss",) if phase == "discriminator" else ("g_loss", "mel_loss")
        if phase == "generator" and not self._mel_loss_only:
            terms += ("adversarial_loss", "feature_loss")
        n_segments = torch.full((), len(batch.names), device=batch.audio.device)
        return dict.fromkeys(terms, n_segments)

    def numerators(self, phase: str, networks: Networks, batch: HifiganBatch) -> dict[str, Tensor]:
        real = batch.audio.unsqueeze(1)
        if phase == "discriminator":
            generated = networks["generator"](self._mel(batch)).float()
            self._kept = (batch, generated)
            means = self._discriminator_losses(networks, real, generated.detach())
        else:
            means = self._generator_losses(networks, batch, real)
        return {name: mean * len(batch.names) for name, mean in means.items()}

    def _discriminator_losses(self, networks: Networks, real: Tensor, generated: Tensor) -> dict[str, Tensor]:
        losses = []
        for name in ("mpd", "msd"):
            if self._concat_fwd:
                both = networks[name](torch.cat([real, generated])).scores
                scores = [score.tensor_split(2) for score in both]
            else:
                scores = list(zip(networks[name](real).scores, networks[name](generated).scores))
            losses += [discriminator_loss(of_real, of_generated) for of_real, of_generated in scores]
        return {"d_loss": torch.stack(losses).sum()}

    def _generator_losses(self, networks: Networks, batch: HifiganBatch, real: Tensor) -> dict[str, Tensor]:
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] is batch:
            generated = kept[1]
        else:
            generated = networks["generator"](self._mel(batch)).float()
        extractor = self._loss_mel.to(real.device)
        losses = {"mel_loss": MEL_WEIGHT * (extractor(generated[:, 0]) - extractor(real[:, 0])).abs().mean()}
        if not self._mel_loss_only:
            losses |= self._adversarial_losses(networks, real, generated)
        return {"g_loss": torch.stack(list(losses.values())).sum().detach()} | losses

    def _adversarial_losses(self, networks: Networks, real: Tensor, generated: Tensor) -> dict[str, Tensor]:
        """What the discriminators say of the generator's sound."""
        adversarial, feature = [], []
        for name in ("mpd", "msd"):
            with torch.no_grad():  # a recording's features are a target: nothing is kept for their gradients
                target = networks[name](real)
            output = networks[name](generated)
            adversarial += [generator_loss(scores) for scores in output.scores]
            feature += [feature_loss(*pair) for pair in zip(target.features, output.features)]
        return {
            "adversarial_loss": torch.stack(adversarial).sum(),
            "feature_loss": FEATURE_WEIGHT * torch.stack(feature).sum(),
        }

    def evaluate(self, networks: Networks, batch: HifiganBatch) -> dict[str, Term]:
        target, made, _ = self._resynthesize(networks, batch)
        valid = mask_from_lengths(batch.mel_lengths, target.size(2)).unsqueeze(1)
        error = ((made - target).abs() * valid).sum()
        return {"mel_loss": Term(MEL_WEIGHT * error, batch.n_frames * target.size(1))}

    def examples(self, networks: Networks, batch: HifiganBatch) -> list[Example]:
        target, made, wave = self._resynthesize(networks, batch)
        examples = []
        for index in shown(batch):
            n_frames, n_samples = int(batch.mel_lengths[index]), int(batch.audio_lengths[index])
            mels = {"recorded": cut(target, index, n_frames), "generated": cut(made, index, n_frames)}
            sounds = {"recorded": cut(batch.audio, index, n_samples), "generated": cut(wave, index, n_samples)}
            examples.append(Example(batch.names[index], mels, mel_config=self._loss_mel.config, audio=sounds))
        return examples

    def _resynthesize(self, networks: Networks, batch: HifiganBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Full-band mels (B, n_mels, F) of complete recordings and of their resynthesis, and the latter (B, T)."""
        wave = networks["generator"](self._mel(batch, batch.audio_lengths), batch.mel_lengths)[:, 0].float()
        extractor = self._loss_mel.to(wave.device)
        lengths = batch.audio_lengths
        return extractor(batch.audio, lengths), extractor(wave, lengths), wave

    def _mel(self, batch: HifiganBatch, lengths: Tensor | None = None) -> Tensor:
        """The generator's input (B, n_mels, T / hop)."""
        if batch.mels is not None:
            return batch.mels
        n_frames = batch.audio.size(1) // batch.hop_length
        # The centered framing has one frame more, behind the last sample.
        return self._input_mel.to(batch.audio.device)(batch.audio, lengths)[:, :, :n_frames]


def discriminator_loss(of_real: Tensor, of_generated: Tensor) -> Tensor:
    """Least squares: scores of recordings should be 1, of generated sound 0; any shape -> scalar float32."""
    return (1 - of_real).square().mean(dtype=torch.float32) + of_generated.square().mean(dtype=torch.float32)


def generator_loss(of_generated: Tensor) -> Tensor:
    """Least squares: scores of generated sound should be 1; any shape -> scalar float32."""
    return (1 - of_generated).square().mean(dtype=torch.float32)


def feature_loss(of_real: list[Tensor], of_generated: list[Tensor]) -> Tensor:
    """The sum over layers of the mean distance of two waves' features; scalar float32."""
    distances = [(made - real).abs().mean(dtype=torch.float32) for real, made in zip(of_real, of_generated)]
    return torch.stack(distances).sum()


def build_objective(options: TrainingOptions, audio: AudioConfig) -> HifiganObjective:
    """The objective that the options describe."""
    return HifiganObjective(
        audio, fmax_loss=options.mel_fmax_loss, concat_fwd=options.concat_fwd, mel_loss_only=options.mel_loss_only
    )
