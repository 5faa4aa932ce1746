"""The voice and vocoder that the project ships, which speak where no checkpoint is given."""

from pathlib import Path

from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.config import AudioConfig

VOICES = Path(__file__).resolve().parents[2] / "voices"
VOICE, VOCODER = "lj-small.pt", "vocoder-small.pt"


def shipped_vocoder(audio: AudioConfig) -> LoadedCheckpoint | None:
    """The vocoder in ``VOICES``; None where there is none, or where it reads other mels than ``audio``."""
    path = VOICES / VOCODER
    if not path.is_file():
        return None
    opened = open_checkpoint(path, role="vocoder", ema=True)
    return opened if opened.checkpoint.audio == audio else None


def shipped_voice() -> tuple[LoadedCheckpoint, LoadedCheckpoint | None] | None:
    """The voice in ``VOICES``, and the vocoder if there is one that fits it; None where there is no voice."""
    path = VOICES / VOICE
    if not path.is_file():
        return None
    voice = open_checkpoint(path, role="generator", ema=True)
    return voice, shipped_vocoder(voice.checkpoint.audio)


def shipped_options(*, with_sound: bool = True) -> dict[str, Path]:
    """The options that name them, by destination, and a line that says so; empty where there is no voice."""
    found = [one for one in shipped_voice() or () if one is not None][: 2 if with_sound else 1]
    if found:
        print("no checkpoint is given: " + " speaks through ".join(str(one.path) for one in found))
    return {one.spec.option: one.path for one in found}
