"""Pitch of recordings kept on the disk, so that it is estimated once for all epochs, runs and processes."""

import hashlib
import json
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

from common.audio.pitch import AT_FRAMES, METHODS, PITCH_CEILING, PITCH_FLOOR, PYIN_CEILING, PYIN_FLOOR, pitch_by
from common.config import AudioConfig
from common.errors import InputError, check_choice
from common.files import writing
from common.torch_file import load_tensor, save_tensor


class PitchCache:
    """Pitch by one method for mels of one description; a file a recording, named by what the pitch depends on.

    That is the recording's samples, the method and its version, its limits, and the frames. So a recording that is
    replaced, an updated library or another hop length never find outdated pitch. Files are written atomically, and
    any number of processes may fill the same folder.
    """

    def __init__(self, folder: Path, audio: AudioConfig, *, method: str = "praat") -> None:
        check_choice("pitch method", method, (*METHODS, AT_FRAMES))
        self._audio = audio
        self._method = method
        self._root = folder

    @cached_property
    def _folder(self) -> Path:
        """The folder for this method and these settings; computed late, as lists that name pitch need no Praat."""
        described = json.dumps(pitch_settings(self._audio, self._method), sort_keys=True).encode()
        return self._root / f"{self._method}-{hashlib.sha256(described).hexdigest()[:12]}"

    def pitch(self, wave: Tensor, *, n_frames: int, where: str = "") -> Tensor:
        """wave (T,) float32 in [-1, 1] -> pitch (n_frames,) float32 in Hz, 0 where unvoiced.

        Raises:
            AudioError: the clip is too short for pitch; names ``where``.
            OutputError: the folder cannot be written.
        """
        samples = wave.numpy()
        name = hashlib.sha256(samples.tobytes()).hexdigest()
        path = self._folder / name[:2] / f"{name[2:]}.pt"
        kept = _read(path, n_frames)
        if kept is not None:
            return kept
        values = pitch_by(self._method, samples, self._audio, n_frames=n_frames, where=where)
        pitch = torch.from_numpy(values).float()
        with writing(path, "; choose another --pitch-cache"):
            save_tensor(path, pitch, durable=False, shared=True)
        return pitch


def pitch_settings(audio: AudioConfig, method: str) -> dict[str, object]:
    """All that decides the pitch of given samples, as plain types."""
    import parselmouth

    floor, ceiling = (PITCH_FLOOR, PITCH_CEILING) if method != "pyin" else (PYIN_FLOOR, PYIN_CEILING)
    library = parselmouth.PRAAT_VERSION if method != "pyin" else version("librosa")
    frames = {name: getattr(audio, name) for name in ("sampling_rate", "filter_length", "hop_length", "framing")}
    return frames | {"method": method, "version": library, "floor": floor, "ceiling": ceiling}


def _read(path: Path, n_frames: int) -> Tensor | None:
    """The pitch that is kept in ``path``; None where there is none, or a power cut has left a broken file."""
    try:
        pitch = load_tensor(path)
    except InputError:
        return None
    return pitch if pitch.shape == (n_frames,) and bool(torch.isfinite(pitch).all()) else None
