"""Recordings in and sound out: wav files, mel-spectrograms, pitch and its statistics, Griffin-Lim, the denoiser.

Pitch and Griffin-Lim, which load Praat and the rest of librosa, are imported from their modules.
"""

from common.audio.denoiser import Denoiser
from common.audio.mel import MelExtractor
from common.audio.pitch_statistics import PitchStatistics, read_pitch_statistics
from common.audio.wav import check_wav, load_wav, save_wav

__all__ = [
    "Denoiser",
    "MelExtractor",
    "PitchStatistics",
    "check_wav",
    "load_wav",
    "read_pitch_statistics",
    "save_wav",
]
