"""A first voice in minutes: makes a corpus, trains a small FastPitch on it, speaks ten sentences and measures them.

    python -m scripts.demos.quickstart

The corpus is spoken by the embedded speaker, so the new voice can be compared with the speaker it learned from on
sentences that are not in the corpus. Run again after a stop, it resumes.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from common.audio.wav import load_wav, save_wav
from common.checkpoints.checkpoint import checkpoint_path
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.evaluation.metrics import Clip, aligned
from common.options import add_options, option, read_options
from common.synthesis.phrases import read_phrases
from common.synthesis.utterances import Phrase
from scripts.datasets.embedded_corpus import READER, SENTENCES, make_corpus, normalize, read_sentences
from scripts.launch import ROOT, options as words_of, run_or_print

_STARTED = time.monotonic()
EPOCHS = 20  # of 66 steps
N_VALIDATION = 10  # sentences
MAX_DISTORTION_DB = 2.5  # a converged voice has 1.9 to 2.0, one of 6 epochs 2.8, an untrained one 10
# Options of train.py. The learning rate is 0.9e-3 after the warm-up. The speaker says everything alike each time, and a
# few hundred steps leave no time to overfit: there is no dropout.
TRAINING = """
--symbols-embedding-dim 128 --in-fft-output-size 128 --out-fft-output-size 128 --in-fft-n-layers 3 --out-fft-n-layers 4
--in-fft-conv1d-filter-size 384 --out-fft-conv1d-filter-size 384 --p-in-fft-dropout 0 --p-in-fft-dropatt 0
--p-out-fft-dropout 0 --p-out-fft-dropatt 0 --p-dur-predictor-dropout 0 --p-pitch-predictor-dropout 0 --mean-mel-bias
--optimizer adam --learning-rate 1.4e-2 --warmup-steps 250 --grad-clip-thresh 5 --ema-decay 0.98 --batch-size 4
--epochs-per-checkpoint 10 --validation-interval 10
""".split()

# The corpus's lists hold the speaker's phones; the voice reads text as the speaker does.
TEXT = {"input-type": "phone", "symbol-set": "espeak", "g2p": "espeak", "g2p-language": READER.voice}
TEXT |= {"transcript-type": "phones"}


@dataclass(frozen=True)
class QuickstartOptions:
    """What is made, and what is asked of it."""

    output: Path = option(Path("output/quickstart"), "folder for everything", names=("-o",), writes=True)
    epochs: int = option(EPOCHS, "rounds of the corpus to train for", least=1)
    seed: int = option(1234, "of the weights and of the data's order", least=0, most=2**63 - 1)
    max_distortion: float = option(MAX_DISTORTION_DB, "dB; fail when the mean is above it", above=0)
    sentences: Path = option(SENTENCES, "what the corpus says, one sentence a line")
    phrases: Path = option(ROOT / "phrases" / "devset10.tsv", "what to speak then")
    hifigan: Path | None = option(
        None, "checkpoint of a HiFi-GAN to speak through; without it: that in voices/, if any, else Griffin-Lim"
    )


def seconds_used() -> str:
    """Time since the start, on the clock and of processors, of this process and of its children that have ended."""
    return f"{time.monotonic() - _STARTED:.0f} s ({sum(os.times()[:4]):.0f} s of processor time)"


def call(script: str, *words: object, **options: object) -> None:
    """Run one of the toolkit's commands as a user would, and show how; ends with its status if it fails."""
    following = [str(word) for word in (*words, *words_of(**options))]
    print(f"$ python {script} {' '.join(following)}", flush=True)
    run_or_print([sys.executable, ROOT / script, *following])


def measure(output: Path, phrases: list[Phrase]) -> float:
    """Print how far phrases are from the embedded speaker's own rendering; returns the mean distortion in dB."""
    distances = []
    for phrase in phrases:
        spoken = READER.speak(normalize(phrase.text))
        wave = load_wav(output / phrase.output, sampling_rate=spoken.sampling_rate).numpy()
        reference = output / "reference" / phrase.output
        save_wav(reference, torch.from_numpy(spoken.wave), sampling_rate=spoken.sampling_rate)
        found = aligned(*(Clip(one, spoken.sampling_rate) for one in (spoken.wave, wave))).distance
        distances.append([found["mcd_db"], found["f0_rmse_hz"], found["f0_rmse_cents"], 100 * found["voicing_error"]])
    mcd, hz, cents, voicing = np.nanmean(distances, axis=0)  # a phrase may have no pitch to compare
    print(f"mean distortion {mcd:.2f} dB, F0 error {hz:.1f} Hz ({cents:.0f} cents), voicing error {voicing:.1f} %")
    return float(mcd)


def build_parser() -> ArgumentParser:
    """The options of the quickstart."""
    parser = ArgumentParser(description="Make, train, try and measure a first voice", prog="quickstart.sh")
    add_options(parser, QuickstartOptions)
    return parser


def main(argv: list[str] | None = None) -> int:
    """All stages in order; exit status 1 if the voice is not good enough, a failed command's own if one fails."""
    options: QuickstartOptions = read_options(build_parser().parse_args(argv), QuickstartOptions)
    output = options.output.resolve()
    corpus, voice = output / "corpus", output / "voice"
    sentences, phrases = read_sentences(options.sentences), read_phrases(options.phrases)
    print("\n== 1/5 a corpus, spoken by the embedded speaker", flush=True)
    make_corpus(corpus, sentences, {"": READER}, n_validation=N_VALIDATION)
    print(f"\n== 2/5 mel-spectrograms, durations and pitch, after {seconds_used()}", flush=True)
    features = [corpus / "train_features.txt", corpus / "val_features.txt"]
    lists = ["--wav-text-filelist", corpus / "train.txt", corpus / "val.txt", "--output-meta-file", *features]
    made = ["--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char"]
    call("extract_mels.py", *lists, *made, "--resume", dataset_path=corpus)
    print(f"\n== 3/5 training (the long part), after {seconds_used()}", flush=True)
    call(
        "train.py",
        *("--output", voice, "--dataset-path", corpus, "--resume", *TRAINING),
        training_files=features[0],
        validation_files=features[1],
        pitch_mean_std_file=corpus / "pitch_char_stats__train.json",
        seed=options.seed,
        epochs=options.epochs,
        **TEXT,
    )
    print(f"\n== 4/5 the new voice speaks, after {seconds_used()}", flush=True)
    fastpitch = checkpoint_path(voice, "FastPitch", epoch=options.epochs)
    names = {"input": options.phrases, "output": output, "fastpitch": fastpitch, "hifigan": options.hifigan}
    call("inference.py", **names)
    print(f"\n== 5/5 the new voice against the embedded speaker's own, after {seconds_used()}", flush=True)
    mean = measure(output, phrases)
    print(f"\nin all {seconds_used()}; listen to {output}/*.wav (compare: reference/*.wav)")
    print(f"shape how it speaks, in a browser: FASTPITCH={fastpitch} bash scripts/serve.sh")
    if mean > options.max_distortion:
        bound = f"the mean distortion, {mean:.2f} dB, is above {options.max_distortion:.2f} dB"
        raise InputError(f"{bound}: the voice has not learned to speak; train it for more --epochs")
    return 0


if __name__ == "__main__":
    run(main)
