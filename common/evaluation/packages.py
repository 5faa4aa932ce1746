"""Measures by packages that are not required: PESQ, STOI, and the words that pocketsphinx hears."""

import math
import re
import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.audio import resample
from common.text import get_cleaner

PACKAGES = {"pesq": "PESQ", "pystoi": "STOI", "pocketsphinx": "WER and CER"}  # what each measures
PESQ_RATE, STOI_RATE, SPHINX_RATE = 16000, 10000, 16000  # Hz


def installed() -> frozenset[str]:
    """The packages that can be imported."""
    return frozenset(name for name in PACKAGES if find_spec(name) is not None)


def pesq(copy: np.ndarray, recording: np.ndarray, *, sampling_rate: int) -> float:
    """Wide-band PESQ (ITU-T P.862.2) of a copy (T,), 1 to 4.64; NaN without the package, or if it finds no speech."""
    if "pesq" not in installed():
        return math.nan
    package = import_module("pesq")
    try:
        return float(package.pesq(PESQ_RATE, *_at(PESQ_RATE, sampling_rate, recording, copy), "wb"))
    except package.PesqError:
        return math.nan


def stoi(copy: np.ndarray, recording: np.ndarray, *, sampling_rate: int) -> float:
    """Short-time objective intelligibility (Taal 2011) of a copy (T,), up to 1; NaN as for `pesq`."""
    if "pystoi" not in installed():
        return math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of less speech than it needs, for which it returns 1e-5
        try:
            return float(import_module("pystoi").stoi(*_at(STOI_RATE, sampling_rate, recording, copy), STOI_RATE))
        except RuntimeWarning:
            return math.nan


def _at(rate: int, old_rate: int, *waves: np.ndarray) -> list[np.ndarray]:
    """The waves (T,) at another sampling rate."""
    return [resample(torch.from_numpy(wave), ratio=rate / old_rate).numpy() for wave in waves]


@dataclass(frozen=True)
class Pocketsphinx:
    """The recognizer of the package with its own model of American English; methods as `Recognizer` has them."""

    decoder: Any

    @classmethod
    def load(cls) -> "Pocketsphinx":
        """Load its model; the package must be installed."""
        return cls(import_module("pocketsphinx").Decoder(samprate=SPHINX_RATE, loglevel="FATAL", cmn="batch"))

    def normalize(self, text: str) -> str:
        """A text as it writes one: numbers in words, small letters and apostrophes, single spaces."""
        words = get_cleaner("english_cleaners_v3")(text).lower().replace("-", " ")
        return " ".join(re.sub(r"[^a-z' ]", " ", words).split())

    def transcribe(self, wave: Tensor, *, sampling_rate: int) -> list[SimpleNamespace]:
        """wave (T,) -> its transcript, the ``text`` of the one item."""
        samples = resample(wave.float(), ratio=SPHINX_RATE / sampling_rate)
        samples = 0.5 * samples / samples.abs().max().clamp(min=1e-4)
        self.decoder.start_utt()
        self.decoder.process_raw((samples * 32767).short().numpy().tobytes(), full_utt=True)
        self.decoder.end_utt()
        found = self.decoder.hyp()
        text = "" if found is None else re.sub(r"\(\d+\)", "", found.hypstr)  # the number of a pronunciation
        return [SimpleNamespace(text=" ".join(re.sub(r"[^a-z' ]", " ", text).split()))]
