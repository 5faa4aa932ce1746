"""The table of models. The modules of a model's package are found by their names."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from common.errors import OptionError

# Name on the command line -> package. A new model is a folder and a line here.
_PACKAGES = {
    "FastPitch": "fastpitch",
    "HiFi-GAN": "hifigan",
    "WaveGlow": "waveglow",
    "Tacotron2": "tacotron2",
    "Jasper": "jasper",
    "Harmonic": "harmonic",
}


@dataclass(frozen=True)
class ModelSpec:
    """A model's name, role, and the few facts that are needed without PyTorch.

    The modules of its package are attributes: ``spec.model.build_networks(...)``; tests/test_conformance.py lists them.
    Its network implements the class of its role: `common.synthesis.networks.TextToMel`, ``MelToWave`` or
    ``TextToWave``, or `common.recognition.recognizer.SpeechToText`.
    """

    package: str  # its ``__name__``
    name: str  # as `train.py --model`
    role: str  # generator (text to mel, or to sound), vocoder (mel to sound) or recognizer (speech to text)
    makes_wave: bool = False  # of a generator: it goes from text to sound, and needs no vocoder
    # Of generators
    phrase_columns: tuple[str, ...] = ()  # columns that it reads of a list of phrases besides text: pitch, duration
    recordable: tuple[str, ...] = ()  # methods of its network that --cuda-graphs records where padding changes nothing
    is_teacher: bool = False  # whether its attention gives durations: `TextToMel.teach`
    # Of vocoders
    has_noise: bool = True  # whether it adds a constant bias noise, which the denoiser removes
    # Of both
    compilable: bool = True  # whether torch.compile helps
    scriptable: bool = False  # whether its network has ``to_torchscript``
    # Whether the package itself takes the weights of --from-checkpoint; else its architecture must be the same.
    starts_from_checkpoint: bool = False

    def __getattr__(self, module: str) -> ModuleType:
        if module.startswith("__"):  # asked for by copy and pickle
            raise AttributeError(module)
        return importlib.import_module(f"{self.package}.{module}")

    def find(self, module: str, name: str) -> Any:
        """Return what a module of the package defines as ``name``; None if there is no such module or name."""
        if importlib.util.find_spec(f"{self.package}.{module}") is None:
            return None
        return getattr(getattr(self, module), name, None)

    @property
    def option(self) -> str:
        """The option that takes its checkpoint, without hyphens: ``HiFi-GAN`` -> ``hifigan``."""
        return self.name.lower().replace("-", "")


def available_models(role: str | None = None) -> list[str]:
    """Return the names of the models, or of those with ``role``."""
    return [name for name in _PACKAGES if role is None or get_model(name).role == role]


def get_model(name: str) -> ModelSpec:
    """Return the model of that name; raises OptionError if there is none."""
    if name not in _PACKAGES:
        raise OptionError(f"model {name!r}: expected one of {', '.join(_PACKAGES)}")
    return importlib.import_module(_PACKAGES[name]).MODEL
