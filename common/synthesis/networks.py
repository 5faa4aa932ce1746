"""Interfaces of the networks that synthesis calls, one per role.

An exported file that replaces a network (``export.ExportedNetwork``) has the same interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from common.checkpoints.exported import Runner
from common.config import AudioConfig, from_plain
from common.synthesis.utterances import Controls, MelOutput, WaveOutput


class Network(ABC):  # noqa: B024 - the base of the roles below
    """Base class of all roles."""

    def prepare_for_inference(self) -> None:
        """Fold weight norm and the like; the network can't be trained afterward."""
        if isinstance(self, nn.Module):
            self.eval()


class _FromText(Network):
    def controls(self, options: Any, *, where: Path) -> Controls:
        """Return the controls for the package's ``InferenceOptions``, which are also passed as ``Controls.options``.

        Raises InputError if the checkpoint ``where`` lacks what they need.
        """
        return Controls(options=options)


class TextToMel(_FromText):
    """A generator: text to mel-spectrogram."""

    @abstractmethod
    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """tokens (B, L), lengths (B,) -> mel (B, n_mels, F); an utterance does not depend on the rest of its batch."""

    def teacher_forced(self, batch: Any) -> MelOutput:
        """Return mels (B, n_mels, F), aligned with those of a batch of ``data_function.teacher_forced_dataset``."""
        raise NotImplementedError

    def teach(self, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
        """Return each token's frames by attention: tokens (L,), mels (n_mels, F); utterances are independent."""
        raise NotImplementedError


class TextToWave(_FromText):
    """A generator that makes the sound itself."""

    @abstractmethod
    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> WaveOutput:
        """tokens (B, L), lengths (B,) -> wave (B, F * hop); an utterance does not depend on the rest of its batch."""


@dataclass(frozen=True)
class VocoderSettings:
    """Keyword arguments of a vocoder's ``infer`` besides the mels, such as WaveGlow's noise."""

    infer: Mapping[str, Any] = field(default_factory=dict)
    silent: Mapping[str, Any] = field(default_factory=dict)  # changes for the noise that the denoiser subtracts
    # Mel frames on each side that a frame's samples depend on, to synthesize long mels in pieces; None: all frames
    context: int | None = None


class MelToWave(Network):
    """A vocoder: mel-spectrogram to sound."""

    @abstractmethod
    def infer(self, mel: Tensor, lengths: Tensor | None = None, *args: Any, **settings: Any) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames (None: all) -> wave (B, F * hop) float32, zero past its end.

        ``settings`` are those of `VocoderSettings`, by name.
        """

    def settings(self, options: Any, *, seed: int, where: Path) -> VocoderSettings:
        """Return the arguments of ``infer`` for the package's ``InferenceOptions``; errors name ``where``."""
        return VocoderSettings()


class ExportedVocoder(MelToWave):
    """A vocoder's exported file, with the same output as the network."""

    def __init__(self, run: Runner, config: Any, description: dict[str, Any], device: torch.device) -> None:
        self._run, self.config, self.description = run, config, description
        self.audio: AudioConfig = from_plain(AudioConfig, description["config"]["audio"], where="config.audio")

    def infer(self, mel: Tensor, lengths: Tensor | None = None, *args: Any, **settings: Any) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames -> wave (B, F * hop)."""
        return self.run(mel, lengths)

    def run(self, mel: Tensor, lengths: Tensor | None, **inputs: Tensor) -> Tensor:
        """Run `infer` with the file's further ``inputs``; a file without ``lengths`` runs utterance by utterance."""
        if lengths is None:
            lengths = torch.full((len(mel),), mel.size(2), device=mel.device)
        given = {"mel": mel.float(), **inputs}
        if "lengths" in self.description["inputs"]:
            given["lengths"] = lengths
        elif int(lengths.min()) < mel.size(2):
            waves = [self.run(one[None, :, :length], None)[0] for one, length in zip(mel, lengths.tolist())]
            longest = torch.zeros(mel.size(2) * self.audio.hop_length)
            return pad_sequence([*waves, longest], batch_first=True)[:-1]
        return self._run({name: value.contiguous() for name, value in given.items()})["wave"]
