"""Options of Jasper."""

from dataclasses import dataclass
from pathlib import Path

from common.options import option


@dataclass(frozen=True)
class InferenceOptions:
    """How recordings are prepared for transcription, and which of them are transcribed."""

    model_config: Path | None = option(
        None,
        "YAML file that training took: its network must be the checkpoint's, its input_val gives defaults of these",
    )
    max_utterances: int = option(0, "transcribe so many; 0: all", least=0)
    trim_silence: bool | None = option(
        None, "leave out both ends as far as they are 60 dB below the loudest part (default: on)"
    )
    normalize_transcripts: bool | None = option(
        None, "bring references into the model's form: lower case, numbers in words, no punctuation (default: on)"
    )
    pad_leading: int = option(
        0, "frames of silence before each recording; published inference had 16, training has none", least=0
    )
