"""Speakers of a FastPitch, and their pitch in Hz: the same for a network and for its exported files."""

import torch
from torch import Tensor

from common.audio import PitchStatistics
from common.errors import InputError


class SpeakerPitch:
    """What ids and pitch in Hz mean to a network."""

    n_speakers: int
    pitch_mean: Tensor  # (1,) or (n_speakers,), Hz
    pitch_std: Tensor  # (1,) or (n_speakers,), Hz; 0: the statistics are not known

    @torch.jit.unused
    def pitch_in_hz(self, pitch: Tensor, speakers: Tensor | None) -> Tensor:
        """Normalized pitch (B, L) in Hz; zeros without known statistics. In float64 `normalized_pitch` undoes it."""
        mean, std = self.pitch_statistics(speakers)
        return pitch * std + mean

    @torch.jit.unused
    def normalized_pitch(self, pitch_hz: Tensor, speakers: Tensor | None) -> Tensor:
        """Pitch (B, L) in Hz, 0 where unvoiced, normalized: float32.

        Raises:
            InputError: the statistics are not known.
        """
        mean, std = self.pitch_statistics(speakers)
        if not bool((std > 0).all()):
            raise InputError("the voice's checkpoint holds no pitch statistics to take pitch in Hz by")
        normalized = (pitch_hz.double() - mean) / std
        return torch.where(pitch_hz == 0, 0.0, normalized).float()

    @torch.jit.unused
    def pitch_statistics(self, speakers: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation in Hz: scalars, or (B, 1) of speakers (B,) whose pitch differs."""
        if speakers is None or len(self.pitch_mean) == 1:
            return self.pitch_mean[0], self.pitch_std[0]
        return self.pitch_mean[speakers].unsqueeze(1), self.pitch_std[speakers].unsqueeze(1)

    @torch.jit.unused
    def speaker_ids(self, speaker: int | Tensor, tokens: Tensor) -> Tensor | None:
        """Speaker ids (B,) of a batch, None for a model of one voice."""
        if isinstance(speaker, int):
            if not 0 <= speaker < self.n_speakers:
                raise InputError(f"speaker {speaker}: this checkpoint has speakers 0 to {self.n_speakers - 1}")
            speaker = torch.full((tokens.size(0),), speaker, device=tokens.device)
        return None if self.n_speakers == 1 else speaker

    @torch.jit.unused
    def set_pitch_statistics(self, statistics: PitchStatistics) -> None:
        """Take the same statistics for all speakers."""
        self.pitch_mean.fill_(statistics.mean)
        self.pitch_std.fill_(statistics.std)
