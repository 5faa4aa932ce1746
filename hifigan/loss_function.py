"""HiFi-GAN's losses: least-squares adversarial, feature matching, and the error of the full-band mel-spectrogram."""

from dataclasses import replace

import torch
from torch import Tensor

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from common.data.recordings import input_mel_extractor
from common.nn.layers import mask_from_lengths
from common.training.adversarial import AdversarialObjective
from common.training.objective import N_EXAMPLES, Example, LogStyle, Networks, Term, sound_example
from hifigan.arg_parser import TrainingOptions
from hifigan.data_function import HifiganBatch

MEL_WEIGHT = 45.0


class HifiganObjective(AdversarialObjective):
    """The losses in section 2.4 of arXiv:2010.05646; their values include the published weights.

    ``g_loss`` is the sum of ``adversarial_loss``, ``feature_loss`` and ``mel_loss``. Training averages over segments,
    validation over frames of complete recordings.
    """

    log_style = LogStyle(
        {"d_loss": "d loss", "g_loss": "g loss", "mel_loss": "mel loss"},
        format="{:>5.3f}",
        shows_total=False,
        shows_speed=True,
        rates={"generator": "g lr", "discriminator": "d lr"},
    )

    def __init__(self, options: TrainingOptions, audio: AudioConfig) -> None:
        weights = dict.fromkeys(("adversarial_loss", "feature_loss"), 1.0)
        super().__init__("generator", {"mel_loss": 1.0}, weights)
        self.concat_fwd = bool(options.concat_fwd)
        self._input_mel = input_mel_extractor(audio)
        self._loss_mel = MelExtractor(replace(audio, framing="aligned", peak=None, mel_fmax=options.mel_fmax_loss))

    def generate(self, networks: Networks, batch: HifiganBatch) -> tuple[Tensor, Tensor]:
        return batch.audio, networks["generator"](self._mel(batch)).float()

    def own_counts(self, batch: HifiganBatch) -> dict[str, Tensor]:
        return dict.fromkeys(("g_loss", "mel_loss"), batch.n_utterances)

    def own_sums(self, networks: Networks, batch: HifiganBatch, output: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        recorded, made = map(self._loss_mel.to(batch.audio.device), output)
        return {"mel_loss": MEL_WEIGHT * (made - recorded).abs().mean() * len(batch.names)}

    def numerators(self, phase: str, networks: Networks, batch: HifiganBatch) -> dict[str, Tensor]:
        sums = super().numerators(phase, networks, batch)
        total = torch.stack(list(sums.values())).sum().detach()
        return sums if phase == "discriminator" else {"g_loss": total} | sums

    def evaluate(self, networks: Networks, batch: HifiganBatch) -> dict[str, Term]:
        waves, lengths = (self._resynthesize(networks, batch), batch.audio), batch.audio_lengths
        made, target = (self._loss_mel.to(wave.device)(wave, lengths) for wave in waves)
        valid = mask_from_lengths(batch.frame_lengths, target.size(2)).unsqueeze(1)
        error = ((made - target).abs() * valid).sum()
        return {"mel_loss": Term(MEL_WEIGHT * error, batch.n_frames * target.size(1))}

    def examples(self, networks: Networks, batch: HifiganBatch) -> list[Example]:
        extractor, wave, examples = self._loss_mel, self._resynthesize(networks, batch), []
        for index, name in enumerate(batch.names[:N_EXAMPLES]):
            pair = (one[index : index + 1, : int(batch.audio_lengths[index])] for one in (batch.audio, wave))
            examples.append(sound_example(name, extractor, *pair, mel_config=extractor.config))
        return examples

    def _resynthesize(self, networks: Networks, batch: HifiganBatch) -> Tensor:
        """Resynthesize complete recordings (B, T)."""
        return networks["generator"](self._mel(batch, batch.audio_lengths), batch.frame_lengths).float()

    def _mel(self, batch: HifiganBatch, lengths: Tensor | None = None) -> Tensor:
        """Return the generator's input (B, n_mels, T / hop)."""
        if batch.mels is not None:
            return batch.mels
        n_frames = batch.audio.size(1) // batch.hop_length
        # Centered framing has one more frame, after the last sample.
        return self._input_mel.to(batch.audio.device)(batch.audio, lengths)[:, :, :n_frames]


build_objective = HifiganObjective
