"""The public way in: voices that speak and recognizers that transcribe.

from speech_toolkit import load_recognizer, load_voice

load_voice().speak("Hello there.").save("hello.wav")
print(load_recognizer("Jasper.pt").transcribe("hello.wav")[0].text)
"""

from common.recognition.recognizer import load_recognizer
from common.synthesis.loading import load_voice
from common.synthesis.speech import Speech

__all__ = ["Speech", "load_recognizer", "load_voice"]
