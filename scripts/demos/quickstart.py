"""A first voice in minutes: makes a corpus, trains a small FastPitch on it, speaks ten sentences and measures them.

eSpeak NG speaks the corpus, so the new voice can be compared with it on sentences that are not in the corpus.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tgt
import torch

from common.audio.wav import load_wav, save_wav
from common.checkpoints.checkpoint import checkpoint_path
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.evaluation.metrics import Clip, aligned
from common.files import write_atomically, write_text
from common.options import add_options, option, read_options
from common.progress import progress
from common.synthesis.phrases import read_phrases
from common.synthesis.utterances import Phrase
from common.text.cleaners import get_cleaner
from common.text.espeak import EspeakSpeech, Speaker
from scripts.datasets.make_filelists import SPLITS, list_name
from scripts.launch import ROOT, options, program, run_or_print

SENTENCES = ROOT / "scripts/datasets/corpus_sentences.txt"  # written for this project
# Higher than the default: Griffin-Lim reconstructs harmonics 160 Hz apart much better than 100 Hz apart.
READER = Speaker(pitch=95, marked=True)
EPOCHS = 20  # of 66 steps
N_VALIDATION = 10  # sentences
MAX_DISTORTION_DB = 2.5  # a converged voice has 1.9 to 2.0, one after 6 epochs 2.8, an untrained one 10
# Options of train.py. The learning rate is 0.9e-3 after the warm-up. There is no dropout: the synthetic speaker doesn't
# vary, and a few hundred steps are too few to overfit. Features of TextGrids contain the speaker's phones.
TRAINING = f"""
--symbols-embedding-dim 128 --in-fft-output-size 128 --out-fft-output-size 128 --in-fft-n-layers 3 --out-fft-n-layers 4
--in-fft-conv1d-filter-size 384 --out-fft-conv1d-filter-size 384 --p-in-fft-dropout 0 --p-in-fft-dropatt 0
--p-out-fft-dropout 0 --p-out-fft-dropatt 0 --p-dur-predictor-dropout 0 --p-pitch-predictor-dropout 0 --mean-mel-bias
--optimizer adam --learning-rate 1.4e-2 --warmup-steps 250 --grad-clip-thresh 5 --ema-decay 0.98 --batch-size 4
--epochs-per-checkpoint 10 --validation-interval 10 --input-type phone --symbol-set espeak --g2p espeak
--g2p-language {READER.voice} --transcript-type phones
""".split()


@dataclass(frozen=True)
class QuickstartOptions:
    """What the quickstart makes."""

    output: Path = option(Path("output/quickstart"), "folder for everything", names=("-o",), writes=True)
    epochs: int = option(EPOCHS, "epochs to train for", least=1)
    sentences: Path = option(SENTENCES, "sentences of the corpus, one a line")
    phrases: Path = option(ROOT / "phrases" / "devset10.tsv", "list to speak")


normalize = get_cleaner("english_cleaners_v3")  # writes numbers and abbreviations in words, as the speaker reads them


def make_corpus(folder: Path, sentences: Sequence[str], speaker: Speaker) -> None:
    """Let a speaker read sentences: make ``wavs/``, ``metadata.csv``, and ``TextGrid/`` with the true boundaries."""
    rows = []
    for number, sentence in enumerate(progress(sentences, desc="corpus", unit="clip"), 1):
        name, text = f"EM-{number:04d}", normalize(sentence)
        write_clip(folder, name, speaker.speak(text))
        rows.append(f"{name}|{sentence}|{text}\n")
    write_text(folder / "metadata.csv", "".join(rows))


def write_clip(folder: Path, name: str, speech: EspeakSpeech) -> None:
    """Write ``wavs/<name>.wav``, 16-bit mono, and ``TextGrid/<name>.TextGrid`` with the tiers words and phones."""
    wave = torch.from_numpy(speech.wave)
    save_wav(folder / "wavs" / f"{name}.wav", wave, sampling_rate=speech.sampling_rate, durable=False)
    grid = tgt.TextGrid()
    for tier, intervals in (("words", speech.words), ("phones", speech.phones)):
        objects = [tgt.Interval(one.start_s, one.end_s, one.label) for one in intervals]
        grid.add_tier(tgt.IntervalTier(0, speech.duration_s, tier, objects))
    text = tgt.io.export_to_long_textgrid(grid).encode("utf-8")
    write_atomically(folder / "TextGrid" / f"{name}.TextGrid", lambda file: file.write(text), durable=False)


def call(name: str, *words: object) -> None:
    """Print and run one of the toolkit's commands; if it fails, exit with its status."""
    command = [*program(name), *map(str, words)]
    print(f"\n$ {shlex.join(map(str, command))}", flush=True)
    run_or_print(command)


def measure(output: Path, phrases: list[Phrase]) -> float:
    """Print how far phrases are from the speaker's own rendering; return the mean distortion in dB."""
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
    parser = ArgumentParser(description="Make, train, try and measure a first voice", prog="quickstart.sh")
    add_options(parser, QuickstartOptions)
    return parser


def main(argv: list[str] | None = None) -> None:
    """Run all stages in order; raise InputError if the voice hasn't learned to speak."""
    own: QuickstartOptions = read_options(build_parser().parse_args(argv), QuickstartOptions)
    output = own.output.resolve()
    corpus, voice, phrases = output / "corpus", output / "voice", read_phrases(own.phrases)
    make_corpus(corpus, [one.text for one in read_phrases(own.sentences)], READER)
    words = options(dataset_path=corpus, filelists=corpus, name="en", features="true")
    call("speech_toolkit prepare", f"N_VAL={N_VALIDATION}", "N_TEST=0", *words, "--resume")
    training, validation = (corpus / list_name("en", "mel_dur_pitch_text", split) for split in SPLITS[:2])
    words = options(output=voice, dataset_path=corpus, training_files=training, validation_files=validation)
    words += options(pitch_mean_std_file=corpus / "pitch_char_stats__en_audio_text_train_filelist.json")
    call("train.py", *words, "--epochs", own.epochs, "--resume", *TRAINING)
    fastpitch = checkpoint_path(voice, "FastPitch", epoch=own.epochs)
    call("inference.py", "--plots", "--input", own.phrases, "--output", output, "--fastpitch", fastpitch)
    mean = measure(output, phrases)
    print(f"listen to {output}/*.wav (compare: reference/*.wav)")
    print(f"next: FASTPITCH={fastpitch} bash scripts/serve.sh")
    if mean > MAX_DISTORTION_DB:
        bound = f"the mean distortion, {mean:.2f} dB, is above {MAX_DISTORTION_DB:.2f} dB"
        raise InputError(f"{bound}: the voice has not learned to speak; train it for more --epochs")


if __name__ == "__main__":
    run(main)
