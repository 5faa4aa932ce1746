"""Measures by packages that are not required: PESQ, STOI, and the words that pocketsphinx hears."""

import re
import warnings
from contextlib import suppress
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
