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
from common.text.options import TextOptions
from tacotron2.arg_parser import TrainingOptions


@dataclass(frozen=True)
class Tacotron2Batch(TextMelBatch):
    """A batch with targets for the gate."""

    @property
    def gate_targets(self) -> Tensor:
        """(B, F) float32: 1 from an utterance's last frame on."""
        position = torch.arange(self.mels.size(2), device=self.mels.device)
        return (position >= self.mel_lengths.unsqueeze(1) - 1).float()


class Tacotron2Dataset(TextMelDataset):
    """Utterances from lists of ``wavs/a.wav|text`` or, with --load-mel-from-disk, of ``mels/a.pt|text``.

    Speakers are ignored, and so are the durations and pitch in a list made for FastPitch.
    """

    def __init__(self, options: TrainingOptions, filelists: Filelists, *, training: bool = True, **known: Any) -> None:
        """``known`` holds the audio and text configurations."""
        column = "mel" if options.load_mel_from_disk else "wav"
        entries = [entry for path in paths_of(filelists) for entry in _read_list(path, column)]
        folder, unknown_symbols = options.dataset_path, options.text.unknown_symbols
        super().__init__(folder, entries, unknown_symbols=unknown_symbols, seed=options.seed, **known)

    def utterance(self, index: int, tokens: Tensor) -> Tacotron2Batch:
        """Return the utterance with ``tokens`` (L,) as a batch."""
        text = self.entries[index].fields["text"]
        return Tacotron2Batch.of_one(self.name(index), tokens, self.load_mel(index), text=text)


build_dataset = Tacotron2Dataset


def teacher_forced_dataset(
    dataset_path: Path, filelist: Path, *, audio: AudioConfig, text: TextConfig, unknown_symbols: str, **_: Any
) -> Tacotron2Dataset:
    """Build the dataset of a list of mels or recordings, without any randomness."""
    from_disk, reading = first_fields(filelist)[0].endswith(".pt"), TextOptions(unknown_symbols=unknown_symbols)
    options = TrainingOptions(text=reading, load_mel_from_disk=from_disk, dataset_path=dataset_path)
    return Tacotron2Dataset(options, filelist, audio=audio, text=text)


def _read_list(path: Path, column: str) -> list[FilelistEntry]:
    """Read a list with ``column``, text and possibly other columns; raises InputError."""
    first = first_fields(path)
    if first[0] and first[0].endswith(".pt") != (column == "mel"):
        raise InputError(f"{path}: begins with {first[0]}; --load-mel-from-disk is only for lists of mels (.pt)")
    features = [name for name, value in zip(("durations", "pitch"), first[1:]) if value.endswith(".pt")]
    return read_filelist(path, columns=(column, *features, "text"), optional=("speaker",))
