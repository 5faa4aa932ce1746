"""Options that concern checkpoints: which weights to infer with, and the mels to train on, which one may describe."""

import argparse
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.audio.arguments import audio_config_from_args, features_config, read_audio_config
from common.checkpoints.checkpoint import saved_checkpoints
from common.checkpoints.command_line import WeightsOptions
from common.checkpoints.loading import open_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig, differences
from common.errors import CheckpointError, OptionError
from common.options import add_options


@dataclass(frozen=True)
class MelSource:
    """Something that says what the mels are."""

    name: str  # in messages
    audio: AudioConfig
    unrecorded: tuple[str, ...] = ()  # fields that are assumed


def stored_mels(folder: Path, *, option: str = "") -> MelSource | None:
    """What the mels in a folder are, which ``option`` names; None where no file in it says so."""
    audio = features_config(folder)
    return None if audio is None else MelSource(f"{option} {folder}".strip(), audio)


def add_ema_argument(parser: argparse._ActionsContainer) -> None:
    """Add ``--ema`` and ``--no-ema``; the value is that of ``ema`` of `common.checkpoints.open_checkpoint`."""
    add_options(parser, WeightsOptions)


def add_voice_argument(add: Callable[..., Any]) -> None:
    """Add the option of a vocoder that names the voice it is for."""
    add("--for-voice", type=Path, help="checkpoint of a text-to-mel model, ours or published, whose mels to train for")


def training_audio_from_args(
    args: argparse.Namespace, *sources: MelSource | None, may_resume: bool = True
) -> AudioConfig:
    """The mels to train on: those of ``sources``, --for-voice and --audio-config, which must agree; where there are
    none, of the checkpoint to resume from (if ``may_resume``), else of the corpus; with the options that were given.

    Raises:
        OptionError: two of them disagree; lists each field that does.
    """
    voice = None
    if getattr(args, "for_voice", None) is not None:
        checkpoint = open_checkpoint(args.for_voice, role="generator", ema=True).checkpoint
        voice = MelSource(f"--for-voice {args.for_voice}", checkpoint.audio, checkpoint.assumed)
    config = getattr(args, "audio_config", None)
    file = None if config is None else MelSource(f"--audio-config {config}", read_audio_config(config))
    # What records its mels completely comes first, as the others must agree with it in what they record.
    found = sorted((source for source in (*sources, voice, file) if source), key=lambda source: len(source.unrecorded))
    for other in found[1:]:
        _check_agreement(found[0], other)
    base = found[0].audio if found else _resumed_audio(args) if may_resume else None
    audio = audio_config_from_args(args, base=base)
    if voice is not None:
        _check_agreement(MelSource("the options", audio), voice)
    return audio


def _check_agreement(first: MelSource, other: MelSource) -> None:
    recorded = replace(other.audio, **{name: getattr(first.audio, name) for name in other.unrecorded})
    if lines := differences(first.audio, recorded, names=(first.name, other.name)):
        raise OptionError(f"{first.name} and {other.name} are of different mels: {'; '.join(lines)}; give one of them")


def _resumed_audio(args: argparse.Namespace) -> AudioConfig | None:
    """The mels of the checkpoint that a training resumes or begins with; None for a new one."""
    paths = [path for path in (args.checkpoint_path, args.from_checkpoint) if path is not None]
    if args.resume:
        paths = saved_checkpoints(args.output, args.model)[::-1] + paths
    for path in paths:
        with suppress(CheckpointError):  # reported, or left for the one before it, where it is loaded to resume
            return load_checkpoint(path, training=False).audio
    return None
