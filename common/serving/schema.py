"""The JSON of a request to speak: the fields of OpenAI's clients, and our own."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from common.serving.sound import FORMATS
from common.text import LIMITS

# Fields that such clients send and that mean nothing here: an answer that ignored them would not be what was asked for.
UNSUPPORTED = {
    "instructions": "not supported: no voice here reads instructions; set speed, pitch and volume, or write SSML, and "
    "leave it out"
}


_MOST_FIELDS = 100  # that are looked at: each unknown one would be an error of its own
_RATE, _PITCH, _VOLUME = (LIMITS[control] for control in ("rate", "pitch", "volume"))  # as of SSML and options


class SpeechRequest(BaseModel):
    """What to speak and how. A field that is null counts as not given."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    model: str | None = Field(None, description="a name from /v1/models; OpenAI's names stand for the model here")
    input: str | None = Field(None, description="plain text, or SSML")
    voice: str | None = Field(None, description="a speaker or an id from /v1/voices; OpenAI's names: the first speaker")
    response_format: Literal["wav", "pcm", "flac", "ogg", "mp3"] | None = Field(None, description="wav if not given")
    speed: float | None = Field(None, ge=_RATE[0], le=_RATE[1], description="2 is twice as fast")
    stream_format: Literal["audio", "sse"] | None = Field(None, description="sse: server-sent events in base64")
    ssml: bool | None = Field(None, description="true: input must be SSML; false: it must hold none")
    prosody: dict[str, Any] | None = Field(None, description="a prosody table, instead of input")
    pitch: float | None = Field(None, ge=_PITCH[0], le=_PITCH[1], description="factor of the pitch in Hz")
    volume: float | None = Field(None, ge=_VOLUME[0], le=_VOLUME[1], description="factor of the amplitude")
    vocoder_pitch: Literal["mel", "voice"] | None = Field(
        None, description="voice: the vocoder follows the given pitch"
    )
    seed: int | None = Field(None, ge=0, lt=2**63, description="of everything random")
    timings: bool | None = Field(None, description="true: answer with JSON that has sound, words, prosody and mel")

    @model_validator(mode="before")
    @classmethod
    def _openai_forms(cls, values: Any) -> Any:
        """OpenAI's clients may name a voice as an object with its id; what they cannot have is refused by name."""
        if not isinstance(values, dict):
            return values
        if len(values) > _MOST_FIELDS:
            raise ValueError(f"{len(values)} fields; expected some of {', '.join(cls.model_fields)}")
        for name, reason in UNSUPPORTED.items():
            if values.get(name) is not None:
                raise ValueError(f"{name}: {reason}")
        values = {name: value for name, value in values.items() if name not in UNSUPPORTED}
        voice = values.get("voice")
        if isinstance(voice, dict) and set(voice) == {"id"}:
            values["voice"] = voice["id"]
        if values.get("response_format") in ("opus", "aac"):
            raise ValueError(
                f"response_format: {values['response_format']} is not made here; choose {', '.join(FORMATS)}"
            )
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> "SpeechRequest":
        if (self.input is None) == (self.prosody is None):
            raise ValueError("input: give a text or SSML in input, or a table in prosody, and not both")
        if self.input is not None and not self.input.strip():
            raise ValueError("input: there is nothing to speak in it")
        if self.prosody is not None and self.ssml is not None:
            raise ValueError("ssml: a prosody table is no SSML; leave ssml out")
        if self.timings and self.response_format not in (None, "wav"):
            raise ValueError("timings: its answer holds the sound as wav; leave response_format out")
        if self.timings and self.stream_format == "sse":
            raise ValueError("timings: its answer is one JSON object; leave stream_format out")
        return self
