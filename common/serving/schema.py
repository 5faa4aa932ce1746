"""Request bodies: the fields of OpenAI's clients and our own."""

import logging
from typing import Any, Literal

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from common.text.prosody import LIMITS

logger = logging.getLogger("serve")
_RATE, _PITCH, _VOLUME = (LIMITS[control] for control in ("rate", "pitch", "volume"))  # the limits of SSML and options
# Ignored fields, which clients of OpenAI and of servers like this one send by default.
_UNREAD = frozenset(
    "instructions stream user language prompt lang_code metadata temperature timestamp_granularities "
    "timestamp_granularities[] include include[] chunking_strategy".split()
)
_MODEL = "a name from /v1/models; OpenAI's names stand for this server's model"


class _Request(BaseModel):
    """A body that allows no unknown fields, and ignores some of OpenAI's."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_unread(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        if given := [name for name in fields if name in _UNREAD and fields[name] is not None]:
            logger.info("note: ignored, since no model here uses it: %s", ", ".join(given))
        return {name: value for name, value in fields.items() if name not in _UNREAD}


class SpeechRequest(_Request):
    """What to speak and how. A null field counts as not given."""

    model: str | None = Field(None, description=_MODEL)
    input: str | None = Field(None, description="plain text, or SSML")
    voice: str | None = Field(None, description="a speaker or an id from /v1/voices; OpenAI's names: the first speaker")
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm", "ogg", "srt", "vtt"] | None = Field(
        None, description="mp3 by default; pcm is at 24000 Hz; srt and vtt are subtitles"
    )
    speed: float | None = Field(None, ge=_RATE[0], le=_RATE[1], description="2 is twice as fast")
    stream_format: Literal["audio", "sse"] | None = Field(None, description="sse: server-sent events with base64")
    ssml: bool | None = Field(None, description="true: input must be SSML; false: it must not be")
    prosody: dict[str, Any] | None = Field(None, description="a prosody table, instead of input")
    pitch: float | None = Field(None, ge=_PITCH[0], le=_PITCH[1], description="factor for the pitch in Hz")
    volume: float | None = Field(None, ge=_VOLUME[0], le=_VOLUME[1], description="factor for the amplitude")
    seed: int | None = Field(None, ge=0, lt=2**63, description="seed of all random numbers")
    show: bool | None = Field(None, description="true: only return the words and phones of input, as JSON")
    timings: bool | None = Field(None, description="true: JSON with sound, words, prosody, mel; sse: per utterance")

    @field_validator("voice", mode="before")
    @classmethod
    def _id_of_voice(cls, voice: Any) -> Any:
        """Accept an object with the id of a voice, as OpenAI's clients may send."""
        return voice["id"] if isinstance(voice, dict) and set(voice) == {"id"} else voice

    @model_validator(mode="after")
    def _has_one_input(self) -> "SpeechRequest":
        if (self.input is None) == (self.prosody is None):
            raise ValueError("input: give text or SSML in input, or a table in prosody, but not both")
        if self.input is not None and not self.input.strip():
            raise ValueError("input: contains nothing to speak")
        return self


class TranscriptionRequest(_Request):
    """What to transcribe, and how to answer."""

    file: UploadFile = Field(description="a recording, such as a WAV, FLAC, Ogg, MP3, M4A or WebM file")
    model: str | None = Field(None, description=_MODEL)
    response_format: Literal["json", "text", "verbose_json", "srt", "vtt"] = Field(
        "json", description="format of the transcript; srt and vtt are subtitles, verbose_json has times"
    )
