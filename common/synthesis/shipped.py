"""The voice and vocoder that the project ships, which speak where no checkpoint is given."""

from collections.abc import Mapping
from pathlib import Path

from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.config import AudioConfig
from common.synthesis.vocoder import AudioContract

VOICES = Path(__file__).resolve().parents[2] / "voices"
VOICE, VOCODER = "lj-small.pt", "vocoder-small.pt"


def shipped_vocoder(audio: AudioConfig, *, assumed: tuple[str, ...] = ()) -> LoadedCheckpoint | None:
    """The vocoder in ``VOICES``; None where there is none, or where it reads other mels than ``audio``.

    Fields of these that are ``assumed`` may differ, as in `AudioContract`.
    """
    path = VOICES / VOCODER
    if not path.is_file():
        return None
    opened = open_checkpoint(path, role="vocoder", ema=True)
    contract = AudioContract(opened.checkpoint.audio, str(path), opened.checkpoint.assumed)
    return None if contract.compare(audio, owner="", assumed=assumed).lines else opened


def shipped_voice() -> LoadedCheckpoint | None:
    """The voice in ``VOICES``; None where there is none."""
    path = VOICES / VOICE
    return open_checkpoint(path, role="generator", ema=True) if path.is_file() else None


def with_shipped(
    opened: Mapping[str, LoadedCheckpoint], *, audio: AudioConfig | None = None, with_sound: bool = True
) -> dict[str, LoadedCheckpoint]:
    """``opened`` checkpoints by role, and the shipped ones where they are needed; a line says which.

    They are the voice where nothing is given, unless mels are, as ``audio`` describes them; and the vocoder where none
    is given, if it reads those mels or the voice's.
    """
    found, assumed = dict(opened), tuple[str, ...]()
    if audio is None and not opened and (voice := shipped_voice()) is not None:
        found["generator"] = voice
    if "generator" in found:
        made = found["generator"].checkpoint
        audio, assumed = made.audio, made.assumed
    vocoder = shipped_vocoder(audio, assumed=assumed) if with_sound and audio is not None else None
    if vocoder is not None:
        found.setdefault("vocoder", vocoder)
    paths = [str(one.path) for role, one in found.items() if role not in opened]
    if paths:
        is_pair = not opened and "generator" in found
        given = "checkpoint is given: " if is_pair else "vocoder checkpoint is given: the sound is made by "
        print(f"no {given}{' speaks through '.join(paths)}")
    return found
