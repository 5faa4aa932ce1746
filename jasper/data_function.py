"""Jasper's data: recordings with transcripts, perturbed differently in each epoch of training."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.data.batch import Batch, join_batches
from common.data.filelist import Filelists, paths_of
from common.errors import InputError, shown
from common.progress import warn
from common.text.symbols import name_counts
from jasper.arg_parser import TrainingOptions
from jasper.augmentation import Augmentation
from jasper.manifest import Entry, check_english, select_entries
from jasper.text import encode, is_english
from jasper.waveform import load_recording, perturb

_NOISE = np.random.default_rng(0).standard_normal(2**16, dtype=np.float32)  # for dither; drawing new noise takes longer


@dataclass(frozen=True)
class JasperBatch(Batch):
    """Recordings and their transcripts. The objective computes features."""

    waves: Tensor  # (B, T) float32 in [-1, 1], 0 past the ends
    wave_lengths: Tensor  # (B,) int64 samples
    tokens: Tensor  # (B, L) int64 label ids, 0 past the ends
    token_lengths: Tensor  # (B,) int64
    hop_length: int  # samples between frames of features
    draws: Tensor | None = None  # (B, n_draws) float32, random numbers of the masks; None: no masks

    @property
    def frame_lengths(self) -> Tensor:
        return (self.wave_lengths + self.hop_length - 1) // self.hop_length


class JasperDataset:
    """Utterances of manifests, lists or folders, with their transcripts.

    ``draw`` returns one of an utterance's recordings, perturbed by seed, epoch and index; indexing, the original.
    """

    def __init__(self, options: TrainingOptions, filelists: Filelists, *, training: bool = True, **_: Any) -> None:
        """Further arguments are ignored: the YAML file describes features and labels."""
        settings = options.settings.input_train if training else options.settings.input_val
        self._augmentation: Augmentation = settings.filterbank_features
        self._model = options.settings.model
        rate = self._model.features.sample_rate
        self._dataset = replace(settings.audio_dataset, sample_rate=rate)
        self._seed = options.seed
        self._entries = select_entries(paths_of(filelists), folder=options.dataset_path, settings=self._dataset)
        self.lengths = [round(entry.duration * rate) for entry in self._entries]  # samples
        if self._dataset.normalize_transcripts and is_english(self._model.labels):
            check_english(self._entries)
        self._dropped: Counter[str] = Counter()
        self._tokens = [self._encode(entry) for entry in self._entries]
        if self._dropped:
            what = f"{self._dropped.total()} characters without a label were left out: {name_counts(self._dropped)}"
            warn(f"{paths_of(filelists)[0]}: {what}")
        for index, entry in enumerate(self._entries):
            if not self._aligns(index, self.lengths[index]):
                problem = f"{entry.duration:.2f} s is too short for its transcript {entry.transcript!r}"
                raise InputError(f"{entry.name}: {problem}; correct it, or leave the utterance out")

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> JasperBatch:
        return self._batch(index, self._original(index), None)

    def draw(self, index: int, *, epoch: int) -> JasperBatch:
        """Return one of the recordings, perturbed, or the original if that would be too short for the transcript."""
        random = np.random.default_rng((self._seed, epoch, index))
        entry = self._entries[index]
        ignores_copies = self._dataset.ignore_offline_speed_perturbation
        path = entry.paths[0 if ignores_copies else int(random.integers(len(entry.paths)))]
        wave = perturb(self._load(path, entry), self._dataset, random)
        if not self._aligns(index, len(wave)):
            wave = self._original(index)
        if dither := self._augmentation.dither:
            start = random.integers(len(_NOISE) // 2)
            wave = wave + dither * torch.from_numpy(np.resize(_NOISE[start:], len(wave)))  # repeated
        draws = torch.from_numpy(random.random(self._augmentation.n_draws, dtype=np.float32))
        return self._batch(index, wave, draws)

    collate = staticmethod(join_batches)

    def _batch(self, index: int, wave: Tensor, draws: Tensor | None) -> JasperBatch:
        """wave (T,), draws (n_draws,) -> a batch of one."""
        names, tokens, hop_length = (self._entries[index].name,), self._tokens[index], self._model.features.hop_length
        lengths = {"wave_lengths": torch.tensor([len(wave)]), "token_lengths": torch.tensor([len(tokens)])}
        row = None if draws is None else draws[None]
        return JasperBatch(names, waves=wave[None], tokens=tokens[None], hop_length=hop_length, draws=row, **lengths)

    def _encode(self, entry: Entry) -> Tensor:
        transcript = entry.normalized(self._dataset, self._model.labels)
        if transcript is None:
            raise InputError(f"{entry.name}: no transcript; training and validation need one for every utterance")
        tokens = encode(transcript, self._model.labels)
        if not tokens:
            raise InputError(f"{entry.name}: its transcript {entry.transcript!r} has none of the model's characters")
        dropped = Counter(one for one in transcript if one not in self._model.labels and not one.isspace())
        if any(map(str.isdigit, dropped)):
            numbers = ", ".join(re.findall(r"\d+", transcript))
            problem = f"no labels for {numbers} in its transcript {shown(entry.transcript)}"
            raise InputError(f"{entry.name}: {problem}; write numbers in words")
        self._dropped.update(dropped)
        return torch.tensor(tokens)

    def _load(self, path: Path, entry: Entry, *, trim: bool = True) -> Tensor:
        trim &= self._dataset.trim_silence
        return load_recording(path, sampling_rate=self._dataset.sample_rate, trim=trim, where=entry.where)

    def _original(self, index: int) -> Tensor:
        """Return the original recording, untrimmed if trimming leaves too little of it for its transcript."""
        entry = self._entries[index]
        wave = self._load(entry.paths[0], entry)
        return wave if self._aligns(index, len(wave)) else self._load(entry.paths[0], entry, trim=False)

    def _aligns(self, index: int, n_samples: int) -> bool:
        """Whether CTC can align the transcript: it needs a frame for each label, and one between repeated labels."""
        tokens = self._tokens[index]
        needed = len(tokens) + int((tokens[1:] == tokens[:-1]).sum())
        n_frames = -(-n_samples // self._model.features.hop_length)
        return self._model.n_outputs(n_frames) >= needed


build_dataset = JasperDataset
