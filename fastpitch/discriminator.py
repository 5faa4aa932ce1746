"""A mel-spectrogram discriminator that makes FastPitch's output as sharp as recordings."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.discriminators import Discriminator, DiscriminatorOutput
from common.nn.layers import mask_from_lengths, scale_log_mel
from common.nn.weight_norm import WeightNormConv2d

WINDOW = 64  # frames scored per utterance, from a random position
_CHANNELS = (32, 64, 128, 128)
_STRIDES = ((2, 1), (2, 2), (2, 2), (1, 1))  # mel channels, frames


class MelDiscriminator(Discriminator):
    """Scores patches of a mel-spectrogram (arXiv:1611.07004): near 1 for recordings, near 0 for predictions."""

    slope = 0.2

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            WeightNormConv2d(before, after, (3, 5), stride, padding=(1, 2))
            for before, after, stride in zip((1, *_CHANNELS), _CHANNELS, _STRIDES)
        )
        self.conv_post = WeightNormConv2d(_CHANNELS[-1], 1, 3, padding=1)

    def forward(self, mel: Tensor) -> DiscriminatorOutput:
        """mel (B, n_mels, F) -> features (B, C, n_mels', F'), the scores last."""
        return DiscriminatorOutput([self.convolve(scale_log_mel(mel).unsqueeze(1))])


def cut_windows(mel: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
    """Cut windows (B, n_mels, WINDOW), zero-padded, from mel (B, n_mels, F) at relative ``places`` (B,), 0 to 1."""
    starts = (places * ((lengths - WINDOW).clamp(min=0) + 1)).long()
    frames = starts.unsqueeze(1) + torch.arange(WINDOW, device=mel.device)
    valid = mask_from_lengths(lengths, mel.size(2)).unsqueeze(1)
    padded = F.pad(mel * valid, (0, WINDOW))
    return padded.gather(2, frames.unsqueeze(1).expand(-1, mel.size(1), -1))
