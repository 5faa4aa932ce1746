"""Measures how voices say sentences of about 20 s: their mel distance from the speaker they learned from, by quarters.

    python -m scripts.benchmarks.long_sentences output/quickstart/voice/FastPitch_checkpoint_20.pt --symbols 80

The voices are trained on what the embedded speaker reads, as the quickstart's, so its own rendering is the truth. Each
sentence is said whole, and in parts of at most so many symbols as the longest utterance that the voice was trained on.
A quarter is one of the truth's frames; frames are paired by dynamic time warping, and the distance is the mean absolute
difference of their log-mels, each relative to the largest value of its sentence, at most 60 dB below it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from common.audio.mel import MelExtractor
from common.cli import ArgumentParser, run
from common.errors import OptionError
from common.evaluation.metrics import FLOOR_DB, speech_pairs
from common.files import read_text
from common.synthesis.loading import load_voice
from common.synthesis.voice import Voice
from scripts.benchmarks.table import machine, markdown
from scripts.datasets.embedded_corpus import READER, normalize
from scripts.launch import ROOT

QUARTERS = 4


def quarter_distances(truth: np.ndarray, spoken: np.ndarray) -> list[float]:
    """Mean distance of log-mels (n_mels, F1) and (n_mels, F2) in each quarter of the first one's frames."""
    floored = [np.maximum(mel - mel.max(), -FLOOR_DB * math.log(10) / 20) for mel in (truth, spoken)]
    pairs = speech_pairs(floored[0], floored[1])
    differences = np.abs(floored[0][:, pairs[:, 0]] - floored[1][:, pairs[:, 1]]).mean(axis=0)
    quarters = pairs[:, 0] * QUARTERS // truth.shape[1]
    return [float(differences[quarters == number].mean()) for number in range(QUARTERS)]


def measure(voice: Voice, sentences: Sequence[str]) -> dict[str, str]:
    """A row of the table: seconds and distances, means over the sentences."""
    extractor, rows = MelExtractor(voice.audio), []
    for sentence in sentences:
        spoken = voice.speak(sentence)
        truth = extractor(torch.from_numpy(READER.speak(normalize(sentence)).wave)[None])[0]
        distances = quarter_distances(truth.numpy(), spoken.mel.numpy())
        seconds = truth.size(1) * voice.audio.hop_length / voice.sampling_rate
        rows.append([seconds, spoken.duration, len(spoken.utterances), *distances])
    truth_s, spoken_s, parts, *quarters = np.mean(rows, axis=0)
    cells = {"truth (s)": f"{truth_s:.1f}", "spoken (s)": f"{spoken_s:.1f}", "parts": f"{parts:.1f}"}
    return cells | {f"quarter {number}": f"{value:.3f}" for number, value in enumerate(quarters, 1)}


def main(argv: Sequence[str] | None = None) -> None:
    """Speak the sentences with each voice, and print the table."""
    parser = ArgumentParser(prog="long_sentences", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("voices", type=Path, nargs="+", help="checkpoints of voices of the embedded speaker")
    parser.add_argument("--sentences", type=Path, default=ROOT / "phrases" / "long_sentences.txt", help="one a line")
    parser.add_argument("--symbols", type=int, help="of a part, the most (default: as the voice was trained on)")
    args = parser.parse_args(argv)
    sentences, rows = read_text(args.sentences, kind="list of sentences").splitlines(), []
    for path in args.voices:
        voice = replace(load_voice(path, device="cpu"), vocoder=None)
        most = args.symbols or voice.longest
        if most is None:
            raise OptionError(f"{path} does not say what it was trained on; give --symbols")
        for way, longest in (("whole", None), (f"in parts of {most}", most)):
            rows.append({"voice": str(path), "said": way, **measure(replace(voice, longest=longest), sentences)})
    print(f"{len(sentences)} sentences on {machine(cuda=False)}", *markdown(rows), sep="\n")


if __name__ == "__main__":
    run(main)
