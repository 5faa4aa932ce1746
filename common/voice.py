"""A text-to-mel model that is ready to speak, with what it needs to read a list of phrases."""

from dataclasses import dataclass
from typing import Any

from common.config import AudioConfig
from common.errors import InputError
from common.synthesis import EnergyTransformation, PitchTransformation
from common.text.front_end import TextFrontEnd


@dataclass(frozen=True)
class Voice:
    """A text-to-mel checkpoint, ready to speak."""

    model: str
    network: Any  # a common.synthesizer.Generator
    audio: AudioConfig
    front_end: TextFrontEnd
    n_speakers: int
    pitch_transform: PitchTransformation | None
    energy_transform: EnergyTransformation | None

    def speaker_id(self, name: str, where: str) -> int:
        """Id of a speaker's name or number; ``where`` says where it was written."""
        names = self.front_end.config.speakers
        if name in names:
            return names.index(name)
        if name.isdecimal() and int(name) < self.n_speakers:
            return int(name)
        or_names = f" or one of {', '.join(names)}" if names else ""
        raise InputError(f"{where}: speaker {name!r}, expected a number from 0 to {self.n_speakers - 1}{or_names}")
