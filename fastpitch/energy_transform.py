"""Changes of the predicted energy before it is spoken: flatten, invert, amplify, shift, or a function of your own."""

from dataclasses import dataclass

import torch
from torch import Tensor

from common.errors import OptionError
from common.nn.layers import mask_from_lengths


def energy_transform_custom(energy: Tensor, energy_lens: Tensor) -> Tensor:
    """The transform of ``--energy-transform-custom``; edit it freely.

    As it stands each utterance fades: a tenth is added to its energy from its first to its last token, and the norm
    of a log-mel-spectrogram is the larger the softer the sound.

    Args:
        energy: (B, L), log(1 + norm) of each token; what stands after an utterance's end is ignored.
        energy_lens: (B,) tokens of each utterance.

    Returns:
        energy (B, L).
    """
    position = torch.arange(energy.size(1), device=energy.device) / energy_lens.unsqueeze(1)
    return energy + 0.1 * position


@dataclass(frozen=True)
class EnergyTransform:
    """Transforms of energy, in this order; calling it applies them to the valid tokens.

    Energy is log(1 + L2 norm) of log-mel frames, as the model was trained with; loud frames have the smaller norms.
    """

    flatten: bool = False  # to the utterance's mean
    invert: bool = False  # around the utterance's mean
    amplify: float | None = None  # times this, around the utterance's mean
    shift: float | None = None  # added
    custom: bool = False  # `energy_transform_custom` alone, instead of all the others

    def __post_init__(self) -> None:
        for name in ("amplify", "shift"):
            value = getattr(self, name)
            if value is not None and not abs(value) < float("inf"):
                raise OptionError(f"--energy-transform-{name} {value}: expected a finite number")

    def __call__(self, energy: Tensor, lengths: Tensor) -> Tensor:
        """energy (B, L), lengths (B,) -> energy (B, L), zero at padding."""
        mask = mask_from_lengths(lengths, energy.size(1))
        if self.custom:
            energy = energy_transform_custom(energy, lengths)
        else:
            mean = (energy * mask).sum(1, keepdim=True) / lengths.unsqueeze(1)
            factor = 0.0 if self.flatten else 1.0
            factor *= -1.0 if self.invert else 1.0
            factor *= 1.0 if self.amplify is None else self.amplify
            energy = mean + (energy - mean) * factor + (self.shift or 0.0)
        return torch.where(mask, energy, 0.0)
