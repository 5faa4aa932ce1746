"""Tacotron 2's training data: text with recordings, or with mels from the disk, and batches of them."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio import check_wav, load_wav
from common.config import AudioConfig, TextConfig, differences, from_plain
from common.data import Batch
from common.errors import InputError
from common.filelist import FilelistEntry, first_fields, read_filelist
from common.files import load_tensor, read_json
from common.mel import MelExtractor
from common.text.arpabet import utterance_draws
from common.text.front_end import TextFrontEnd

_OTHER_SUFFIX = {  # of the first column, by the column that is read: what is wrong then
    "wav": (".pt", "a list of mels; add --load-mel-from-disk"),
    "mel": (
        ".wav",
        "a list of recordings; leave out --load-mel-from-disk, or give the list that extract_mels.py wrote",
    ),
}


@dataclass(frozen=True)
class Tacotron2Batch(Batch):
    """Utterances padded to the longest of them; everything after an utterance's length is zero."""

    tokens: Tensor  # (B, L) int64 symbol ids
    token_lengths: Tensor  # (B,) int64
    mels: Tensor  # (B, n_mels, F) float32
    mel_lengths: Tensor  # (B,) int64

    @property
    def n_frames(self) -> Tensor:
        return self.mel_lengths.sum()

    @property
    def gate_targets(self) -> Tensor:
        """(B, F) float32: 1 from an utterance's last frame on."""
        position = torch.arange(self.mels.size(2), device=self.mels.device)
        return (position >= self.mel_lengths.unsqueeze(1) - 1).float()

    def teacher_forcing(self) -> dict[str, Any]:
        """Arguments of ``Tacotron2.forward`` that make it follow this batch's mels."""
        return {
            "tokens": self.tokens,
            "token_lengths": self.token_lengths,
            "mels": self.mels,
            "mel_lengths": self.mel_lengths,
        }


@dataclass(frozen=True)
class Tacotron2Utterance:
    """One utterance, checked."""

    name: str  # "wavs/a.wav (train.txt:7)"
    tokens: Tensor  # (L,) int64
    mel: Tensor  # (n_mels, F) float32


class Tacotron2Dataset:
    """Utterances of a list ``wavs/a.wav|text``, or with ``mels_from_disk`` of ``mels/a.pt|text``.

    A third column of recordings (the speaker) does not matter, nor do durations and pitch of a list made for
    FastPitch, ``mels/a.pt|durations/a.pt|pitch_char/a.pt|text``.

    Raises:
        InputError: the list or a file in it is missing, a transcript cannot be encoded or is empty, a recording is not
            as ``audio`` says, or the mels were made with other audio settings.
    """

    def __init__(
        self,
        dataset_path: Path,
        filelist: Path,
        *,
        audio: AudioConfig,
        text: TextConfig,
        mels_from_disk: bool = False,
        unknown_symbols: str = "error",
        seed: int = 0,
    ) -> None:
        self._folder = dataset_path
        self._audio = audio
        self._column = "mel" if mels_from_disk else "wav"
        self._extractor = MelExtractor(audio)
        self._entries = _read_list(filelist, self._column)
        self.lengths = [self._size(entry) for entry in self._entries]
        if mels_from_disk:
            self._check_audio(audio)
        self._seed = seed
        self._front_end = TextFrontEnd(text, unknown_symbols=unknown_symbols)
        self._texts = [self._front_end.clean(entry.fields["text"]) for entry in self._entries]
        self._tokens = [
            self._front_end.encode_cleaned(text, where=entry.where) for text, entry in zip(self._texts, self._entries)
        ]
        self._front_end.warn_dropped()

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Tacotron2Utterance:
        """Load and check one utterance.

        Raises:
            InputError: a file is missing or broken.
        """
        entry = self._entries[index]
        mel = self._load_mel(entry) if self._column == "mel" else self._extract_mel(entry)
        return Tacotron2Utterance(f"{self._path(entry)} ({entry.where})", torch.tensor(self._tokens[index]), mel)

    def draw(self, index: int, *, epoch: int) -> Tacotron2Utterance:
        """One utterance as an epoch of training reads it: which words are phones is drawn, where the text says so."""
        item = self[index]
        if not self._front_end.mixes:
            return item
        draws = utterance_draws(seed=self._seed, epoch=epoch, index=index)
        tokens = self._front_end.encode_cleaned(self._texts[index], where=self._entries[index].where, draw=draws)
        return replace(item, tokens=torch.tensor(tokens))

    def collate(self, items: list[Tacotron2Utterance]) -> Tacotron2Batch:
        """Pad utterances, in the order they come, into one batch."""
        return collate(items)

    def _path(self, entry: FilelistEntry) -> str:
        return entry.fields[self._column]

    def _load_mel(self, entry: FilelistEntry) -> Tensor:
        mel = load_tensor(self._folder / self._path(entry), where=entry.where).float()
        if mel.dim() != 2 or mel.size(0) != self._audio.n_mels or mel.size(1) == 0:
            wanted = f"({self._audio.n_mels}, frames)"
            raise InputError(f"{self._path(entry)}: shape {tuple(mel.shape)}, expected {wanted} ({entry.where})")
        if not torch.isfinite(mel).all():
            raise InputError(f"{self._path(entry)}: holds values that are not finite ({entry.where})")
        return mel

    def _extract_mel(self, entry: FilelistEntry) -> Tensor:
        path = self._folder / self._path(entry)
        wave = load_wav(path, sampling_rate=self._audio.sampling_rate, where=entry.where)
        return self._extractor(wave.unsqueeze(0))[0]

    def _size(self, entry: FilelistEntry) -> int:
        """Samples of a recording, or bytes of a mel's file: both grow with the frames."""
        path = self._folder / self._path(entry)
        if self._column == "mel":
            try:
                return path.stat().st_size
            except OSError as error:
                raise InputError(f"{path}: no such file ({entry.where}); run extract_mels.py first") from error
        n_samples = check_wav(path, sampling_rate=self._audio.sampling_rate, where=entry.where).n_samples
        if n_samples < self._extractor.min_samples:
            wanted = self._extractor.min_samples
            raise InputError(f"{path}: {n_samples} samples, a mel needs at least {wanted} ({entry.where})")
        return n_samples

    def _check_audio(self, audio: AudioConfig) -> None:
        """Feature folders say how they were made in ``audio.json``; folders made by the original's tools do not."""
        for folder in sorted({(self._folder / self._path(entry)).parent for entry in self._entries}):
            path = folder / "audio.json"
            if not path.is_file():
                continue
            made_with = from_plain(AudioConfig, read_json(path), where=str(path))
            lines = differences(made_with, audio, names=("the mels", "the options"))
            if lines:
                raise InputError(f"{path}: the mels were made with other audio settings: {'; '.join(lines)}")


def collate(items: list[Tacotron2Utterance]) -> Tacotron2Batch:
    """Pad utterances, in the order they come, into one batch."""
    return Tacotron2Batch(
        names=tuple(item.name for item in items),
        tokens=pad_sequence([item.tokens for item in items], batch_first=True),
        token_lengths=torch.tensor([len(item.tokens) for item in items]),
        mels=pad_sequence([item.mel.t() for item in items], batch_first=True).transpose(1, 2).contiguous(),
        mel_lengths=torch.tensor([item.mel.size(1) for item in items]),
    )


def build_dataset(
    args: argparse.Namespace, filelist: Path, *, audio: AudioConfig, text: TextConfig
) -> Tacotron2Dataset:
    """The dataset of a filelist, as the command line describes it."""
    return Tacotron2Dataset(
        args.dataset_path,
        filelist,
        audio=audio,
        text=text,
        mels_from_disk=args.load_mel_from_disk,
        unknown_symbols=args.unknown_symbols,
        seed=args.seed,
    )


def _read_list(path: Path, column: str) -> list[FilelistEntry]:
    """The list's entries with ``column`` and text, whatever else it has; raises InputError."""
    first = first_fields(path)
    suffix, problem = _OTHER_SUFFIX[column]
    if first[0].endswith(suffix):
        raise InputError(f"{path}: {problem}")
    features = [name for name, value in zip(("durations", "pitch"), first[1:]) if value.endswith(".pt")]
    return read_filelist(path, columns=(column, *features, "text"), optional=("speaker",))
