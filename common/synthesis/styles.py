"""How single symbols are said: SSML's factors of what a text-to-mel model predicts, as its controls take them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from common.errors import InputError
from common.nn import mask_from_lengths
from common.synthesis.controls import PitchTransformation
from common.text import Style

LOWEST_PITCH = 20.0  # Hz, of what any change of pitch comes to


@dataclass(frozen=True)
class SymbolStyles:
    """One value a symbol: (L,), or (B, L) of a batch; the fields of `common.text.Style` that a model carries out."""

    rate: Tensor  # 2.0: half the predicted duration
    pitch: Tensor  # factor of the pitch in Hz
    pitch_shift: Tensor  # Hz, added after the factor
    pitch_hz: Tensor  # mean pitch of the utterance in Hz; 0: as predicted
    pitch_range: Tensor  # factor of the pitch's distance from its mean

    @property
    def changes_pitch(self) -> bool:
        """Whether the pitch is to be another than the predicted one."""
        return any(bool((getattr(self, name) != usual).any()) for name, usual in _USUAL.items() if name != "rate")

    def to(self, device: torch.device) -> "SymbolStyles":
        """Move the styles to ``device``."""
        return SymbolStyles(**{name: getattr(self, name).to(device) for name in _USUAL})

    def transform(self, before: PitchTransformation | None) -> PitchTransformation:
        """A transformation of predicted pitch into that of these styles (B, L), after the one ``before``."""

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
            center = torch.where(self.pitch_hz > 0, self.pitch_hz, middle)
            hz = (center + (hz - middle) * self.pitch_range) * self.pitch + self.pitch_shift
            return torch.where(mask, (hz.clamp(min=LOWEST_PITCH) - mean) / std, pitch)

        return transform


_USUAL = {"rate": 1.0, "pitch": 1.0, "pitch_shift": 0.0, "pitch_hz": 0.0, "pitch_range": 1.0}
assert list(_USUAL) == [field.name for field in fields(SymbolStyles)]


def styles_of_symbols(styles: Sequence[Style]) -> SymbolStyles | None:
    """The styles (L,) of an utterance's symbols; None where all are said as predicted."""
    rows = {name: torch.tensor([float(getattr(style, name) or 0.0) for style in styles]) for name in _USUAL}
    if all(bool((rows[name] == usual).all()) for name, usual in _USUAL.items()):
        return None
    return SymbolStyles(**rows)


def pad_styles(rows: Sequence[SymbolStyles | None], lengths: Sequence[int], *, n_symbols: int) -> SymbolStyles | None:
    """The styles (B, n_symbols) of a batch of utterances of ``lengths`` symbols; None where none has any."""
    if not any(rows):
        return None
    padded = {}
    for name, usual in _USUAL.items():
        values = [
            torch.full((length,), usual) if row is None else getattr(row, name) for row, length in zip(rows, lengths)
        ]
        padded[name] = pad_sequence(values, batch_first=True, padding_value=usual)
        padded[name] = F.pad(padded[name], (0, n_symbols - max(lengths)), value=usual)
    return SymbolStyles(**padded)
