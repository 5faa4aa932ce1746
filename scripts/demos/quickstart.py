"""A first voice in minutes: makes a corpus, trains a small FastPitch on it, speaks ten sentences and measures them.

    python -m scripts.demos.quickstart

The corpus is spoken by the embedded speaker, so the new voice can be compared with the speaker it learned from on
sentences that are not in the corpus. Run again after a stop, it resumes.
"""

import argparse
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from common.audio import load_wav, save_wav
from common.checkpoints import checkpoint_path, open_checkpoint
from common.cli import ArgumentParser, positive_float, positive_int, run, seed_number
from common.config import AudioConfig
from common.errors import InputError, OptionError, shown
from common.evaluation.metrics import SpeechDistance, compare_speech
from common.files import read_json, write_json
from common.signals import STOPS, heeded
from common.synthesis import ACCEPTABLE_DIFFERENCES, AudioContract, Phrase, read_phrases
from scripts.datasets.make_corpus import READER, SENTENCES, is_complete, make_corpus, normalize, read_sentences

ROOT = Path(__file__).resolve().parents[2]
AUDIO = AudioConfig()

EPOCHS = 20  # of 66 steps
N_VALIDATION = 10  # sentences
MAX_DISTORTION_DB = 2.5  # a converged voice has 1.9 to 2.0, one of 6 epochs 2.8, an untrained one 10
# The speaker says everything alike each time, and a few hundred steps leave no time to overfit.
_FFT_DROPOUTS = [f"p-{side}-fft-{name}" for side in ("in", "out") for name in ("dropout", "dropatt")]
ARCHITECTURE = {
    **dict.fromkeys(["symbols-embedding-dim", "in-fft-output-size", "out-fft-output-size"], 128),
    "in-fft-n-layers": 3,
    "out-fft-n-layers": 4,
    **dict.fromkeys(["in-fft-conv1d-filter-size", "out-fft-conv1d-filter-size"], 384),
    **dict.fromkeys([*_FFT_DROPOUTS, "p-dur-predictor-dropout", "p-pitch-predictor-dropout"], 0),
}
OPTIMIZATION = {
    "optimizer": "adam",
    "learning-rate": 1.4e-2,  # 0.9e-3 after the warm-up, then falling with the root of the steps
    "warmup-steps": 250,
    "grad-clip-thresh": 5,
    "ema-decay": 0.98,
    "batch-size": 4,  # twice the updates of batches of 8, of which each learns as much
}

# The corpus's lists hold the speaker's phones; the voice reads text as the speaker does.
TEXT = {"input-type": "phone", "symbol-set": "ipa", "g2p": "espeak", "g2p-language": READER.voice}
TEXT |= {"transcript-type": "phones"}
INTERVALS = {"epochs-per-checkpoint": 10, "validation-interval": 10}
SETTINGS = "settings.json"


def clear(output: Path) -> None:
    """Remove what an earlier run left and this one would resume from."""
    for name in ("corpus", "voice", "reference"):
        shutil.rmtree(output / name, ignore_errors=True)
    (output / SETTINGS).unlink(missing_ok=True)


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(description="Make, train, try and measure a first voice", prog="quickstart.sh")
    where = {"type": lambda path: Path(path).resolve(), "default": "output/quickstart", "help": "folder for everything"}
    parser.add_argument("-o", "--output", **where)
    parser.add_argument("--epochs", type=positive_int, default=EPOCHS, help="rounds of the corpus to train for")
    parser.add_argument("--seed", type=seed_number, default=1234, help="of the weights and of the data's order")
    parser.add_argument("--fresh", action="store_true", help="start anew instead of resuming an earlier run")
    limit = "dB; fail when the mean is above it"
    parser.add_argument("--max-distortion", type=positive_float, default=MAX_DISTORTION_DB, help=limit)
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="what the corpus says, one sentence a line")
    parser.add_argument("--phrases", type=Path, default=ROOT / "phrases" / "devset10.tsv", help="what to speak then")
    about = "of training; bfloat16 takes longer for a network as small as this"
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help=about)
    vocoder = "checkpoint of a HiFi-GAN to speak through; without it: that in voices/, if any, else Griffin-Lim"
    parser.add_argument("--hifigan", type=Path, help=vocoder)
    parser.add_argument(
        "--accept-audio-differences",
        nargs="+",
        choices=ACCEPTABLE_DIFFERENCES,
        default=[],
        help="let it speak mels that differ in these from what it was trained on; fine-tuning it is better",
    )
    args = parser.parse_args(argv)
    if args.accept_audio_differences and args.hifigan is None:
        raise OptionError("--accept-audio-differences is for a vocoder; give --hifigan too")
    return args


def vocoder_options(args: argparse.Namespace) -> list[str]:
    """Options of inference.py for a given vocoder; raises InputError unless it fits the voice's mels."""
    if args.hifigan is None:
        return []
    path = args.hifigan.resolve()
    checkpoint = open_checkpoint(path, model="HiFi-GAN", ema=True).checkpoint
    accepted = tuple(args.accept_audio_differences)
    AudioContract(checkpoint.audio, str(path), checkpoint.assumed, accepted).check(AUDIO, owner="the quickstart")
    return ["--hifigan", str(path), *(["--accept-audio-differences", *accepted] if accepted else [])]


@contextmanager
def stage(title: str) -> Iterator[None]:
    """Announce a part of the work, and say how long it took: on the clock, and of processor time."""
    print(f"\n== {title}", flush=True)
    clock, cpu = time.monotonic(), cpu_seconds()
    yield
    print(f"took {time.monotonic() - clock:.0f} s ({cpu_seconds() - cpu:.0f} s of processor time)", flush=True)


def cpu_seconds() -> float:
    """Processor time of this process and of its children that have ended, s."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def call(script: str, *words: object, **options: object) -> None:
    """Run one of the toolkit's commands as a user would, and show how; exit with its status if it fails.

    Ctrl-C reaches the command too: it is left to end by itself, as training saves a checkpoint first.
    """
    command = [script, *map(str, words)]
    for name, value in options.items():
        command += ["--" + name.replace("_", "-"), str(value)]
    print("$ python " + " ".join(command), flush=True)
    with subprocess.Popen([sys.executable, *command], cwd=ROOT) as process:
        before = {number: signal.signal(number, lambda number, _: process.send_signal(number)) for number in heeded()}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            status = process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    status = status if status >= 0 else 128 - status
    if status - 128 in STOPS:
        print("stopped; start it again to resume" if "--resume" in words else "stopped")
    if status != 0:
        sys.exit(status)


def check_settings(output: Path, settings: dict[str, object]) -> None:
    """Refuse to resume a run that was started with other settings; remember this one's."""
    path = output / SETTINGS
    if path.is_file():
        found = read_json(path)
        if not isinstance(found, dict):
            raise InputError(f"{path}: {shown(found)}, expected the settings of a run; add --fresh to start anew")
        changed = [name for name, value in settings.items() if found.get(name) != value]
        if changed:
            raise InputError(
                f"{output}: made with another {' and '.join(changed)}; add --fresh to start anew, or choose "
                "another --output"
            )
    write_json(path, settings)


def train_voice(args: argparse.Namespace, *words: str, lists: Sequence[Path], **options: object) -> Path:
    """Train a FastPitch on the corpus, by lists for training and validation; gives its last checkpoint."""
    corpus, output = args.output / "corpus", args.output / "voice"
    options = {"training_files": lists[0], "validation_files": lists[1], "epochs": args.epochs} | options
    call("train.py", "--output", output, "--dataset-path", corpus, *words, seed=args.seed, **options)
    return checkpoint_path(output, "FastPitch", epoch=args.epochs)


def compare(output: Path, phrases: list[Phrase]) -> list[SpeechDistance]:
    """Measure how far each phrase is from the embedded speaker's own rendering."""
    rate, distances = AUDIO.sampling_rate, []
    for phrase in phrases:
        wave = load_wav(output / phrase.output, sampling_rate=rate).numpy()
        reference = READER.speak(normalize(phrase.text)).wave
        save_wav(output / "reference" / phrase.output, torch.from_numpy(reference), sampling_rate=rate)
        distances.append(compare_speech(reference, wave, sampling_rate=rate))
    return distances


def report(phrases: list[Phrase], distances: list[SpeechDistance]) -> float:
    """Print the distance of each phrase and their means; returns the mean mel-cepstral distortion in dB."""
    print("phrase              distortion      F0 error            voicing error")
    rows = [
        (phrase.output.name, d.mcd_db, d.f0_rmse_hz, d.f0_rmse_cents, d.voicing_error)
        for phrase, d in zip(phrases, distances)
    ]
    columns = np.ma.masked_invalid([row[1:] for row in rows])  # a phrase may have no pitch to compare
    means = columns.mean(axis=0).filled(np.nan)
    for name, mcd, hz, cents, voicing in (*rows, ("mean", *means)):
        print(f"{name:<18}  {mcd:7.2f} dB  {hz:6.1f} Hz ({cents:4.0f} cents)  {100 * voicing:6.1f} %")
    return float(means[0])


def main(argv: list[str] | None = None) -> int:
    """All stages in order; exit status 1 if the voice is not good enough, a failed command's own if one fails."""
    args = parse_args(argv)
    output, corpus = args.output, args.output / "corpus"
    sentences, phrases = read_sentences(args.sentences), read_phrases(args.phrases)
    vocoder = vocoder_options(args)
    started = time.monotonic()
    if args.fresh:
        clear(output)
    precision = [] if args.precision == "float32" else ["--amp", "--amp-dtype", args.precision]
    check_settings(output, {"seed": args.seed, "architecture": ARCHITECTURE, "optimization": OPTIMIZATION})
    with stage("1/5 a corpus, spoken by the embedded speaker"):
        if is_complete(corpus, sentences):
            print(f"{corpus}: all {len(sentences)} clips are there")
        else:
            make_corpus(corpus, sentences=sentences, speaker=READER, n_validation=N_VALIDATION)
    with stage("2/5 mel-spectrograms, durations and pitch"):
        features = [corpus / "train_features.txt", corpus / "val_features.txt"]
        call(
            "extract_mels.py",
            *("--dataset-path", corpus, "--wav-text-filelist", corpus / "train.txt", corpus / "val.txt"),
            *("--output-meta-file", *features),
            *("--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char", "--resume"),
        )
    with stage("3/5 training (the long part)"):
        checkpoint = train_voice(
            args,
            *("--resume", "--mean-mel-bias", *precision),
            lists=features,
            pitch_mean_std_file=corpus / "pitch_char_stats__train.json",
            **TEXT,
            **INTERVALS,
            **ARCHITECTURE,
            **OPTIMIZATION,
        )
    with stage("4/5 the new voice speaks"):
        words = ("--plots", *vocoder)
        call("inference.py", *words, input=args.phrases.resolve(), output=output, fastpitch=checkpoint)
    with stage("5/5 the new voice against the embedded speaker's own"):
        mean = report(phrases, compare(output, phrases))
    print(f"\nin all {time.monotonic() - started:.0f} s; listen to {output}/*.wav (compare: reference/*.wav)")
    studio = f"FASTPITCH={checkpoint} bash scripts/serve.sh"
    print(f"shape how it speaks, in a browser: {studio}")
    if mean > args.max_distortion:
        raise InputError(
            f"the mean distortion, {mean:.2f} dB, is above {args.max_distortion:.2f} dB: the voice has not learned to "
            f"speak{', or the vocoder does not suit it' if vocoder else ''}; train it for more --epochs"
        )
    return 0


if __name__ == "__main__":
    run(main)
