"""Speaks with a FastPitch and a HiFi-GAN or Harmonic in ONNX, of export_model.sh, by numpy and onnxruntime.

    python onnx_speaker.py en-small.onnx vocoder-small.onnx "Hello there." -o hello.wav --pace 1.1

An example for programs without PyTorch, which may copy this file. A voice of eSpeak NG's phones (symbol set espeak)
reads text, with phones in braces ("{h ə l ˈoʊ}"), by the package espeakng-loader. The toolkit's cleaners write out its
numbers where they can be imported, else eSpeak NG reads them. Of a voice of characters the text is as its cleaners
leave it (small letters, no figures), with ARPAbet phones in braces; of other phones, phones separated by spaces.
"""

import argparse
import ctypes
import json
import re
import sys
import unicodedata
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

FADE_OUT = 10  # mel frames at the end that fade to silence
SEED = 1234  # of the noise that a Harmonic filters
MAX_DURATION = 75.0  # frames; no token's predicted duration is longer
MARKS = ",.;:!?"  # that end a clause; after them stand quotes, and the letter up to which eSpeak NG has looked ahead
OTHER_MARKS = str.maketrans("…—–、，。！？；：।", ",,,,,.!?;:.")
CLAUSE_END = re.compile(rf"([{MARKS}])[{MARKS}]*[^\w{MARKS}]*\w?$")


class Network:
    """An exported network in onnxruntime, and what its file says of itself in ``about``."""

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            sys.exit(f"error: {path}: no such file; scripts/export_model.sh makes it")
        options = onnxruntime.SessionOptions()
        # To rewrite the graph takes longer, and twice the memory, than it saves in a sentence.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.about = json.loads(self._session.get_modelmeta().custom_metadata_map["speech_toolkit"])

    def run(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by their names, of those of ``values`` that are inputs."""
        inputs = {name: values[name] for name in self.about["inputs"]}
        return dict(zip(self.about["outputs"], self._session.run(None, inputs)))


def tokens_of(text: str, about: dict[str, Any]) -> list[int]:
    """Ids of a text for a voice; ends the program at symbols that it does not know."""
    config = about["config"]["text"]
    if config["symbol_set"] == "espeak" and config["g2p"] and not text.startswith("sil "):
        symbols = phones_of(text, config)
    elif config["input_type"] == "phone":
        symbols = text.split()
    else:
        symbols = []
        for index, part in enumerate(re.split(r"\{(.+?)\}", text)):  # odd parts are in braces
            symbols += ["@" + phone for phone in part.split()] if index % 2 else list(part)
        symbols = [" "] * config["prepend_space"] + symbols + [" "] * config["append_space"]
    ids = {symbol: index for index, symbol in enumerate(about["symbols"])}
    if unknown := sorted(set(symbols) - ids.keys()):
        sys.exit(f"error: the voice does not know {' '.join(map(repr, unknown))}")
    return [ids[symbol] for symbol in symbols]


def phones_of(text: str, config: dict[str, Any]) -> list[str]:
    """Symbols of the set `espeak` that say a text: phones, `#` between words and after marks, silence at both ends."""
    symbols: list[str] = []
    for index, part in enumerate(re.split(r"\{(.+?)\}", text)):  # odd parts are phones
        clauses = [("".join(part.split()), "")]
        if index % 2 == 0:
            begins = re.match(rf"\W*?([{MARKS}])", part)  # which eSpeak NG would skip
            clauses = [("", begins[1] if begins else ""), *clauses_of(written_out(part, config), config)]
        for phones, mark in clauses:
            if phones:
                symbols += [*unicodedata.normalize("NFD", phones), mark, "#"]
            elif mark and symbols and not symbols[-2]:
                symbols[-2] = mark
    if symbols and symbols[-2] not in (",", ";", ":"):
        del symbols[-1]
    return ["sil", *filter(None, symbols), "sil"]


def written_out(text: str, config: dict[str, Any]) -> str:
    """A text in words, by the voice's cleaners; as it is where the toolkit cannot be imported."""
    try:
        from common.text.cleaners import get_cleaner
    except ImportError:
        return text
    for name in config["cleaners"]:
        text = get_cleaner(name)(text)
    return text


def clauses_of(text: str, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """eSpeak NG's phones of each clause of a text, with `#` between words, and the mark that ends it."""
    import espeakng_loader

    library = ctypes.CDLL(str(espeakng_loader.get_library_path()))
    library.espeak_Initialize(2, 0, str(espeakng_loader.get_data_path()).encode(), 0x8000)
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    language = config["g2p_language"]
    if all(library.espeak_SetVoiceByName(name.encode()) for name in (language, language.split("-")[0])):
        sys.exit(f"error: eSpeak NG has no voice {language}")
    encoded = (" ".join(text.split()) + " ").encode()
    buffer = ctypes.create_string_buffer(encoded)
    start, done = ctypes.addressof(buffer), 0
    place = ctypes.c_void_p(start)
    while place.value:
        phones = library.espeak_TextToPhonemes(ctypes.byref(place), 1, 2).decode()  # UTF-8, IPA
        end = place.value - start if place.value else len(encoded)
        found = CLAUSE_END.search(encoded[done:end].decode(errors="ignore").translate(OTHER_MARKS))
        done = end
        yield "#".join(re.sub(r"\([a-z-]+\)", "", phones).split()), found[1] if found else ""  # without "(en)"


def gaussian_noise(n_samples: int) -> np.ndarray:
    """Noise (1, n_samples) float32 of standard deviation 1: hashed integers (SplitMix64) by Box and Muller's method.

    It spares the import of NumPy's, which takes 6 MB.
    """
    hashed = np.arange(SEED, SEED + 2 * n_samples, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashed = (hashed ^ (hashed >> np.uint64(shift))) * np.uint64(factor)
    first, second = ((hashed >> np.uint64(40)).astype(np.float32) + 0.5).reshape(2, 1, n_samples) / 2**24
    return np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


def speak(voice: Network, vocoder: Network, text: str, *, pace: float = 1.0, speaker: int = 0) -> np.ndarray:
    """Samples (T,) float32 of a text; ends the program for networks of different mels."""
    audio, tokens = voice.about["config"]["audio"], tokens_of(text, voice.about)
    if vocoder.about["config"]["audio"] != audio:
        sys.exit("error: the vocoder was trained on mels of other settings")
    predicted = np.full((1, len(tokens)), np.nan, np.float32)  # a number for a token would be spoken in its place
    mel = voice.run(
        {
            "tokens": np.array([tokens], np.int64),
            "lengths": np.array([len(tokens)], np.int64),
            "pace": np.full_like(predicted, pace),
            "max_duration": np.array([MAX_DURATION], np.float32),
            "durations": predicted,  # frames
            "pitch": predicted,  # Hz
            "energy": predicted,
            "speaker": np.array([speaker], np.int64),
        }
    )
    n_samples = (mel["mel"].shape[2] - 1) * audio["hop_length"] + audio["filter_length"]
    made = vocoder.run({"mel": mel["mel"], "lengths": mel["mel_lengths"], "noise": gaussian_noise(n_samples)})
    samples = made["wave"][0]
    n_faded = min(FADE_OUT * audio["hop_length"], len(samples))
    samples[len(samples) - n_faded :] *= np.linspace(1, 0, n_faded, dtype=np.float32)
    return samples


def main() -> None:
    """Speak one text into a WAV file of 16-bit integers."""
    parser = argparse.ArgumentParser(prog="onnx_speaker.py", description=(__doc__ or "").partition("\n")[0])
    own = "(default: %(default)s, of the shipped one)"
    parser.add_argument("voice", nargs="?", default="en-small.onnx", help=f"FastPitch in ONNX {own}")
    text = f"HiFi-GAN or Harmonic in ONNX, of the same mels {own}"
    parser.add_argument("vocoder", nargs="?", default="vocoder-small.onnx", help=text)
    parser.add_argument("text", help="text, with phones in braces, or phones")
    parser.add_argument("-o", "--output", default="speech.wav", help="WAV file")
    parser.add_argument("--pace", type=float, default=1.0, help="2 speaks twice as fast")
    parser.add_argument("--speaker", type=int, default=0, help="number of the speaker")
    args = parser.parse_args()
    voice, vocoder = Network(args.voice), Network(args.vocoder)
    samples = speak(voice, vocoder, args.text, pace=args.pace, speaker=args.speaker)
    with wave.open(args.output, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(voice.about["config"]["audio"]["sampling_rate"])
        file.writeframes(np.clip(np.round(samples * 32768.0), -32768, 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    main()
