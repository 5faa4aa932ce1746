"""The table of models. The modules of a model's package are looked up by name."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from common.errors import OptionError

# Name on the command line -> package. A new model needs a folder and a line here.
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
    """A model's name, its role, and the few facts that are needed before PyTorch is imported.

    The modules of its package are attributes: ``spec.model.build_networks(...)``; tests/test_conformance.py lists them.
    Its network implements its role's class: `common.synthesis.networks.TextToMel`, ``MelToWave`` or
    ``TextToWave``, or `common.recognition.recognizer.SpeechToText`.
    """

    package: str  # its ``__name__``
    name: str  # as in `train.py --model`
    role: str  # generator (text to mel, or to sound), vocoder (mel to sound) or recognizer (speech to text)
    makes_wave: bool = False  # whether a generator turns text into sound without a vocoder
    # Of generators
    phrase_columns: tuple[str, ...] = ()  # columns besides text that it reads from a list of phrases: pitch, duration
    recordable: tuple[str, ...] = ()  # network methods that --cuda-graphs records if padding changes nothing
    is_teacher: bool = False  # whether its attention yields durations: `TextToMel.teach`
    # Of vocoders
    has_noise: bool = True  # whether it adds a constant bias noise, which the denoiser removes
    # Of both
    compilable: bool = True  # whether torch.compile helps
    scriptable: bool = False  # whether its network has ``to_torchscript``
    # Whether the package itself loads --from-checkpoint; otherwise, the architecture must be the same.
    starts_from_checkpoint: bool = False

    def __getattr__(self, module: str) -> ModuleType:
        if module.startswith("__"):  # copy and pickle look these up
            raise AttributeError(module)
        return importlib.import_module(f"{self.package}.{module}")

    def find(self, module: str, name: str) -> Any:
        """Return ``name`` from a module of the package; None if the module or the name doesn't exist."""
        if importlib.util.find_spec(f"{self.package}.{module}") is None:
            return None
        return getattr(getattr(self, module), name, None)

    @property
    def option(self) -> str:
        """The name of the option for its checkpoint, without hyphens: ``HiFi-GAN`` -> ``hifigan``."""
        return self.name.lower().replace("-", "")


def available_models(role: str | None = None) -> list[str]:
    """Return the names of all models, or of those with ``role``."""
    return [name for name in _PACKAGES if role is None or get_model(name).role == role]


def get_model(name: str) -> ModelSpec:
    """Return a model by name; raises OptionError if there is none."""
    if name not in _PACKAGES:
        raise OptionError(f"model {name!r}: expected one of {', '.join(_PACKAGES)}")
    return importlib.import_module(_PACKAGES[name]).MODEL
