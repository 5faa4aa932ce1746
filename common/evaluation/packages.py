"""Measures by packages that are not required, those of requirements-evaluate.txt: all but Whisper's."""

import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from common.audio import resample

PACKAGES = {  # what each measures
    "pesq": "PESQ",
    "pystoi": "STOI",
    "faster_whisper": "WER and CER",
    "distillmos": "DistillMOS",
    "resemblyzer": "likeness",
}
PESQ_RATE, STOI_RATE, RATE = 16000, 10000, 16000  # Hz


def installed() -> frozenset[str]:
    """The packages that can be imported."""
    return frozenset(name for name in PACKAGES if find_spec(name) is not None)


def pesq_and_stoi(copy: np.ndarray, recording: np.ndarray, *, sampling_rate: int) -> dict[str, float]:
    """Quality of a copy (T,) by those of the packages that are installed, where they find speech.

    Wide-band PESQ (ITU-T P.862.2) is from 1 to 4.64, short-time objective intelligibility (Taal 2011) up to 1.
    """

    def at(rate: int) -> list[np.ndarray]:
        return [resample(torch.from_numpy(one), ratio=rate / sampling_rate).numpy() for one in (recording, copy)]

    figures = {}
    if "pesq" in installed():
        package = import_module("pesq")
        with suppress(package.PesqError):
            figures["pesq"] = float(package.pesq(PESQ_RATE, *at(PESQ_RATE), "wb"))
    if "pystoi" in installed():
        with warnings.catch_warnings(), suppress(RuntimeWarning):
            warnings.simplefilter("error", RuntimeWarning)  # of less speech than it needs, for which it returns 1e-5
            figures["stoi"] = float(import_module("pystoi").stoi(*at(STOI_RATE), STOI_RATE))
    return figures


def load_distillmos() -> Callable[[Tensor], float]:
    """DistillMOS (Stahl and Gamper 2025): a wave (T,) at `RATE` -> the opinion of listeners that it expects, 1 to 5.

    Raises ImportError or OSError where the package, or what it needs, is missing.
    """
    with redirect_stdout(StringIO()):  # it prints the path of its weights
        sqa = _import_without_torchaudio("distillmos.sqa")
        model = sqa.ConvTransformerSQAModel().eval()

    def score(wave: Tensor) -> float:
        beyond = max(0, len(wave) - sqa.SEQ_LEN)
        # The crops that the model would make, one at a time: all at once, those of two minutes fill the memory.
        starts = np.linspace(0, beyond, int(np.ceil(beyond / sqa.MAX_HOP_LEN)) + 1).astype(int)
        with torch.inference_mode():
            return float(np.mean([model(wave[None, start : start + sqa.SEQ_LEN]).item() for start in starts]))

    return score


def load_speaker_encoder() -> Callable[[Tensor], list[float]]:
    """Resemblyzer (Wan et al. 2018): a wave (T,) at `RATE` -> the embedding of its speaker, of norm 1.

    It is empty where no speech is found. Raises ImportError where the package, or what it needs, is missing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        package = import_module("resemblyzer")
    encoder = package.VoiceEncoder("cpu", verbose=False)

    def embed(wave: Tensor) -> list[float]:
        speech = package.preprocess_wav(wave.numpy()) if wave.any() else np.zeros(0)
        return [round(float(value), 5) for value in encoder.embed_utterance(speech)] if len(speech) else []

    return embed


def _import_without_torchaudio(name: str) -> ModuleType:
    """Import a module that needs torchaudio only to read files, which may be missing or built for another PyTorch."""
    with suppress(ImportError, OSError):
        import_module("torchaudio")
        return import_module(name)
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    try:
        return import_module(name)
    finally:
        del sys.modules["torchaudio"]
