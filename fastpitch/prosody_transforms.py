"""Changes of the predicted pitch and energy: flatten, invert, amplify, shift, or a function of your own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from common.errors import InputError, OptionError
from common.nn import mask_from_lengths


def pitch_transform_custom(pitch: Tensor, pitch_lens: Tensor) -> Tensor:
    """The transform of ``--pitch-transform-custom``; edit it freely.

    pitch (B, L) in Hz, one value a token, of which those after an utterance's end are ignored; pitch_lens (B,) tokens
    -> pitch (B, L) in Hz. This example rises from half the pitch to one and a half times the pitch in each utterance.
    """
    position = torch.arange(pitch.size(1), device=pitch.device) / pitch_lens.unsqueeze(1)
    return pitch * (0.5 + position)


def energy_transform_custom(energy: Tensor, energy_lens: Tensor) -> Tensor:
    """The transform of ``--energy-transform-custom``; edit it freely.

    energy (B, L), log(1 + norm) of each token, of which those after an utterance's end are ignored; energy_lens (B,)
    tokens -> energy (B, L). This example adds up to a tenth from the first to the last token of each utterance, which
    fades it: softer frames of a log-mel-spectrogram have larger norms.
    """
    position = torch.arange(energy.size(1), device=energy.device) / energy_lens.unsqueeze(1)
    return energy + 0.1 * position


@dataclass(frozen=True)
class _Transform:
    """Transforms in this order."""

    flatten: bool = False  # to the mean
    invert: bool = False  # around the mean
    amplify: float | None = None  # times this, around the mean
    shift: float | None = None  # added; pitch: Hz
    custom: bool = False  # the function above, instead of all the others

    quantity: ClassVar[str]  # in the options' names

    def __post_init__(self) -> None:
        for name, value in (("amplify", self.amplify), ("shift", self.shift)):
            if value is not None and not abs(value) < float("inf"):
                raise OptionError(f"--{self.quantity}-transform-{name} {value}: expected a finite number")

    def _apply(self, values: Tensor, lengths: Tensor, mean: Tensor, *, custom: Callable[..., Tensor]) -> Tensor:
        """values (B, L) around ``mean``, lengths (B,) -> values (B, L)."""
        if self.custom:
            return custom(values, lengths)
        factor = (0.0 if self.flatten else 1.0) * (-1.0 if self.invert else 1.0)
        factor *= 1.0 if self.amplify is None else self.amplify
        return mean + (values - mean) * factor + (self.shift or 0.0)


class PitchTransform(_Transform):
    """Transforms of normalized pitch, whose mean is 0; calling it applies them to the valid tokens."""

    quantity = "pitch"

    @property
    def needs_statistics(self) -> bool:
        """Whether it computes in Hz."""
        return self.shift is not None or self.custom

    def __call__(self, pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """pitch (B, L) normalized, lengths (B,), mean and std in Hz, scalars or of each utterance's speaker (B, 1) ->
        pitch (B, L), zero at padding. Raises InputError for a transform in Hz where the model has no statistics.
        """
        if not self.needs_statistics:
            mean, std = torch.zeros_like(mean), torch.ones_like(std)
        elif not (std > 0).all():
            raise InputError(
                "this checkpoint holds no pitch statistics, so its pitch has no scale in Hz; train with "
                "--pitch-mean-std-file, or leave out --pitch-transform-shift and --pitch-transform-custom"
            )
        pitch = (self._apply(pitch * std + mean, lengths, mean, custom=pitch_transform_custom) - mean) / std
        return torch.where(mask_from_lengths(lengths, pitch.size(1)), pitch, 0.0)


class EnergyTransform(_Transform):
    """Transforms of energy around each utterance's mean; calling it applies them to the valid tokens.

    Energy is log(1 + L2 norm) of log-mel frames, as the model was trained with; loud frames have the smaller norms.
    """

    quantity = "energy"

    def __call__(self, energy: Tensor, lengths: Tensor) -> Tensor:
        """energy (B, L), lengths (B,) -> energy (B, L), zero at padding."""
        mask = mask_from_lengths(lengths, energy.size(1))
        mean = (energy * mask).sum(1, keepdim=True) / lengths.unsqueeze(1)
        return torch.where(mask, self._apply(energy, lengths, mean, custom=energy_transform_custom), 0.0)
