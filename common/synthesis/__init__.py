"""Speech synthesis: controls, voices, vocoders, copy synthesis, and their measuring and acceleration."""

from common.synthesis.controls import Controls, MelOutput
from common.synthesis.phrases import Phrase, read_phrases
from common.synthesis.synthesizer import SynthesisInput, SynthesisResult, Synthesizer
from common.synthesis.vocoder import GriffinLimVocoder, NetworkVocoder, Vocoder, VocoderSettings
from common.synthesis.voice import Voice, load_vocoder, load_voice

__all__ = [
    "Controls",
    "GriffinLimVocoder",
    "MelOutput",
    "NetworkVocoder",
    "Phrase",
    "SynthesisInput",
    "SynthesisResult",
    "Synthesizer",
    "Vocoder",
    "VocoderSettings",
    "Voice",
    "load_vocoder",
    "load_voice",
    "read_phrases",
]
