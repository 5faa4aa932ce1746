"""Measures how well FastPitch 1.1's learned alignment agrees with the true boundaries of phones.

    python -m scripts.demos.align_accuracy

The embedded speaker reads the quickstart's corpus, which gives the end of each phone. A small FastPitch is trained by
train.py --learned-alignment on wavs and phones alone; the durations that it then finds in each recording are compared
with the truth. The seed is fixed: the same machine gives the same figures.

Frames become seconds by where their windows are centered, nothing is fitted to the truth (`boundary_times`).
"""

import argparse
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.checkpoints import load_checkpoint, load_networks, open_checkpoint
from common.cli import positive_float, run
from common.config import AudioConfig
from common.data import read_filelist
from common.errors import InputError
from common.files import write_json, write_text
from common.nn import alignment_metrics
from common.progress import progress
from common.registry import GeneratorSpec
from common.text import Interval, Speaker
from scripts.datasets.make_corpus import READER, SENTENCES, make_corpus, read_sentences
from scripts.demos.quickstart import N_VALIDATION, NO_DROPOUT, TEXT, clear, cpu_seconds, demo_parser, stage, train_voice

EPOCHS = 20  # of 33 updates
KL_LOSS_START_EPOCH, KL_LOSS_WARMUP_EPOCHS = 4, 4  # published: 250 and 100, of 1500
CLOSE_MS, FAR_MS = 20.0, 50.0
COMMON = 0.01  # share of all boundaries from which on a kind of them has a line of its own
# The aligner as published; around it as little of a voice as there can be.
_SIZES = ("in-fft-output-size", "out-fft-output-size", "in-fft-conv1d-filter-size", "out-fft-conv1d-filter-size")
_PREDICTORS = ("dur-predictor", "pitch-predictor")
ARCHITECTURE = {
    **dict.fromkeys(("symbols-embedding-dim", *_SIZES, *(f"{name}-filter-size" for name in _PREDICTORS)), 64),
    **dict.fromkeys(("in-fft-n-layers", "out-fft-n-layers", *(f"{name}-n-layers" for name in _PREDICTORS)), 1),
    **NO_DROPOUT,
}
OPTIMIZATION = {
    "optimizer": "adam",
    "learning-rate": 2e-3,
    "warmup-steps": 0,
    "grad-clip-thresh": 5,
    "batch-size": 8,
    "kl-loss-start-epoch": KL_LOSS_START_EPOCH,
    "kl-loss-warmup-epochs": KL_LOSS_WARMUP_EPOCHS,
}
COLUMNS = ("wav", "text")
RESULTS = "align_accuracy.json"
SETS = {"training": "train", "held out": "val"}  # clips, and how their lists are named
KINDS = {
    "silence": ("sil", "sp"),
    "stop": ("p", "b", "t", "d", "k", "ɡ", "q", "ʔ", "c", "ɟ", "t͡ʃ", "d͡ʒ"),
    "vowel": tuple("aeiouyæøœɐɑɒɔəɛɜɤɨɪɯɵɶʉʊʌʏ"),
    "fricative": tuple("fvθðszʃʒhɦxɣçʝχʁɸβ"),
}


@dataclass(frozen=True)
class Found:
    """The alignment of one clip, and the true boundaries."""

    phones: tuple[str, ...]  # (L,)
    times: np.ndarray  # (L - 1,) s, where all phones but the last end in the alignment
    true_times: np.ndarray  # (L - 1,) s, where they end in truth
    diagonality: float  # of the soft attention, without its prior
    n_unattended: int  # phones without a frame, went each frame to the phone that it attends to most

    @property
    def kinds(self) -> list[str]:
        """What meets at each boundary, "vowel-stop" and so on."""
        kinds = [kind_of(phone) for phone in self.phones]
        return [f"{left}-{right}" for left, right in pairwise(kinds)]


def accuracy(errors_ms: np.ndarray) -> dict[str, float]:
    """Figures of signed errors (N,) of boundaries, in ms, positive where the alignment is late; shares of 1."""
    sizes = np.abs(errors_ms)
    return {
        "n_boundaries": len(sizes),
        "mean_error": float(sizes.mean()),
        "median_error": float(np.median(sizes)),
        "error_95": float(np.percentile(sizes, 95)),
        "bias": float(errors_ms.mean()),
        "within_20_ms": float((sizes < CLOSE_MS).mean()),
        "within_50_ms": float((sizes < FAR_MS).mean()),
    }


def kind_of(phone: str) -> str:
    """The kind of sound that a phone of the set `ipa` is."""
    return next((kind for kind, phones in KINDS.items() if phone in phones), "sonorant")


def boundary_times(durations: Sequence[int] | np.ndarray, audio: AudioConfig) -> np.ndarray:
    """Where tokens of ``durations`` (L,) frames meet: (L - 1,) seconds.

    Frame k is centered on sample k * hop (framing "centered") or (k + 0.5) * hop ("aligned"): the spectrum around it
    is what it shows. The boundary between two frames is therefore half way between their centres. A token's end after
    n frames is at (n - 0.5) * hop, or n * hop; the durations that `common.extraction.textgrid` makes of true
    boundaries, by frames whose centre is past them, come back without bias.
    """
    ends = np.cumsum(durations)[:-1] - (0.5 if audio.framing == "centered" else 0.0)
    return ends * audio.hop_length / audio.sampling_rate


def nearest_times(times: np.ndarray, audio: AudioConfig) -> np.ndarray:
    """The boundaries between frames that come nearest to ``times`` (N,) seconds."""
    hop_s = audio.hop_length / audio.sampling_rate
    offset = 0.5 if audio.framing == "centered" else 0.0
    return (np.round(times / hop_s + offset) - offset) * hop_s


def errors_ms(clips: Sequence[Found]) -> np.ndarray:
    """Signed errors of all boundaries of ``clips``, (N,) ms."""
    return 1000 * np.concatenate([clip.times - clip.true_times for clip in clips])


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = demo_parser("align_accuracy", "Compare a learned alignment with the truth", epochs=EPOCHS)
    parser.add_argument("--fresh", action="store_true", help="remove an earlier run's files from that folder first")
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="what the corpus says, one sentence a line")
    limit = "ms; fail when the mean error is not below it"
    parser.add_argument("--max-error", type=positive_float, default=20.0, help=limit)
    limit = "fail when all took more than these"
    parser.add_argument("--max-cpu-minutes", type=positive_float, default=15.0, help=limit)
    return parser.parse_args(argv)


def prepare(folder: Path, sentences: list[str], speaker: Speaker) -> dict[str, tuple[Interval, ...]]:
    """Speak the corpus, and write lists of its wavs with their phones; gives the truth, by the wav's name in them.

    The TextGrids are removed: nothing in the corpus says where a phone begins.
    """
    make_corpus(folder, sentences=sentences, speaker=speaker, n_validation=N_VALIDATION)
    shutil.rmtree(folder / "TextGrid")
    truth: dict[str, tuple[Interval, ...]] = {}
    for name in SETS.values():
        entries = read_filelist(folder / f"{name}.txt", columns=COLUMNS)
        spoken = {entry.fields["wav"]: speaker.speak(entry.fields["text"]).phones for entry in entries}
        lines = [f"{wav}|{' '.join(phone.label for phone in phones)}\n" for wav, phones in spoken.items()]
        write_text(phones_list(folder, name), "".join(lines))
        truth |= spoken
    return truth


def phones_list(corpus: Path, name: str) -> Path:
    """The list of a set's wavs and phones."""
    return corpus / f"{name}_phones.txt"


@torch.no_grad()
def align(path: Path, *, corpus: Path, filelist: Path, truth: dict[str, tuple[Interval, ...]]) -> list[Found]:
    """The alignment by a checkpoint of each clip of a list, alone, as it is computed in training."""
    loaded = open_checkpoint(path, model="FastPitch")
    checkpoint, inference = loaded.checkpoint, loaded.spec.inference
    networks, config = load_networks(checkpoint, ema=loaded.ema, device=torch.device("cpu"), where=str(path))
    assert isinstance(inference, GeneratorSpec) and inference.teacher_forced_dataset is not None
    audio, text = checkpoint.audio, checkpoint.text
    dataset = inference.teacher_forced_dataset(
        corpus, filelist, config=config, audio=audio, text=text, unknown_symbols="drop", networks=networks
    )
    network: Any = networks["fastpitch"]
    clips = []
    entries = read_filelist(filelist, columns=COLUMNS)
    for index, entry in enumerate(progress(entries, desc="aligning", unit="clip")):
        batch = dataset.collate([dataset[index]])
        alignment = network.teacher_forced(batch).alignment
        phones = truth[entry.fields["wav"]]
        durations = alignment.durations[0].numpy()
        assert len(durations) == len(phones), entry.where
        true_times = np.array([phone.end_s for phone in phones[:-1]])
        lengths = batch.token_lengths, batch.mel_lengths
        learned = alignment.attention_without(batch.prior, batch.mel_lengths)
        n_unattended = alignment_metrics.unattended_tokens(alignment.attention(batch.mel_lengths), *lengths)
        clips.append(
            Found(
                phones=tuple(phone.label for phone in phones),
                times=boundary_times(durations, audio),
                true_times=true_times,
                diagonality=float(alignment_metrics.diagonality(learned, *lengths)),
                n_unattended=int(n_unattended),
            )
        )
    return clips


def report(found: dict[str, list[Found]], audio: AudioConfig) -> dict[str, Any]:
    """Print all figures as a table; gives them as plain types.

    They are of all clips, of each set, and of each kind of boundary that is common enough, most frequent first.
    """
    clips = [clip for part in found.values() for clip in part]
    errors, kinds = errors_ms(clips), np.array([kind for clip in clips for kind in clip.kinds])
    chosen = {"all": errors} | {name: errors_ms(part) for name, part in found.items()}
    counted = Counter(kinds.tolist()).most_common()
    chosen |= {kind: errors[kinds == kind] for kind, number in counted if number >= COMMON * len(kinds)}
    rows = {name: accuracy(of_rows) for name, of_rows in chosen.items()}
    header = ("number", "mean", "median", "95 %", "bias", "< 20 ms", "< 50 ms")
    print(f"{'boundaries':<19}" + "".join(f"{title:>9}" for title in header))
    for name, row in rows.items():
        sizes = "".join(f"{value:9.1f}" for value in (row["mean_error"], row["median_error"], row["error_95"]))
        shares = "".join(f"{100 * share:7.1f} %" for share in (row["within_20_ms"], row["within_50_ms"]))
        print(f"{name:<19}{row['n_boundaries']:9d}{sizes}{row['bias']:+9.1f}{shares}")
    frame_ms = 1000 * audio.hop_length / audio.sampling_rate
    true_times = np.concatenate([clip.true_times for clip in clips])
    least = float(1000 * np.abs(nearest_times(true_times, audio) - true_times).mean())
    print(
        f"errors in ms; a frame has {frame_ms:.1f} ms, so that no durations come nearer than {least:.1f} ms on average"
    )
    attention = {}
    for name, part in found.items():
        diagonality = float(np.mean([clip.diagonality for clip in part]))
        share = sum(clip.n_unattended for clip in part) / sum(len(clip.phones) for clip in part)
        attention[name] = {"diagonality": diagonality, "unattended_tokens": share}
        print(f"{name}: diagonality {diagonality:.2f}, {100 * share:.2f} % of phones without a frame")
    return {"boundaries_ms": rows, "attention": attention, "frame_ms": frame_ms, "least_error_ms": least}


def main(argv: list[str] | None = None) -> int:
    """All stages in order; exit status 1 if the alignment is too far off or took too long."""
    started = cpu_seconds()
    args = parse_args(argv)
    output, corpus, sentences = args.output, args.output / "corpus", read_sentences(args.sentences)
    if args.fresh:
        clear(output)
    there = [folder for folder in (corpus, output / "voice") if folder.exists()]
    if there:  # the figures are of a complete run
        raise InputError(f"{there[0]} exists already; add --fresh to remove it, or choose another --output")
    with stage("1/3 a corpus, spoken by the embedded speaker"):
        truth = prepare(corpus, sentences, READER)
    with stage("2/3 training on wavs and phones (the long part)"):
        path = train_voice(
            args,
            "--learned-alignment",
            lists=[phones_list(corpus, name) for name in SETS.values()],
            **TEXT,
            epochs_per_checkpoint=args.epochs,
            validation_interval=5,
            samples_interval=args.epochs,
            **ARCHITECTURE,
            **OPTIMIZATION,
        )
    with stage("3/3 the alignment compared with the truth"):
        found = {
            name: align(path, corpus=corpus, filelist=phones_list(corpus, stem), truth=truth)
            for name, stem in SETS.items()
        }
        figures = report(found, load_checkpoint(path, training=False).audio)
    error, minutes = figures["boundaries_ms"]["all"]["mean_error"], (cpu_seconds() - started) / 60
    figures |= {"cpu_minutes": minutes, "epochs": args.epochs, "seed": args.seed}
    write_json(output / RESULTS, figures)
    print(f"\nmean absolute error {error:.1f} ms in {minutes:.1f} CPU minutes ({output / RESULTS})")
    if error >= args.max_error:
        raise InputError(f"the mean error, {error:.1f} ms, is not below {args.max_error:g} ms; train for more --epochs")
    if minutes > args.max_cpu_minutes:
        raise InputError(f"{minutes:.1f} CPU minutes, more than {args.max_cpu_minutes:g}; train for fewer --epochs")
    return 0


if __name__ == "__main__":
    run(main)
