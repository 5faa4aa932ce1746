"""The one table of models: the name users type, and the package that holds it."""

import importlib
import importlib.util
from types import ModuleType

from common.errors import OptionError

_PACKAGES = {
    "FastPitch": "fastpitch",
    "HiFi-GAN": "hifigan",
    "WaveGlow": "waveglow",
    "Tacotron2": "tacotron2",
    "Jasper": "jasper",
}
GENERATORS = ("FastPitch", "Tacotron2")  # text to mel-spectrogram
VOCODERS = ("HiFi-GAN", "WaveGlow")  # mel-spectrogram to sound
_PARTS = ("model", "arg_parser", "data_function", "loss_function")


def available_models() -> list[str]:
    """Names of the models whose package is here."""
    return [name for name, package in _PACKAGES.items() if importlib.util.find_spec(package) is not None]


def import_package(name: str) -> ModuleType:
    """A model's package with its four files as attributes: ``model, arg_parser, data_function, loss_function``.

    Raises:
        OptionError: no model of that name is here.
    """
    available = available_models()
    if name not in available:
        raise OptionError(f"model {name!r}: expected one of {', '.join(available)}")
    package = importlib.import_module(_PACKAGES[name])
    for part in _PARTS:
        importlib.import_module(f"{package.__name__}.{part}")
    return package
