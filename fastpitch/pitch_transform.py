"""Changes of the predicted pitch before it is spoken: flatten, invert, amplify, shift, or a function of your own."""

from dataclasses import dataclass

import torch
from torch import Tensor

from common.errors import InputError, OptionError
from common.nn.layers import mask_from_lengths


def pitch_transform_custom(pitch: Tensor, pitch_lens: Tensor) -> Tensor:
    """The transform of ``--pitch-transform-custom``; edit it freely.

    As it stands each utterance rises from half its pitch to one and a half times its pitch.

    Args:
        pitch: (B, L) in Hz, one value a token; what stands after an utterance's end is ignored.
        pitch_lens: (B,) tokens of each utterance.

    Returns:
        pitch (B, L) in Hz.
    """
    position = torch.arange(pitch.size(1), device=pitch.device) / pitch_lens.unsqueeze(1)
    return pitch * (0.5 + position)


@dataclass(frozen=True)
class PitchTransform:
    """Transforms of normalised pitch, in this order; calling it applies them to the valid tokens."""

    flatten: bool = False  # to the mean pitch
    invert: bool = False  # around the mean pitch
    amplify: float | None = None  # times this, around the mean pitch
    shift: float | None = None  # Hz
    custom: bool = False  # `pitch_transform_custom` alone, instead of all the others

    def __post_init__(self) -> None:
        for name in ("amplify", "shift"):
            value = getattr(self, name)
            if value is not None and not abs(value) < float("inf"):
                raise OptionError(f"--pitch-transform-{name} {value}: expected a finite number")

    def __call__(self, pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """pitch (B, L) normalised, lengths (B,), mean and std in Hz, scalars or of each utterance's speaker (B, 1) ->
        pitch (B, L), zero at padding.

        Raises:
            InputError: a transform in Hz, and the model has no pitch statistics.
        """
        if (self.shift is not None or self.custom) and not (std > 0).all():
            raise InputError(
                "this checkpoint holds no pitch statistics, so its pitch has no scale in Hz; train with "
                "--pitch-mean-std-file, or leave out --pitch-transform-shift and --pitch-transform-custom"
            )
        if self.custom:
            pitch = (pitch_transform_custom(pitch * std + mean, lengths) - mean) / std
        else:
            pitch = self._apply(pitch, std)
        return torch.where(mask_from_lengths(lengths, pitch.size(1)), pitch, 0.0)

    def _apply(self, pitch: Tensor, std: Tensor) -> Tensor:
        if self.flatten:
            pitch = torch.zeros_like(pitch)
        if self.invert:
            pitch = -pitch
        if self.amplify is not None:
            pitch = pitch * self.amplify
        if self.shift is not None:
            pitch = pitch + self.shift / std
        return pitch
