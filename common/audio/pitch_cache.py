"""A cache of recordings' pitch on disk, so that all epochs, runs and processes estimate it only once."""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

from common.audio.pitch import estimate_pitch, pitch_limits
from common.config import AudioConfig
from common.errors import InputError
from common.files import writing
from common.torch_file import load_tensor, save_tensor


@dataclass(frozen=True)
class PitchCache:
    """Pitch at mel frames from one method, in one file per recording.

    The path is a hash of everything that the pitch depends on: samples, method and its version, limits, and frames.
    Several processes may fill the same folder.
    """

    folder: Path
    audio: AudioConfig
    method: str = "praat"
    pitch_range: tuple[float | None, float | None] = (None, None)  # Hz; None: the method's own

    @cached_property
    def _folder(self) -> Path:
        """The folder for these settings."""
        import parselmouth  # here, because lists with pitch files don't need Praat

        names = ("sampling_rate", "filter_length", "hop_length", "framing")
        used = version("librosa") if self.method == "pyin" else parselmouth.PRAAT_VERSION
        settings = {name: getattr(self.audio, name) for name in names} | {"method": self.method, "version": used}
        settings |= zip(("floor", "ceiling"), pitch_limits(self.method, self.pitch_range))
        described = json.dumps(settings, sort_keys=True).encode()
        return self.folder / f"{self.method}-{hashlib.sha256(described).hexdigest()[:12]}"

    def pitch(self, wave: Tensor, *, n_frames: int, where: str = "") -> Tensor:
        """wave (T,) float32 in [-1, 1] -> pitch (n_frames,) float32 in Hz, 0 where unvoiced.

        Raises an AudioError that names ``where`` if the clip is too short; OutputError if the file can't be written.
        """
        samples = wave.numpy()
        name = hashlib.sha256(samples.tobytes()).hexdigest()
        path = self._folder / name[:2] / f"{name[2:]}.pt"
        with suppress(InputError):  # the file is missing, or a power failure damaged it
            kept = load_tensor(path)
            if kept.shape == (n_frames,):
                return kept
        estimate = partial(estimate_pitch, method=self.method, pitch_range=self.pitch_range)
        values = estimate(samples, self.audio, n_frames=n_frames, where=where)
        pitch = torch.from_numpy(values).float()
        with writing(path, "; choose another --pitch-cache"):
            save_tensor(path, pitch, durable=False, shared=True)
        return pitch
