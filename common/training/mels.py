"""The mels to train on: what options, the corpus, stored features, a voice or a checkpoint say they are."""

from dataclasses import dataclass, replace
from pathlib import Path

from common.audio.options import AudioOptions, features_config, read_audio_config
from common.checkpoints import open_checkpoint
from common.config import AudioConfig, differences
from common.errors import OptionError


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


def training_mels(
    options: AudioOptions, *sources: MelSource | None, corpus: Path, for_voice: Path | None, base: AudioConfig | None
) -> AudioConfig:
    """What ``sources``, the voice of --for-voice and the file of --audio-config say, which must agree; where there are
    none, ``base``, of the checkpoint that the training begins with, else what the ``corpus`` says; with the options.

    Raises:
        OptionError: two of them disagree; lists each field that does.
    """
    voice = None
    if for_voice is not None:
        checkpoint = open_checkpoint(for_voice, role="generator", ema=True).checkpoint
        voice = MelSource(f"--for-voice {for_voice}", checkpoint.audio, checkpoint.assumed)
    file = options.audio_config and MelSource(
        f"--audio-config {options.audio_config}", read_audio_config(options.audio_config)
    )
    # What records its mels completely comes first, as the others must agree with it in what they record.
    found = sorted((source for source in (*sources, voice, file) if source), key=lambda source: len(source.unrecorded))
    for other in found[1:]:
        _check_agreement(found[0], other)
    audio = options.config(corpus=corpus, base=found[0].audio if found else base)
    if voice is not None:
        _check_agreement(MelSource("the options", audio), voice)
    return audio


def _check_agreement(first: MelSource, other: MelSource) -> None:
    recorded = replace(other.audio, **{name: getattr(first.audio, name) for name in other.unrecorded})
    if lines := differences(first.audio, recorded, names=(first.name, other.name)):
        raise OptionError(f"{first.name} and {other.name} are of different mels: {'; '.join(lines)}; give one of them")
