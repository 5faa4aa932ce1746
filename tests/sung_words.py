"""A tiny language to recognise: three words that are sung, in recordings of 8 kHz, and a Jasper that learns them."""

from pathlib import Path

import torch

from common.audio.wav import save_wav

RATE = 8000  # Hz
WORDS = ("do", "re", "mi")
SUNG = {"d": 400.0, "o": 700.0, "r": 1000.0, "e": 1400.0, "m": 2000.0, "i": 2800.0}  # Hz

CONFIG = """
name: Jasper
labels: [' ', d, e, i, m, o, r]
input_train: &input
  audio_dataset:
    sample_rate: 8000
    trim_silence: true
    speed_perturbation: {min_rate: 0.9, max_rate: 1.1, p: 0.2}
  filterbank_features:
    sample_rate: 8000
    n_filt: 20
    dither: 0.00001
    spec_augment: {freq_masks: 1, max_freq: 2, time_masks: 1, max_time: 2}
input_val:
  audio_dataset: {sample_rate: 8000, trim_silence: true}
  filterbank_features: {sample_rate: 8000, n_filt: 20}
jasper:
  encoder:
    in_feats: 20
    activation: relu
    use_conv_masks: true
    blocks:
      - {filters: 24, repeat: 1, kernel_size: [7], stride: [2], dropout: 0.05, residual: false}
      - {filters: 24, repeat: 2, kernel_size: [5], dropout: 0.05, residual: true, residual_dense: true}
  decoder: {in_feats: 24}
"""


def sing(folder: Path, *, count: int = 30) -> list[str]:
    """Write recordings of a word each, its letters one tone after the other; lines of a list of them."""
    generator = torch.Generator().manual_seed(0)
    lines = []
    for index in range(count):
        word = WORDS[index % 3]
        parts = []
        for letter in word:
            n_samples = int(800 + 400 * torch.rand(1, generator=generator))
            phase = 2 * torch.pi * SUNG[letter] * torch.arange(n_samples) / RATE
            parts.append(0.3 * torch.sin(phase) * torch.hann_window(n_samples))
        wave = torch.cat(parts)
        wave = wave + 0.01 * torch.randn(len(wave), generator=generator)
        save_wav(folder / f"{index}.wav", wave, sampling_rate=RATE, durable=False)
        lines.append(f"{index}.wav|{word}")
    return lines


def make_sung_corpus(folder: Path) -> Path:
    """Recordings with ``train.txt``, ``val.txt`` and ``config.yaml``."""
    lines = sing(folder)
    (folder / "train.txt").write_text("\n".join(lines[6:]) + "\n")
    (folder / "val.txt").write_text("\n".join(lines[:6]) + "\n")
    (folder / "config.yaml").write_text(CONFIG)
    return folder


def training_options(corpus: Path, output: Path, *extra: str) -> list[str]:
    """Options of train.py for the tiny Jasper."""
    lists = ["--training-files", str(corpus / "train.txt"), "--validation-files", str(corpus / "val.txt")]
    setup = "--gradient-accumulation-steps 1 --ema-decay 0 --samples-interval 99"
    policy = "--lr-policy polynomial --warmup-epochs 1 --hold-epochs 20"
    own = ["-m", "Jasper", "-o", str(output), "-d", str(corpus), "--model-config", str(corpus / "config.yaml")]
    return [*own, *lists, *setup.split(), *policy.split(), "-bs", "6", "--seed", "1", *extra]
