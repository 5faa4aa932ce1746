"""Recordings in and sound out: wav files, mel-spectrograms, pitch and its statistics, Griffin-Lim, the denoiser."""

from .decoding import Decoded as Decoded, decode as decode
from .denoiser import BIAS_FRAMES as BIAS_FRAMES, Denoiser as Denoiser
from .mel import (
    MAGNITUDE_FLOOR as MAGNITUDE_FLOOR,
    SILENT_MEL as SILENT_MEL,
    MelExtractor as MelExtractor,
    compress as compress,
    full_precision_products as full_precision_products,
    griffin_lim as griffin_lim,
    hz_to_mel as hz_to_mel,
    mel_filters as mel_filters,
    overlap_add as overlap_add,
    reflected as reflected,
)
from .pitch import (
    AT_FRAMES as AT_FRAMES,
    PITCH_CEILING as PITCH_CEILING,
    PITCH_FLOOR as PITCH_FLOOR,
    PITCH_LIMITS as PITCH_LIMITS,
    SHORTEST as SHORTEST,
    PitchStatistics as PitchStatistics,
    estimate_pitch as estimate_pitch,
    read_pitch_statistics as read_pitch_statistics,
)
from .pitch_cache import PitchCache as PitchCache
from .wav import (
    CONTAINERS as CONTAINERS,
    FULL_SCALE as FULL_SCALE,
    SOUND_FORMATS as SOUND_FORMATS,
    SOUND_SUFFIXES as SOUND_SUFFIXES,
    check_complete as check_complete,
    check_sound_format as check_sound_format,
    check_wav as check_wav,
    encode_sound as encode_sound,
    load_wav as load_wav,
    open_wav as open_wav,
    pcm16 as pcm16,
    resample as resample,
    save_wav as save_wav,
    to_int16 as to_int16,
    wav_header as wav_header,
)
