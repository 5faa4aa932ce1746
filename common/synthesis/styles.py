"""How single symbols are said: SSML's factors of what a text-to-mel model predicts, as its controls take them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from common.errors import InputError
from common.nn import mask_from_lengths
from common.synthesis.controls import Controls, PitchTransformation
from common.text import Style

LOWEST_PITCH = 20.0  # Hz, of what any change of pitch comes to
# Fields of `Style` that a model carries out, and the values (0 for None) with which a symbol is said as predicted.
_PREDICTED = {"rate": 1.0, "pitch": 1.0, "pitch_shift": 0.0, "pitch_hz": 0.0, "pitch_range": 1.0}


def changes_prosody(style: Style) -> bool:
    """Whether pace or pitch are to be others than the predicted ones."""
    return any((getattr(style, name) or 0.0) != value for name, value in _PREDICTED.items())


def with_styles(
    controls: Controls, styles: Sequence[Sequence[Style] | None], *, n_symbols: int, device: torch.device
) -> Controls:
    """The controls of a batch with the styles of each utterance's symbols; None: all are said as predicted.

    Values (B, n_symbols) are on ``device``.
    """
    if not any(styles):
        return controls
    values = {}
    for name, predicted in _PREDICTED.items():
        rows = [[float(getattr(style, name) or 0.0) for style in row or ()] for row in styles]
        values[name] = torch.tensor([row + [predicted] * (n_symbols - len(row)) for row in rows], device=device)
    transform = controls.pitch_transform
    if any(bool((values[name] != _PREDICTED[name]).any()) for name in values if name != "rate"):
        transform = _styled_pitch(values, before=transform)
    return replace(controls, pace=controls.pace * values["rate"], pitch_transform=transform)


def _styled_pitch(styles: Mapping[str, Tensor], *, before: PitchTransformation | None) -> PitchTransformation:
    """A transformation of predicted pitch into that of the styles (B, L), after the one ``before``."""

    def transform(pitch: Tensor, lengths: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        if not bool((std > 0).all()):
            raise InputError(
                "the voice's checkpoint holds no pitch statistics to change pitch by; give --pitch-mean-std-file"
            )
        if before is not None:
            pitch = before(pitch, lengths, mean, std)
        mask = mask_from_lengths(lengths, pitch.size(1))
        hz = pitch * std + mean
        middle = (hz * mask).sum(1, keepdim=True) / lengths.unsqueeze(1)
        center = torch.where(styles["pitch_hz"] > 0, styles["pitch_hz"], middle)
        hz = (center + (hz - middle) * styles["pitch_range"]) * styles["pitch"] + styles["pitch_shift"]
        return torch.where(mask, (hz.clamp(min=LOWEST_PITCH) - mean) / std, pitch)

    return transform
