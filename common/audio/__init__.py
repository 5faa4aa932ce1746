"""Recordings in and sound out: wav files, mel-spectrograms, pitch and its statistics, Griffin-Lim, the denoiser."""

from common.audio.denoiser import BIAS_FRAMES, Denoiser
from common.audio.mel import MAGNITUDE_FLOOR, SILENT_MEL, MelExtractor, compress, full_precision_products, overlap_add
from common.audio.pitch import AT_FRAMES, PITCH_CEILING, PITCH_FLOOR, PITCH_LIMITS, SHORTEST, estimate_pitch
from common.audio.pitch_cache import PitchCache
from common.audio.pitch_statistics import PitchStatistics, read_pitch_statistics
from common.audio.wav import (
    CONTAINERS,
    FULL_SCALE,
    SOUND_FORMATS,
    SOUND_SUFFIXES,
    check_sound_format,
    check_wav,
    check_wav_size,
    load_wav,
    open_wav,
    pcm16,
    resample,
    save_wav,
    to_int16,
    wav_header,
)
