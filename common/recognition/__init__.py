"""Speech to text: transcribing recordings, and error rates."""

from common.recognition.recognizer import Recognizer, Transcript, load_recognizer

__all__ = ["Recognizer", "Transcript", "load_recognizer"]
