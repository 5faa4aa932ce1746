"""Tacotron 2's training data: text with recordings or stored mels, and batches of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.config import AudioConfig
from common.data.filelist import FilelistEntry, Filelists, first_fields, paths_of, read_filelist
from common.data.text_mel import TextMelBatch, TextMelDataset
from common.errors import InputError
from common.text.config import TextConfig
from tacotron2.arg_parser import TrainingOptions


@dataclass(frozen=True)
class Tacotron2Batch(TextMelBatch):
    """A batch and what the gate should say of it."""

    @property
    def gate_targets(self) -> Tensor:
        """(B, F) float32: 1 from an utterance's last frame on."""
        position = torch.arange(self.mels.size(2), device=self.mels.device)
        return (position >= self.mel_lengths.unsqueeze(1) - 1).float()


class Tacotron2Dataset(TextMelDataset):
    """Utterances of lists ``wavs/a.wav|text``, or with ``mels_from_disk`` of ``mels/a.pt|text``.

    A column of speakers is ignored, and so are durations and pitch of a list made for FastPitch,
    ``mels/a.pt|durations/a.pt|pitch_char/a.pt|text``. ``options`` are those of `TextMelDataset`.
    """

    def __init__(
        self, dataset_path: Path, filelists: Filelists, *, mels_from_disk: bool = False, **options: Any
    ) -> None:
        column = "mel" if mels_from_disk else "wav"
        entries = [entry for path in paths_of(filelists) for entry in _read_list(path, column)]
        super().__init__(dataset_path, entries, **options)

    def utterance(self, index: int, tokens: Tensor) -> Tacotron2Batch:
        """The utterance with ``tokens`` (L,) as a batch."""
        text = self.entries[index].fields["text"]
        return Tacotron2Batch.of_one(self.name(index), tokens, self.load_mel(index), text=text)


def build_dataset(
    options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig, text: TextConfig, training: bool
) -> Tacotron2Dataset:
    """The dataset of training or validation lists, which are read alike."""
    return Tacotron2Dataset(
        options.dataset_path,
        filelists,
        audio=audio,
        text=text,
        mels_from_disk=options.load_mel_from_disk,
        unknown_symbols=options.text.unknown_symbols,
        seed=options.seed,
    )


def teacher_forced_dataset(
    dataset_path: Path, filelist: Path, *, audio: AudioConfig, text: TextConfig, unknown_symbols: str, **_: Any
) -> Tacotron2Dataset:
    """The utterances of a list of mels or recordings, without anything random."""
    from_disk = first_fields(filelist)[0].endswith(".pt")
    return Tacotron2Dataset(
        dataset_path, filelist, audio=audio, text=text, mels_from_disk=from_disk, unknown_symbols=unknown_symbols
    )


def _read_list(path: Path, column: str) -> list[FilelistEntry]:
    """The list's entries with ``column`` and text, whatever else it has; raises InputError."""
    first = first_fields(path)
    if first[0] and first[0].endswith(".pt") != (column == "mel"):
        raise InputError(f"{path}: begins with {first[0]}; --load-mel-from-disk is for lists of mels (.pt) alone")
    features = [name for name, value in zip(("durations", "pitch"), first[1:]) if value.endswith(".pt")]
    return read_filelist(path, columns=(column, *features, "text"), optional=("speaker",))
