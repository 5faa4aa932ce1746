"""Examples of your own changes of pitch and energy: copy this file, edit the copy, and give it to the options below."""

import torch
from torch import Tensor


def pitch_transform_custom(pitch: Tensor, pitch_lens: Tensor) -> Tensor:
    """The transform of ``--pitch-transform-custom``.

    pitch (B, L) in Hz, one value a token, of which those after an utterance's end are ignored; pitch_lens (B,) tokens
    -> pitch (B, L) in Hz. This example rises from half the pitch to one and a half times the pitch in each utterance.
    """
    position = torch.arange(pitch.size(1), device=pitch.device) / pitch_lens.unsqueeze(1)
    return pitch * (0.5 + position)


def energy_transform_custom(energy: Tensor, energy_lens: Tensor) -> Tensor:
    """The transform of ``--energy-transform-custom``.

    energy (B, L), log(1 + norm) of each token, of which those after an utterance's end are ignored; energy_lens (B,)
    tokens -> energy (B, L). This example adds up to a tenth from the first to the last token of each utterance, which
    fades it: softer frames of a log-mel-spectrogram have larger norms.
    """
    position = torch.arange(energy.size(1), device=energy.device) / energy_lens.unsqueeze(1)
    return energy + 0.1 * position
