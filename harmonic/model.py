"""The harmonic vocoder: a network that finds pitch and voicing, and one that filters harmonics and noise."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.audio.mel import MelExtractor, full_precision_products, overlap_add
from common.config import AudioConfig
from common.nn.discriminators import build_discriminators
from common.nn.layers import SeededNoise, mask_from_lengths, scale_log_mel
from common.synthesis.networks import MelToWave, VocoderSettings
from common.text.config import TextConfig
from harmonic.arg_parser import InferenceOptions
from harmonic.config import MEL_CORRECTIONS, N_PITCHES, ModelConfig
from harmonic.source import HIGHEST, LOWEST, harmonics, phase_at_frames

_PITCH_KERNEL, _PITCH_LAYERS = 5, 3
_BIN = math.log(HIGHEST / LOWEST) / (N_PITCHES - 1)  # log step between two pitches
_NEIGHBORS = 3  # pitch is averaged over this many bins on each side of the highest score
_KERNEL = 7  # frames
_MIDDLE = 200.0  # Hz
_LOUDEST, _FAINTEST = 6.5, -14.0  # logarithms of gains
_NOISE_GAIN = -1.5  # initial logarithm
_MOST_CORRECTED = 2.0  # largest logarithm of one correction
_TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True)
class PitchOutput:
    """Output of the pitch network, float32 unless noted."""

    pitch: Tensor  # (B, F) float64 Hz, also where unvoiced
    voicing: Tensor  # (B, F) logit
    scores: Tensor  # (B, N_PITCHES, F) logits over `pitch_grid`


def _masked(x: Tensor, padding: Tensor | None) -> Tensor:
    """x (B, C, F), zero where ``padding`` (B, 1, F) is True."""
    return x if padding is None else x.masked_fill(padding, 0.0)


def pitch_grid(device: torch.device) -> Tensor:
    """Return the natural logarithms (N_PITCHES,) of the scored pitches in Hz."""
    return torch.linspace(math.log(LOWEST), math.log(HIGHEST), N_PITCHES, device=device)


class PitchNetwork(nn.Module):
    """Convolutions that score pitches and voicing, in float32 because pitch errors accumulate in the phase."""

    in_float32 = ("convs", "end")

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        widths = [config.n_mel_channels, *[config.pitch_channels] * _PITCH_LAYERS]
        self.convs = nn.ModuleList(
            nn.Conv1d(first, second, _PITCH_KERNEL, padding=_PITCH_KERNEL // 2) for first, second in pairwise(widths)
        )
        self.end = nn.Conv1d(config.pitch_channels, N_PITCHES + 1, 1)

    def forward(self, mel: Tensor, padding: Tensor | None = None) -> PitchOutput:
        """mel (B, n_mels, F), padding (B, 1, F) True past the ends."""
        with torch.autocast(mel.device.type, enabled=False):
            x = scale_log_mel(mel.float())
            for conv in self.convs:
                x = F.leaky_relu(conv(_masked(x, padding)), 0.1)
            x = self.end(x)
            scores, voicing = x[:, :N_PITCHES], x[:, N_PITCHES]
            place = torch.arange(N_PITCHES, device=mel.device).unsqueeze(1)
            far = (place - scores.argmax(1, keepdim=True)).abs() > _NEIGHBORS
            # In float64, because rounding errors differ between engines and would accumulate in the phase.
            shares = torch.softmax(scores.masked_fill(far, -torch.inf).double(), dim=1)
            pitch = LOWEST * ((shares * place).sum(1) * _BIN).exp()
        return PitchOutput(pitch, voicing, scores)


class Block(nn.Module):
    """A ConvNeXt block over frames (arXiv:2201.03545), as in Vocos (arXiv:2306.00814)."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n_channels, n_channels, _KERNEL, padding=_KERNEL // 2, groups=n_channels)
        self.norm = nn.LayerNorm(n_channels)
        self.widen = nn.Linear(n_channels, 3 * n_channels)
        self.narrow = nn.Linear(3 * n_channels, n_channels)
        self.scale = nn.Parameter(torch.full((n_channels,), 0.25))

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """x (B, C, F), padding (B, 1, F) True past the ends -> (B, C, F)."""
        inner = self.norm(self.conv(_masked(x, padding)).transpose(1, 2))
        return x + (self.scale * self.narrow(F.gelu(self.widen(inner)))).transpose(1, 2)


class FilterNetwork(nn.Module):
    """Predicts log gains of harmonics and noise, and harmonic phases, for every frame and frequency bin."""

    def __init__(self, config: ModelConfig, *, n_bins: int) -> None:
        super().__init__()
        width = config.n_channels
        self.n_bins = n_bins
        self.start = nn.Conv1d(config.n_mel_channels + 2, width, _KERNEL, padding=_KERNEL // 2)
        self.start_norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(config.n_layers))
        self.end_norm = nn.LayerNorm(width)
        self.end = nn.Linear(width, 3 * n_bins)
        nn.init.normal_(self.end.weight, std=0.01)
        nn.init.zeros_(self.end.bias)
        nn.init.constant_(self.end.bias[n_bins : 2 * n_bins], _NOISE_GAIN)

    def forward(self, mel: Tensor, track: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """mel (B, n_mels, F), track (B, 3, F) of `HarmonicVocoder.track` -> three tensors (B, F, bins) float32."""
        pitch, voicing = track[:, :1], track[:, 1:2]
        x = torch.cat([scale_log_mel(mel), 4 * voicing * (pitch.log() - math.log(_MIDDLE)), voicing], dim=1)
        x = self.start_norm(self.start(_masked(x, padding)).transpose(1, 2)).transpose(1, 2)
        for block in self.blocks:
            x = block(x, padding)
        first, second, third = self.end(self.end_norm(x.transpose(1, 2))).float().split(self.n_bins, dim=2)
        return first, second, third


class Fourier(nn.Module):
    """Fourier transforms of frames; `harmonic.export` has a version for ONNX."""

    def __init__(self, audio: AudioConfig) -> None:
        super().__init__()
        self.size, self.hop = audio.filter_length, audio.hop_length

    def forward(self, wave: Tensor, window: Tensor) -> Any:
        """wave (B, T) -> (B, F, bins) complex, of frames times ``window``."""
        return torch.fft.rfft(wave.unfold(1, self.size, self.hop) * window)

    def inverse(self, spectrum: Any) -> Tensor:
        """spectrum (B, F, bins) complex -> frames (B, F, filter_length)."""
        return torch.fft.irfft(spectrum, n=self.size)

    def polar(self, magnitude: Tensor, phase: Tensor) -> Any:
        """Return complex numbers from magnitudes and phases."""
        return torch.polar(magnitude, phase)


class HarmonicVocoder(MelToWave, nn.Module):
    """Filters harmonics and noise by frequency, as in DDSP and HiFTNet (arXiv:2309.09493), then corrects the mel.

    Frame i of all spectra begins at sample i * hop of a wave that begins ``pad_left`` samples before the sound.
    """

    interpolation: Tensor  # (n_mels, bins): from mel channels to frequency bins
    channel_weights: Tensor  # (n_mels, 1): logarithms of the sums of the mel filters

    def __init__(self, config: ModelConfig, audio: AudioConfig) -> None:
        super().__init__()
        self.config = config
        self.audio = audio
        self.mel = MelExtractor(replace(audio, peak=None))
        n_bins = audio.filter_length // 2 + 1
        self.pitch = PitchNetwork(config)
        self.filter = FilterNetwork(config, n_bins=n_bins)
        sums = self.mel.mel_basis.sum(1, keepdim=True)
        self.register_buffer("channel_weights", sums.clamp(min=1e-8).log(), persistent=False)
        self.register_buffer("interpolation", _interpolation(self.mel.mel_basis, n_bins), persistent=False)
        self.fourier = Fourier(audio)
        self._noise = SeededNoise(audio.hop_length)

    @torch.no_grad()
    def track(self, mel: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Run the pitch network and `track_of`: mel (B, n_mels, F), lengths (B,) frames -> (B, 3, F) float32."""
        valid = None if lengths is None else mask_from_lengths(lengths, mel.size(2))
        found = self.pitch(mel, None if valid is None else ~valid.unsqueeze(1))
        pitch, voicing = found.pitch, torch.sigmoid(found.voicing)
        if valid is not None:
            assert lengths is not None
            # Windows and smoothing read a few frames past an utterance's end, so its last frame is repeated there.
            last = (lengths - 1).clamp(min=0).unsqueeze(1)
            pitch, voicing = (torch.where(valid, one, one.gather(1, last)) for one in (pitch, voicing))
        return self.track_of(pitch, voicing)

    def track_of(self, pitch: Tensor, voicing: Tensor) -> Tensor:
        """pitch (B, F) in Hz, never 0, voicing (B, F) -> (B, 3, F): pitch, smoothed voicing, phase in cycles."""
        return torch.stack([pitch.float(), _smoothed(voicing), phase_at_frames(pitch, self.audio)], dim=1)

    def forward(
        self, mel: Tensor, track: Tensor, noise: Tensor, lengths: Tensor | None = None, *, corrections: int
    ) -> Tensor:
        """mel (B, n_mels, F), `track`'s (B, 3, F), noise (N * B, T), lengths (B,) frames -> wave (N * B, T) float32.

        T is (F - 1) * hop + filter_length. Each of N batches of noise makes a batch of sounds.
        """
        valid = None if lengths is None else mask_from_lengths(lengths, mel.size(2))
        gain, noise_gain, phase = self.filter(mel, track, None if valid is None else ~valid.unsqueeze(1))
        window = self.mel.window
        with torch.autocast(mel.device.type, enabled=False), full_precision_products():
            mel = mel.float()
            envelope = torch.matmul((mel - self.channel_weights).transpose(1, 2), self.interpolation)
            with torch.no_grad():
                pulses = harmonics(track[:, 0], track[:, 2], self.audio) * (2 / window.sum())
                source = self._spectrum(pulses) * track[:, 1].unsqueeze(2)
                breath = self._spectrum(noise / window.square().sum().sqrt())
            filters = self.fourier.polar((envelope + gain).clamp(_FAINTEST, _LOUDEST).exp(), phase)
            noise_filters = (envelope + noise_gain).clamp(_FAINTEST, _LOUDEST).exp()
            n_draws = len(noise) // len(mel)
            mel = mel.repeat(n_draws, 1, 1)
            spectrum = (source * filters).repeat(n_draws, 1, 1) + breath * noise_filters.repeat(n_draws, 1, 1)
            windows = self._windows(mel.size(2), valid)
            wave = self._sound(spectrum, *windows)
            for _ in range(corrections):
                spectrum = self._spectrum(wave)
                missing = (mel - self.mel.of_spectrum(spectrum)).clamp(-_MOST_CORRECTED, _MOST_CORRECTED)
                wave = self._sound(spectrum * torch.matmul(missing.transpose(1, 2), self.interpolation).exp(), *windows)
        return wave

    @torch.no_grad()
    def infer(self, mel: Tensor, lengths: Tensor | None = None, *, seed: int = 1234) -> Tensor:
        """Like `MelToWave.infer`; the noise depends on ``seed`` and the position in the utterance."""
        noise = draw_noise(self._noise, seed, mel, self.audio)
        wave = self(mel, self.track(mel, lengths), noise, lengths, corrections=MEL_CORRECTIONS)
        return self.cut(wave, mel.size(2), lengths)

    def cut(self, wave: Tensor, n_frames: int, lengths: Tensor | None) -> Tensor:
        """`forward`'s wave -> the sound (B, n_frames * hop), zero past an utterance's end."""
        hop = self.audio.hop_length
        wave = F.pad(wave[:, self.mel.pad_left :], (0, hop))[:, : n_frames * hop]
        if lengths is not None:
            wave = wave * mask_from_lengths(lengths * hop, wave.size(1))
        return wave

    def settings(self, options: InferenceOptions, *, seed: int, where: Path) -> VocoderSettings:
        return VocoderSettings({"seed": seed})

    def _spectrum(self, wave: Tensor) -> Any:
        """wave (B, T) -> (B, F, bins) complex, of windowed frames."""
        return self.fourier(wave, self.mel.window)

    def _sound(self, spectrum: Any, windows: Tensor, scale: Tensor) -> Tensor:
        """spectrum (B, F, bins) complex -> wave (B, T), by overlap-add with ``windows``, times ``scale``."""
        return overlap_add(self.fourier.inverse(spectrum) * windows, self.audio.hop_length) * scale

    def _windows(self, n_frames: int, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the windows and scale for `_sound`, for the ``valid`` (B, F) frames or all ``n_frames``."""
        window = self.mel.window
        windows = window.expand(1, n_frames, -1) if valid is None else window * valid.unsqueeze(2)
        weight = overlap_add(windows * window, self.audio.hop_length)
        return windows, torch.where(weight > _TINY, 1 / weight, 0.0)


def _smoothed(voicing: Tensor) -> Tensor:
    """voicing (B, F) averaged over three frames, with replicated ends."""
    padded = F.pad(voicing, (1, 1), mode="replicate")
    return (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3


def _interpolation(basis: Tensor, n_bins: int) -> Tensor:
    """basis (n_mels, bins) -> (n_mels, n_bins): weights of linear interpolation between the filters' centers."""
    filters = basis.double().numpy()  # NumPy, so that networks can be built on the `meta` device
    sums = filters.sum(1)
    used = sums > 0
    centers = (filters[used] * np.arange(filters.shape[1])).sum(1) / sums[used]
    weights = np.zeros((len(filters), n_bins), dtype=np.float32)
    weights[used] = [np.interp(np.arange(n_bins), centers, one) for one in np.eye(len(centers))]
    return torch.from_numpy(weights)


def draw_noise(source: SeededNoise, seed: int, mel: Tensor, audio: AudioConfig) -> Tensor:
    """Draw noise (B, (F - 1) * hop + filter_length) for mel (B, n_mels, F), the same for each utterance."""
    n_samples = (mel.size(2) - 1) * audio.hop_length + audio.filter_length
    # A row of the noise is a hop; the last windows extend beyond the last frame.
    rows = source(seed, -(-n_samples // audio.hop_length), device=mel.device)
    return rows.transpose(1, 2).flatten(1)[:, :n_samples].expand(len(mel), -1)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Build networks with random weights: the vocoder and, for training, discriminators if configured."""
    networks: dict[str, nn.Module] = {"harmonic": HarmonicVocoder(config, audio)}
    if config.discriminators is not None and not inference:
        networks |= build_discriminators(config.discriminators)
    return networks
