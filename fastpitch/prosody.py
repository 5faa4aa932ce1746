"""Predict, average, expand and transform the durations, pitch and energy of tokens, and convert pitch to Hz."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from runpy import run_path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.audio.pitch import PitchStatistics, read_pitch_statistics
from common.errors import InputError, shown
from common.files import check_file
from common.nn.layers import Dropout, mask_from_lengths
from common.synthesis.networks import TextToMel
from common.synthesis.utterances import Controls
from fastpitch.arg_parser import EXAMPLE, InferenceOptions
from fastpitch.config import ModelConfig

_CUSTOM = "pitch_transform_custom"  # name of the function in a user's file


class ConvReLUNorm(nn.Module):
    """Convolution over time, ReLU, layer norm over channels, dropout; a block of `TemporalPredictor`."""

    def __init__(self, in_channels: int, out_channels: int, *, kernel_size: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.norm = nn.LayerNorm(out_channels)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, in_channels) -> (B, L, out_channels)."""
        return self.dropout(self.norm(F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)))


class TemporalPredictor(nn.Module):
    """Predicts one value per token, with convolution blocks and a linear layer."""

    in_float32 = ("fc",)

    def __init__(self, config: ModelConfig, name: str) -> None:
        """``name`` ("dur", "pitch" or "energy") is part of its configuration fields' names."""
        super().__init__()
        self.mask_convolutions = config.mask_convolutions
        n_filters: int = getattr(config, f"{name}_predictor_filter_size")
        widths = [config.symbols_embedding_dim, *[n_filters] * getattr(config, f"{name}_predictor_n_layers")]
        size, dropout = getattr(config, f"{name}_predictor_kernel_size"), getattr(config, f"p_{name}_predictor_dropout")
        blocks = (ConvReLUNorm(*pair, kernel_size=size, dropout=dropout) for pair in pairwise(widths))
        self.layers = nn.Sequential(*blocks)
        self.fc = nn.Linear(n_filters, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, C), mask (B, L, 1) bool -> float32 (B, L), zero at padding."""
        x = x * mask
        for layer in self.layers:
            x = layer(x)
            if self.mask_convolutions:
                x = x * mask
        # Not a matrix product: autocast would compute it in 16 bits, too few for durations and pitch.
        value = (x.float() * self.fc.weight[0]).sum(2) + self.fc.bias
        return value * mask.squeeze(2)


def durations_from_logs(log_durations: Tensor, max_duration: float) -> Tensor:
    """Predicted log(1 + frames) (B, L) -> frames (B, L), not rounded, within 0 and ``max_duration``."""
    return torch.clamp(torch.exp(log_durations) - 1, 0, max_duration)


def whole_frames(durations: Tensor) -> Tensor:
    """Round durations (B, L), half up, to int64 (B, L); an utterance without frames gets one, at its longest token."""
    frames = torch.floor(durations.float() + 0.5).long()
    silent = (frames.sum(1, keepdim=True) == 0).long()
    return frames.scatter_add(1, durations.argmax(1, keepdim=True), silent)


def regulate_length(encoded: Tensor, frames: Tensor, n_frames: int | None) -> tuple[Tensor, Tensor]:
    """Repeat each token for its frames: encoded (B, L, C), frames (B, L) -> (B, F, C), lengths (B,).

    F is ``n_frames``, which may cut utterances, or the longest length, which synchronizes.
    """
    ends = frames.cumsum(1)
    lengths = ends[:, -1]
    size = int(lengths.max()) if n_frames is None else n_frames
    lengths = lengths.clamp(max=size)
    positions = torch.arange(size, device=frames.device).expand(frames.size(0), size).contiguous()
    tokens = torch.searchsorted(ends, positions, right=True).clamp(max=frames.size(1) - 1)
    first_rows = torch.arange(frames.size(0), device=frames.device).unsqueeze(1) * frames.size(1)
    regulated = F.embedding(tokens + first_rows, encoded.reshape(-1, encoded.size(2)))
    return regulated * (positions < lengths.unsqueeze(1)).unsqueeze(2), lengths


def means_over_tokens(values: Tensor, durations: Tensor) -> Tensor:
    """Average each token's nonzero frames, 0 without any: values (B, F), durations (B, L) -> float32 (B, L)."""
    # Differences of cumulative sums in float64 are as exact as separate sums in float32.
    nonzero = (values != 0).double()
    sums = F.pad(torch.stack([values.double(), nonzero]).cumsum(2), (1, 0))  # (2, B, 1 + F)
    ends = durations.long().cumsum(1).clamp(max=values.size(1))
    starts = F.pad(ends[:, :-1], (1, 0))
    totals, counts = (sums.gather(2, ends.expand(2, -1, -1)) - sums.gather(2, starts.expand(2, -1, -1))).unbind()
    return (totals / counts.clamp(min=1)).float()


def energies_of_tokens(mels: Tensor, durations: Tensor) -> Tensor:
    """log(1 + mean norm of a token's mel frames): mels (B, n_mels, F), durations (B, L) -> float32 (B, L)."""
    return torch.log1p(means_over_tokens(mels.float().norm(dim=1), durations))


@dataclass(frozen=True)
class PitchTransform:
    """Changes to normalized pitch, applied to valid tokens in the order of the fields."""

    flatten: bool = False  # to the mean
    invert: bool = False  # around the mean
    amplify: float | None = None  # factor of the distance from the mean
    shift: float | None = None  # Hz
    custom: Callable[[Tensor, Tensor], Tensor] | None = None  # pitch (B, L) in Hz, lengths (B,); replaces the others

    def __call__(self, pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """pitch (B, L) normalized, lengths (B,), mean and std in Hz, () or (B, 1) -> (B, L), zero at padding."""
        if self.custom is not None:
            pitch = (self.custom(pitch * std + mean, lengths) - mean) / std
        else:
            pitch = pitch * (0.0 if self.flatten else 1.0) * (-1.0 if self.invert else 1.0)
            pitch = pitch if self.amplify is None else pitch * self.amplify
            pitch = pitch if self.shift is None else pitch + self.shift / std
        return torch.where(mask_from_lengths(lengths, pitch.size(1)), pitch, 0.0)


def load_custom_transform(path: Path) -> Callable[[Tensor, Tensor], Tensor]:
    """Run a Python file and return its function ``pitch_transform_custom``."""
    check_file(path)
    function = run_path(str(path)).get(_CUSTOM)
    if function is None:
        raise InputError(f"{path}: no function {_CUSTOM}; see the example in fastpitch/{EXAMPLE.name}")

    def transform(pitch: Tensor, lengths: Tensor) -> Tensor:
        changed = function(pitch.clone(), lengths.clone())
        fits = isinstance(changed, Tensor) and changed.shape == pitch.shape
        if not fits or not changed[mask_from_lengths(lengths, pitch.size(1))].isfinite().all():
            wanted = f"finite values in a tensor of shape {tuple(pitch.shape)}"
            raise InputError(f"{path}: {_CUSTOM} returned {shown(changed)}, expected {wanted}")
        return changed.to(pitch)

    return transform


class SpeakerPitch(TextToMel):
    """Speakers and pitch in Hz, for a network and its exported files."""

    n_speakers: int
    pitch_mean: Tensor  # (1,) or (n_speakers,), Hz
    pitch_std: Tensor  # (1,) or (n_speakers,), Hz; 0: unknown

    def pitch_in_hz(self, pitch: Tensor, speakers: Tensor | None) -> Tensor:
        """Convert normalized pitch (B, L) to Hz, zeros without statistics. `normalized_pitch` inverts it in float64."""
        mean, std = self.pitch_statistics(speakers)
        return pitch * std + mean

    def normalized_pitch(self, pitch_hz: Tensor, speakers: Tensor | None) -> Tensor:
        """Normalize pitch (B, L) in Hz, 0 where unvoiced, to float32; raises InputError without statistics."""
        mean, std = self.pitch_statistics(speakers)
        if not bool((std > 0).all()):
            raise InputError("the voice's checkpoint has no pitch statistics, which are needed for pitch in Hz")
        normalized = (pitch_hz.double() - mean) / std
        return torch.where(pitch_hz == 0, 0.0, normalized).float()

    def pitch_statistics(self, speakers: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation in Hz: scalars, or (B, 1) if they differ between speakers (B,)."""
        if speakers is None or len(self.pitch_mean) == 1:
            return self.pitch_mean[0], self.pitch_std[0]
        return self.pitch_mean[speakers].unsqueeze(1), self.pitch_std[speakers].unsqueeze(1)

    def speaker_ids(self, speaker: int | Tensor, tokens: Tensor) -> Tensor | None:
        """Return a batch's speaker ids (B,), or None for a single-speaker model."""
        if isinstance(speaker, int):
            if not 0 <= speaker < self.n_speakers:
                raise InputError(f"speaker {speaker}: this checkpoint has speakers 0 to {self.n_speakers - 1}")
            speaker = torch.full((tokens.size(0),), speaker, device=tokens.device)
        return None if self.n_speakers == 1 else speaker

    def set_pitch_statistics(self, statistics: PitchStatistics) -> None:
        """Set the same statistics for all speakers."""
        self.pitch_mean.fill_(statistics.mean)
        self.pitch_std.fill_(statistics.std)

    def controls(self, options: InferenceOptions, *, where: Path) -> Controls:
        """Return controls for the checkpoint ``where``; raises InputError if a transform lacks statistics."""
        values = {field.name: getattr(options, f"pitch_transform_{field.name}") for field in fields(PitchTransform)}
        if values["custom"] is not None:
            values["custom"] = load_custom_transform(values["custom"])
        transform = PitchTransform(**values)
        if options.pitch_mean_std_file is not None:
            self.set_pitch_statistics(read_pitch_statistics(options.pitch_mean_std_file))
        if (transform.shift is not None or transform.custom is not None) and not (self.pitch_std > 0).all():
            raise InputError(f"{where}: has no pitch statistics, needed for changes in Hz; give --pitch-mean-std-file")
        given = None if transform == PitchTransform() else transform
        return Controls(pace=options.pace, max_duration=options.max_duration, pitch_transform=given)
