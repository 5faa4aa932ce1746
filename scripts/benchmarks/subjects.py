"""What the training benchmarks train: any model, as published, on a corpus of noise that its dataset reads."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.audio import save_wav
from common.cli import positive_float, positive_int
from common.config import AudioConfig
from common.distributed import Ranks
from common.files import write_json, write_text
from common.registry import available_models, get_model
from common.torch_file import save_tensor
from common.training import Engine, build_engine
from common.training.start import read_command

FRAMES = (150, 860)  # of an utterance, as LJSpeech's
LETTERS_A_SECOND = 15.1  # 5.7 frames each
SHORTEST = 1.4  # s, of LibriSpeech's utterances
LIST = "list.txt"


@dataclass(frozen=True)
class Setting:
    """One line of a table."""

    name: str
    amp_dtype: torch.dtype | None = None
    plain: bool = False  # as the original does it
    tf32: bool = False
    options: tuple[str, ...] = ()  # of train.py


@dataclass(frozen=True)
class Subject:
    """How a model is measured."""

    columns: tuple[str, ...] = ("wav", "text")  # of its training list
    options: tuple[str, ...] = ()  # of train.py
    has_plain: bool = False  # whether the original does it in another way, which the next two fields bring about
    plain_options: tuple[str, ...] = ()
    plain_config: Mapping[str, Any] = field(default_factory=dict)  # fields of ModelConfig
    cudnn_benchmark: bool = False  # as scripts/train.sh trains it
    segment: tuple[str, int] | None = None  # a vocoder's option of the segment length, and the published one in samples


SUBJECTS = {
    "FastPitch": Subject(
        ("mel", "durations", "pitch", "text"),
        ("--text-cleaners", "basic_cleaners"),
        has_plain=True,
        plain_config={"mask_convolutions": False},
    ),
    "Tacotron2": Subject(
        ("mel", "text"),
        ("--load-mel-from-disk", "--text-cleaners", "basic_cleaners"),
        has_plain=True,
        plain_options=("--no-mask-padding", "--no-mask-convolutions"),
    ),
    "HiFi-GAN": Subject(
        ("wav",),
        ("--concat-fwd",),
        has_plain=True,
        plain_options=("--no-concat-fwd",),
        segment=("--segment-size", 8192),
    ),
    "WaveGlow": Subject(("wav",), cudnn_benchmark=True, segment=("--segment-length", 8000)),
    "Harmonic": Subject(("wav",)),
    # Noise has nothing to teach; large steps would only diverge.
    "Jasper": Subject(("wav", "text"), ("--learning-rate", "1e-4"), has_plain=True),
}


def subject_of(model: str) -> Subject:
    """How a model is measured; one that `SUBJECTS` does not name learns from recordings and transcripts."""
    return SUBJECTS.get(model, Subject())


def add_arguments(parser: argparse.ArgumentParser, *, model: str, steps: int) -> None:
    """Add what is measured, by default ``model`` in so many steps, and how."""
    parser.add_argument("-m", "--model", choices=available_models(), default=model, help="what to train")
    parser.add_argument(
        "--segment-length", type=positive_int, help="samples of a vocoder's segment; as published if not given"
    )
    parser.add_argument(
        "--max-duration", type=positive_float, default=16.7, help="of a recognizer's longest utterance, s"
    )
    parser.add_argument("--cuda", action="store_true", help="measure the GPU")
    parser.add_argument("--settings", nargs="+", help="lines of the table, such as fp32; all if not given")
    parser.add_argument("--steps", type=positive_int, default=steps, help="updates that are timed, for each line")
    parser.add_argument("--compile", action="store_true", help="compile the network with torch.compile")


def segment_length(args: argparse.Namespace) -> int | None:
    """Samples of a vocoder's segment; None for other models."""
    segment = subject_of(args.model).segment
    return None if segment is None else args.segment_length or segment[1]


def durations(count: int, longest: float, random: np.random.Generator) -> list[float]:
    """Seconds of ``count`` utterances, the first of them the longest.

    They are spread like those of LibriSpeech's training utterances: few are short, most lie near the longest.
    """
    shortest = min(SHORTEST, longest / 2)
    drawn = random.triangular(shortest, shortest + 0.9 * (longest - shortest), longest, size=count - 1)
    return [longest, *(float(value) for value in drawn)]


def configure(model: str, words: Sequence[str]) -> tuple[Any, AudioConfig]:
    """ModelConfig and audio of a model that needs no training list, by further options of train.py."""
    required = ["--model", model, "--output", "-", "--training-files", "-", "--validation-files", "-"]
    command = read_command([*required, *words])
    spec = command.spec
    setup = spec.training.set_up(command.options, command.request)
    return spec.training.model_config(setup.options, setup.audio, None, base=None), setup.audio


def draw_lengths(count: int, args: argparse.Namespace, further: Sequence[str]) -> tuple[list[int], int]:
    """Samples of ``count`` utterances, and their sampling rate in Hz; ``further`` are options of train.py.

    Lengths are uniform as LJSpeech's; of a recognizer they are spread as LibriSpeech's, and a vocoder's are segments.
    """
    spec, audio, segment = get_model(args.model), AudioConfig(), segment_length(args)
    if spec.role == "recognizer":
        rate = configure(args.model, further)[1].sampling_rate
        seconds = durations(count, args.max_duration, np.random.default_rng(args.seed))
        return [round(value * rate) for value in seconds], rate
    if segment is not None:
        return [segment] * count, audio.sampling_rate
    generator = torch.Generator().manual_seed(args.seed)
    frames = torch.randint(FRAMES[0], FRAMES[1] + 1, (count,), generator=generator)
    return (audio.hop_length * frames).tolist(), audio.sampling_rate


def make_corpus(folder: Path, lengths: Sequence[int], columns: Sequence[str], *, sampling_rate: int, seed: int) -> None:
    """Write utterances of noise, of ``lengths`` samples, and their list with these columns.

    Pitch is of letters, or where there are no durations of frames.
    """
    generator, audio, lines = torch.Generator().manual_seed(seed), AudioConfig(), []
    for number, n_samples in enumerate(lengths):
        n_frames, n_letters = n_samples // audio.hop_length, max(round(LETTERS_A_SECOND * n_samples / sampling_rate), 1)
        letters = (torch.randint(26, (n_letters,), generator=generator) + ord("a")).tolist()
        letters[5:-1:6] = [ord(" ")] * len(letters[5:-1:6])  # words of five
        fields = {column: f"{column}/{number}.{'wav' if column == 'wav' else 'pt'}" for column in columns}
        tensors = {}
        if "wav" in columns:
            wave = 0.3 * torch.randn(n_samples, generator=generator).clamp(-3, 3)
            save_wav(folder / fields["wav"], wave, sampling_rate=sampling_rate, durable=False)
        if "mel" in columns:
            tensors["mel"] = torch.randn(audio.n_mels, n_frames, generator=generator) - 5
        if "durations" in columns:
            tensors["durations"] = torch.linspace(0, n_frames, n_letters + 1).round().long().diff()
        if "pitch" in columns and "durations" in columns:
            tensors["pitch"] = torch.randn(n_letters, generator=generator)
        elif "pitch" in columns:
            tensors["pitch"] = 100 + 100 * torch.rand(n_frames, generator=generator)
        for column, tensor in tensors.items():
            save_tensor(folder / fields[column], tensor, durable=False)
        if "text" in columns:
            fields["text"] = bytes(letters).decode()
        lines.append("|".join(fields.values()) + "\n")
    if "pitch" in columns:
        write_json(folder / f"pitch_char_stats__{Path(LIST).stem}.json", {"mean": 200.0, "std": 50.0})
    write_text(folder / LIST, "".join(lines))


def build(
    setting: Setting, args: argparse.Namespace, further: Sequence[str], folder: Path, ranks: Ranks
) -> tuple[Engine, Any]:
    """An engine of the model of the options, new, and its dataset of the corpus in ``folder``."""
    spec, subject, files = get_model(args.model), subject_of(args.model), str(folder / LIST)
    words = ["--model", args.model, "--output", str(folder), "--dataset-path", str(folder), "--training-files", files]
    words += ["--validation-files", files, *subject.options, *["--cuda"] * args.cuda]
    if subject.segment is not None:
        words += [subject.segment[0], str(segment_length(args))]
    words += [*further, *setting.options, *(subject.plain_options if setting.plain else ())]
    if setting.amp_dtype is not None:
        words += ["--amp", "--amp-dtype", str(setting.amp_dtype).removeprefix("torch.")]
    command = read_command(words)
    run, training = command.request.run, spec.training
    setup = training.set_up(command.options, command.request)
    options, audio, text = setup.options, setup.audio, setup.text
    config = training.model_config(options, audio, text, base=None)
    if setting.plain:
        config = replace(config, **subject.plain_config)
    networks = spec.build_networks(config, audio, text)
    if training.set_up_networks is not None:
        training.set_up_networks(networks, options, text=text, new=True)
    dataset = training.build_dataset(options, run.training_files, audio=audio, text=text, training=True)
    engine = build_engine(
        networks,
        training.build_objective(options, audio),
        setup.optimization,
        replace(run, compile=args.compile, ema_decay=0.0),
        steps_per_epoch=args.steps,
        ranks=ranks,
        amp_dtype=setting.amp_dtype,
        same_shapes=setup.same_shapes,
    )
    return engine, dataset
