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


def with_shipped(opened: Mapping[str, LoadedCheckpoint], *, with_vocoder: bool) -> dict[str, LoadedCheckpoint]:
    """``opened`` checkpoints by role with the shipped voice where nothing is given, and the shipped vocoder where it is
    wanted and reads the voice's mels; a line says which.
    """
    found = dict(opened)
    if not opened and (voice := shipped_voice()) is not None:
        found["generator"] = voice
    if with_vocoder and "generator" in found and "vocoder" not in found:
        made = found["generator"].checkpoint
        if (vocoder := shipped_vocoder(made.audio, assumed=made.assumed)) is not None:
            found["vocoder"] = vocoder
    paths = [str(one.path) for role, one in found.items() if role not in opened]
    if paths:
        given = "vocoder checkpoint is given: the sound is made by " if opened else "checkpoint is given: "
        print(f"no {given}{' speaks through '.join(paths)}")
    return found
