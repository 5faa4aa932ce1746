"""Example of a custom pitch transform: copy this file, edit the copy, and pass it to the option below."""

import torch
from torch import Tensor


def pitch_transform_custom(pitch: Tensor, pitch_lens: Tensor) -> Tensor:
    """Transform for ``--pitch-transform-custom``: pitch (B, L) in Hz per token, pitch_lens (B,) -> (B, L) in Hz.

    Values after an utterance's end are ignored. This example rises from half the pitch to 1.5 times the pitch.
    """
    position = torch.arange(pitch.size(1), device=pitch.device) / pitch_lens.unsqueeze(1)
    return pitch * (0.5 + position)
