"""Speech to text: transcribing recordings, and error rates."""

from .recognizer import (
    ErrorCounts as ErrorCounts,
    Recognizer as Recognizer,
    SpeechItem as SpeechItem,
    Transcription as Transcription,
    error_counts as error_counts,
    load_recognizer as load_recognizer,
)
