"""Speech to text: transcribing recordings, and error rates."""

from common.recognition.error_rates import ErrorCounts, error_counts
from common.recognition.recognizer import Recognizer, SpeechItem, Transcription, load_recognizer
