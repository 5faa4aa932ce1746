"""Two voices in one: trains a small FastPitch on a corpus of two embedded speakers, and distinguishes them by pitch.

    python -m scripts.demos.two_speakers

The voice is trained from recordings and transcripts alone. Then both speakers say the same sentences, and the mean
pitch of each is compared with that of the recordings it learned from. Run again after a stop, it resumes.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.audio import estimate_pitch, load_wav
from common.checkpoints import load_checkpoint
from common.cli import positive_float, positive_int, run
from common.config import AudioConfig
from common.errors import InputError
from common.files import write_text
from scripts.datasets.make_corpus import READER, SENTENCES, TRAIN, VALIDATION, make_corpus, read_sentences
from scripts.demos.quickstart import INTERVALS, OPTIMIZATION, architecture, call, demo_parser, stage, train_voice

PITCHES = {"low": 60, "high": 99}  # of the embedded speaker's 0 to 99; below 50 its voice is creaky and half unvoiced
AUDIO = AudioConfig()


def mean_pitch(paths: Sequence[Path]) -> float:
    """Mean of the voiced pitch of recordings, Hz; raises InputError if nothing in them is voiced."""
    voiced = []
    for path in paths:
        wave = load_wav(path, sampling_rate=AUDIO.sampling_rate).numpy()
        pitch = estimate_pitch(wave, AUDIO, n_frames=1 + len(wave) // AUDIO.hop_length)
        voiced.append(pitch[pitch > 0])
    values = np.concatenate(voiced)
    if len(values) == 0:
        raise InputError(f"{paths[0].parent}: nothing there is voiced; train for more --epochs")
    return float(values.mean())


def speak(output: Path, checkpoint: Path, phrases: Sequence[str]) -> None:
    """Let each speaker say the phrases, in one list with a column of their names."""
    rows = [f"{name}/{i}.wav\t{text}\t{name}\n" for name in PITCHES for i, text in enumerate(phrases)]
    write_text(output / "phrases.tsv", "output\ttext\tspeaker\n" + "".join(rows))
    call("inference.py", "--ema", input=output / "phrases.tsv", output=output / "spoken", fastpitch=checkpoint)


def compare(output: Path, checkpoint: Path) -> dict[str, tuple[float, float]]:
    """Mean pitch (Hz) of each speaker: in the recordings, stored in the checkpoint, and in its speech."""
    held = load_checkpoint(checkpoint)
    known = dict(zip(held.text.speakers, held.networks["fastpitch"]["pitch_mean"].tolist()))
    pitches = {name: (known[name], mean_pitch(sorted((output / "spoken" / name).glob("*.wav")))) for name in PITCHES}
    for name, (recorded, spoken) in pitches.items():
        print(
            f"{name:<6} recorded {recorded:6.1f} Hz, spoken {spoken:6.1f} Hz ({100 * (spoken / recorded - 1):+.1f} %)"
        )
    return pitches


def main(argv: Sequence[str] | None = None) -> int:
    """All stages in order; exit status 1 if the pitch of a speaker is too far off."""
    parser = demo_parser("two_speakers", "Train a voice of two speakers and compare their pitch", epochs=30)
    parser.add_argument("--n-sentences", type=positive_int, default=40, help="that each of the two reads")
    parser.add_argument("--n-phrases", type=positive_int, default=4, help="that each of them says in the end")
    limit = "%% that a speaker's mean pitch may be off; else fail"
    parser.add_argument("--max-error", type=positive_float, default=10.0, help=limit)
    args = parser.parse_args(argv)
    output, corpus, sentences = args.output, args.output / "corpus", read_sentences(SENTENCES)
    with stage("1/3 a corpus of two embedded speakers"):
        speakers = {name: replace(READER, pitch=pitch) for name, pitch in PITCHES.items()}
        n_validation = max(1, args.n_sentences // 10)
        make_corpus(corpus, sentences=sentences[: args.n_sentences], speaker=speakers, n_validation=n_validation)
    with stage("2/3 training from recordings and transcripts alone"):
        checkpoint = train_voice(
            args,
            *("--resume", "--learned-alignment"),
            lists=(corpus / TRAIN, corpus / VALIDATION),
            **INTERVALS,
            **architecture(192, n_layers=(4, 4)),
            **OPTIMIZATION | {"warmup-steps": 200, "batch-size": 8},  # what docs/BENCHMARKS.md measured
        )
    with stage("3/3 both speakers say the same"):
        speak(output, checkpoint, sentences[args.n_sentences :][: args.n_phrases])  # that are not in the corpus
        pitches = compare(output, checkpoint)
    off = {name: 100 * abs(spoken / recorded - 1) for name, (recorded, spoken) in pitches.items()}
    worst = max(off, key=off.__getitem__)
    if off[worst] > args.max_error:
        raise InputError(
            f"{worst} is {off[worst]:.1f} % off the mean pitch of its recordings, more than {args.max_error:g} % "
            "(--max-error): the voice needs more --epochs"
        )
    print(f"each speaks within {args.max_error:g} % of the mean pitch of its own recordings")
    return 0


if __name__ == "__main__":
    run(main)
