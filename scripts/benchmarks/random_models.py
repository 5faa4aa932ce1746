"""Makes models with random weights, and noise as input, to measure speed: trained weights take the same time.

    python -m scripts.benchmarks.random_models output/benchmark --model HiFi-GAN --kind v1

writes for a vocoder ``HiFi-GAN_v1.pt`` and mels, listed in ``random_mels.tsv``; for voices ``FastPitch_random.pt``,
which speaks each letter for 6 frames, or ``Tacotron2_random.pt``, which speaks until ``--max-decoder-steps``; and for
Jasper ``Jasper_random.pt`` and recordings of noise, listed in ``list.txt``.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from common.audio.wav import save_wav
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.cli import ArgumentParser, run
from common.config import AudioConfig, to_plain
from common.files import write_json, write_text
from common.registry import available_models, get_model
from common.text.config import TextConfig
from common.torch_file import save_tensor
from common.training.options import parse_command_line
from common.training.start import read_command

KINDS = {"HiFi-GAN": "--preset", "WaveGlow": "--wn-channels", "Harmonic": "--channels"}  # options of train.py
# Weights that determine the length of speech: log(1 + frames) per letter, and the end of an utterance.
VOICES = {
    "FastPitch": {"duration_predictor.fc.weight": 0.0, "duration_predictor.fc.bias": math.log1p(6)},
    "Tacotron2": {"decoder.gate_layer.linear_layer.bias": -20.0},
}
# Columns of a model's training list; vocoders: "wav".
COLUMNS = {"FastPitch": "mel durations pitch text", "Tacotron2": "mel text", "Jasper": "wav text"}
LIST = "list.txt"
N_FRAMES = 693  # 8.05 s at 22050 Hz, as in published benchmarks
LETTERS_A_SECOND = 15.1  # 5.7 frames each


def draw_lengths(model: str, count: int, rate: int, longest: float = 16.7) -> list[int]:
    """Return the lengths in samples of ``count`` utterances, always the same; Jasper's first one is the longest (s).

    Jasper's are distributed like LibriSpeech's training utterances: few are short, most are close to the longest.
    """
    if model == "Jasper":
        shortest = min(1.4, longest / 2)  # s, as in LibriSpeech
        most_frequent = shortest + 0.9 * (longest - shortest)
        drawn = np.random.default_rng(0).triangular(shortest, most_frequent, longest, size=count - 1)
        return [round(rate * seconds) for seconds in (longest, *drawn)]
    least, most = (87, 87) if model in ("HiFi-GAN", "WaveGlow") else (150, 860)  # frames: a second; as LJSpeech's
    frames = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))
    return (AudioConfig().hop_length * frames).tolist()


def make_corpus(folder: Path, lengths: Sequence[int], columns: Sequence[str], *, sampling_rate: int) -> None:
    """Write utterances of noise, of ``lengths`` samples, and lists with these columns.

    Pitch is per letter, or per frame if there are no durations.
    """
    generator, audio, lines = torch.Generator().manual_seed(0), AudioConfig(), []
    for number, n_samples in enumerate(lengths):
        n_frames, n_letters = n_samples // audio.hop_length, max(round(LETTERS_A_SECOND * n_samples / sampling_rate), 1)
        letters = torch.randint(26, (n_letters,), generator=generator) + ord("a")
        letters[5:-1:6] = ord(" ")  # words of five
        letters[n_letters // 6 * 6 :] = ord("o")  # a shorter one may be an abbreviation, which is read out
        tensors = {
            "mel": torch.randn(audio.n_mels, n_frames, generator=generator) - 5,
            "durations": torch.linspace(0, n_frames, n_letters + 1).round().long().diff(),
            "pitch": 100 + 100 * torch.rand(n_letters if "durations" in columns else n_frames, generator=generator),
        }
        fields = {column: f"{column}/{number}.{'wav' if column == 'wav' else 'pt'}" for column in columns}
        for column in tensors.keys() & fields.keys():
            save_tensor(folder / fields[column], tensors[column], durable=False)
        if "wav" in fields:
            wave = 0.3 * torch.randn(n_samples, generator=generator).clamp(-3, 3)
            save_wav(folder / fields["wav"], wave, sampling_rate=sampling_rate, durable=False)
        if "text" in fields:
            fields["text"] = bytes(letters.tolist()).decode()
        lines.append("|".join(fields.values()) + "\n")
    if "pitch" in columns:
        write_json(folder / f"pitch_char_stats__{Path(LIST).stem}.json", {"mean": 150.0, "std": 30.0})
    write_text(folder / LIST, "".join(lines))
    write_text(folder / "val.txt", "".join(lines[:2]))


def save_random(path: Path, model: str, config: object, audio: AudioConfig) -> None:
    """Write a checkpoint for inference with random weights, always the same."""
    torch.manual_seed(0)
    text = TextConfig(cleaners=("basic_cleaners",)) if model in VOICES else None
    assumed = ("framing", "peak") if model in KINDS else ()  # as in published files
    networks = get_model(model).model.build_networks(config, audio, text, inference=True)
    weights = {name: network.state_dict() for name, network in networks.items()}
    for name, value in VOICES.get(model, {}).items():
        next(iter(weights.values()))[name].fill_(value)
    save_checkpoint(path, Checkpoint(model, config, audio, text, weights, assumed=assumed))


def main(argv: Sequence[str] | None = None) -> None:
    """Make what the options ask for."""
    parser = ArgumentParser(prog="random_models", description="make a model with random weights, and noise for it")
    parser.add_argument("folder", type=Path, help="folder for all of it")
    add = parser.add_argument
    add("--model", choices=available_models(), default="HiFi-GAN", help="model to make")
    add("--kind", help="preset of HiFi-GAN (v1, v2, v3), or channels of WaveGlow or Harmonic")
    add("--count", type=int, default=8, help="number of mels or recordings")
    args = parser.parse_args(argv)
    folder, model, count = args.folder, args.model, args.count
    config, audio = get_model(model).config.ModelConfig(), AudioConfig()
    if model not in VOICES:
        required = ["--model", model, "--output", "-", "--training-files", "-", "--validation-files", "-"]
        kind = [KINDS[model], args.kind] if args.kind else []
        options, request = read_command(*parse_command_line([*required, *kind]))  # of train.py
        training = request.spec.training_setup
        setup = training.set_up(options, request)
        config, audio = training.model_config(setup.options, setup.audio, None, base=None), setup.audio
    save_random(folder / f"{model}_{args.kind or 'random'}.pt", model, config, audio)
    if model in KINDS:
        make_corpus(folder, [N_FRAMES * audio.hop_length] * count, ["mel"], sampling_rate=audio.sampling_rate)
        write_json(folder / "mel/audio.json", to_plain(audio))
        lines = [f"{folder}/mel/{place}.pt\t{place}.wav\n" for place in range(count)]
        write_text(folder / "random_mels.tsv", "".join(["mel\toutput\n", *lines]))
    elif model == "Jasper":
        lengths = draw_lengths(model, count, audio.sampling_rate)
        make_corpus(folder, lengths, ["wav", "text"], sampling_rate=audio.sampling_rate)


if __name__ == "__main__":
    run(main)
