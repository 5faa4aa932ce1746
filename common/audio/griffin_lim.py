"""Griffin-Lim: a mel-spectrogram to sound without a trained vocoder."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio.mel import MelExtractor, decompress, overlap_add
from common.config import AudioConfig
from common.errors import InputError

INVERSION_STEPS = 60  # of the non-negative least squares; the mel's error is below Griffin-Lim's by then
MOMENTUM = 0.99


def griffin_lim(mel: Tensor, config: AudioConfig, *, n_iter: int = 60, seed: int = 0) -> Tensor:
    """An utterance's log-mel (n_mels, F) -> wave (F * hop,) float32; the same for the same mel, seed and config.

    The magnitude of each frequency bin is estimated from the mel channels, then a phase that fits it is searched
    for in ``n_iter`` rounds. Source: Griffin & Lim, Signal Estimation from Modified STFT (1984); Perraudin et al.,
    A Fast Griffin-Lim Algorithm (2013), for the momentum.
    """
    if not torch.isfinite(mel).all():
        raise InputError("the mel-spectrogram holds numbers that are not finite")
    n_samples = mel.shape[1] * config.hop_length
    extractor = MelExtractor(config)
    magnitude = torch.from_numpy(linear_magnitude(decompress(mel.detach().float().cpu()).numpy(), extractor))
    wave = _with_fitting_phase(magnitude, extractor.window, config.hop_length, n_iter=n_iter, seed=seed)
    sound = wave[extractor.pad_left :][:n_samples]
    return F.pad(sound, (0, n_samples - len(sound)))


def _with_fitting_phase(magnitude: Tensor, window: Tensor, hop_length: int, *, n_iter: int, seed: int) -> Tensor:
    """Magnitudes (bins, F) -> wave (filter_length + (F - 1) * hop,) of frames whose magnitudes come near them.

    Frame i starts at sample i * hop, so that both framings are one. The phase begins at random.
    """
    n_frames, filter_length = magnitude.shape[1], len(window)
    tiny = torch.finfo(torch.float32).tiny

    weight = overlap_add(window.square().expand(1, n_frames, -1), hop_length)[0]
    scale = torch.where(weight > tiny, 1 / weight, 1.0)  # where no window reaches, the sound is silent anyway

    def sound_of(spectrum: Tensor) -> Tensor:
        return overlap_add((torch.fft.irfft(spectrum, n=filter_length) * window)[None], hop_length)[0] * scale

    magnitude = magnitude.T.contiguous()  # (F, bins)
    turns = np.random.RandomState(seed % 2**32).random_sample(magnitude.T.shape).T
    spectrum = torch.polar(magnitude, torch.from_numpy(np.float32(2 * np.pi * turns)))
    before = torch.zeros_like(spectrum)
    for _ in range(n_iter):
        rebuilt = torch.fft.rfft(sound_of(spectrum).unfold(0, filter_length, hop_length) * window)
        spectrum = rebuilt - MOMENTUM / (1 + MOMENTUM) * before
        spectrum *= magnitude / (spectrum.abs() + tiny)
        before = rebuilt
    return sound_of(spectrum)


def linear_magnitude(mel: np.ndarray, extractor: MelExtractor) -> np.ndarray:
    """Mel magnitudes (n_mels, F) -> magnitudes (1 + filter_length / 2, F) that the mel filters map onto them.

    Non-negative least squares by multiplicative updates, from the mel's own envelope, so that neighboring bins
    under one filter stay alike. Bins above the highest filter are silent. Source: Lee & Seung, Algorithms for
    Non-negative Matrix Factorization (2001), with a fixed basis.
    """
    basis = extractor.mel_basis.numpy()  # (n_mels, bins)
    gram = basis.T @ basis
    target = basis.T @ mel
    tiny = np.finfo(np.float32).tiny
    weight = basis.T @ basis.sum(axis=1)
    magnitude = target / np.maximum(weight, tiny)[:, None]
    for _ in range(INVERSION_STEPS):
        magnitude *= target / np.maximum(gram @ magnitude, tiny)
    full = np.zeros((1 + extractor.config.filter_length // 2, mel.shape[1]), dtype=np.float32)
    full[: len(magnitude)] = magnitude
    return full
