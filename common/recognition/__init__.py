"""Speech to text: transcribing recordings, and error rates."""

from common.recognition.recognizer import Recognizer, Transcription, load_recognizer

__all__ = ["Recognizer", "Transcription", "load_recognizer"]
