"""The models that a server speaks and transcribes with."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import torch
from torch import Tensor

from common.errors import InputError, shown
from common.recognition.recognizer import Recognizer
from common.serving.errors import ApiError
from common.synthesis.utterances import Phrase, SynthesisInput, SynthesisResult
from common.synthesis.voice import Voice

# Names that OpenAI's clients send. A model's name stands for the server's one model of that kind,
# and a voice's name for the default speaker.
VOICE_MODELS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
RECOGNIZERS = ("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-transcribe")
_DATE = re.compile(r"-[0-9]{4}(-[0-9]{2}-[0-9]{2})?$")  # dated: tts-1-1106, gpt-4o-mini-tts-2025-12-15
VOICES = tuple("alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split())


@dataclass(frozen=True)
class ServedModels:
    """One voice and an optional recognizer, with the names that clients use for them."""

    voice: Voice
    voice_name: str
    recognizer: Recognizer | None = None
    recognizer_name: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)  # additional names for voices, speakers and models

    def model_of(self, name: str) -> str | None:
        """Return the id of the model that a client's name stands for; None or "" if there is none."""
        name = self.aliases.get(name, name)
        if name in (self.voice_name, self.recognizer_name):
            return name
        name = _DATE.sub("", name)
        return self.voice_name if name in VOICE_MODELS else self.recognizer_name if name in RECOGNIZERS else None

    @property
    def transcriber(self) -> Recognizer:
        """The recognizer; raises ApiError if there is none."""
        if self.recognizer is None:
            raise ApiError(404, "this server has no recognizer, so it cannot transcribe", code="no_recognizer")
        return self.recognizer

    def warm_up(self) -> SynthesisResult:
        """Run every network once, since the first run is slow; returns what was spoken."""
        if self.recognizer is not None:
            self.recognizer.transcribe(torch.zeros(self.recognizer.sampling_rate))  # 1 s
        try:
            item = self.voice.plan("One, two, three, four, five.")[0]
        except InputError:  # a voice with another alphabet speaks some of its symbols
            tokens = self.voice.front_end.inputs(list(range(len(self.voice.front_end.symbols)))[:20])
            item = SynthesisInput(Phrase("warm-up", PurePosixPath("speech.wav")), tokens=tokens)
        return next(iter(self.voice.synthesizer.synthesize([item])))


def check_model(name: str | None, served: str, *, models: ServedModels) -> None:
    """Raise ApiError if a model's name doesn't stand for the one ``served``."""
    if name is not None and models.model_of(name) != served:
        raise ApiError(404, f"model: {shown(name)}, expected {served}", code="model_not_found")


def describe_voice(models: ServedModels, spoken: SynthesisResult | None) -> dict[str, Any]:
    """Describe the voice for ``/v1/voices``; ``spoken``, a result of the voice, shows what its model predicts."""
    voice, config = models.voice, models.voice.front_end.config
    synthesizer = voice.synthesizer
    vocoder = voice.spec.name if voice.spec.makes_wave else "Griffin-Lim"
    if synthesizer.vocoder is not None and synthesizer.vocoder.path is not None:
        vocoder = f"{synthesizer.vocoder.path.stem} ({synthesizer.vocoder.name})"
    row = {
        "id": models.voice_name,
        "name": models.voice_name,
        "model": voice.spec.name,
        "vocoder": vocoder,
        "language": config.g2p_language if config.g2p is not None else "en",
        "speakers": list(voice.speakers),
        "shapes_prosody": voice.shapes_prosody,
        "has_energy": spoken is not None and spoken.output.energy is not None,
        "sampling_rate": voice.sampling_rate,
        "hop_length": voice.audio.hop_length,
    }
    mean = getattr(synthesizer.network, "pitch_mean", None)  # Hz, (1,) or one value per speaker
    if isinstance(mean, Tensor) and float(mean.mean()) > 0:
        row["pitch_mean"] = round(float(mean.mean()), 2)
    return row
