"""The sound source: the sum of all harmonics in closed form, from pitch and phase at mel frames."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from common.config import AudioConfig

LOWEST, HIGHEST = 30.0, 1200.0  # Hz


def fill_unvoiced(pitch: Tensor) -> Tensor:
    """pitch (..., F) in Hz, 0 where unvoiced -> log-interpolated there; 200 if no frame is voiced."""
    n_frames = pitch.size(-1)
    place = torch.arange(n_frames, device=pitch.device).expand(pitch.shape)
    voiced = pitch > 0
    before = torch.where(voiced, place, -1).cummax(-1).values
    after = -torch.where(voiced, -place, -n_frames).flip(-1).cummax(-1).values.flip(-1)
    first = torch.where(before < 0, after, before).clamp(max=n_frames - 1)
    last = torch.where(after >= n_frames, first, after)
    log_pitch = torch.where(voiced, pitch, 200.0).log()
    weight = (place - first).clamp(min=0) / (last - first).clamp(min=1)
    return torch.lerp(log_pitch.gather(-1, first), log_pitch.gather(-1, last), weight.clamp(max=1)).exp()


def phase_at_frames(pitch: Tensor, audio: AudioConfig) -> Tensor:
    """pitch (B, F) in Hz -> phase at the frame centers, in cycles since the first one, (B, F) in [0, 1).

    Pitch changes linearly between frames, as in `harmonics`.
    """
    cycles = _cycles(pitch[:, :-1], pitch[:, 1:], audio.hop_length, audio) / audio.sampling_rate
    return F.pad(cycles.double().cumsum(1), (1, 0)).remainder(1.0).float()  # float32 would drift


def _cycles(pitch: Tensor, next_pitch: Tensor, n: Tensor | int, audio: AudioConfig) -> Tensor:
    """Sum the pitch (Hz) over ``n`` samples, starting at a frame's center."""
    return n * pitch + (next_pitch - pitch) * (n * (n - 1) / (2 * audio.hop_length))


def harmonics(pitch: Tensor, phase: Tensor, audio: AudioConfig) -> Tensor:
    """pitch (B, F) in Hz, phase (B, F) of `phase_at_frames` -> wave (B, (F - 1) * hop + filter_length).

    All harmonics up to half the sampling rate have amplitude 1, and the next one has the fraction that fits. The sum
    of cos(k x) for k = 1..n is sin((n + 1/2) x) / (2 sin(x / 2)) - 1/2. The first frame is the first ``filter_length``
    samples; pitch is constant before the first and after the last center.
    """
    hop, rate, half = audio.hop_length, audio.sampling_rate, audio.filter_length // 2
    n_more = -(-half // hop)  # frames on each side, to fill the first and the last window
    back = torch.arange(-n_more, 0, device=pitch.device) * (pitch[:, :1] * hop / rate)
    on = torch.arange(1, n_more + 1, device=pitch.device) * (pitch[:, -1:] * hop / rate)
    phase = torch.cat([phase[:, :1] + back, phase, phase[:, -1:] + on], dim=1)
    pitch = torch.cat([pitch[:, :1].expand(-1, n_more), pitch, pitch[:, -1:].expand(-1, n_more + 1)], dim=1)
    this, following = pitch[:, :-1, None], pitch[:, 1:, None]
    sample = torch.arange(hop, device=pitch.device)
    # In float64, because the highest harmonics multiply errors by several hundred.
    cycles = (phase[:, :, None].double() + _cycles(this, following, sample, audio) / rate).flatten(1)
    fitting = (rate / 2) / torch.lerp(this, following, sample / hop).flatten(1)
    count = fitting.floor()
    x = (cycles - cycles.round()).float()
    is_peak = x.abs() < 1e-6
    divisor = torch.sin(math.pi * x).masked_fill(is_peak, 1.0)
    pulses = torch.where(is_peak, count, torch.sin(math.pi * (2 * count + 1) * x) / (2 * divisor) - 0.5)
    pulses = pulses + (fitting - count) * torch.cos(2 * math.pi * (count + 1) * x)
    start = n_more * hop - half
    return pulses[:, start : start + (pitch.size(1) - 2 * n_more - 2) * hop + audio.filter_length]
