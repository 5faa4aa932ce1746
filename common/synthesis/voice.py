"""Voices and vocoders, made of the checkpoints that hold them: the one way to load what speaks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.checkpoints import NO_EMA, LoadedCheckpoint, load_for_inference
from common.config import AudioConfig
from common.errors import CheckpointError, InputError
from common.files import load_tensor
from common.precision import Precision
from common.registry import GeneratorSpec, ModelSpec, VocoderSpec
from common.synthesis.controls import Controls
from common.synthesis.cuda_graphs import Recorder
from common.synthesis.phrases import Phrase
from common.synthesis.synthesizer import Generator, SynthesisInput
from common.synthesis.vocoder import NO_SETTINGS, AudioContract, NetworkVocoder
from common.text import TextFrontEnd, utterance_draws

Accelerate = Callable[[Any, ModelSpec], Any]  # a network and its model -> the network, compiled


@dataclass(frozen=True)
class Voice:
    """A text-to-mel network with its text front end, ready to speak."""

    spec: ModelSpec
    network: Generator
    audio: AudioConfig
    front_end: TextFrontEnd
    controls: Controls  # how it speaks unless told otherwise
    n_speakers: int

    @property
    def phrase_columns(self) -> tuple[str, ...]:
        """Columns of a list of phrases that it reads besides the text."""
        assert isinstance(self.spec.inference, GeneratorSpec)
        return self.spec.inference.phrase_columns

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
    ) -> list[SynthesisInput]:
        """What to synthesize, with pitch and durations where the list gives them, and one warning for dropped symbols.

        ``speaker`` speaks where the list does not say. With a ``seed``, words become phones at random, with the front
        end's probability; else all do that it knows.

        Raises:
            InputError: the first phrase that cannot be synthesized, by file and line.
        """
        default_speaker = self.speaker_id(speaker, "--speaker")
        utterances = []
        for index, phrase in enumerate(phrases):
            where = phrase.where
            if phrase.text is None:
                raise InputError(f"{where}: no text column, which a text-to-mel model needs")
            draw = None if seed is None else utterance_draws(seed=seed, epoch=0, index=index)
            tokens = self.front_end.inputs(self.front_end.encode(phrase.text, where=where, draw=draw))
            values = {
                name: _load_per_token(dataset_path / path, len(tokens), where=where)
                for name, path in (("pitch", phrase.pitch), ("durations", phrase.duration))
                if path is not None
            }
            if "durations" in values and values["durations"].min() < 0:
                raise InputError(f"{dataset_path / str(phrase.duration)}: negative durations ({where})")
            own = default_speaker if phrase.speaker is None else self.speaker_id(phrase.speaker, where)
            utterances.append(SynthesisInput(phrase, tokens=tokens, speaker=own, **values))
        self.front_end.warn_dropped()
        return utterances


def _load_per_token(path: Path, n_tokens: int, *, where: str) -> Tensor:
    values = load_tensor(path, where=where)
    if values.shape != (n_tokens,):
        raise InputError(f"{path}: shape {tuple(values.shape)}, expected ({n_tokens},), one value a symbol ({where})")
    if not torch.isfinite(values).all():
        raise InputError(f"{path}: holds values that are not finite ({where})")
    return values.float()


def load_voice(
    loaded: LoadedCheckpoint,
    options: Any,
    *,
    precision: Precision,
    unknown_symbols: str = "error",
    accelerate: Accelerate | None = None,
) -> Voice:
    """The voice of a text-to-mel checkpoint; ``options`` are its model's inference options (`GeneratorSpec.parse`).

    Raises:
        InputError: the checkpoint lacks what the options need.
    """
    inference, checkpoint = loaded.spec.inference, loaded.checkpoint
    assert isinstance(inference, GeneratorSpec) and checkpoint.text is not None
    network, config = load_for_inference(loaded, device=precision.device)
    controls = inference.controls(options, network, config, where=loaded.path)
    return Voice(
        spec=loaded.spec,
        network=network if accelerate is None else accelerate(network, loaded.spec),
        audio=checkpoint.audio,
        front_end=TextFrontEnd(checkpoint.text, unknown_symbols=unknown_symbols),
        controls=controls,
        n_speakers=1 if inference.n_speakers is None else inference.n_speakers(config),
    )


def load_vocoder(
    loaded: LoadedCheckpoint,
    options: Any,
    *,
    precision: Precision,
    seed: int,
    denoising_strength: float = 0.0,
    accelerate: Accelerate | None = None,
    graph_recorder: Recorder | None = None,
) -> NetworkVocoder:
    """The vocoder of a mel-to-sound checkpoint; ``options`` are its model's inference options (`VocoderSpec.parse`).

    Raises:
        OptionError: the options do not fit the checkpoint.
    """
    inference = loaded.spec.inference
    assert isinstance(inference, VocoderSpec)
    network, config = load_for_inference(loaded, device=precision.device)
    settings = NO_SETTINGS
    if inference.settings is not None:
        settings = inference.settings(options, config, seed=seed, where=loaded.path)
    return NetworkVocoder(
        network if accelerate is None else accelerate(network, loaded.spec),
        loaded.checkpoint.audio,
        name=loaded.spec.option,
        autocast=precision.autocast,
        device=precision.device,
        denoising_strength=denoising_strength,
        settings=settings,
        graph_recorder=graph_recorder,
    )


def check_ema(opened: Sequence[LoadedCheckpoint]) -> None:
    """Say which of the checkpoints have no EMA weights, where ``--ema`` asks for them.

    Raises:
        CheckpointError: none has any.
    """
    without = [str(one.path) for one in opened if not one.ema]
    if len(without) == len(opened):
        raise CheckpointError(f"{' and '.join(without)}: {NO_EMA}")
    for path in without:
        print(f"note: {path} holds no EMA weights; --ema applies to the other checkpoint alone")


def contract_of(
    vocoder: LoadedCheckpoint, generator: LoadedCheckpoint | None, *, accepted: Sequence[str]
) -> AudioContract:
    """What mels a vocoder reads; those that the generator makes must be such.

    Raises:
        InputError: lists each field that differs, and what to do.
    """
    checkpoint = vocoder.checkpoint
    contract = AudioContract(checkpoint.audio, str(vocoder.path), checkpoint.assumed, tuple(accepted))
    if generator is not None:
        made = generator.checkpoint
        contract.check(made.audio, owner=str(generator.path), assumed=made.assumed)
    return contract
