"""From mel-spectrograms to sound: what every vocoder offers, Griffin-Lim, and networks."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor

from common.config import AudioConfig, differences
from common.errors import InputError
from common.griffin_lim import griffin_lim
from common.layers import mask_from_lengths
from common.mel import FLOOR, compress

Autocast = Callable[[], AbstractContextManager]


class Vocoder(Protocol):
    """Turns batches of mels into waves; an utterance's wave does not depend on what else is in its batch."""

    name: str  # in the log's keys: "<name>_samples/s"
    audio: AudioConfig  # the mels it reads
    max_batch: int | None  # utterances that are worth giving it at once; None: any number

    def speak(self, mel: Tensor, lengths: Tensor) -> list[Tensor]:
        """mel (B, n_mels, F), lengths (B,) frames -> for each utterance its wave (lengths[i] * hop,) float32."""


class GriffinLimVocoder:
    """The vocoder that needs no training, an utterance at a time on the CPU, with the same phases to begin with."""

    name = "griffin_lim"
    max_batch = 1

    def __init__(self, audio: AudioConfig, *, seed: int, n_iter: int) -> None:
        self.audio = audio
        self._seed = seed
        self._n_iter = n_iter

    def speak(self, mel: Tensor, lengths: Tensor) -> list[Tensor]:
        """As `Vocoder.speak`."""
        return [
            griffin_lim(one[:, :length], self.audio, n_iter=self._n_iter, seed=self._seed)
            for one, length in zip(mel.float().cpu(), lengths.tolist())
        ]


class VocoderNetwork(Protocol):
    """What the first network of a vocoder's package offers."""

    receptive_frames: int  # mel frames after a sample that it depends on

    def infer(self, mel: Tensor) -> Tensor:
        """mel (B, n_mels, F) -> wave (B, F * hop)."""


class NetworkVocoder:
    """A trained vocoder. Every utterance is followed by the same silence, as far as the network looks ahead."""

    max_batch = None

    def __init__(self, network: VocoderNetwork, audio: AudioConfig, *, name: str, autocast: Autocast) -> None:
        self.name = name
        self.audio = audio
        self._network = network
        self._autocast = autocast
        self._silence = float(compress(torch.tensor(FLOOR)))

    @torch.inference_mode()
    def speak(self, mel: Tensor, lengths: Tensor) -> list[Tensor]:
        """As `Vocoder.speak`."""
        mel = torch.nn.functional.pad(mel, (0, self._network.receptive_frames))
        mel = torch.where(mask_from_lengths(lengths, mel.size(2)).unsqueeze(1), mel, self._silence)
        with self._autocast():
            waves = self._network.infer(mel).float()
        return [wave[: length * self.audio.hop_length] for wave, length in zip(waves, lengths.tolist())]


def check_same_audio(first: AudioConfig, second: AudioConfig, *, names: tuple[str, str]) -> None:
    """Refuse mels of one description for a model of another.

    Raises:
        InputError: lists each field that differs; ``names`` says whose the two are.
    """
    lines = differences(first, second, names=names)
    if lines:
        raise InputError(f"{names[0]} and {names[1]} are of different mel-spectrograms: {'; '.join(lines)}")
