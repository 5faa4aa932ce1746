"""Changes of the predicted pitch, and what speakers and pitch in Hz mean to a network."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from runpy import run_path

import torch
from torch import Tensor

from common.audio.pitch import PitchStatistics, read_pitch_statistics
from common.errors import InputError, shown
from common.files import check_file
from common.nn.layers import mask_from_lengths
from common.synthesis.networks import TextToMel
from common.synthesis.utterances import Controls
from fastpitch.arg_parser import EXAMPLE, InferenceOptions

_CUSTOM = "pitch_transform_custom"  # name of the function in a user's file


@dataclass(frozen=True)
class PitchTransform:
    """Changes of normalized pitch, applied to the valid tokens in the order of the fields."""

    flatten: bool = False  # to the mean
    invert: bool = False  # around the mean
    amplify: float | None = None  # factor of the distance from the mean
    shift: float | None = None  # Hz
    custom: Callable[[Tensor, Tensor], Tensor] | None = None  # pitch (B, L) in Hz, lengths (B,); replaces the others

    @property
    def needs_statistics(self) -> bool:
        """Whether it computes in Hz."""
        return self.shift is not None or self.custom is not None

    def __call__(self, pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """pitch (B, L) normalized, lengths (B,), mean and std in Hz, () or (B, 1) -> (B, L), zero at padding."""
        if self.custom is not None:
            pitch = (self.custom(pitch * std + mean, lengths) - mean) / std
        else:
            pitch = pitch * (0.0 if self.flatten else 1.0) * (-1.0 if self.invert else 1.0)
            pitch = pitch if self.amplify is None else pitch * self.amplify
            pitch = pitch if self.shift is None else pitch + self.shift / std
        return torch.where(mask_from_lengths(lengths, pitch.size(1)), pitch, 0.0)


def _load_custom_transform(path: Path) -> Callable[[Tensor, Tensor], Tensor]:
    """The function ``pitch_transform_custom`` of a Python file, which is run."""
    check_file(path)
    function = run_path(str(path)).get(_CUSTOM)
    if function is None:
        raise InputError(f"{path}: no function {_CUSTOM}; see the example in fastpitch/{EXAMPLE.name}")

    def transform(pitch: Tensor, lengths: Tensor) -> Tensor:
        changed = function(pitch.clone(), lengths.clone())
        valid = mask_from_lengths(lengths, pitch.size(1))
        fits = isinstance(changed, Tensor) and changed.shape == pitch.shape
        if not fits or not torch.isfinite(changed[valid]).all():
            wanted = f"expected finite values in a tensor of shape {tuple(pitch.shape)}"
            raise InputError(f"{path}: {_CUSTOM} returned {shown(changed)}, {wanted}")
        return changed.to(pitch)

    return transform


class SpeakerPitch(TextToMel):
    """Speakers and pitch in Hz, for a network and its exported files."""

    n_speakers: int
    energy_conditioning: bool  # whether it predicts energy
    pitch_mean: Tensor  # (1,) or (n_speakers,), Hz
    pitch_std: Tensor  # (1,) or (n_speakers,), Hz; 0: the statistics are not known

    def pitch_in_hz(self, pitch: Tensor, speakers: Tensor | None) -> Tensor:
        """Normalized pitch (B, L) in Hz; zeros without known statistics. `normalized_pitch` inverts it in float64."""
        mean, std = self.pitch_statistics(speakers)
        return pitch * std + mean

    def normalized_pitch(self, pitch_hz: Tensor, speakers: Tensor | None) -> Tensor:
        """Normalize pitch (B, L) in Hz, 0 where unvoiced: float32; raises InputError without known statistics."""
        mean, std = self.pitch_statistics(speakers)
        if not bool((std > 0).all()):
            raise InputError("the voice's checkpoint has no pitch statistics, which pitch in Hz needs")
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
        """How to speak with the checkpoint ``where``; InputError if it lacks what a transform needs."""
        values = {field.name: getattr(options, f"pitch_transform_{field.name}") for field in fields(PitchTransform)}
        if values["custom"] is not None:
            values["custom"] = _load_custom_transform(values["custom"])
        transform = PitchTransform(**values)
        if options.pitch_mean_std_file is not None:
            self.set_pitch_statistics(read_pitch_statistics(options.pitch_mean_std_file))
        if transform.needs_statistics and not (self.pitch_std > 0).all():
            raise InputError(f"{where}: has no pitch statistics, which changes in Hz need; give --pitch-mean-std-file")
        given = None if transform == PitchTransform() else transform
        return Controls(pace=options.pace, max_duration=options.max_duration, pitch_transform=given)
