"""What FastPitch's mel-spectrograms are trained against, so that they are as sharp as recordings'."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.layers import mask_from_lengths
from common.nn.weight_norm import WeightNormConv2d

WINDOW = 64  # frames that are scored of an utterance, from a random place
_CHANNELS = (32, 64, 128, 128)
_STRIDES = ((2, 1), (2, 2), (2, 2), (1, 1))  # mel channels, frames
_KERNEL = (3, 5)
_SLOPE = 0.2  # of leaky ReLU


class MelDiscriminator(nn.Module):
    """Scores patches of a mel-spectrogram: near 1 for recordings, near 0 for what a network predicts.

    Source: the patch discriminators of arXiv:1611.07004, with the least-squares losses of HiFi-GAN (arXiv:2010.05646).
    """

    def __init__(self) -> None:
        super().__init__()
        padding = (_KERNEL[0] // 2, _KERNEL[1] // 2)
        self.convs = nn.ModuleList(
            WeightNormConv2d(before, after, _KERNEL, stride, padding=padding)
            for before, after, stride in zip((1, *_CHANNELS), _CHANNELS, _STRIDES)
        )
        self.conv_post = WeightNormConv2d(_CHANNELS[-1], 1, 3, padding=1)

    def forward(self, mel: Tensor) -> list[Tensor]:
        """mel (B, n_mels, F) -> features (B, C, n_mels', F'), the scores last."""
        x = ((mel + 5) / 2.5).unsqueeze(1)  # a log-mel-spectrogram with values around 0 and 1
        features = []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), _SLOPE)
            features.append(x)
        return [*features, self.conv_post(x)]


def cut_windows(mel: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
    """Frames of mel (B, n_mels, F), from ``places`` (B,), 0 to 1, of what is valid of each: (B, n_mels, WINDOW).

    Zeros follow the end of an utterance that is shorter.
    """
    starts = (places * ((lengths - WINDOW).clamp(min=0) + 1)).long()
    frames = starts.unsqueeze(1) + torch.arange(WINDOW, device=mel.device)
    valid = mask_from_lengths(lengths, mel.size(2)).unsqueeze(1)
    padded = F.pad(mel * valid, (0, WINDOW))
    return padded.gather(2, frames.unsqueeze(1).expand(-1, mel.size(1), -1))
