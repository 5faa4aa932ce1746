"""Speaks with a FastPitch and a HiFi-GAN or Harmonic in ONNX, of export_model.sh, by numpy and onnxruntime alone.

    python onnx_speaker.py FastPitch.onnx HiFi-GAN.onnx "hello, {W ER1 L D} again!" -o hello.wav --pace 1.1

An example for programs without PyTorch, which may copy this file. Of a voice of characters the text is as its cleaners
leave it (small letters, no figures), with ARPAbet phones in braces; of a voice of phones it is phones and marks
separated by spaces. What turns other texts into these is in inference.py, not here.
"""

import argparse
import json
import re
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

METADATA_KEY = "speech_toolkit"
FADE_OUT = 10  # mel frames at the end that fade to silence
SEED = 1234  # of the noise that a Harmonic filters
MAX_DURATION = 75.0  # frames; no token's predicted duration is longer
Controls = float | list[float] | None  # one number, one a token, or None for what the voice predicts


class OnnxSpeaker:
    """A voice and a vocoder in onnxruntime."""

    def __init__(self, voice: str | Path, vocoder: str | Path, *, threads: int = 0) -> None:
        """``threads`` 0: as many as onnxruntime sees fit.

        Raises:
            ValueError: a file is of another model, or they are of different mels.
        """
        self._voice, self.about = _open(voice, threads, wanted=("FastPitch",))
        self._vocoder, sound = _open(vocoder, threads, wanted=("HiFi-GAN", "Harmonic"))
        self._takes_noise = "noise" in sound["inputs"]
        self.audio, self.text = self.about["config"]["audio"], self.about["config"]["text"]
        if differing := [name for name, value in self.audio.items() if sound["config"]["audio"][name] != value]:
            raise ValueError(f"{voice} and {vocoder} are of different mels: they differ in {', '.join(differing)}")

    @property
    def speakers(self) -> list[str]:
        """Names of the voice's speakers by their ids, or their numbers."""
        return self.text["speakers"] or [str(number) for number in range(self.about["config"]["model"]["n_speakers"])]

    def tokens(self, text: str) -> list[int]:
        """Ids of a text of characters with ARPAbet phones in braces, or of phones.

        Raises:
            ValueError: a symbol that the voice does not know, or none at all.
        """
        names = self.about["symbols"]
        if names is None:
            raise ValueError("a voice of phonological features; speak with inference.py")
        if self.text["input_type"] == "phone":
            symbols = text.split()
        else:
            symbols = []
            for index, part in enumerate(re.split(r"\{(.+?)\}", text)):  # odd parts are in braces
                symbols += ["@" + phone for phone in part.split()] if index % 2 else list(part)
            symbols = [" "] * self.text["prepend_space"] + symbols + [" "] * self.text["append_space"]
        ids = {symbol: index for index, symbol in enumerate(names)}
        unknown = sorted(set(symbols) - set(ids))
        if unknown or not symbols:
            wrong = f"the voice does not know {' '.join(map(repr, unknown))}" if unknown else "the text is empty"
            raise ValueError(f"{wrong}; it reads {' '.join(names)}")
        return [ids[symbol] for symbol in symbols]

    def inputs(
        self,
        tokens: list[int],
        *,
        pace: Controls = 1.0,
        pitch: Controls = None,
        durations: Controls = None,
        energy: Controls = None,
        speaker: int = 0,
    ) -> dict[str, np.ndarray]:
        """The voice's inputs by their names, with a batch of one.

        ``pitch`` is in Hz (0: unvoiced) and ``durations`` in frames; NaN of a token is what the voice is to predict.
        """

        def row_of(values: Controls) -> np.ndarray:
            row = np.asarray(np.nan if values is None else values, np.float32)
            return np.broadcast_to(row, (1, len(tokens))).copy()

        if energy is not None and "energy" not in self.about["inputs"]:
            raise ValueError("energy: this voice has no such control")
        values = {
            "tokens": np.array([tokens], np.int64),
            "lengths": np.array([len(tokens)], np.int64),
            "pace": row_of(pace),
            "max_duration": np.array([MAX_DURATION], np.float32),
            "durations": row_of(durations),
            "pitch": row_of(pitch),
            "energy": row_of(energy),
            "speaker": np.array([speaker], np.int64),
        }
        return {name: values[name] for name in self.about["inputs"]}

    def run_voice(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the voice's outputs of one utterance by their names, with a batch of one."""
        return dict(zip(self.about["outputs"], self._voice.run(None, inputs)))

    def make_sound(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Make samples (T,) float32 of the voice's inputs of one utterance."""
        made = self.run_voice(inputs)
        given = {"mel": made["mel"], "lengths": made["mel_lengths"]}
        if self._takes_noise:
            n_samples = (made["mel"].shape[2] - 1) * self.audio["hop_length"] + self.audio["filter_length"]
            given["noise"] = np.random.default_rng(SEED).standard_normal((1, n_samples), np.float32)
        return self._vocoder.run(None, given)[0][0]

    def speak(
        self,
        text: str,
        *,
        pace: float = 1.0,
        pitch_factor: float = 1.0,
        pitch_shift: float = 0.0,
        energy_shift: float = 0.0,
        speaker: str | None = None,
    ) -> np.ndarray:
        """Samples (T,) float32 of a text.

        The predicted pitch is multiplied by ``pitch_factor``, and ``pitch_shift`` Hz are added; ``energy_shift`` is
        added to the predicted energy. What is predicted comes from a first run, of one frame, which costs little.

        Raises:
            ValueError: the text or a control does not suit the voice.
        """
        if speaker is not None and speaker not in self.speakers:
            raise ValueError(f"speaker {speaker!r}: expected one of {', '.join(self.speakers)}")
        tokens, number = self.tokens(text), 0 if speaker is None else self.speakers.index(speaker)
        controls: dict[str, Any] = {"speaker": number}
        if (pitch_factor, pitch_shift) != (1.0, 0.0):
            if self.about["pitch_unit"] != "Hz":
                raise ValueError("the voice has no pitch statistics to change pitch in Hz by")
            first = self.run_voice(self.inputs(tokens, durations=0.0, **controls))
            controls["pitch"] = first["spoken_pitch"][0] * pitch_factor + pitch_shift
        if energy_shift:
            first = self.run_voice(self.inputs(tokens, durations=0.0, **controls))
            controls["energy"] = first["spoken_energy"][0] + energy_shift if "spoken_energy" in first else energy_shift
        samples = self.make_sound(self.inputs(tokens, pace=pace, **controls))
        n_faded = min(FADE_OUT * self.audio["hop_length"], len(samples))
        samples[len(samples) - n_faded :] *= np.linspace(1, 0, n_faded, dtype=np.float32)
        return samples


def _open(
    path: str | Path, threads: int, *, wanted: tuple[str, ...]
) -> tuple[onnxruntime.InferenceSession, dict[str, Any]]:
    """Open a session, and read what the file says of itself."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    about = json.loads(session.get_modelmeta().custom_metadata_map.get(METADATA_KEY, "{}"))
    if about.get("model") not in wanted:
        model = about.get("model", "another program")
        raise ValueError(f"{path}: of {model}, expected a {' or '.join(wanted)} of export_model.sh")
    return session, about


def write_wav(path: str | Path, samples: np.ndarray, *, sampling_rate: int) -> None:
    """Write samples (T,) from -1 to 1 as 16-bit integers."""
    integers = np.clip(np.round(samples * 32768.0), -32768, 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sampling_rate)
        file.writeframes(integers.tobytes())


def main(argv: list[str] | None = None) -> int:
    """Speak one text into a WAV file; the exit status is 1, with a line on stderr, for what cannot be spoken."""
    parser = argparse.ArgumentParser(prog="onnx_speaker.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("voice", help="FastPitch in ONNX")
    parser.add_argument("vocoder", help="HiFi-GAN or Harmonic in ONNX")
    parser.add_argument("text", help="characters with ARPAbet phones in braces, or phones")
    parser.add_argument("-o", "--output", default="speech.wav", help="WAV file")
    parser.add_argument("--pace", type=float, default=1.0, help="2 speaks twice as fast")
    parser.add_argument("--pitch-factor", type=float, default=1.0, help="multiply the pitch")
    parser.add_argument("--pitch-shift", type=float, default=0.0, help="add so many Hz to the pitch")
    parser.add_argument("--energy-shift", type=float, default=0.0, help="add to the energy; less is louder")
    parser.add_argument("--speaker", help="name or number of the speaker")
    parser.add_argument("--threads", type=int, default=0, help="of onnxruntime; 0: as it sees fit")
    controls = vars(parser.parse_args(argv))
    files = [controls.pop(name) for name in ("voice", "vocoder")]
    output, text = controls.pop("output"), controls.pop("text")
    try:
        speaker = OnnxSpeaker(*files, threads=controls.pop("threads"))
        write_wav(output, speaker.speak(text, **controls), sampling_rate=speaker.audio["sampling_rate"])
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
