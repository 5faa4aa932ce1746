"""Measures a vocoder and a voice against Griffin-Lim, recordings, and a recognizer that is not ours.

    python -m scripts.demos.measure_voices --dataset-path LJSpeech-1.1 --vocoder voices/vocoder-small.pt

Of clips that no training saw: copy synthesis by the vocoder and by Griffin-Lim of the same mels; with ``--voice`` also
the word errors of pocketsphinx on the recordings, the copies, the embedded speaker and the voice saying the same, and
the time from a command to its first sound. It needs two packages more: pip install pocketsphinx pystoi
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from common.audio import MelExtractor, load_wav, resample, save_wav
from common.checkpoints import open_checkpoint
from common.cli import ArgumentParser, n_processes, run
from common.config import AudioConfig
from common.errors import InputError
from common.evaluation.metrics import frame_f0
from common.files import read_lines, write_json
from common.precision import precision_of_device
from common.recognition.error_rates import ErrorCounts, error_counts
from common.synthesis import GriffinLimVocoder, Vocoder, load_vocoder, load_voice
from common.synthesis.loading import SEED
from common.synthesis.vocoder import GRIFFIN_LIM_ITERATIONS
from scripts.datasets.make_corpus import READER, normalize
from scripts.datasets.voice_data import HELD_BACK

RECOGNIZER_RATE = 16000  # Hz, of pocketsphinx's own model
COLUMNS = {  # figure -> title and format
    "mel_distance": ("mel distance", "{:.3f}"),
    "stoi": ("STOI", "{:.3f}"),
    "f0_cents": ("F0 error, cents", "{:.0f}"),
    "voicing_error": ("voicing error", "{:.1%}"),
    "rtf": ("real-time factor", "{:.3f}"),
}
ROOT = Path(__file__).resolve().parents[2]
FIRST_WORDS = "The first sound of a sentence should come soon, whoever waits for it, and however long the rest may be."


@dataclass(frozen=True)
class Clip:
    """A recording and what it says."""

    name: str
    text: str  # normalized
    wave: torch.Tensor  # (T,)


@dataclass(frozen=True)
class Copy:
    """How far a copy is from its recording, sample for sample."""

    mel_distance: float  # mean absolute difference of natural-log mels up to half the sampling rate
    stoi: float  # 0 to 1, short-time objective intelligibility (Taal et al. 2011)
    f0_cents: float  # root mean square over frames voiced in both
    voicing_error: float  # share of frames voiced in one alone


def read_clips(folder: Path, names: Sequence[str], *, sampling_rate: int) -> list[Clip]:
    """Clips of a corpus in LJSpeech's layout, by name; raises InputError for one that it lacks."""
    rows = [line.split("|") for line in read_lines(folder / "metadata.csv")]
    texts = {row[0]: row[-1] for row in rows if len(row) > 1}
    if absent := [name for name in names if name not in texts]:
        raise InputError(f"{folder}/metadata.csv: no clip {' '.join(absent)}; give others by --clips")
    return [
        Clip(name, texts[name], load_wav(folder / "wavs" / f"{name}.wav", sampling_rate=sampling_rate))
        for name in names
    ]


def compare_copy(recording: torch.Tensor, copy: torch.Tensor, audio: AudioConfig, stoi: Callable[..., float]) -> Copy:
    """Both (T,), cut to the shorter one."""
    n_samples, rate = min(len(recording), len(copy)), audio.sampling_rate
    waves = [wave[:n_samples].float() for wave in (recording, copy)]
    extractor = MelExtractor(AudioConfig(**vars(audio) | {"mel_fmax": None}))
    mels = [extractor(wave[None])[0] for wave in waves]
    n_frames = 1 + n_samples // round(0.0116 * rate)
    real, made = (frame_f0(wave.numpy(), sampling_rate=rate, n_frames=n_frames) for wave in waves)
    both = (real > 0) & (made > 0)
    cents = 1200 * np.log2(made[both] / real[both])
    return Copy(
        mel_distance=float((mels[0] - mels[1]).abs().mean()),
        stoi=float(stoi(waves[0].numpy(), waves[1].numpy(), rate)),
        f0_cents=float(np.sqrt(np.mean(cents**2))) if both.any() else float("nan"),
        voicing_error=float(np.mean((real > 0) != (made > 0))),
    )


def copies_of(clips: Sequence[Clip], vocoder: Vocoder, audio: AudioConfig) -> tuple[list[torch.Tensor], float]:
    """Each clip's mel as sound, and the seconds of processing per second of sound."""
    extractor = MelExtractor(audio)
    waves, seconds = [], 0.0
    for clip in clips:
        mel = extractor(clip.wave[None])
        started = time.perf_counter()
        waves.append(vocoder.speak(mel, [mel.size(2)])[0].cpu())
        seconds += time.perf_counter() - started
    return waves, seconds * audio.sampling_rate / sum(map(len, waves))


def words_of(text: str) -> str:
    """A text as a recognizer writes it: small letters and apostrophes, single spaces."""
    return " ".join(re.sub(r"[^a-z' ]", " ", normalize(text).lower().replace("-", " ")).split())


def recognize(decoder: Any, wave: torch.Tensor, *, sampling_rate: int) -> str:
    """What pocketsphinx hears in (T,)."""
    resampled = resample(wave.float(), ratio=RECOGNIZER_RATE / sampling_rate)
    resampled = 0.5 * resampled / resampled.abs().max().clamp(min=1e-4)
    decoder.start_utt()
    decoder.process_raw((resampled * 32767).short().numpy().tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return "" if hypothesis is None else re.sub(r"\(\d+\)", "", hypothesis.hypstr)


def word_errors(
    decoder: Any, texts: Sequence[str], waves: Sequence[torch.Tensor], *, sampling_rate: int
) -> ErrorCounts:
    """Errors of pocketsphinx on sound of each text."""
    heard = [words_of(recognize(decoder, wave, sampling_rate=sampling_rate)) for wave in waves]
    return error_counts([words_of(text) for text in texts], heard)


def seconds_to_first_sound(voice: Path, vocoder: Path) -> float:
    """From the start of a command that streams a text to the first bytes of its sound."""
    options = [
        (f"--{open_checkpoint(path, ema=True, role=role).spec.option}", str(path))
        for path, role in ((voice, "generator"), (vocoder, "vocoder"))
    ]
    words = ["--text", FIRST_WORDS, "--output", "-", "--stdout-format", "pcm"]
    started = time.perf_counter()
    command = [sys.executable, str(ROOT / "inference.py"), *words, *(word for pair in options for word in pair)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        first = process.stdout.read(2)
        seconds = time.perf_counter() - started
        process.stdout.read()
    if not first:
        raise InputError(f"{voice}: inference.py spoke nothing; run it with {' '.join(words)}")
    return seconds


def needed(name: str) -> Any:
    """A package that only measuring needs; raises InputError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"{name}: not installed; .venv/bin/pip install pocketsphinx pystoi") from error


def table(title: str, columns: Sequence[str], rows: dict[str, Sequence[str]]) -> str:
    """Lines of Markdown."""
    lines = [f"| {title} | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())])


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(description="Measure a vocoder and a voice", prog="measure_voices.py")
    where = "folder in LJSpeech's layout: wavs/ and metadata.csv"
    parser.add_argument("-d", "--dataset-path", type=Path, required=True, help=where)
    parser.add_argument("--vocoder", type=Path, required=True, help="checkpoint of the vocoder")
    parser.add_argument("--voice", type=Path, help="checkpoint of the voice; without it: copy synthesis alone")
    parser.add_argument("--clips", nargs="+", default=HELD_BACK, help="clips that no training saw (LJ001-0073 to 0080)")
    parser.add_argument("--threads", type=n_processes, default=2, help="of the processor")
    parser.add_argument("-o", "--output", type=Path, help="folder for the sound and figures.json")
    return parser.parse_args(argv)


def measure_copies(
    clips: Sequence[Clip], vocoders: dict[str, Vocoder], audio: AudioConfig
) -> tuple[dict[str, list[torch.Tensor]], dict[str, dict[str, float]]]:
    """Each vocoder's copies of the clips, and the means of `Copy` and the real-time factor; prints their table."""
    stoi = needed("pystoi").stoi
    copies, figures = {}, {}
    for name, vocoder in vocoders.items():
        copies[name], rtf = copies_of(clips, vocoder, audio)
        found = [compare_copy(clip.wave, wave, audio, stoi) for clip, wave in zip(clips, copies[name])]
        figures[name] = {key: fmean(getattr(one, key) for one in found) for key in vars(found[0])} | {"rtf": rtf}
    rows = {name: [form.format(of[key]) for key, (_, form) in COLUMNS.items()] for name, of in figures.items()}
    print(table(f"copy synthesis of {len(clips)} clips", [title for title, _ in COLUMNS.values()], rows))
    return copies, figures


def measure_voice(
    path: Path, texts: Sequence[str], vocoders: dict[str, Vocoder]
) -> tuple[dict[str, list[torch.Tensor]], dict[str, float]]:
    """The texts said through each vocoder, and the real-time factors."""
    said, factors = {}, {}
    for name, vocoder in vocoders.items():
        voice = load_voice(path, vocoder, device="cpu")
        voice.speak("Warm up.")
        started = time.perf_counter()
        said[name] = [voice.speak(text).wave for text in texts]
        factors[name] = (time.perf_counter() - started) * voice.sampling_rate / sum(map(len, said[name]))
    return said, factors


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print a table of the copies and, with a voice, one of the words."""
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    opened = open_checkpoint(args.vocoder, role="vocoder", ema=True)
    audio = opened.checkpoint.audio
    vocoders: dict[str, Vocoder] = {
        "the vocoder": load_vocoder(opened, precision=precision_of_device("cpu"), seed=SEED),
        "Griffin-Lim": GriffinLimVocoder(audio, seed=SEED, n_iter=GRIFFIN_LIM_ITERATIONS),
    }
    clips = read_clips(args.dataset_path, args.clips, sampling_rate=audio.sampling_rate)
    texts = [clip.text for clip in clips]
    copies, figures = measure_copies(clips, vocoders, audio)
    said = {"the recordings": [clip.wave for clip in clips]}
    said |= {f"copies by {name}": waves for name, waves in copies.items()}
    if args.voice is not None:
        decoder = needed("pocketsphinx").Decoder(samprate=RECOGNIZER_RATE, loglevel="FATAL")
        spoken, factors = measure_voice(args.voice, texts, vocoders)
        said["the embedded speaker"] = [torch.from_numpy(READER.speak(normalize(text)).wave) for text in texts]
        said |= {f"the voice by {name}": waves for name, waves in spoken.items()}
        figures |= {f"the voice by {name}": {"rtf": factor} for name, factor in factors.items()}
        for name, waves in said.items():
            errors = word_errors(decoder, texts, waves, sampling_rate=audio.sampling_rate)
            figures.setdefault(name, {})["wer"] = errors.wer
        rtf = {f"the voice by {name}": f"{factor:.3f}" for name, factor in factors.items()}
        rows = {name: (f"{figures[name]['wer']:.1%}", rtf.get(name, "")) for name in said}
        print("\n" + table("who says it", ("word errors of pocketsphinx", "real-time factor"), rows))
        figures["first sound"] = {"seconds": seconds_to_first_sound(args.voice, args.vocoder)}
        print(f"\nthe first sound came {figures['first sound']['seconds']:.1f} s after the command began")
    if args.output is not None:
        for group, waves in said.items():
            for clip, wave in zip(clips, waves):
                path = args.output / group.replace(" ", "_") / f"{clip.name}.wav"
                save_wav(path, wave, sampling_rate=audio.sampling_rate)
        write_json(args.output / "figures.json", figures)
    return 0


if __name__ == "__main__":
    run(main)
