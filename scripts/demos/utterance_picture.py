"""Draw a sentence of the embedded speaker, its words and its pitch below the mel-spectrogram: README's picture.

python -m scripts.demos.utterance_picture "Speech is a river of sound." --output docs/images/utterance.png
"""

from pathlib import Path

import numpy as np
import torch

from common.audio import MelExtractor, estimate_pitch
from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.plots import plot_utterance, save_png
from common.text import EspeakSpeech, Speaker

AUDIO = AudioConfig()


def word_durations(speech: EspeakSpeech, n_frames: int) -> tuple[list[str], torch.Tensor]:
    """Words and the pauses between them, as labels and durations (L,) in frames that sum to ``n_frames``."""
    labels, ends = [], []
    for word in speech.words:
        labels += ["", word.label]
        ends += [word.start_s, word.end_s]
    frames = np.round(np.array([0, *ends]) * AUDIO.sampling_rate / AUDIO.hop_length)
    return [*labels, ""], torch.from_numpy(np.diff(np.append(frames, n_frames))).long()


def main(argv: list[str] | None = None) -> int:
    """Speak, measure and draw."""
    parser = ArgumentParser(description="Draw a sentence of the embedded speaker")
    parser.add_argument("text", help="what it says")
    parser.add_argument("-o", "--output", type=Path, required=True, help="PNG file to write")
    args = parser.parse_args(argv)
    speech = Speaker(pitch=60).speak(args.text)
    mel = MelExtractor(AUDIO)(torch.from_numpy(speech.wave)[None])[0]
    pitch = estimate_pitch(speech.wave, AUDIO, n_frames=mel.shape[1])
    labels, durations = word_durations(speech, mel.shape[1])
    figure = plot_utterance(
        {"": mel},
        audio=AUDIO,
        title=args.text,
        symbols=labels,
        durations=durations,
        pitch={"": torch.from_numpy(pitch)},
    )
    save_png(figure, args.output)
    return 0


if __name__ == "__main__":
    run(main)
