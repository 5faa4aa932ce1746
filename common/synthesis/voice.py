"""Voices and vocoders, made of the checkpoints that hold them and the networks loaded from these."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common.checkpoints.loading import Given
from common.config import AudioConfig
from common.errors import InputError
from common.precision import Autocast
from common.synthesis.arguments import checkpoint_option
from common.synthesis.controls import EnergyTransformation, PitchTransformation
from common.synthesis.cuda_graphs import Recorder
from common.synthesis.phrases import Phrase
from common.synthesis.synthesizer import Generator, Utterance, encode_phrases
from common.synthesis.vocoder import AudioContract, NetworkVocoder, VocoderNetwork, WithSettings
from common.text.front_end import TextFrontEnd


@dataclass(frozen=True)
class Voice:
    """A text-to-mel network with its text front end, ready to speak."""

    model: str
    network: Generator
    audio: AudioConfig
    front_end: TextFrontEnd
    n_speakers: int
    pitch_transform: PitchTransformation | None = None
    energy_transform: EnergyTransformation | None = None

    def speaker_id(self, name: str, where: str) -> int:
        """Id of a speaker's name or number; ``where`` says where it was written."""
        names = self.front_end.config.speakers
        if name in names:
            return names.index(name)
        if name.isdecimal() and int(name) < self.n_speakers:
            return int(name)
        or_names = f" or one of {', '.join(names)}" if names else ""
        raise InputError(f"{where}: speaker {name!r}, expected a number from 0 to {self.n_speakers - 1}{or_names}")

    def encode(
        self, phrases: Sequence[Phrase], *, dataset_path: Path, speaker: str, seed: int | None
    ) -> list[Utterance]:
        """What to speak, checked, with one warning for dropped symbols; ``speaker`` says what names nobody else.

        The other arguments are those of `common.synthesis.synthesizer.encode_phrases`.
        """
        utterances = encode_phrases(
            phrases,
            self.front_end,
            dataset_path=dataset_path,
            speaker_ids=self.speaker_id,
            default_speaker=self.speaker_id(speaker, "--speaker"),
            seed=seed,
        )
        self.front_end.warn_dropped()
        return utterances


def voice_of(given: Given, network: Generator, config: Any, *, unknown_symbols: str) -> Voice:
    """The voice of a checkpoint; ``config`` is its ModelConfig."""
    return Voice(
        model=given.model,
        network=network,
        audio=given.checkpoint.audio,
        front_end=TextFrontEnd(given.checkpoint.text, unknown_symbols=unknown_symbols),
        n_speakers=getattr(config, "n_speakers", 1),
    )


def vocoder_of(
    given: Given,
    network: VocoderNetwork,
    *,
    settings: Mapping[str, Any],
    autocast: Autocast,
    device: torch.device,
    denoising_strength: float,
    compiled: Callable[[Any], Any] | None = None,
    graph_recorder: Recorder | None = None,
) -> NetworkVocoder:
    """The vocoder of a checkpoint; ``settings`` are what its network is told besides the mels.

    ``compiled`` makes the network that speaks of the one that is loaded.
    """
    silent = None
    if settings:
        # The published denoiser listens to WaveGlow without its noise.
        silent = WithSettings(network, {**settings, "sigma": 0.0})
        network = WithSettings(network, settings)
    return NetworkVocoder(
        network if compiled is None else compiled(network),
        given.checkpoint.audio,
        name=checkpoint_option(given.model),
        autocast=autocast,
        device=device,
        denoising_strength=denoising_strength,
        silent_network=silent,
        graph_recorder=graph_recorder,
    )


def contract_of(vocoder: Given, generator: Given | None, *, accepted: Sequence[str]) -> AudioContract:
    """What mels a vocoder reads; those that the generator makes must be such.

    Raises:
        InputError: lists each field that differs, and what to do.
    """
    held = vocoder.checkpoint
    contract = AudioContract(held.audio, str(vocoder.path), held.assumed, tuple(accepted))
    if generator is not None:
        made = generator.checkpoint
        contract.check(made.audio, owner=str(generator.path), assumed=made.assumed)
    return contract
