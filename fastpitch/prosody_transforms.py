"""Changes of the predicted pitch and energy: flatten, invert, amplify, shift, or a function of your own."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from runpy import run_path
from typing import TypeVar

import torch
from torch import Tensor

from common.audio.pitch import read_pitch_statistics
from common.errors import InputError, shown
from common.files import check_file
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls
from fastpitch.config import ModelConfig
from fastpitch.model import FastPitch
from fastpitch.options import EXAMPLES, InferenceOptions

Transform = Callable[[Tensor, Tensor], Tensor]  # values (B, L), lengths (B,) -> values (B, L)
T = TypeVar("T", bound="_Transform")


def load_custom_transform(path: Path, quantity: str) -> Transform:
    """The function ``pitch_transform_custom`` or ``energy_transform_custom`` of a Python file, which is run.

    Raises InputError where there is none, or where it returns something else than finite values of the given shape.
    """
    name = f"{quantity}_transform_custom"
    check_file(path)
    function = run_path(str(path)).get(name)
    if function is None:
        raise InputError(f"{path}: no function {name}; an example is in fastpitch/{EXAMPLES.name}")

    def transform(values: Tensor, lengths: Tensor) -> Tensor:
        changed = function(values.clone(), lengths.clone())
        valid = mask_from_lengths(lengths, values.size(1))
        fits = isinstance(changed, Tensor) and changed.shape == values.shape
        if not fits or not torch.isfinite(changed[valid]).all():
            wanted = f"expected finite values in a tensor of shape {tuple(values.shape)}"
            raise InputError(f"{path}: {name} returned {shown(changed)}, {wanted}")
        return changed.to(values)

    return transform


@dataclass(frozen=True)
class _Transform:
    """Transforms, applied in the order of the fields."""

    flatten: bool = False  # to the mean
    invert: bool = False  # around the mean
    amplify: float | None = None  # times this, around the mean
    shift: float | None = None  # added; pitch: Hz
    custom: Transform | None = None  # instead of all the others

    def _apply(self, values: Tensor, lengths: Tensor, mean: Tensor) -> Tensor:
        """values (B, L) around ``mean``, lengths (B,) -> values (B, L)."""
        if self.custom is not None:
            return self.custom(values, lengths)
        factor = (0.0 if self.flatten else 1.0) * (-1.0 if self.invert else 1.0)
        factor *= 1.0 if self.amplify is None else self.amplify
        return mean + (values - mean) * factor + (self.shift or 0.0)


class PitchTransform(_Transform):
    """Transforms of normalized pitch, whose mean is 0; calling it applies them to the valid tokens."""

    @property
    def needs_statistics(self) -> bool:
        """Whether it computes in Hz."""
        return self.shift is not None or self.custom is not None

    def __call__(self, pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """pitch (B, L) normalized, lengths (B,), mean and std in Hz, scalars or of each utterance's speaker (B, 1) ->
        pitch (B, L), zero at padding.
        """
        if not self.needs_statistics:
            mean, std = torch.zeros_like(mean), torch.ones_like(std)
        pitch = (self._apply(pitch * std + mean, lengths, mean) - mean) / std
        return torch.where(mask_from_lengths(lengths, pitch.size(1)), pitch, 0.0)


class EnergyTransform(_Transform):
    """Transforms of energy around each utterance's mean; calling it applies them to the valid tokens.

    Energy is log(1 + L2 norm) of log-mel frames, as the model was trained with; loud frames have the smaller norms.
    """

    def __call__(self, energy: Tensor, lengths: Tensor) -> Tensor:
        """energy (B, L), lengths (B,) -> energy (B, L), zero at padding."""
        mask = mask_from_lengths(lengths, energy.size(1))
        mean = (energy * mask).sum(1, keepdim=True) / lengths.unsqueeze(1)
        return torch.where(mask, self._apply(energy, lengths, mean), 0.0)


def controls(options: InferenceOptions, network: FastPitch, config: ModelConfig, *, where: Path) -> Controls:
    """How to speak with the checkpoint in ``where``; the ``network`` takes the pitch statistics that are given.

    Raises InputError where the checkpoint has no statistics or no energy predictor for a transform.
    """
    pitch, energy = _transform(options, "pitch", PitchTransform), _transform(options, "energy", EnergyTransform)
    if options.pitch_mean_std_file is not None:
        network.set_pitch_statistics(read_pitch_statistics(options.pitch_mean_std_file))
    if pitch is not None and pitch.needs_statistics and not (network.pitch_std > 0).all():
        raise InputError(f"{where}: holds no pitch statistics to change pitch by in Hz; give --pitch-mean-std-file")
    if energy is not None and not config.energy_conditioning:
        raise InputError(f"{where}: predicts no energy to transform; it was trained without --energy-conditioning")
    return Controls(
        pace=options.pace, max_duration=options.max_duration, pitch_transform=pitch, energy_transform=energy
    )


def _transform(options: InferenceOptions, quantity: str, kind: type[T]) -> T | None:
    """The transform of pitch or energy that the options ask for, if any; a custom function is loaded."""
    values = {field.name: getattr(options, f"{quantity}_transform_{field.name}") for field in fields(_Transform)}
    if values["custom"] is not None:
        values["custom"] = load_custom_transform(values["custom"], quantity)
    made = kind(**values)
    return None if made == kind() else made
