"""Griffin-Lim: a mel-spectrogram to sound without a trained vocoder."""

import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio.mel import MelExtractor, decompress
from common.config import AudioConfig
from common.errors import InputError

INVERSION_STEPS = 60  # of the non-negative least squares; the mel's error is below Griffin-Lim's by then

# librosa 1.0 calls the generator otherwise.
warnings.filterwarnings("ignore", category=FutureWarning, module=__name__)


def griffin_lim(mel: Tensor, config: AudioConfig, *, n_iter: int = 60, seed: int = 0) -> Tensor:
    """An utterance's log-mel (n_mels, F) -> wave (F * hop,) float32; the same for the same mel, seed and config.

    The magnitude of each frequency bin is estimated from the mel channels, then a phase that fits it is searched
    for in ``n_iter`` rounds. Source: Griffin & Lim, Signal Estimation from Modified STFT (1984); Perraudin et al.,
    A Fast Griffin-Lim Algorithm (2013), for the momentum.
    """
    import librosa  # here, as it takes a second

    if not torch.isfinite(mel).all():
        raise InputError("the mel-spectrogram holds numbers that are not finite")
    n_samples = mel.shape[1] * config.hop_length
    extractor = MelExtractor(config)
    # Frame i starts at sample i * hop, so that both framings are one.
    wave = librosa.griffinlim(
        linear_magnitude(decompress(mel.detach().float().cpu()).numpy(), extractor),
        n_iter=n_iter,
        hop_length=config.hop_length,
        win_length=config.win_length,
        n_fft=config.filter_length,
        center=False,
        random_state=np.random.RandomState(seed % 2**32),
    )
    sound = torch.from_numpy(wave)[extractor.pad_left :][:n_samples]
    return F.pad(sound, (0, n_samples - len(sound)))


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
