"""HiFi-GAN's losses: least-squares adversarial, feature matching, and the error of the full-band mel-spectrogram."""

from dataclasses import replace

import torch
from torch import Tensor

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from common.data.recordings import input_mel_extractor
from common.nn.layers import mask_from_lengths
from common.training.adversarial import AdversarialObjective
from common.training.objective import Example, LogStyle, Networks, Term, cut, example_indices
from hifigan.arg_parser import TrainingOptions
from hifigan.data_function import HifiganBatch

MEL_WEIGHT = 45.0


class HifiganObjective(AdversarialObjective):
    """The losses of section 2.4 of arXiv:2010.05646, with the published weights in their values.

    ``d_loss`` and ``g_loss`` are what the two phases minimize; the latter is the sum of ``adversarial_loss``,
    ``feature_loss`` and ``mel_loss``. All are means over the segments of the global batch. In validation ``mel_loss``
    is taken over complete recordings, a mean over their frames.
    """

    log_style = LogStyle(
        {"d_loss": "d loss", "g_loss": "g loss", "mel_loss": "mel loss"},
        format="{:>5.3f}",
        shows_total=False,
        shows_speed=True,
        rates={"generator": "g lr", "discriminator": "d lr"},
    )

    def __init__(self, options: TrainingOptions, audio: AudioConfig) -> None:
        adversarial, concat_fwd = float(not options.mel_loss_only), bool(options.concat_fwd)
        super().__init__("generator", {"mel_loss": 1.0}, adversarial=adversarial, concat_fwd=concat_fwd)
        if options.mel_loss_only:
            self.log_style = replace(self.log_style, terms={"mel_loss": "mel loss"}, rates={"generator": "g lr"})
        self._input_mel = input_mel_extractor(audio)
        self._loss_mel = MelExtractor(replace(audio, framing="aligned", peak=None, mel_fmax=options.mel_fmax_loss))

    def make_sounds(self, networks: Networks, batch: HifiganBatch) -> tuple[Tensor, Tensor]:
        return batch.audio, networks["generator"](self._mel(batch)).float()

    def own_counts(self, batch: HifiganBatch) -> dict[str, Tensor]:
        return dict.fromkeys(("g_loss", "mel_loss"), torch.full((), len(batch.names), device=batch.audio.device))

    def own_sums(self, networks: Networks, batch: HifiganBatch, recorded: Tensor, made: Tensor) -> dict[str, Tensor]:
        extractor = self._loss_mel.to(made.device)
        return {"mel_loss": MEL_WEIGHT * (extractor(made) - extractor(recorded)).abs().mean() * len(batch.names)}

    def numerators(self, phase: str, networks: Networks, batch: HifiganBatch) -> dict[str, Tensor]:
        sums = super().numerators(phase, networks, batch)
        total = torch.stack(list(sums.values())).sum().detach()
        return sums if phase == "discriminator" else {"g_loss": total} | sums

    def evaluate(self, networks: Networks, batch: HifiganBatch) -> dict[str, Term]:
        target, made, _ = self._resynthesize(networks, batch)
        valid = mask_from_lengths(batch.mel_lengths, target.size(2)).unsqueeze(1)
        error = ((made - target).abs() * valid).sum()
        return {"mel_loss": Term(MEL_WEIGHT * error, batch.n_frames * target.size(1))}

    def examples(self, networks: Networks, batch: HifiganBatch) -> list[Example]:
        target, made, wave = self._resynthesize(networks, batch)
        examples = []
        for index in example_indices(batch):
            n_frames, n_samples = int(batch.mel_lengths[index]), int(batch.audio_lengths[index])
            mels = {"recorded": cut(target, index, n_frames), "generated": cut(made, index, n_frames)}
            sounds = {"recorded": cut(batch.audio, index, n_samples), "generated": cut(wave, index, n_samples)}
            examples.append(Example(batch.names[index], mels, mel_config=self._loss_mel.config, audio=sounds))
        return examples

    def _resynthesize(self, networks: Networks, batch: HifiganBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Full-band mels (B, n_mels, F) of complete recordings and of their resynthesis, and the latter (B, T)."""
        wave = networks["generator"](self._mel(batch, batch.audio_lengths), batch.mel_lengths).float()
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


build_objective = HifiganObjective
