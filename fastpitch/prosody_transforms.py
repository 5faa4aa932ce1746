"""Changes of the predicted pitch and energy: flatten, invert, amplify, shift, or a function of your own."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from runpy import run_path
from typing import TypeVar

import torch
from torch import Tensor

from common.audio.pitch import PitchStatistics, read_pitch_statistics
from common.errors import InputError, shown
from common.files import check_file
from common.nn.layers import mask_from_lengths
from common.synthesis.networks import TextToMel
from common.synthesis.utterances import Controls
from fastpitch.arg_parser import EXAMPLES, InferenceOptions

Transform = Callable[[Tensor, Tensor], Tensor]  # values (B, L), lengths (B,) -> values (B, L)
T = TypeVar("T", bound="_Transform")


def load_custom_transform(path: Path, quantity: str) -> Transform:
    """The function ``pitch_transform_custom`` or ``energy_transform_custom`` of a Python file, which is run."""
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
        """pitch (B, L) normalized, lengths (B,), mean and std in Hz, () or (B, 1) -> (B, L), zero at padding."""
        if not self.needs_statistics:
            mean, std = torch.zeros_like(mean), torch.ones_like(std)
        pitch = (self._apply(pitch * std + mean, lengths, mean) - mean) / std
        return torch.where(mask_from_lengths(lengths, pitch.size(1)), pitch, 0.0)


class EnergyTransform(_Transform):
    """Transforms of energy, log(1 + L2 norm) of log-mel frames, around each utterance's mean, of the valid tokens."""

    def __call__(self, energy: Tensor, lengths: Tensor) -> Tensor:
        """energy (B, L), lengths (B,) -> energy (B, L), zero at padding."""
        mask = mask_from_lengths(lengths, energy.size(1))
        mean = (energy * mask).sum(1, keepdim=True) / lengths.unsqueeze(1)
        return torch.where(mask, self._apply(energy, lengths, mean), 0.0)


def _transform(options: InferenceOptions, quantity: str, kind: type[T]) -> T | None:
    """The transform of pitch or energy that the options ask for, if any; a custom function is loaded."""
    values = {field.name: getattr(options, f"{quantity}_transform_{field.name}") for field in fields(_Transform)}
    if values["custom"] is not None:
        values["custom"] = load_custom_transform(values["custom"], quantity)
    made = kind(**values)
    return None if made == kind() else made


class SpeakerPitch(TextToMel):
    """What speakers' ids and pitch in Hz mean to a network, and alike to its exported files."""

    n_speakers: int
    energy_conditioning: bool  # whether it predicts energy
    pitch_mean: Tensor  # (1,) or (n_speakers,), Hz
    pitch_std: Tensor  # (1,) or (n_speakers,), Hz; 0: the statistics are not known

    def pitch_in_hz(self, pitch: Tensor, speakers: Tensor | None) -> Tensor:
        """Normalized pitch (B, L) in Hz; zeros without known statistics. In float64 `normalized_pitch` undoes it."""
        mean, std = self.pitch_statistics(speakers)
        return pitch * std + mean

    def normalized_pitch(self, pitch_hz: Tensor, speakers: Tensor | None) -> Tensor:
        """Pitch (B, L) in Hz, 0 where unvoiced, normalized: float32; raises InputError without known statistics."""
        mean, std = self.pitch_statistics(speakers)
        if not bool((std > 0).all()):
            raise InputError("the voice's checkpoint holds no pitch statistics to take pitch in Hz by")
        normalized = (pitch_hz.double() - mean) / std
        return torch.where(pitch_hz == 0, 0.0, normalized).float()

    def pitch_statistics(self, speakers: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation in Hz: scalars, or (B, 1) of speakers (B,) whose pitch differs."""
        if speakers is None or len(self.pitch_mean) == 1:
            return self.pitch_mean[0], self.pitch_std[0]
        return self.pitch_mean[speakers].unsqueeze(1), self.pitch_std[speakers].unsqueeze(1)

    def speaker_ids(self, speaker: int | Tensor, tokens: Tensor) -> Tensor | None:
        """Speaker ids (B,) of a batch, None for a model of one voice."""
        if isinstance(speaker, int):
            if not 0 <= speaker < self.n_speakers:
                raise InputError(f"speaker {speaker}: this checkpoint has speakers 0 to {self.n_speakers - 1}")
            speaker = torch.full((tokens.size(0),), speaker, device=tokens.device)
        return None if self.n_speakers == 1 else speaker

    def set_pitch_statistics(self, statistics: PitchStatistics) -> None:
        """Take the same statistics for all speakers."""
        self.pitch_mean.fill_(statistics.mean)
        self.pitch_std.fill_(statistics.std)

    def controls(self, options: InferenceOptions, *, where: Path) -> Controls:
        """How to speak with the checkpoint ``where``; InputError where it lacks what a transform needs."""
        pitch, energy = _transform(options, "pitch", PitchTransform), _transform(options, "energy", EnergyTransform)
        if options.pitch_mean_std_file is not None:
            self.set_pitch_statistics(read_pitch_statistics(options.pitch_mean_std_file))
        if pitch is not None and pitch.needs_statistics and not (self.pitch_std > 0).all():
            raise InputError(f"{where}: holds no pitch statistics to change pitch by in Hz; give --pitch-mean-std-file")
        if energy is not None and not self.energy_conditioning:
            raise InputError(f"{where}: predicts no energy to transform; it was trained without --energy-conditioning")
        return Controls(
            pace=options.pace, max_duration=options.max_duration, pitch_transform=pitch, energy_transform=energy
        )
