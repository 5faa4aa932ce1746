"""Frames of a long reading: log-mels, cepstra, and which frames are speech or quiet."""

from collections.abc import Iterable

import numpy as np
import scipy.fft
import torch

from common.audio.mel import MelExtractor
from common.config import AudioConfig

RATE = 22050  # Hz, of the reading, as in eSpeak's output
_CONFIG = AudioConfig(RATE, hop_length=441, n_mels=40, mel_fmin=60.0, mel_fmax=7600.0, framing="aligned")
FRAME_RATE = 50  # Hz
_N_CEPSTRA = 13
_SPREAD = 5  # frames on either side, for a cepstrum's slope
_SPEECH_RANGE = 6.0  # nepers of power, 26 dB
_SILENT = -17.0  # nepers of power; digital silence is at -19.3


def log_mels(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Compute the log-mel-spectrogram (F, 40) at `FRAME_RATE` of blocks (T,) of audio at `RATE`."""
    extractor = MelExtractor(_CONFIG)
    length, hop = _CONFIG.filter_length, _CONFIG.hop_length
    left, mels = np.zeros(extractor.pad_left, np.float32), [np.zeros((0, _CONFIG.n_mels), np.float32)]
    for block in (*blocks, np.zeros(extractor.pad_right, np.float32)):
        left = np.concatenate([left, block])
        n_frames = (len(left) - length) // hop + 1
        if n_frames > 0:
            used = torch.from_numpy(left[None, : (n_frames - 1) * hop + length])
            mels.append(extractor.of_frames(used)[0].T.numpy())
            left = left[n_frames * hop :]
    return np.concatenate(mels)


def _log_powers(mels: np.ndarray) -> np.ndarray:
    """Return each frame's power (F,) in nepers."""
    return np.log(np.exp(2 * mels).sum(axis=1))


def quiet_frames(mels: np.ndarray) -> np.ndarray:
    """Return which frames (F,) have no speech: closer in level to the quietest than to speech, or 37 dB below it."""
    levels = _log_powers(mels)
    speech, lowest = np.percentile(levels, [90, 3])
    return levels < max(min(max(speech - 8.5, lowest + 0.25 * (speech - lowest)), speech - 4), _SILENT)


def cepstra(mels: np.ndarray) -> np.ndarray:
    """Compute cepstra and their slopes: (F, 40) -> (F, 26)."""
    values = scipy.fft.dct(mels, axis=1, norm="ortho")[:, :_N_CEPSTRA]
    padded = np.pad(values, ((_SPREAD, _SPREAD), (0, 0)), mode="edge")
    return np.concatenate([values, padded[2 * _SPREAD :] - padded[: -2 * _SPREAD]], axis=1)


def speech_frames(mels: np.ndarray) -> np.ndarray:
    """Return which frames are about as loud as speech, (F,) bool."""
    levels = _log_powers(mels)
    return levels > np.percentile(levels, 90) - _SPEECH_RANGE


def subtract_mean(mels: np.ndarray) -> np.ndarray:
    """Subtract each channel's mean in speech from log-mels."""
    return mels - mels[speech_frames(mels)].mean(axis=0)
