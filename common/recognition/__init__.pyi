"""Speech to text: transcribing recordings, and error rates."""

from .error_rates import ErrorCounts as ErrorCounts, error_counts as error_counts
from .recognizer import (
    Recognizer as Recognizer,
    SpeechItem as SpeechItem,
    Transcription as Transcription,
    load_recognizer as load_recognizer,
)
