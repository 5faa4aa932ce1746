"""The public API: voices that speak and recognizers that transcribe.

from speech_toolkit import load_recognizer, load_voice

load_voice().speak("Hello there.").save("hello.wav")
print(load_recognizer("Jasper.pt").transcribe("hello.wav")[0].text)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import common

if not hasattr(common, "__path__"):
    raise ImportError(f"{common.__file__} hides speech_toolkit's package common; rename it")

from common.cli import toolkit_version

if TYPE_CHECKING:
    from common.recognition.recognizer import load_recognizer as load_recognizer
    from common.synthesis.loading import load_voice as load_voice
    from common.synthesis.speech import Speech as Speech, subtitles as subtitles

__all__ = ["Speech", "__version__", "load_recognizer", "load_voice", "subtitles"]
__version__ = toolkit_version()
_MODULES = {  # loaded on first use, so that `speech --help` doesn't need PyTorch
    "Speech": "common.synthesis.speech",
    "load_recognizer": "common.recognition.recognizer",
    "load_voice": "common.synthesis.loading",
    "subtitles": "common.synthesis.speech",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
