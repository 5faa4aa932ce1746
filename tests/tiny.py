"""A tiny prepared corpus and a tiny FastPitch for tests of training and inference."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from common.config import AudioConfig, to_plain
from common.data.batch import pad_rows
from common.nn.alignment import interpolated_prior
from common.text.espeak import Speaker
from scripts.demos.quickstart import normalize, write_clip

SENTENCES = (
    "a small house stood by the road.",
    "the rain had stopped before noon.",
    "nobody came, and nobody called.",
    "seven ships lay in the harbour.",
    "he read the letter twice.",
    "what a strange little town!",
    "bread, salt and a jug of water.",
    "she counted the steps again.",
)

TINY_OPTIONS = (
    "--symbols-embedding-dim 16 --in-fft-output-size 16 --out-fft-output-size 16 --in-fft-n-layers 1 "
    "--out-fft-n-layers 1 --in-fft-d-head 8 --out-fft-d-head 8 --in-fft-conv1d-filter-size 24 "
    "--out-fft-conv1d-filter-size 24 --dur-predictor-filter-size 16 --pitch-predictor-filter-size 16"
).split()


def padded_priors(frame_lengths: Sequence[int], token_lengths: Sequence[int]) -> torch.Tensor:
    """The interpolated priors of a batch's utterances, zero-padded: (B, F, L) float32."""
    return pad_rows([prior.float() for prior in map(interpolated_prior, frame_lengths, token_lengths)])


def make_corpus(folder: Path, *, count: int = 24, val: int = 4, seed: int = 0) -> Path:
    """Features of made-up utterances, whose mels depend on their letters, with the lists train.txt and val.txt."""
    generator = torch.Generator().manual_seed(seed)
    colors = torch.randn(128, 80, generator=generator)
    lines = []
    for name in ("mels", "durations", "pitch_char"):
        (folder / name).mkdir(parents=True)
    for index in range(count):
        words = SENTENCES[index % len(SENTENCES)].split()
        text = " ".join(words[: 2 + index % 5])
        codes = torch.tensor([ord(letter) for letter in text])
        durations = torch.randint(0, 4, (len(text),), generator=generator)
        durations[0] = 1
        mel = colors[codes].repeat_interleave(durations, dim=0).t() - 4.0
        noise = 0.1 * torch.randn(mel.shape, generator=generator)
        torch.save((mel + noise).contiguous(), folder / "mels" / f"u{index}.pt")
        torch.save(durations, folder / "durations" / f"u{index}.pt")
        torch.save(torch.randn(len(text), generator=generator), folder / "pitch_char" / f"u{index}.pt")
        lines.append(f"mels/u{index}.pt|durations/u{index}.pt|pitch_char/u{index}.pt|{text}")
    (folder / "mels" / "audio.json").write_text(json.dumps(to_plain(AudioConfig())))
    (folder / "train.txt").write_text("\n".join(lines[val:]) + "\n")
    (folder / "val.txt").write_text("\n".join(lines[:val]) + "\n")
    (folder / "pitch_char_stats__train.json").write_text('{"mean": 200.0, "std": 50.0}')
    return folder


def read_aloud(folder: Path, sentences: Sequence[str], speakers: Mapping[str, Speaker]) -> None:
    """A corpus that eSpeak NG's speakers read, with metadata.csv, and the middle sentence in val.txt."""
    lists: dict[str, list[str]] = {"train.txt": [], "val.txt": [], "metadata.csv": []}
    for voice, speaker in speakers.items():
        for number, text in enumerate(map(normalize, sentences)):
            name = f"{voice}/EM-{number + 1:04d}".strip("/")
            write_clip(folder, name, speaker.speak(text))
            line = "|".join(filter(None, [f"wavs/{name}.wav", text, voice]))
            lists["val.txt" if number == len(sentences) // 2 else "train.txt"].append(f"{line}\n")
            lists["metadata.csv"].append(f"{name}|{text}\n")
    for name, lines in lists.items():
        (folder / name).write_text("".join(lines), encoding="utf-8")


def train_options(corpus: Path, output: Path, *extra: str) -> list[str]:
    """Options of train.py for a tiny model on a tiny corpus."""
    lists = ["--training-files", str(corpus / "train.txt"), "--validation-files", str(corpus / "val.txt")]
    return ["-o", str(output), "-d", str(corpus), *lists, *TINY_OPTIONS, "-bs", "4", "--warmup-steps", "10", *extra]
